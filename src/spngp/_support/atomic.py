"""Files that are whole or not there: written aside, flushed to the disk, then renamed into place."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same directory that takes the place of ``path`` if the block ends well.

    If it does not, or the process dies, what was at ``path`` before is untouched. A pipe or a device is written to
    directly: there is nothing to keep.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from spngp._support.atomic import replacing
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "answer.txt"
    ...     with replacing(path) as temporary:
    ...         _ = temporary.write_text("42")
    ...     path.read_text()
    '42'
    """
    target = Path(os.path.realpath(path))  # through a link, so that the link stays one
    if target.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if target.exists() and not target.is_file():
        yield target
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:  # the name of a temporary file would tell nobody anything
        raise type(error)(error.errno, error.strerror, str(path)) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # a full disk, say: which file it was for
        raise
    _sync_directory(target.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(directory: Path) -> None:
    """Make the new name itself survive a crash, where the system lets a directory be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
