"""Tables to files, batch by batch: CSV or Parquet, whole or not at all."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from spngp._atomic import replacing

_CELLS = 2**16  # of CSV written at a time: as Python objects and as text they take twenty times the memory of numbers


class TableWriter:
    """Writes batches of rows to a sink that is open already; see :meth:`open`."""

    def __init__(self, sink: Any, parquet: bool) -> None:
        self._sink, self._parquet = sink, parquet
        self._writer: Any = None
        self.n_rows = 0

    @staticmethod
    @contextmanager
    def open(path: str | Path) -> Iterator[TableWriter]:
        """A writer for a .csv or .parquet file, or for CSV on standard output (``-``).

        The file takes its place when the block ends well; until then what was there stays.
        """
        if str(path) == "-":
            yield TableWriter(sys.stdout.buffer, parquet=False)
            sys.stdout.buffer.flush()
            return
        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet", ".pq"):
            raise ValueError(f"output must be a .csv or .parquet file, or - for standard output, got {str(path)!r}")
        with replacing(path) as temporary, open(temporary, "wb") as sink:
            writer = TableWriter(sink, suffix != ".csv")
            try:
                yield writer
            finally:
                writer._close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; all batches must have the same columns."""
        if self._parquet:
            if self._writer is None:
                self._writer = pa.parquet.ParquetWriter(self._sink, batch.schema)
            self._writer.write_batch(batch)
        else:
            step = max(1, _CELLS // batch.num_columns)
            for start in range(0, max(batch.num_rows, 1), step):
                self._write_text(batch.slice(start, step), header=self.n_rows == start == 0)
        self.n_rows += batch.num_rows

    def _write_text(self, rows: pa.RecordBatch, header: bool) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if header:
            writer.writerow(rows.schema.names)
        writer.writerows(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        self._sink.write(text.getvalue().encode())

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
