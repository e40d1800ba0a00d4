"""Predictions beyond memory: rows go to their cells by way of the disk, and every cell is opened once.

Row by row, a large model would be opened over and over, and every factor computed anew. So rows are first sorted by
cell in spill files, then cell after cell predicts all of its rows, and then answers are put back in the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spngp._support.directories import remove_directory, temporary_directory
from spngp._support.types import Array
from spngp.estimators import SPNGPRegressor
from spngp.estimators.completion import CompletedRows
from spngp.estimators.elsewhere import checked_rows, completed_rows, predicted, sharded_of
from spngp.io.shards import one_shard_at_a_time
from spngp.learning.sharded import Sharded
from spngp.outofcore.spill import grouped, matrix, numbered, read_group, write_groups

_ROWS = 50_000  # of a cell that are predicted at once, about


def predictions(
    model: SPNGPRegressor,
    batches: Iterable[Any],
    answer: Callable[[Any], dict[str, Array]],
    directory: str | None = None,
) -> Iterator[dict[str, Array]]:
    """What a model in shards predicts for each batch of rows, in order.

    Parameters
    ----------
    model : SPNGPRegressor
    batches : iterable
        Rows as the model takes them; read once, before the first answer comes.
    answer : callable
        Given a predictive distribution, the columns wanted.
    directory : str, optional
        Where spill files go, by default where temporary files do; they are removed at the end.
    """
    sharded = sharded_of(model)
    assert sharded is not None
    work = temporary_directory(directory)
    try:
        n_batches, whole = _route(model, sharded, batches, answer, work)
        cells = [cell for cell in range(sharded.rows.size) if (work / f"count-{cell}").exists()]
        model = one_shard_at_a_time(model)  # no cell is asked for again
        found: list[list[Path]] = [[] for _ in range(n_batches)]  # files with answers for each batch
        for cell in cells:
            for number, path in enumerate(_predict_cell(model, cell, n_batches, answer, work)):
                found[number].append(path)
        for number in range(n_batches):
            yield _gathered(number, found[number], whole[number])
    finally:
        remove_directory(work)


def _route(
    model: SPNGPRegressor,
    sharded: Sharded,
    batches: Iterable[Any],
    answer: Callable[[Any], dict[str, Array]],
    work: Path,
) -> tuple[int, list[dict[str, Array]]]:
    """Write the rows of each batch by cell; rows that lack inputs, which belong to several cells, are answered now."""
    tree, at_once = sharded.tree, []
    for number, batch in enumerate(batches):
        X = checked_rows(model, batch)
        completed = completed_rows(model, X)
        rows = completed.complete
        cells = tree.cell_of(sharded.units.inputs.apply(X[rows]))
        order, offsets = grouped(cells, tree.n_cells)
        columns = {**numbered("x", X[rows[order]]), "row": rows[order]}
        write_groups(work / f"batch-{number:06d}.arrow", columns, offsets)
        for cell in np.unique(cells).tolist():
            (work / f"count-{cell}").touch()
        at_once.append(_of_incomplete(model, X, completed, answer))
    return len(at_once), at_once


def _of_incomplete(
    model: SPNGPRegressor, X: Array, completed: CompletedRows, answer: Callable[[Any], dict[str, Array]]
) -> dict[str, Any]:
    if not completed.incomplete.size:
        return {"row": completed.incomplete}
    return {"row": completed.incomplete, **answer(predicted(model, X[completed.incomplete]))}


def _predict_cell(
    model: SPNGPRegressor, cell: int, n_batches: int, answer: Callable[[Any], dict[str, Array]], work: Path
) -> list[Path]:
    """Answer all rows of a cell, some batches at a time; for each batch, the file that its answers are in."""
    paths: list[Path] = []
    while len(paths) < n_batches:
        first, n_rows = len(paths), 0
        parts: list[dict[str, Any]] = []
        while first + len(parts) < n_batches and (not parts or n_rows < _ROWS):
            parts.append(read_group(work / f"batch-{first + len(parts):06d}.arrow", cell))
            n_rows += parts[-1]["row"].size
        path = work / f"cell-{cell:06d}-{first:06d}.arrow"
        if n_rows:
            X = np.concatenate([matrix(part, "x", len(part) - 1) for part in parts])
            columns = answer(predicted(model, X))
            offsets = np.concatenate([np.zeros(first + 1), np.cumsum([part["row"].size for part in parts])])
            write_groups(path, {**columns, "row": np.concatenate([part["row"] for part in parts])}, offsets)
        paths += [path] * len(parts)
    return paths


def _gathered(number: int, paths: list[Path], at_once: dict[str, Any]) -> dict[str, Array]:
    """The answers for a batch, in the order of its rows."""
    parts = [read_group(path, number) for path in paths if path.exists()]
    parts = [part for part in (*parts, at_once) if part["row"].size]
    if not parts:
        return {}
    order = np.argsort(np.concatenate([part["row"] for part in parts]), kind="stable")
    return {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0] if name != "row"}
