"""Files that are whole or not there: written aside, flushed to the disk, then renamed into place.

A file is written under a name of its own beside the target, ``.name.0123456789ab.part``, and its writer holds a lock on
it. What a killed writer left has no lock any more, and goes with the next save of the same target.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_LONGEST_NAME = 255  # bytes, on all common file systems
_RANDOM_BYTES = 6
_ENDING = ".part"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same directory, which replaces ``path`` if the ``with`` statement ends without an error.

    After an error, or if the process dies, the file at ``path`` is as it was. A pipe or device is written to directly.
    Write into the temporary file, which exists and is locked; another file renamed to its name would not be locked.

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
    target = Path(os.path.realpath(path))  # what a link points to is replaced, not the link
    if target.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if target.exists() and not target.is_file():
        yield target
        return
    _remove_stale_parts(target)
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    try:
        # the system applies the umask; the mode of a file that is replaced holds from the start, so it stays private
        handle, temporary = _create_part(target, 0o666 if mode is None else mode | 0o600)
    except OSError as error:  # names the file asked for, not the temporary one
        raise type(error)(error.errno, error.strerror, str(path)) from None
    with contextlib.ExitStack() as held:
        held.callback(os.close, handle)
        try:
            yield temporary
            os.fsync(handle)
            if mode is not None:
                os.chmod(temporary, mode)
            if sys.platform == "win32":  # Windows renames no open file
                held.close()
            os.replace(temporary, target)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.filename in (None, str(temporary)):
                error.filename = str(path)  # of a full disk, for example
            raise
    _sync_directory(target.parent)


def _create_part(target: Path, mode: int) -> tuple[int, Path]:
    """A new, locked file beside the target: its handle and its path."""
    while True:
        temporary = target.with_name(f"{_part_prefix(target)}{secrets.token_hex(_RANDOM_BYTES)}{_ENDING}")
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        # before it was locked, another writer may have taken it for one that was left behind
        if lock(handle) is not False and _is_file_at(handle, temporary):
            return handle, temporary
        os.close(handle)


def _part_prefix(target: Path) -> str:
    """How the names of a target's temporary files begin; a long name is cut, and told from others by a hash."""
    longest = _LONGEST_NAME - len("..") - 2 * _RANDOM_BYTES - len(_ENDING)
    encoded = os.fsencode(target.name)
    if len(encoded) <= longest:
        return f".{target.name}."
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return f".{encoded[: longest - len(digest) - 1].decode(errors='ignore')}-{digest}."


def _remove_stale_parts(target: Path) -> None:
    """Remove temporary files of this target whose writers are gone."""
    pattern = re.compile(f"{re.escape(_part_prefix(target))}[0-9a-f]{{{2 * _RANDOM_BYTES}}}{re.escape(_ENDING)}")
    with contextlib.suppress(OSError):  # whoever may not list the directory may still write into it
        for name in filter(pattern.fullmatch, os.listdir(target.parent)):
            with contextlib.suppress(OSError):
                _remove_if_stale(target.with_name(name))


def _remove_if_stale(part: Path) -> None:
    if not stat.S_ISREG(part.lstat().st_mode):
        return
    handle = os.open(part, os.O_RDWR)
    try:
        if lock(handle) and _is_file_at(handle, part):
            part.unlink()
    finally:
        os.close(handle)


def lock(handle: int) -> bool | None:
    """Lock an open file until it is closed or the process ends; False if another has it, None if nobody can."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True


def _is_file_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _sync_directory(directory: Path) -> None:
    """Make the new name itself survive a crash, where the system lets a directory be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
