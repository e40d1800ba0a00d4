"""Files of rows: CSV in the dialects people meet, Parquet; by name or from standard input, whole or batch by batch.

A CSV file is read as text. :mod:`spngp.tables.schema` turns columns into numbers, because it knows which columns are
numbers and can name a row that is not one. Only an empty field is null.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from spngp.tables.dialect import SAMPLE, Dialect, find_dialect

_CHARACTERS_AT_ONCE = 1 << 22  # characters of a batch, which is held as Python objects; no line may be longer


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
            self._dialect = find_dialect(head, self.name)
            self.columns, self.decimal = self._dialect.header, self._dialect.decimal
        place: dict[str, int] = {}
        for at, name in enumerate(self.columns, 1):
            if place.setdefault(name, at) != at:
                raise ValueError(
                    f"{self.name}: column {name!r} stands twice in the header, as columns {place[name]} and {at}"
                )

    def batches(self, rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """The rows, at most ``rows`` at a time; once for standard input, else as often as asked."""
        return self._parquet_batches(rows) if self._parquet else self._csv_batches(rows)

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
            for batch in self._file.iter_batches(batch_size=rows):
                _check_moments(batch, self.name)
                yield batch
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.name} is damaged: {error}") from None

    def _csv_batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        header = self._dialect.header
        with self._open.stream() as stream:
            records = _Records(stream, self._dialect, self.name)
            for batch in records.batches(rows):
                columns = [pa.array(column, pa.string()) for column in zip(*batch, strict=True)]
                empty = pa.scalar(None, pa.string())
                yield pa.RecordBatch.from_arrays(
                    [pc.if_else(pc.equal(column, ""), empty, column) for column in columns], names=header
                )


def _check_moments(batch: pa.RecordBatch, source: str) -> None:
    """Raise an error unless Python knows all dates, times and durations: Parquet allows some of millions of years."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_temporal(column.type):
            try:
                _extremes(column)  # if it knows the first and the last, it knows all
            except (OverflowError, ValueError, LookupError) as error:
                raise ValueError(
                    f"{source}: column {name!r} holds {column.type} that must lie in the years 1 to 9999 and in a "
                    f"known time zone, got others ({error})"
                ) from None


def _extremes(column: pa.Array) -> None:
    """Turn the first and the last moment into Python's."""
    ordered = column.cast(pa.int64()) if pa.types.is_duration(column.type) else column  # durations have no order there
    pc.min_max(ordered).cast(pa.struct([(name, column.type) for name in ("min", "max")])).as_py()


class _Records:
    """The records of CSV text below its header.

    They are read by Python's parser. Arrow's reads ahead in threads of its own, which call back into Python and abort
    the process if it ends before they do.
    """

    def __init__(self, stream: Any, dialect: Dialect, name: str) -> None:
        self._text = io.TextIOWrapper(stream, dialect.encoding, newline="")
        self._dialect, self._name = dialect, name
        self._characters = 0
        self._ended = False

    def batches(self, rows: int) -> Iterator[list[list[str]]]:
        """Lists of at most ``rows`` records, fewer if their text is long."""
        batch: list[list[str]] = []
        for record in self._checked():
            batch.append(record)
            if len(batch) == rows or self._characters >= _CHARACTERS_AT_ONCE:
                yield batch
                batch, self._characters = [], 0
        if batch:
            yield batch

    def _checked(self) -> Iterator[list[str]]:
        width, line = len(self._dialect.header), 2
        reader = csv.reader(self._lines(), delimiter=self._dialect.delimiter)
        try:
            next(reader)  # the header
            for record in reader:
                if self._ended:  # the parser asked for more lines than there are
                    raise ValueError(f"{self._name}, line {line}: a quote is opened and never closed")
                if len(record) == width:
                    yield record
                elif record:  # a blank line is no record
                    raise ValueError(f"{self._name}, line {line}: {len(record)} fields where the header has {width}")
                line = reader.line_num + 1
        except csv.Error:  # the field limit is its only cause here: the parser is not strict, and lines come one by one
            raise ValueError(
                f"{self._name}, line {line}: a field has more than {csv.field_size_limit():,} characters, or a quote "
                "is never closed"
            ) from None
        except UnicodeDecodeError as error:
            codec = "UTF-8" if self._dialect.encoding.startswith("utf-8") else self._dialect.encoding.upper()
            raise ValueError(
                f"{self._name} is not {codec} text: {error.reason} after line {reader.line_num}; save it as UTF-8"
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self._name} cannot be read to its end: {error}") from None

    def _lines(self) -> Iterator[str]:
        number = 0
        while line := self._text.readline(_CHARACTERS_AT_ONCE):
            number += 1
            if len(line) == _CHARACTERS_AT_ONCE and line[-1] not in "\r\n":
                raise ValueError(f"{self._name}, line {number} has more than {_CHARACTERS_AT_ONCE:,} characters")
            self._characters += len(line)
            yield line
        self._ended = True


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
            while len(self._head) < SAMPLE and (chunk := self._input.read(SAMPLE - len(self._head))):
                self._head += chunk
            return self._head
        try:
            with pa.input_stream(self._path) as stream:
                return bytes(stream.read(SAMPLE))
        except (pa.ArrowException, OSError) as error:  # the name says compressed, but the file is not, or is damaged
            raise ValueError(f"{self._path} cannot be read: {error}") from None

    def stream(self) -> Any:
        if self._input is None:
            return pa.input_stream(self._path)
        return io.BufferedReader(_After(self._head, self._input))

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
