"""Directories that are whole or not there, and temporary ones that go even if their owner is killed.

Whoever fills a directory holds a lock on it, which ends with the process. What a killed one left has no lock any more,
and goes when the next one begins.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from spngp._support.atomic import lock

_RANDOM_BYTES = 6
_TEMPORARY = "spngp-work-"
_HERE, _EXCHANGE = -100, 2  # of renameat2 on Linux: names as they stand, and change them about
_held: dict[Path, int] = {}  # directories of this process, and their handles


def directory_beside(target: Path) -> Path:
    """A new, locked directory whose name is made from the target's; others of the target that nobody fills go."""
    remove_stale(
        target.parent, re.compile(rf"{re.escape(f'.{target.name}.')}[0-9a-f]{{{2 * _RANDOM_BYTES}}}\.(part|old)")
    )
    return _made(target.with_name(f".{target.name}.{secrets.token_hex(_RANDOM_BYTES)}.part"))


def temporary_directory(
    parent: str | os.PathLike[str] | None = None, keep: Callable[[Path], bool] | None = None
) -> Path:
    """A new, locked directory for temporary files; those that killed processes left there go, unless ``keep`` says no.

    Examples
    --------
    >>> from spngp._support.directories import temporary_directory, remove_directory
    >>> directory = temporary_directory()
    >>> directory.exists()
    True
    >>> remove_directory(directory)
    >>> directory.exists()
    False
    """
    home = Path(tempfile.gettempdir() if parent is None else parent)
    remove_stale(home, re.compile(rf"{_TEMPORARY}[0-9a-f]{{{2 * _RANDOM_BYTES}}}"), keep)
    return _made(home / f"{_TEMPORARY}{secrets.token_hex(_RANDOM_BYTES)}", 0o700)


def _made(path: Path, mode: int = 0o777) -> Path:
    path.mkdir(mode, parents=True)
    with contextlib.suppress(OSError):  # Windows opens no directories
        handle = os.open(path, os.O_RDONLY)
        lock(handle)
        _held[path] = handle
    return path


def let_go(path: Path) -> None:
    """Give up the lock on a directory, which now is somebody else's."""
    with contextlib.suppress(KeyError):
        os.close(_held.pop(path))


def remove_directory(path: Path) -> None:
    """Remove a directory that was made here."""
    shutil.rmtree(path, ignore_errors=True)
    let_go(path)


def remove_stale(parent: Path, names: re.Pattern[str], keep: Callable[[Path], bool] | None = None) -> None:
    """Remove directories of these names, and of this user, that nobody holds."""
    with contextlib.suppress(OSError):  # whoever may not list the directory may still write into it
        for name in filter(names.fullmatch, os.listdir(parent)):
            with contextlib.suppress(OSError):
                _remove_if_stale(parent / name, keep)


def _remove_if_stale(path: Path, keep: Callable[[Path], bool] | None) -> None:
    if path.is_symlink() or not path.is_dir() or (hasattr(os, "getuid") and path.stat().st_uid != os.getuid()):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        if lock(handle) and not (keep is not None and keep(path)):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)


def put_directory(new: Path, target: Path) -> Path | None:
    """Rename a directory to its name; returns where the one is now that stood there, to be removed.

    On Linux both names change about at once. Elsewhere there is a moment at which the target is not there; whoever is
    killed then leaves the old directory beside it, under the target's name with ``.old`` at its end.
    """
    if not target.exists():
        os.rename(new, target)
        return None
    if _exchanged(new, target):
        return new
    old = target.with_name(f".{target.name}.{secrets.token_hex(_RANDOM_BYTES)}.old")
    os.rename(target, old)
    os.rename(new, target)
    return old


def _exchanged(one: Path, other: Path) -> bool:
    """Let two names change about at once, where the system can."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = os.fsencode(one), os.fsencode(other)
    return rename is not None and rename(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0
