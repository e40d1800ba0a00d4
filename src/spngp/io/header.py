"""The header of a safetensors file: which arrays there are, of what type and shape, and where.

It is JSON, ``{"__metadata__": {...}, "name": {"dtype": "F64", "shape": [3, 2], "data_offsets": [0, 48]}, ...}``. A
general parser makes up to 25 times its size of a hostile one, so it is read entry by entry, and what cannot be an entry
is not parsed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

# An array takes about 80 bytes of the header. A million rows make about 2,000 regions of two experts by default, each
# with and without context: about 30,000 arrays, 2.4 MB.
LARGEST_HEADER = 32_000_000
_SMALLEST_LIMIT = 65_536
# Characters of a name and of what is said of it: that of an array of two dimensions has about 80, our metadata 60.
_LONGEST_ENTRY, _LONGEST_METADATA = 1024, 65_536

_METADATA = "__metadata__"
_SPACE = re.compile(r"[ \t\r\n]*")
_parse = json.JSONDecoder().raw_decode
# An entry as we write it: a shard of a large model has hundreds, and this is faster than a parser.
_COUNT = r"(?:0|[1-9][0-9]{0,14})"
_ENTRY = re.compile(
    rf'"([^"\\\x00-\x1f]{{1,200}})":{{"dtype":"([A-Z0-9]{{1,8}})","shape":\[((?:{_COUNT}(?:,{_COUNT}){{0,9}})?)\],'
    rf'"data_offsets":\[({_COUNT}),({_COUNT})\]}}'
)


class Entry:
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


def largest_header(file_size: int) -> int:
    """Bytes that the header of a model in a file of this size may have: every array but a few has more than 1,024."""
    return min(LARGEST_HEADER, _SMALLEST_LIMIT + file_size // 4)


def write_header(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """The header for arrays that follow in the order of the mapping, filled up to a multiple of eight bytes."""
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    start = 0
    for name, array in arrays.items():
        stop = start + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    limit = largest_header(8 + len(text) + start)
    if len(text) > limit:
        raise ValueError(f"the header of a model file must have at most {limit:,} bytes, got {len(text):,}")
    return text


def read_header(text: bytes) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Metadata and arrays of a header that stands after eight bytes of the file; what is no header is a ValueError."""
    metadata: dict[str, Any] = {}
    entries: dict[str, Entry] = {}
    for name, item in _items(text.decode()):
        if type(name) is not str or name in entries or type(item) is not dict:
            raise ValueError(f"array {name!r} must have a name and be described once, got {item!r}")
        if name == _METADATA:
            metadata = item
        else:
            entries[name] = Entry(item, 8 + len(text))
    return metadata, entries


def _items(text: str) -> Iterator[tuple[str, Any]]:
    """Names and values of a JSON object, one at a time."""
    at = _expect(text, 0, "{")
    if text[at : at + 1] == "}":
        at += 1
    else:
        while True:
            name, item, at = _item(text, at)
            yield name, item
            if text[at : at + 1] == "}":
                at += 1
                break
            at = _expect(text, at, ",")
    if _after_space(text, at) != len(text):
        raise ValueError(f"nothing must follow the header, got {text[at : at + 20]!r}")


def _item(text: str, at: int) -> tuple[str, Any, int]:
    """A name, its value, and the position after both and the space that follows."""
    usual = _ENTRY.match(text, at)
    if usual is not None:
        name, dtype, shape, first, last = usual.groups()
        item: Any = {
            "dtype": dtype,
            "shape": [int(size) for size in shape.split(",")] if shape else [],
            "data_offsets": [int(first), int(last)],
        }
        return name, item, _after_space(text, usual.end())
    name, length = _parse(text[at : at + _LONGEST_ENTRY])
    start = _expect(text, _after_space(text, at + length), ":")
    item, length = _parse(text[start : start + (_LONGEST_METADATA if name == _METADATA else _LONGEST_ENTRY)])
    return name, item, _after_space(text, start + length)


def _expect(text: str, at: int, character: str) -> int:
    """The position after a character that must stand here, and after the space that follows it."""
    if text[at : at + 1] != character:
        raise ValueError(f"{character!r} expected at character {at} of the header, got {text[at : at + 20]!r}")
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it matches nothing as well
    return found.end()
