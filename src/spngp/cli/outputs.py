"""Where commands write. It is asked before any work, so that neither an input nor hours of fitting are lost."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TextIO


def check_output(
    path: str, inputs: Sequence[str | None], kind: Literal["model", "table", "report"], force: bool
) -> None:
    """Raise an error unless ``path`` is a place for the result: writable, no input, and nothing is lost there.

    Parameters
    ----------
    path : str
        The file to write; ``-`` is standard output, for tables only.
    inputs : sequence of str or None
        Every file that the command reads, ``-`` for standard input; None for one that was not given.
    kind : {"model", "table", "report"}
        What is written. A model replaces only models; a table or a report replaces no model.
    force : bool
        Replace whatever is there, unless it is an input.
    """
    if path == "-" and kind != "table":
        raise ValueError(f"a {kind} cannot be written to standard output; give a file")
    if not path:
        raise ValueError("the output must be the name of a file, got ''")
    there = _status(path, sys.stdout)
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    if there is not None and stat.S_ISREG(there.st_mode):
        _check_replaced(path, there, inputs, kind, force)
    if path != "-" and (there is None or stat.S_ISREG(there.st_mode)):  # a pipe or a device is written to directly
        _check_parent(path)


def make_folder(path: Path) -> None:
    """Make a folder for results, unless there is one, and raise an error if files cannot be made in it."""
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise NotADirectoryError(20, "Not a directory", str(part))
    path.mkdir(parents=True, exist_ok=True)
    _check_folder(str(path), str(path))


def _status(path: str, stream: TextIO | None) -> os.stat_result | None:
    """What stands at a path, or behind a stream for ``-``; None if nothing does or it cannot be told."""
    try:
        if path != "-":
            return os.stat(path)
        return None if stream is None else os.fstat(stream.fileno())
    except OSError:
        return None


def _check_replaced(path: str, there: os.stat_result, inputs: Sequence[str | None], kind: str, force: bool) -> None:
    """Raise an error if the regular file that would be replaced is an input, or worth a second thought."""
    for name in inputs:
        status = None if name is None else _status(name, sys.stdin)
        if status is not None and os.path.samestat(status, there):
            output = "standard output" if path == "-" else path
            given = "standard input" if name == "-" else name
            same = f" ({given})" if given != output else ""
            raise ValueError(f"{output} is also an input{same} and would be lost; write to another file")
    if force or path == "-" or there.st_size == 0:
        return
    from spngp.io.tensors import is_model

    if is_model(path) != (kind == "model"):
        seen = "is a spngp model" if kind != "model" else "is there and is not a spngp model"
        raise ValueError(f"{path} {seen}; write to another file, or replace it by --force")


def _check_parent(path: str) -> None:
    real, given = os.path.dirname(os.path.realpath(path)), os.path.dirname(path)
    folder = real if os.path.islink(path) else given or "."  # a link stays one: its target is replaced
    if not os.path.exists(real):
        raise FileNotFoundError(2, "No such directory; make it first", folder)
    _check_folder(real, folder)


def _check_folder(path: str, shown: str) -> None:
    """Make a file without a name: what a folder's mode says holds neither for root nor for a read-only disk."""
    if not os.path.isdir(path):
        raise NotADirectoryError(20, "Not a directory", shown)
    try:
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise OSError(error.errno, f"no file can be made here ({error.strerror})", shown) from None
