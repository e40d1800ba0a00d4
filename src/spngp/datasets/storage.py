"""Where the files of data sets lie, whether they are whole, and how a missing one is obtained.

A file is looked for in the folder ``$SPNGP_DATA``, then in the user's cache. What is missing is downloaded into the
cache: from a mirror, a web folder that holds the files under their names (``$SPNGP_DATA_URL``), from its own address,
or in its original form, which is read and compared with what our table holds (:mod:`spngp.datasets.originals`). Files
that are there are only ever read: a damaged one is reported and left alone.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from spngp._support.wording import counted
from spngp.datasets.downloading import convert, download, is_converted
from spngp.datasets.originals import ORIGINALS
from spngp.datasets.registry import REGISTRY, Entry, File

FOLDER_VARIABLE = "SPNGP_DATA"
MIRROR_VARIABLE = "SPNGP_DATA_URL"


def cache_folder() -> Path:
    """The user's cache: ``$XDG_CACHE_HOME/spngp``, or ``~/.cache/spngp``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spngp"


def folders() -> dict[str, Path]:
    """Where files are looked for, in this order, by the name people know the folder by."""
    given = os.environ.get(FOLDER_VARIABLE)
    return {**({f"${FOLDER_VARIABLE}": Path(given)} if given else {}), "cache": cache_folder()}


@dataclass(frozen=True)
class Place:
    """A file that is there: in the folder people know as ``label``."""

    label: str
    file: File
    path: Path


def locate(file: File) -> list[Place]:
    """Where a file is, or all of its sources; nothing if either is incomplete. Nothing is read."""
    for label, folder in folders().items():
        for name in (file.name, converted_name(file)):
            if (folder / name).is_file():
                return [Place(label, file, folder / name)]
    parts = [locate(source) for source in file.sources]
    return [place for part in parts for place in part] if all(parts) else []


def converted_name(file: File) -> str:
    """What a table is called that was read from its original form."""
    return file.name.partition(".")[0] + ".converted.csv"


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check(file: File, path: Path) -> None:
    """Raise an error if the file is not what it should be."""
    if path.name == converted_name(file):
        if not is_converted(file, path):
            raise ValueError(f"{path} does not hold the numbers of {file.name}; remove it, and it is made again")
        return
    found = checksum(path)
    if found != file.sha256:
        raise ValueError(
            f"{path} is damaged or another version: its SHA-256 should be {file.sha256} but is {found}; it was left as "
            "it is: remove it, put the right file there, or read it with verify=False if it is your own conversion"
        )


@dataclass(frozen=True)
class Status:
    """Where a data set is to be had: ``"package"``, ``"generated"``, ``"$SPNGP_DATA"``, ``"cache"`` or ``"missing"``.

    Attributes
    ----------
    entry : Entry
    where : str
    paths : tuple of Path
        The files that are there.
    intact : bool
        Whether their checksums are right.
    """

    entry: Entry
    where: str
    paths: tuple[Path, ...] = ()
    intact: bool = True

    @property
    def available(self) -> bool:
        """Whether it can be loaded without a download."""
        return self.where != "missing" and self.intact


def status(entry: Entry) -> Status:
    """Where one data set is to be had."""
    if not entry.files:
        return Status(entry, "generated" if entry.home == "generated" else "package")
    found = [locate(file) for file in entry.files]
    places = [place for part in found for place in part]
    intact = all(_is_intact(place) for place in places)
    where = " + ".join(dict.fromkeys(place.label for place in places)) if all(found) else "missing"
    return Status(entry, where, tuple(place.path for place in places), intact)


def _is_intact(place: Place) -> bool:
    if place.path.name == converted_name(place.file):
        return is_converted(place.file, place.path)
    return checksum(place.path) == place.file.sha256


def statuses() -> list[Status]:
    """Where each data set is to be had.

    Examples
    --------
    >>> from spngp.datasets import statuses
    >>> [(item.entry.name, item.entry.rows, item.where) for item in statuses()][:2]
    [('motorcycle', 133, 'package'), ('nonstationary', 501, 'generated')]
    """
    return [status(entry) for entry in REGISTRY.values()]


def obtain(entry: Entry, file: File, verify: bool = True, mirror: str | None = None) -> list[Path]:
    """The path of a whole file, or those of its sources: found in a folder, or downloaded into the cache."""
    places = locate(file)
    if verify:
        for place in places:
            check(place.file, place.path)
    if places:
        return [place.path for place in places]
    url = _address(file, mirror)
    if url is not None:
        target = cache_folder() / file.name
        if target.exists():
            check(file, target)
        else:
            download(file, url, target)
        return [target]
    if entry.name in ORIGINALS and not file.sources:
        return [convert(file, ORIGINALS[entry.name], cache_folder() / converted_name(file))]
    if not file.sources:
        raise FileNotFoundError(_what_to_do(entry, file))
    return [path for source in file.sources for path in obtain(entry, source, verify)]


def _address(file: File, mirror: str | None) -> str | None:
    base = mirror or os.environ.get(MIRROR_VARIABLE)
    return f"{base.rstrip('/')}/{file.name}" if base else file.url


def _what_to_do(entry: Entry, file: File) -> str:
    places = " or ".join(str(folder / file.name) for folder in folders().values())
    to_set = "" if os.environ.get(FOLDER_VARIABLE) else f" (or into a folder named by ${FOLDER_VARIABLE})"
    packed = "gzip-compressed " if file.name.endswith(".gz") else ""
    note = f"; {entry.note}" if entry.note else ""
    return (
        f"the data set {entry.name!r} is not on this machine and {file.name} has no known download address: put it at "
        f"{places}{to_set}, or set ${MIRROR_VARIABLE} to a web folder that holds it. It is a {packed}CSV table with "
        f"one line of column names and {file.rows} rows of {counted(entry.inputs, 'input')} followed by "
        f"{counted(entry.outputs, 'output')}, "
        f"made from {entry.home}{note}; SHA-256 {file.sha256} (verify=False accepts your own conversion)"
    )
