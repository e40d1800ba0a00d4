"""Small models of every kind, whose files are then changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.kernels import (
    Constant,
    Linear,
    Matern,
    Parameter,
    Periodic,
    PiecewiseConstant,
    Polynomial,
    RationalQuadratic,
)
from spngp.structure import Compact
from spngp.tables.schema import TableSchema

RNG = np.random.default_rng(11)
X = RNG.uniform(-2.0, 2.0, (14, 2))
Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 0] * X[:, 1]]) + 0.1 * RNG.standard_normal((14, 2))
Y[3, 1] = np.nan
X_NEW = RNG.uniform(-3.0, 3.0, (5, 2))


def _with_table() -> Any:
    import pandas as pd

    frame = pd.DataFrame(X, columns=["width", "height"])
    model = SPNGPRegressor(Matern(1.5), max_leaf_size=8, hyperparameters="fixed", random_state=0).fit(frame, Y[:, 0])
    model.table_ = TableSchema(("price",))
    return model


def _with_an_outlier() -> Any:
    """One output a hundred times as far off as all others has a noise of its own, so rows have weights."""
    rows = np.linspace(-2.0, 2.0, 24)[:, np.newaxis] * [1.0, -0.5]
    y = np.sin(rows[:, 0]) + 0.1 * np.random.default_rng(5).standard_normal(24)
    y[7] = 5000.0
    return SPNGPRegressor(Matern(1.5), max_leaf_size=15, hyperparameters="tied", random_state=0).fit(rows, y)


def _with_changing_noise() -> Any:
    """Noise grows along the first input, so GPs have noise profiles."""
    rng = np.random.default_rng(6)
    rows = rng.uniform(-2.0, 2.0, (60, 2))
    y = rows[:, 1] + 0.3 * np.exp(1.2 * rows[:, 0]) * rng.standard_normal(60)
    return SPNGPRegressor(random_state=0).fit(rows, y)


def _streamed() -> Any:
    """Rows came and went since the fit."""
    model = SPNGPRegressor(Matern(1.5), max_leaf_size=8, hyperparameters="fixed", random_state=0).fit(X, Y[:, 0])
    for x, y in zip(X_NEW, [0.1, -0.2, 0.3, 0.0, 0.5], strict=True):
        model.partial_fit(x[np.newaxis], [y])
    return model.forget(keep_last=15)


MODELS: dict[str, Callable[[], Any]] = {
    "two outputs": lambda: SPNGPRegressor(
        [Matern(2.5, [0.5, 2.0]), Linear(bias_variance=0.5) + Constant(2.0) + PiecewiseConstant(0, [0.1], gaps=[0.05])],
        max_leaf_size=8,
        hyperparameters="fixed",
        random_state=np.random.default_rng(5),
    ).fit(X, Y),
    "structure object": lambda: SPNGPRegressor(
        RationalQuadratic() * Periodic([1.0, 2.0]) + Polynomial(3),
        structure=Compact(7),
        margin=[0.3, 0.1],
        hyperparameters="fixed",
        noise_variance=Parameter(0.01, (1e-4, 1.0)),
    ).fit(X, Y[:, :1]),
    "one GP": lambda: GPRegressor(Matern(0.5), hyperparameters="fixed", random_state=0).fit(X, Y[:, 0]),
    "committee": lambda: RobustBayesianCommitteeMachine(n_experts=3, hyperparameters="fixed", random_state=0).fit(X, Y),
    "table": _with_table,
    "outlier": _with_an_outlier,
    "streamed": _streamed,
    "changing noise": _with_changing_noise,
}
FACTORS = ", with factors"  # after the name of a model: its file holds them


def save_model(name: str, path: Path) -> None:
    """Write the file of a model by its name."""
    MODELS[name.removesuffix(FACTORS)]().save(path, with_factors=name.endswith(FACTORS))


def save_shards(path: Path) -> None:
    """Write a model in a directory of a few shards; ``rows.parquet`` beside it has its rows."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    from spngp.outofcore import Job, fit
    from spngp.outofcore.engines import Threads

    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 2))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1], "y": np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=300)})
    pq.write_table(table, path.with_name("rows.parquet"))
    model = SPNGPRegressor(Matern(1.5), max_leaf_size=30, overlap=0.5, hyperparameters="fixed", random_state=0)
    job = Job(
        dataset=ds.dataset(path.with_name("rows.parquet")),
        inputs=["a", "b"],
        targets=["y"],
        output=path,
        rows_of_a_cell=90,
    )
    fit(model, job, Threads(1))
