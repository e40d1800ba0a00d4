"""Named arrays in a safetensors file: written at once, read as views of mapped memory, checked on first use.

The format is a header and the bytes of the arrays, so both are done here: the safetensors package reads these files,
but it copies all arrays to write them and to read them. A large model opens at once, and what is never asked for is
never read.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spngp._support.atomic import replacing
from spngp.io.header import LARGEST_HEADER, largest_header, read_header, write_header

_KEY = "spngp"  # of our own metadata, in the format's
_START = b'{"__metadata__":{"spngp":'  # of the header, after its length
_SLICE = 1 << 22  # bytes written or checked at a time

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
    return zlib.crc32(_bytes_of(array))


def write(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write C-ordered arrays; what was at ``path`` stays until the new file is whole and on the disk."""
    # the widest items first, so that all are aligned
    arrays = dict(sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
    header = write_header(arrays, {_KEY: json.dumps(metadata)})
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            for part in _slices(_bytes_of(array)):
                file.write(part)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _slices(data: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(data), _SLICE):
        yield data[start : start + _SLICE]


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
            if len(start) < 8 or not 2 <= length <= min(size - 8, LARGEST_HEADER):
                raise self._not_a_model(start, length, size, file)
            if length > largest_header(size):
                raise ModelFileError(
                    f"{self.path} is not a spngp model, or is damaged: its header has {length:,} of its {size:,} bytes"
                )
            text = file.read(length)
            try:
                metadata, self._entries = read_header(text)
                ours = metadata.get(_KEY)
                self.metadata: dict[str, Any] | None = None if ours is None else dict(json.loads(ours))
            except (ValueError, KeyError, TypeError, RecursionError):
                foreign = not text.startswith(b"{")
                raise self._not_a_model(start, length, size, file) if foreign else self.damaged("its header") from None
            expected = max((entry.stop for entry in self._entries.values()), default=8 + length)
            if size < expected:
                raise ModelFileError(f"{self.path} is truncated: {size:,} bytes where {expected:,} are expected")
            end = 8 + length
            for entry in sorted(self._entries.values(), key=lambda entry: (entry.start, entry.stop)):
                if entry.start != end:  # no gaps, and nothing twice
                    raise self.damaged("its header")
                end = entry.stop
            if size > end:
                raise self.damaged("its header")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _not_a_model(self, start: bytes, length: int, size: int, file: BinaryIO) -> ModelFileError:
        for magic, kind in _FOREIGN.items():
            if start.startswith(magic):
                return ModelFileError(f"{self.path} is {kind}, not a spngp model")
        if size == 0:
            return ModelFileError(f"{self.path} is empty, not a spngp model")
        if max(2, size - 7) <= length <= LARGEST_HEADER and file.read(1) == b"{":
            return ModelFileError(f"{self.path} is truncated: {size:,} bytes, not even its header is whole")
        return ModelFileError(f"{self.path} is not a spngp model")

    def damaged(self, what: str) -> ModelFileError:
        """The error for contents that cannot be right."""
        return ModelFileError(f"{self.path} is damaged: {what} does not hold what was written")

    def layout(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of every array."""
        return {name: (entry.dtype.str, entry.shape) for name, entry in self._entries.items()}

    def unchecked(self, name: str) -> NDArray[Any]:
        """An array of which nothing has been read yet: its shape can be relied on, its contents not."""
        entry = self._entries[name]
        return np.frombuffer(self._map, entry.dtype, entry.size, entry.start).reshape(entry.shape)

    def array(self, name: str) -> NDArray[Any]:
        """An array, compared with its checksum the first time."""
        view = self.unchecked(name)
        if name not in self._checked:
            self._compare(name, checksum(view))
        return view

    def check_all(self) -> None:
        """Compare every array with its checksum now; reads the file once, without keeping it in memory."""
        for name in sorted(self.checksums, key=lambda name: self._entries[name].start):
            total, entry = 0, self._entries[name]
            for start in range(entry.start, entry.stop, _SLICE):
                stop = min(start + _SLICE, entry.stop)
                with memoryview(self._map)[start:stop] as part:
                    total = zlib.crc32(part, total)
                self._release(start, stop)
            self._compare(name, total)

    def _release(self, start: int, stop: int) -> None:
        """Take these bytes out of the process's memory; they are read again if they are used."""
        if hasattr(mmap, "MADV_DONTNEED"):
            first = start - start % mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, first, stop - first)

    def _compare(self, name: str, found: int) -> None:
        if found != self.checksums.get(name, found):
            raise self.damaged(f"array {name!r}")
        self._checked.add(name)
