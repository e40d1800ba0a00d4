"""CSV tables, plain or gzip-compressed, as data sets."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spngp._support.types import Array
from spngp.datasets.dataset import Dataset
from spngp.datasets.registry import Entry

Table = tuple[tuple[str, ...], Array]


def read(paths: Sequence[Path], entry: Entry, rows: int) -> Table:
    """Names and values of the columns, from one CSV file or from several side by side; an error names the file."""
    if len(paths) == 1:
        names, table = _csv(paths[0])
    else:
        parts = [_columns(path, rows) for path in paths]
        names, table = entry.columns, np.hstack(parts)
    where = " and ".join(map(str, paths))
    expected = (rows, entry.inputs + entry.outputs)
    if table.shape != expected or len(names) != expected[1]:
        raise ValueError(
            f"{where} must have {expected[0]} rows of {expected[1]} columns with names, got {table.shape[0]} rows of "
            f"{table.shape[1]} columns and {len(names)} names"
        )
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"{where} must hold finite numbers, got {table[row, column]} in row {row}, column {column}")
    return names, table


def _csv(path: Path) -> Table:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    header, _, body = text.partition("\n")
    names = tuple(name.strip() for name in header.split(","))
    try:
        table = np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2) if body.strip() else np.empty((0, len(names)))
    except ValueError as error:
        raise ValueError(f"{path} must hold numbers under a line of column names: {error}") from None
    return names, table


def _columns(path: Path, rows: int) -> Array:
    """Columns separated by blanks, without names."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        table = np.loadtxt(io.StringIO(text), ndmin=2) if text.strip() else np.empty((0, 1))
    except ValueError as error:
        raise ValueError(f"{path} must hold numbers separated by blanks: {error}") from None
    if table.shape[0] != rows:
        raise ValueError(f"{path} must have {rows} rows, got {table.shape[0]}")
    return table


def join(entry: Entry, tables: Sequence[Table]) -> Dataset:
    """The rows of all tables, one after the other, as one data set."""
    names = tables[0][0]
    table = np.concatenate([values for _, values in tables])
    X, Y = np.ascontiguousarray(table[:, : entry.inputs]), np.ascontiguousarray(table[:, entry.inputs :])
    return Dataset(entry.name, X, Y, names[: entry.inputs], names[entry.inputs :], n_train=entry.n_train)
