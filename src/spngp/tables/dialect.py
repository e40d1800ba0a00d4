"""How a CSV file is written: encoding, delimiter, decimal mark and header, found by looking at its first lines.

What the first lines suggest of the decimal mark is held against every row by :mod:`spngp.tables.decimals`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spngp.tables.decimals import decimal_mark

SAMPLE = 1 << 18  # bytes looked at; the header must end within them
_LINES = 50
_DELIMITERS = ",;\t|"
_QUOTED = re.compile('"[^"]*"')
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_FOREIGN = {b"PK\x03\x04": "a zip archive", b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"\x1f\x8b": "gzip"}


class Dialect(NamedTuple):
    """How a CSV file is written."""

    encoding: str
    delimiter: str
    decimal: str
    header: list[str]


def find_dialect(head: bytes, name: str) -> Dialect:
    """The dialect of a file.

    Parameters
    ----------
    head : bytes
        The first ``SAMPLE`` bytes of the file, or all of it.
    name : str
        The file's name, for errors.
    """
    for magic, kind in _FOREIGN.items():
        if head.startswith(magic):
            raise ValueError(f"{name} is {kind}, not CSV or Parquet")
    encoding = next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), "utf-8")
    text = head.decode(encoding, errors="replace")
    if "\0" in text:
        raise ValueError(f"{name} is neither CSV nor Parquet")
    lines = re.split("\r\n|\r|\n", text, maxsplit=_LINES)
    if len(lines) > _LINES or len(head) >= SAMPLE:
        lines = lines[:-1]  # without the last line, which may be cut off
    if not lines:
        raise ValueError(f"{name} must have a header, names in one line, of less than {SAMPLE:,} bytes")
    first = lines[0]
    if not first.strip():
        raise ValueError(f"{name} must begin with a header: its first line is blank")
    if "\ufffd" in first:
        raise ValueError(f"{name} is not text in UTF-8, its header at least; save it as UTF-8")
    if first.count('"') % 2:
        raise ValueError(f"{name} must have its header in one line: a quoted name goes on in the next")
    delimiter = max(
        _DELIMITERS, key=_QUOTED.sub("", first).count
    )  # the one that makes most fields; of several, the first
    try:
        header = [field.strip() for field in next(csv.reader([first], delimiter=delimiter))]
    except csv.Error:  # a field is too long: nothing else can be wrong, as quotes are paired
        raise ValueError(f"{name} has a column's name of more than {csv.field_size_limit():,} characters") from None
    decimal = "." if delimiter == "," else decimal_mark(_fields(lines[1:], delimiter))
    return Dialect(encoding, delimiter, decimal, header)


def _fields(lines: Sequence[str], delimiter: str) -> Iterator[str]:
    try:
        for row in csv.reader(lines, delimiter=delimiter):
            yield from map(str.strip, row)
    except csv.Error:  # the error comes, with its line, when the rows are read
        return
