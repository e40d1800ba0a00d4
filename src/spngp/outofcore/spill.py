"""Spill files: columns of numbers in Arrow files, rows in groups, so that one group is read without the others."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spngp._support.types import Array, Indices

JOB = "job.json"  # about a fit; without it there is nothing to go on with
_OFFSETS = b"offsets"
_TRIES, _WAIT = 50, 0.1  # to remove a directory; seconds between


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A name beside ``path``, renamed to it if the ``with`` statement ends without an error.

    A spill file need not outlive the machine, so nothing is flushed to the disk. If the directory above the folder that
    it is in has been removed, whoever still writes gets an error and leaves nothing.
    """
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def discard(directory: Path) -> None:
    """Remove the files of a fit; who is killed meanwhile leaves nothing that could be gone on with."""
    (directory / JOB).unlink(missing_ok=True)
    removed(directory)


def removed(directory: Path) -> None:
    """Remove a directory, in which some may still write for a while."""
    for _ in range(_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(_WAIT)


def write_groups(path: Path, columns: Mapping[str, Any], offsets: Indices) -> None:
    """Write columns whose rows stand in groups: group g has the rows from ``offsets[g]`` to ``offsets[g + 1]``."""
    arrays = [pa.array(np.ascontiguousarray(values)) for values in columns.values()]
    schema = pa.schema(
        [pa.field(name, array.type) for name, array in zip(columns, arrays, strict=True)],
        metadata={_OFFSETS: np.ascontiguousarray(offsets, dtype=np.int64).tobytes()},
    )
    with aside(path) as temporary, pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def read_group(path: Path, group: int) -> dict[str, Any]:
    """The columns of one group: views of the mapped file."""
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        offsets = np.frombuffer(reader.schema.metadata[_OFFSETS], dtype=np.int64)
        batch = reader.get_batch(0).slice(offsets[group], offsets[group + 1] - offsets[group])
        return {name: batch.column(j).to_numpy() for j, name in enumerate(batch.schema.names)}


def grouped(keys: Indices, n_groups: int) -> tuple[Indices, Indices]:
    """The order that brings rows of equal keys together, and the offsets of the groups."""
    order = np.argsort(keys, kind="stable")
    return order, np.searchsorted(keys[order], np.arange(n_groups + 1))


def matrix(columns: Mapping[str, Array], prefix: str, count: int) -> Array:
    """The columns ``prefix0``, ``prefix1``, … as a matrix."""
    if not count:
        return np.empty((len(next(iter(columns.values()))), 0))
    return np.column_stack([columns[f"{prefix}{j}"] for j in range(count)])


def numbered(prefix: str, rows: Array) -> dict[str, Array]:
    """The columns of a matrix by name."""
    return {f"{prefix}{j}": rows[:, j] for j in range(rows.shape[1])}
