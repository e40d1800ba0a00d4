"""Tables to files, batch by batch: CSV or Parquet, whole or not at all."""

from __future__ import annotations

import csv
import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from spngp._support.atomic import replacing
from spngp.tables.decimals import has_comma
from spngp.tables.values import is_number

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet may run a text that begins with one

_CELLS = 2**16  # cells of CSV written at once: as Python objects and text they take 20 times the memory of numbers


class TableWriter:
    """Writes batches of rows to a sink that is open already; see :meth:`open`."""

    def __init__(self, sink: Any, name: str, parquet: bool, escape_formulas: bool = False) -> None:
        self._sink, self._name, self._parquet, self._escape = sink, name, parquet, escape_formulas
        self._writer: Any = None
        self.n_rows = 0

    @staticmethod
    @contextmanager
    def open(path: str | Path, escape_formulas: bool = False) -> Iterator[TableWriter]:
        """A writer for a .csv or .parquet file, or for CSV on standard output (``-``).

        The file is replaced when the ``with`` statement ends without an error; until then the old one stays.

        Parameters
        ----------
        path : str or Path
        escape_formulas : bool
            Put an apostrophe before texts in CSV that a spreadsheet may take for a formula: those that begin with
            ``=``, ``+``, ``-``, ``@``, a tab or a line break and are no numbers. Texts are written as they are if not.
        """
        if str(path) == "-":
            sys.stdout.flush()
            yield TableWriter(sys.stdout.buffer, "standard output", False, escape_formulas)
            return
        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet", ".pq"):
            raise ValueError(f"output must be a .csv or .parquet file, or - for standard output, got {str(path)!r}")
        if escape_formulas and suffix != ".csv":
            raise ValueError(f"only CSV has formulas to escape, got {str(path)!r}")
        with replacing(path) as temporary:
            sink = open(temporary, "wb")  # noqa: SIM115 - closed below, where an error gets its name
            writer = TableWriter(sink, str(path), suffix != ".csv", escape_formulas)
            try:
                yield writer
            finally:
                with _naming(str(path)), sink:
                    writer._close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; all batches must have the same columns."""
        with _naming(self._name):
            if self._parquet:
                self._write_parquet(batch)
            else:
                step = max(1, _CELLS // batch.num_columns)
                for start in range(0, max(batch.num_rows, 1), step):
                    text = self._csv(batch.slice(start, step), header=self.n_rows == start == 0)
                    _write_whole(self._sink, text.encode())
        self.n_rows += batch.num_rows

    def _write_parquet(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._sink, batch.schema)
        self._writer.write_batch(batch)

    def _csv(self, batch: pa.RecordBatch, header: bool) -> str:
        lines = _Lines()
        writer = csv.writer(lines)
        names, columns = batch.schema.names, [column.to_pylist() for column in batch.columns]
        if self._escape:
            names, columns = _escaped(names), [_escaped(column) for column in columns]
        if header:
            writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))
        return "".join(lines.written)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Lines:
    """Lines of CSV that end in a line feed.

    Some versions of Python quote a text with a carriage return in it only if the writer's own lines end in one.
    """

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        self.written.append(f"{line[:-2]}\n")


def _write_whole(stream: Any, data: bytes) -> None:
    """Write every byte, or raise an error.

    A raw stream may take fewer bytes than it is given (a full disk) or none (a non-blocking pipe). Bytes go to the raw
    stream, not to the buffer around it, which would fail once more when the process ends.
    """
    stream = getattr(stream, "raw", stream)
    rest = memoryview(data)
    while rest:
        written = stream.write(rest)
        if written is None:  # it would have to wait
            select.select([], [stream], [])
        else:
            rest = rest[written:]


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors of the system say which file they are about."""
    try:
        yield
    except OSError as error:
        error.filename = name
        raise


def _escaped(values: Iterable[Any]) -> list[Any]:
    return [f"'{value}" if _is_formula(value) else value for value in values]


def _is_formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_FORMULA) and not (is_number(value) or has_comma(value))
