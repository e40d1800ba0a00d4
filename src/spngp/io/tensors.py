"""Named arrays in a safetensors file: written at once, read as views of mapped memory, checked on first use.

The safetensors package writes the file. Its reader for NumPy copies, so the header, which is JSON, is read here and
the arrays are views of the mapped file: a large model opens at once, and what is never asked for is never read.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._support.atomic import replacing

# Names of dtypes in the header.
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
DTYPES = frozenset(_DTYPES.values())

_KEY = "spngp"  # of our own metadata, in the format's
_START = b'{"__metadata__":{"spngp":'  # of the header, after its length
_LARGEST_HEADER = 100_000_000  # the format's own limit

# How files begin that people mistake for models.
_FOREIGN = {
    b"PK\x03\x04": "a zip archive",
    b"\x80\x02": "a pickle, which is never read because it can run code",
    b"\x80\x03": "a pickle, which is never read because it can run code",
    b"\x80\x04": "a pickle, which is never read because it can run code",
    b"\x80\x05": "a pickle, which is never read because it can run code",
    b"\x1f\x8b": "a gzip file",
    b"PAR1": "a Parquet file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
}


class ModelFileError(ValueError):
    """A file that is not a model, is damaged, or comes from a later version."""


def checksum(array: NDArray[Any]) -> int:
    """CRC-32 of the bytes: any flipped bit, and any run of up to 32, changes it."""
    return zlib.crc32(array.reshape(-1).view(np.uint8)) if array.size else 0  # type: ignore[arg-type]


def write(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write C-ordered arrays; what was at ``path`` stays until the new file is whole and on the disk."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    with replacing(path) as temporary:
        # one entry: the package writes several in any order, and equal models should be equal files
        try:
            save_file(dict(tensors), str(temporary), metadata={_KEY: json.dumps(metadata)})
        except SafetensorError as error:
            raise _as_os_error(error) from None


def _as_os_error(error: Exception) -> OSError:
    """What the package says about a full disk and the like: it keeps the system's error as text only."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(str(error)) if number is None else OSError(int(number[1]), os.strerror(int(number[1])))


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as those that :func:`write` makes, whole or not."""
    with open(path, "rb") as file:
        return file.read(8 + len(_START))[8:] == _START


class TensorFile:
    """A file opened for reading. Arrays are read-only views that keep the mapping alive.

    Attributes
    ----------
    path : Path
    metadata : dict or None
        As it was written; None if the file is not ours.
    checksums : dict of str to int
        Set by whoever knows them; an array is compared with its own when first asked for.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.checksums: dict[str, int] = {}
        self._checked: set[str] = set()
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or not 2 <= length <= min(size - 8, _LARGEST_HEADER):
                raise self._not_a_model(start, length, size)
            text = file.read(length)
            try:
                header = json.loads(text)
                ours = header.pop("__metadata__", {}).get(_KEY)
                self.metadata: dict[str, Any] | None = None if ours is None else dict(json.loads(ours))
                self._entries = {name: _Entry(item, 8 + length) for name, item in header.items()}
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                foreign = not text.startswith(b"{")
                raise self._not_a_model(start, length, size) if foreign else self.damaged("its header") from None
            expected = max((entry.stop for entry in self._entries.values()), default=8 + length)
            if size < expected:
                raise ModelFileError(f"{self.path} is truncated: {size:,} bytes where {expected:,} are expected")
            if (
                size > expected
                or sum(entry.stop - entry.start for entry in self._entries.values()) != size - 8 - length
            ):
                raise self.damaged("its header")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _not_a_model(self, start: bytes, length: int, size: int) -> ModelFileError:
        for magic, kind in _FOREIGN.items():
            if start.startswith(magic):
                return ModelFileError(f"{self.path} is {kind}, not a spngp model")
        if size == 0:
            return ModelFileError(f"{self.path} is empty, not a spngp model")
        if 2 <= length <= _LARGEST_HEADER and size >= 9:
            with open(self.path, "rb") as file:
                if file.read(9)[8:] == b"{":
                    return ModelFileError(f"{self.path} is truncated: {size:,} bytes, not even its header is whole")
        return ModelFileError(f"{self.path} is not a spngp model")

    def damaged(self, what: str) -> ModelFileError:
        """The error for contents that cannot be right."""
        return ModelFileError(f"{self.path} is damaged: {what} does not hold what was written")

    def layout(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of every array."""
        return {name: (entry.dtype.str, entry.shape) for name, entry in self._entries.items()}

    def array(self, name: str) -> NDArray[Any]:
        """An array, compared with its checksum the first time."""
        entry = self._entries[name]
        view = np.frombuffer(self._map, entry.dtype, entry.size, entry.start).reshape(entry.shape)
        if name not in self._checked:
            if name in self.checksums and checksum(view) != self.checksums[name]:
                raise self.damaged(f"array {name!r}")
            self._checked.add(name)
        return view

    def check_all(self) -> None:
        """Compare every array with its checksum now; reads the file once, without keeping it in memory."""
        with open(self.path, "rb") as file:
            for name in sorted(self._entries, key=lambda name: self._entries[name].start):
                entry, total = self._entries[name], 0
                file.seek(entry.start)
                for start in range(entry.start, entry.stop, 1 << 22):
                    total = zlib.crc32(file.read(min(1 << 22, entry.stop - start)), total)
                if total != self.checksums.get(name, total):
                    raise self.damaged(f"array {name!r}")
                self._checked.add(name)


class _Entry:
    """Where an array stands in the file, checked against its type and shape."""

    __slots__ = ("dtype", "shape", "size", "start", "stop")

    def __init__(self, item: Mapping[str, Any], offset: int) -> None:
        self.dtype = _DTYPES[item["dtype"]]
        self.shape = tuple(item["shape"])
        first, last = item["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (first, last, *self.shape)):
            raise ValueError("sizes and offsets must be integers >= 0")
        self.size = math.prod(self.shape)
        self.start, self.stop = offset + first, offset + last
        if last - first != self.size * self.dtype.itemsize:
            raise ValueError("size and offsets must agree")
