"""Fits out of core, against fits in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import spngp
from same_structure import fitted_in_memory
from spngp import SPNGPRegressor
from spngp.outofcore import Job, fit
from spngp.outofcore.engines import Threads
from spngp.outofcore.pieces import sampled

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


def same(one, other, rows, tolerance=1e-10):
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=tolerance)
    a, b = one.predict_dist(rows), other.predict_dist(rows)
    for moment in ("mean", "std"):
        np.testing.assert_allclose(getattr(a, moment), getattr(b, moment), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.quantile([0.05, 0.9]), b.quantile([0.05, 0.9]), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(one.outliers_, other.outliers_)


def test_equals_the_fit_in_memory_if_all_rows_are_sampled(tmp_path):
    rows = table()
    X = rows.select(names(rows, "x"))
    out = in_shards(rows, tmp_path)
    same(out, model().fit(X, rows["y0"].to_numpy()), X.slice(0, 300))
    assert spngp.load(tmp_path / "model").log_evidence_ == out.log_evidence_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.parquet"]


def test_equals_a_fit_in_memory_with_the_same_structure(tmp_path):
    rows = table(3600, outputs=2, outliers=40)
    y = np.column_stack([rows["y0"], rows["y1"]])
    y[::7, 1] = np.nan
    rows = rows.set_column(rows.schema.get_field_index("y1"), "y1", pa.array(y[:, 1]))
    X = rows.select(names(rows, "x"))
    out = in_shards(rows, tmp_path, most_sampled=1800)
    seed = int(np.random.default_rng(0).integers(2**62))
    sample = sampled(0, 3600, 1800 / 3600, seed)
    assert 1700 < sample.size < 1900
    cell = max(CELL, 8 * 2 * 60)
    judge = fitted_in_memory(model(), X, y, sample, cell)
    assert len(out.outliers_) > 20
    same(out, judge, X.slice(0, 300))
    assert len(out.regions_) == len(judge.regions_)


def test_neither_partitions_nor_threads_change_a_bit(tmp_path):
    rows = table(2500)
    X = rows.select(names(rows, "x")).slice(0, 100)
    found = []
    for i, (group, jobs) in enumerate([(2500, 1), (701, 3)]):
        (tmp_path / str(i)).mkdir()
        found.append(in_shards(rows, tmp_path / str(i), row_group=group, engine=Threads(jobs), most_sampled=1700))
    assert found[0].log_evidence_ == found[1].log_evidence_
    np.testing.assert_array_equal(found[0].predict_dist(X).std, found[1].predict_dist(X).std)


def test_categories_gaps_and_dates_as_in_memory(tmp_path):
    rows = table(2500)
    rng = np.random.default_rng(1)
    place = np.array(["north", "south", "west"])[rng.integers(3, size=2500)]
    when = np.datetime64("2024-01-01") + rng.integers(0, 300, size=2500)
    y = rows["y0"].to_numpy() + (place == "south")
    gaps = np.where(rng.uniform(size=2500) < 0.05, np.nan, rows["x0"].to_numpy())
    rows = pa.table({"x0": pa.array(gaps, from_pandas=True), "x1": rows["x1"], "xp": place, "xw": when, "y0": y})
    X = rows.select(names(rows, "x"))
    out = in_shards(rows, tmp_path)
    same(out, model().fit(X, y), X.slice(0, 200))


def test_without_context_and_with_tied_parameters(tmp_path):
    rows = table(2000)
    X = rows.select(names(rows, "x"))
    for i, changes in enumerate([{"overlap": 0.0}, {"hyperparameters": "tied"}]):
        (tmp_path / str(i)).mkdir()
        out = in_shards(rows, tmp_path / str(i), model(**changes))
        same(out, model(**changes).fit(X, rows["y0"].to_numpy()), X.slice(0, 100))


def test_half_of_all_rows_are_equal(tmp_path):
    rows = table(8000, outliers=0)
    columns = {name: rows[name].to_numpy().copy() for name in rows.schema.names}
    for name in ("x0", "x1", "x2"):
        columns[name][:4000] = 0.25
    rows = pa.table(columns)
    out = in_shards(rows, tmp_path)
    assert max(record["rows"] for record in out.regions_) >= 4000
    mean, std = out.predict(rows.select(names(rows, "x")).slice(0, 1), return_std=True)
    assert abs(mean[0] - columns["y0"][:4000].mean()) < 0.05
    assert std[0] < 1.0
