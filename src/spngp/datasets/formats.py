"""Original files as numbers: text with any separator, spreadsheets (xlsx), and archives (zip, gzip) that hold them.

Written against what home pages publish. An error names what could not be read; the caller knows which file it was.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from xml.etree import ElementTree

import numpy as np

from spngp._support.types import Array

_LARGEST = 500_000_000  # bytes that an archive may unpack to
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_SEPARATORS = re.compile(r"[,;\s]+")
_CELL = re.compile(r"([A-Z]+)(\d+)")


def read_original(content: bytes, member: str = "") -> Array:
    r"""The numbers of a file, (rows, columns), whatever it is packed in.

    ``member`` is the end of the name of the file inside an archive. Lines without numbers, as a header, are left out;
    so are empty rows and columns of spreadsheets.

    Examples
    --------
    >>> from spngp.datasets.formats import read_original
    >>> read_original(b'"a";"b"\n1;2.5\n3;4\n').tolist()
    [[1.0, 2.5], [3.0, 4.0]]
    """
    try:
        if content[:2] == b"\x1f\x8b":
            return read_original(_bounded(gzip.GzipFile(fileobj=io.BytesIO(content))), member)
        if content[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                names = archive.namelist()
                if "xl/workbook.xml" in names:
                    return _spreadsheet(archive)
                found = [name for name in names if name.endswith(member)]
                if not member or len(found) != 1:
                    raise ValueError(f"the archive must have one file {member!r}, it has {', '.join(names[:8])}")
                with archive.open(found[0]) as file:
                    return read_original(_bounded(file), member)
        return _text(content.decode("utf-8-sig"))
    except (zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"it cannot be unpacked: {error}") from None
    except ElementTree.ParseError as error:
        raise ValueError(f"the spreadsheet cannot be read: {error}") from None


def _bounded(file: object) -> bytes:
    """All bytes of an unpacked file, unless they are too many to be what was meant."""
    content: bytes = file.read(_LARGEST + 1)  # type: ignore[attr-defined]
    if len(content) > _LARGEST:
        raise ValueError(f"it unpacks to more than {_LARGEST:,} bytes")
    return content


def _text(text: str) -> Array:
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = [field.strip('"') for field in _SEPARATORS.split(line.strip()) if field]
        try:
            rows.append([float(field) for field in fields])
        except ValueError:
            if rows:
                raise ValueError(f"line {number} must hold numbers, got {line[:60]!r}") from None
    return _table([row for row in rows if row])


def _spreadsheet(archive: zipfile.ZipFile) -> Array:
    """The first sheet of a workbook; cells that hold no numbers are left out, and so are rows without any."""
    sheets = sorted(
        (name for name in archive.namelist() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)),
        key=lambda name: int(re.sub(r"\D", "", name)),
    )
    if not sheets:
        raise ValueError("the workbook has no sheet")
    with archive.open(sheets[0]) as file:
        root = ElementTree.fromstring(_bounded(file))
    rows: dict[int, dict[int, float]] = {}
    for cell in root.iter(f"{_SHEET}c"):
        value, place = cell.find(f"{_SHEET}v"), _CELL.fullmatch(cell.get("r", ""))
        if value is None or not value.text or place is None or cell.get("t", "n") != "n":
            continue
        rows.setdefault(int(place[2]), {})[_column(place[1])] = float(value.text)
    columns = sorted({column for row in rows.values() for column in row})
    return _table([[row[column] for column in columns if column in row] for _, row in sorted(rows.items())])


def _column(letters: str) -> int:
    """The number of a spreadsheet's column: A is 1, Z 26, AA 27."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _table(rows: list[list[float]]) -> Array:
    if not rows:
        raise ValueError("it holds no numbers")
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise ValueError(f"its rows have between {widths[0]} and {widths[-1]} numbers")
    return np.array(rows)
