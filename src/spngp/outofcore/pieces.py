"""Pieces: parts of a data set that are read one at a time, each in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from spngp._support.types import Indices
from spngp.outofcore.spill import aside

_ROWS = 131_072  # rows of a batch


@dataclass(frozen=True)
class Piece:
    """A part of a data set: a file or one of its row groups.

    Attributes
    ----------
    number : int
    fragment : pyarrow.dataset.Fragment
    first_row : int
        Rows of the pieces before it.
    n_rows : int
    name : str
        For messages.
    """

    number: int
    fragment: Any
    first_row: int
    n_rows: int
    name: str

    def batches(self, columns: Sequence[str], rows: int = _ROWS) -> Iterator[tuple[int, Any]]:
        """Tables of at most ``rows`` rows, each with the number of its first row."""
        first = self.first_row
        try:
            parts = self.fragment.to_batches(
                columns=list(columns), batch_size=rows, batch_readahead=0, fragment_readahead=0, use_threads=False
            )
            for batch in parts:
                if batch.num_rows:
                    yield first, pa.Table.from_batches([batch])
                    first += batch.num_rows
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"partition {self.name}: {' '.join(str(error).split())}") from None
        if first != self.first_row + self.n_rows:
            raise ValueError(f"partition {self.name}: {self.n_rows:,} rows expected, got {first - self.first_row:,}")


def pieces_of(dataset: Any, columns: Sequence[str]) -> list[Piece]:
    """The pieces of a data set that have rows; an error names one whose columns are others than those of the first."""
    pieces: list[Piece] = []
    first_row, first = 0, None
    for fragment in dataset.get_fragments():
        name = Path(fragment.path).name if getattr(fragment, "path", None) else f"{len(pieces)}"
        for part, n_rows, place in _parts(fragment):
            if not n_rows:
                continue
            kinds = _kinds(fragment, columns, name)
            first = (kinds, name) if first is None else first
            _check_kinds(kinds, first[0], name, first[1])
            pieces.append(Piece(len(pieces), part, first_row, n_rows, name + place))
            first_row += n_rows
    if not pieces:
        raise ValueError("the data set has no rows")
    return pieces


def _parts(fragment: Any) -> list[tuple[Any, int, str]]:
    """The row groups of a Parquet file, or a file of another kind: fragment, rows, and a name for messages."""
    if not hasattr(fragment, "split_by_row_group"):
        return [(fragment, fragment.count_rows(), "")]
    groups = [(part, part.row_groups[0]) for part in fragment.split_by_row_group()]
    return [(part, int(group.num_rows), f", row group {group.id}" if len(groups) > 1 else "") for part, group in groups]


def _kinds(fragment: Any, columns: Sequence[str], name: str) -> dict[str, str]:
    schema = fragment.physical_schema
    for column in columns:
        if column not in schema.names:
            listed = ", ".join(map(repr, schema.names))
            raise ValueError(f"partition {name}: there is no column {column!r}; it has {listed}")
    return {column: _kind(schema.field(column).type) for column in columns}


def _kind(of: Any) -> str:
    if pa.types.is_boolean(of) or pa.types.is_null(of):
        return str(of)
    if pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of):
        return "number"
    if pa.types.is_dictionary(of):
        return _kind(of.value_type)
    return "text" if pa.types.is_string(of) or pa.types.is_large_string(of) else str(of)


def _check_kinds(kinds: dict[str, str], expected: dict[str, str], name: str, first: str) -> None:
    for column, kind in kinds.items():
        if kind != expected[column] and "null" not in (kind, expected[column]):
            raise ValueError(
                f"partition {name}: column {column!r} must hold a {expected[column]} as in {first}, got {kind}"
            )


def spilled(batches: Iterator[Any], directory: Path) -> Any:
    """A data set of Arrow files, written from an iterator of record batches, which can be read but once."""
    schema, count = None, 0
    for count, batch in enumerate(batches, 1):
        if not isinstance(batch, pa.RecordBatch | pa.Table):
            raise TypeError(f"an iterator must give record batches of pyarrow, got a {type(batch).__name__}")
        schema = batch.schema if schema is None else schema
        if list(batch.schema.names) != list(schema.names):
            raise ValueError(
                f"partition {count - 1}: columns must be {', '.join(schema.names)}, got {', '.join(batch.schema.names)}"
            )
        write_table(directory / f"{count - 1:06d}.arrow", batch)
    if not count:
        raise ValueError("the iterator has no record batches")
    return ds.dataset(str(directory), format="arrow")


def write_table(path: Path, table: Any) -> None:
    """Write a table or a record batch to an Arrow file."""
    with aside(path) as temporary, pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write(table)


def sampled(first_row: int, n_rows: int, share: float, seed: int) -> Indices:
    """Which of consecutive rows belong to a sample of this share; it depends on their numbers and the seed alone."""
    if share >= 1.0:
        return np.arange(n_rows)
    mixed = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.flatnonzero((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < share)
