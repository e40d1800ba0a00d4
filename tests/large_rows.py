"""Rows, models and jobs for tests of fits beyond memory."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from spngp import SPNGPRegressor
from spngp.outofcore import Job, fit
from spngp.outofcore.engines import Threads

CELL = 1000


def table(n=3000, d=3, seed=0, outputs=1, outliers=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    columns = {f"x{j}": X[:, j] for j in range(d)}
    for k in range(outputs):
        y = np.sin(2 * X[:, 0] + k) * X[:, 1] + 0.5 * X[:, 2] + 0.1 * rng.normal(size=n)
        y[rng.choice(n, outliers, replace=False)] += 4.0
        columns[f"y{k}"] = y
    return pa.table(columns)


def names(rows, prefix):
    return [name for name in rows.schema.names if name.startswith(prefix)]


def model(**changes):
    return SPNGPRegressor(**{"max_leaf_size": 60, "overlap": 1.0, "random_state": 0, **changes})


def in_shards(rows, path, estimator=None, row_group=1300, engine=None, **changes):
    pq.write_table(rows, path / "rows.parquet", row_group_size=row_group)
    job = Job(
        dataset=ds.dataset(path / "rows.parquet"),
        inputs=names(rows, "x"),
        targets=names(rows, "y"),
        output=path / "model",
        rows_of_a_cell=CELL,
        **changes,
    )
    return fit(estimator or model(), job, engine or Threads(2))


def job(path, rows=None, **changes):
    given = {
        "dataset": ds.dataset(path / "rows.parquet" if rows is None else rows, format="parquet"),
        "inputs": ["x0", "x1", "x2"],
        "targets": ["y0"],
        "output": path / "model",
        "rows_of_a_cell": CELL,
    }
    return Job(**{**given, **changes})
