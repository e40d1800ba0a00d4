"""Data sets that an estimator is given instead of rows: in memory if they fit, else out of core."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from spngp._support.directories import remove_directory, temporary_directory
from spngp._support.memory import GIGABYTE, default_limit
from spngp.estimators import SPNGPRegressor
from spngp.estimators.elsewhere import become, with_shelf
from spngp.io.shards import directory_of
from spngp.outofcore.engines import Threads
from spngp.outofcore.facts import Facts
from spngp.outofcore.fitting import Job, fit
from spngp.outofcore.pieces import pieces_of, spilled
from spngp.outofcore.reading import outputs_of
from spngp.outofcore.work import Engine

_COPIES = 12.0  # of every number that a fit in memory takes, factors aside
_FEWEST = 5000  # rows: fewer are fitted in memory, whatever the limit


def fit_dataset(
    model: SPNGPRegressor,
    source: Any,
    targets: str | Sequence[str],
    weight: str | None = None,
    variance: str | None = None,
    engine: Engine | None = None,
) -> SPNGPRegressor:
    """Fit an estimator to a data set: in memory, if its limit holds that many rows, or into shards.

    Shards are in a temporary directory that lives as long as the model; ``save`` copies them.

    Parameters
    ----------
    model : SPNGPRegressor
    source : pyarrow Dataset, path of a Parquet file or folder, or iterator of record batches
    targets : str or sequence of str
        Columns to predict.
    weight, variance : str, optional
        Columns with ``sample_weight`` and ``y_variance``.
    engine : Engine, optional
        Who does the work out of core; by default threads of this process.
    """
    if targets is None or not (isinstance(targets, str) or all(isinstance(name, str) for name in targets)):
        raise ValueError(f"for a data set y must be the name of its column, or several names, got {targets!r}")
    for name, column in (("sample_weight", weight), ("y_variance", variance)):
        if column is not None and not isinstance(column, str):
            raise ValueError(f"for a data set {name} must be the name of its column, got a {type(column).__name__}")
    one, targets = isinstance(targets, str), [targets] if isinstance(targets, str) else list(targets)
    work = temporary_directory()
    try:
        dataset = as_dataset(source, work / "input")
        facts = Facts(weight, variance)
        inputs = inputs_of(dataset, targets, facts.columns, model)
        if engine is None and fits_in_memory(dataset, len(inputs) + len(targets), model.memory_limit):
            table = dataset.to_table(columns=[*inputs, *targets, *facts.columns])
            Y = outputs_of(table, targets, "0")
            known = [None if name is None else table[name].to_numpy() for name in (weight, variance)]
            remove_directory(work)
            return model.fit(table.select(inputs), Y[:, 0] if one else Y, *known)
        job = Job(
            dataset=dataset,
            inputs=inputs,
            targets=targets,
            output=work / "model",
            as_columns=not one,
            weight=weight,
            variance=variance,
        )
        fitted = fit(model, job, Threads(model.n_jobs) if engine is None else engine)
    except BaseException:
        remove_directory(work)
        raise
    shutil.rmtree(work / "input", ignore_errors=True)
    return become(model, with_shelf(fitted, directory_of(fitted).owning(work)))


def as_dataset(source: Any, directory: Path) -> Any:
    """The data set that a source is; batches of an iterator are written to the directory."""
    if isinstance(source, str | os.PathLike):
        if not Path(source).exists():
            raise FileNotFoundError(2, "No such file or directory", str(source))
        return ds.dataset(source, format="parquet")
    return spilled(source, directory) if isinstance(source, Iterator) else source


def inputs_of(dataset: Any, targets: Sequence[str], facts: Sequence[str], model: SPNGPRegressor) -> list[str]:
    """The columns that are inputs: all but targets, facts about rows, and those that are ignored."""
    names, declared = list(dataset.schema.names), model.columns or {}
    others = [*targets, *facts]
    for name in others:
        if name not in names:
            raise ValueError(f"the data set has no column {name!r}; it has {', '.join(map(repr, names))}")
    return [name for name in names if name not in others and declared.get(name) != "ignored"]


def fits_in_memory(dataset: Any, n_columns: int, memory_limit: float | None) -> bool:
    """Whether a fit in memory takes less than the limit."""
    n_rows = sum(piece.n_rows for piece in pieces_of(dataset, []))
    limit = default_limit() if memory_limit is None else memory_limit
    return bool(8.0 * _COPIES * n_rows * (n_columns + 1) <= limit * GIGABYTE or n_rows < _FEWEST)
