"""Files of rows: CSV in the dialects people meet, Parquet; by name or from standard input, whole or batch by batch.

All of a CSV file is read as text, and :mod:`spngp.tables.schema` turns columns into numbers: it alone knows which are
meant to be, and can name the row where one is not.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

_SAMPLE = 1 << 18  # bytes looked at to find the dialect
_BLOCK = 1 << 22  # bytes of text parsed at a time
_DELIMITERS = ",;\t|"
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_WHOLE = re.compile(r"[+-]?\d{1,3}")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+")
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_FOREIGN = {b"PK\x03\x04": "a zip archive", b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"\x1f\x8b": "gzip"}


class Dialect(NamedTuple):
    """How a CSV file is written, found by looking at its first lines."""

    encoding: str
    delimiter: str
    decimal: str
    header: list[str]


class Source:
    """A table to be read.

    Parameters
    ----------
    path : str
        A CSV (also .gz, .bz2, .zst) or Parquet file; ``-`` is standard input.

    Attributes
    ----------
    name : str
        For messages.
    columns : list of str
    decimal : str
        The decimal mark of numbers that are text, ``.`` or ``,``.
    """

    def __init__(self, path: str | Path) -> None:
        self.name = "standard input" if str(path) == "-" else str(path)
        self._open = _Reopened(path)
        head = self._open.head()
        if not head:
            raise ValueError(f"{self.name} is empty")
        self._parquet = head.startswith(b"PAR1")
        if self._parquet:
            self._file = self._parquet_file()
            self.columns, self.decimal = list(self._file.schema_arrow.names), "."
        else:
            self._dialect = _find_dialect(head, self.name)
            self.columns, self.decimal = self._dialect.header, self._dialect.decimal
        repeated = {name: at for at, name in enumerate(self.columns) if name in self.columns[:at]}
        if repeated:
            name, at = next(iter(repeated.items()))
            first = self.columns.index(name) + 1
            raise ValueError(
                f"{self.name}: column {name!r} stands twice in the header, as columns {first} and {at + 1}"
            )

    def batches(self, rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """The rows, at most so many at a time; once for standard input, else as often as asked."""
        for batch in self._parquet_batches(rows) if self._parquet else self._csv_batches():
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def table(self) -> pa.Table:
        """All rows."""
        batches = list(self.batches(1_000_000))
        if not batches:
            raise ValueError(f"{self.name} has a header but no rows")
        return pa.Table.from_batches(batches)

    def _parquet_file(self) -> Any:
        try:
            return pa.parquet.ParquetFile(self._open.seekable())
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.name} is not a whole Parquet file: {error}") from None

    def _parquet_batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._file.iter_batches(batch_size=rows)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.name} is damaged: {error}") from None

    def _csv_batches(self) -> Iterator[pa.RecordBatch]:
        dialect, ragged = self._dialect, []

        def note_ragged(row: Any) -> str:
            ragged.append(row)
            return "error"

        try:
            reader = pa.csv.open_csv(
                self._open.stream(),
                read_options=pa.csv.ReadOptions(
                    column_names=dialect.header,
                    skip_rows=1,
                    block_size=_BLOCK,
                    use_threads=False,
                    encoding="utf-8" if dialect.encoding == "utf-8-sig" else dialect.encoding,
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=note_ragged
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(dialect.header, pa.string()), strings_can_be_null=True
                ),
            )
            yield from reader
        except pa.ArrowInvalid as error:
            if ragged:
                row = ragged[0]
                raise ValueError(
                    f"{self.name}, line {row.number}: {row.actual_columns} fields where the header has "
                    f"{row.expected_columns}"
                ) from None
            if "UTF8" in str(error):
                raise ValueError(f"{self.name} is not UTF-8 text ({error}); save it as UTF-8") from None
            if "Empty CSV" in str(error):  # nothing below the header
                return
            raise ValueError(f"{self.name}: {error}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.name} is not {dialect.encoding} text: {error.reason}") from None
        except OSError as error:
            raise ValueError(f"{self.name} cannot be read to its end: {error}") from None


class _Reopened:
    """The bytes behind a name, decompressed, from their beginning as often as asked; standard input only once."""

    def __init__(self, path: str | Path) -> None:
        self._path = None if str(path) == "-" else str(path)
        if self._path is None and sys.stdin is None:
            raise ValueError("standard input is closed; give a file, or pipe the rows in")
        self._input: Any = sys.stdin.buffer if self._path is None else None
        self._head = b""
        if self._path is not None:
            open(self._path, "rb").close()  # Python says best why a file cannot be opened

    def head(self) -> bytes:
        if self._input is not None:
            while len(self._head) < _SAMPLE and (chunk := self._input.read(_SAMPLE - len(self._head))):
                self._head += chunk
            return self._head
        try:
            with pa.input_stream(self._path) as stream:
                return bytes(stream.read(_SAMPLE))
        except (pa.ArrowException, OSError) as error:  # by its name compressed, but it is not, or it is damaged
            raise ValueError(f"{self._path} cannot be read: {error}") from None

    def stream(self) -> Any:
        if self._input is None:
            return pa.input_stream(self._path)
        return pa.PythonFile(io.BufferedReader(_After(self._head, self._input)), mode="r")

    def seekable(self) -> Any:
        if self._input is None:
            return self._path
        return pa.BufferReader(self._head + self._input.read())


class _After(io.RawIOBase):
    """A stream of which the beginning has been read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _find_dialect(head: bytes, name: str) -> Dialect:
    for magic, kind in _FOREIGN.items():
        if head.startswith(magic):
            raise ValueError(f"{name} is {kind}, not CSV or Parquet")
    encoding = next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), "utf-8")
    text = head.decode(encoding, errors="replace")
    if "\0" in text:
        raise ValueError(f"{name} is neither CSV nor Parquet")
    lines = re.split("\r\n|\r|\n", text)[:50]
    if len(head) == _SAMPLE and len(lines) > 1:
        lines = lines[:-1]  # the last may be cut
    first = next((line for line in lines if line.strip()), "")
    if not first or first is not lines[0]:
        raise ValueError(f"{name} must begin with a header: its first line is blank")
    if "\ufffd" in first:
        raise ValueError(f"{name} is not text in UTF-8, its header at least; save it as UTF-8")
    if first.count('"') % 2:
        raise ValueError(f"{name} must have its header in one line: a quoted name goes on in the next")
    delimiter = _delimiter(lines)
    header = [field.strip() for field in next(csv.reader([first], delimiter=delimiter))]
    decimal = "."
    if delimiter != ",":
        fields = [field.strip() for row in csv.reader(lines[1:], delimiter=delimiter) for field in row]
        if any(map(_DECIMAL_COMMA.fullmatch, fields)) and not any(map(_DECIMAL_POINT.fullmatch, fields)):
            decimal = ","
            _check_commas(lines[1:], delimiter, header, name)
    return Dialect(encoding, delimiter, decimal, header)


def _check_commas(lines: list[str], delimiter: str, header: list[str], name: str) -> None:
    """Raise an error if commas may as well separate thousands: a decimal comma makes 1,000 a thousandth of it."""
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if len(row) == len(header)]
    columns = list(zip(*rows, strict=True))
    numbers = [field.strip() for column in columns for field in column if "," in field]
    if not all(map(_THOUSANDS.fullmatch, numbers)):
        return
    for label, column in zip(header, columns, strict=False):
        whole = next((field.strip() for field in column if _WHOLE.fullmatch(field.strip())), None)
        thousands = next((field.strip() for field in column if _THOUSANDS.fullmatch(field.strip())), None)
        if whole and thousands:
            raise ValueError(
                f"{name}: column {label!r} holds {whole!r} and {thousands!r}, whose comma may stand for decimals or "
                "thousands; write thousands without a comma, or decimals with a point"
            )


def _delimiter(lines: list[str]) -> str:
    """The mark that cuts the header into most fields; the earlier one if several do."""

    def fields(delimiter: str) -> int:
        return len(next(csv.reader(lines[:1], delimiter=delimiter)))

    return max(_DELIMITERS, key=fields)
