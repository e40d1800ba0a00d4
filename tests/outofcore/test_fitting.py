"""Fits out of core, against fits in memory."""

import numpy as np
import pyarrow as pa
import pytest

import spngp
from large_rows import CELL, in_shards, model, names, table
from same_structure import fitted_in_memory
from spngp.kernels import Matern, SquaredExponential
from spngp.outofcore.engines import Threads
from spngp.outofcore.pieces import sampled

KERNEL = Matern(1.5)  # a given kernel takes less time to learn than the default ones


def same(one, other, rows, tolerance=1e-10):
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=tolerance)
    a, b = one.predict_dist(rows), other.predict_dist(rows)
    for moment in ("mean", "std"):
        np.testing.assert_allclose(getattr(a, moment), getattr(b, moment), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.quantile([0.05, 0.9]), b.quantile([0.05, 0.9]), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(one.outliers_, other.outliers_)


def test_equals_the_fit_in_memory_if_all_rows_are_sampled(tmp_path):
    rows = table(1800)
    X = rows.select(names(rows, "x"))
    out = in_shards(rows, tmp_path)
    same(out, model().fit(X, rows["y0"].to_numpy()), X.slice(0, 300))
    assert spngp.load(tmp_path / "model").log_evidence_ == out.log_evidence_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.parquet"]


@pytest.mark.parametrize("n_errors", [0, 40])
def test_cuts_where_noise_changes_are_those_of_the_fit_in_memory(tmp_path, n_errors):
    """First cuts, leaf regions that are cut once more, and gross errors that are set aside in all of these."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 1.0, (4000, 3))
    swapped = np.floor(8.0 * X[:, 0]) % 2 == 1
    y = np.sin(9.0 * X[:, 0]) + np.where((X[:, 1] > 0.5) ^ swapped, 1.0, 0.02) * rng.standard_normal(4000)
    y[rng.choice(4000, n_errors, replace=False)] += 6.0
    rows = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y0": y})
    changes = {"max_leaf_size": 180, "kernels": None if n_errors else [KERNEL, SquaredExponential()]}
    out = in_shards(rows, tmp_path, model(**changes))
    inputs = rows.select(names(rows, "x"))
    memory = model(**changes).fit(inputs, y)
    same(out, memory, inputs.slice(0, 300))
    sizes = [record["rows"] for record in memory.regions_]
    assert min(sizes) < 90  # cuts for size leave no less
    assert len(memory.outliers_) >= n_errors // 2


def test_leaves_see_the_share_of_the_context_that_they_see_in_memory(tmp_path):
    rows = table(1800)
    rough = {"kernels": Matern(0.5, 0.05), "noise_variance": 0.01, "hyperparameters": "fixed", "overlap": None}
    out = in_shards(rows, tmp_path, model(**rough))
    memory = model(**rough).fit(rows.select(names(rows, "x")), rows["y0"].to_numpy())
    same(out, memory, rows.select(names(rows, "x")).slice(0, 300))
    assert memory._learnt.overlap < 1.0  # the default has three context rows per own row and more


def test_jumps_are_those_of_the_fit_in_memory(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (2500, 3))
    wave = np.where(X[:, 2] > 0, np.sign(np.sin(9.0 * X[:, 2])), 0.0)
    y = np.sin(4.0 * X[:, 0]) * np.cos(2.0 * X[:, 1]) + wave + 0.2 * rng.standard_normal(2500)
    rows = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y0": y})
    out = in_shards(rows, tmp_path, model(max_leaf_size=180))
    inputs = rows.select(names(rows, "x"))
    memory = model(max_leaf_size=180).fit(inputs, y)
    same(out, memory, inputs.slice(0, 300))
    assert any(record["jumps"] for record in memory.regions_)


def test_equals_a_fit_in_memory_with_the_same_structure(tmp_path):
    rows = table(2400, outputs=2, outliers=40)
    y = np.column_stack([rows["y0"], rows["y1"]])
    y[::7, 1] = np.nan
    rows = rows.set_column(rows.schema.get_field_index("y1"), "y1", pa.array(y[:, 1]))
    X = rows.select(names(rows, "x"))
    kernels = [KERNEL, SquaredExponential()]
    out = in_shards(rows, tmp_path, model(kernels=kernels), most_sampled=1200)
    seed = int(np.random.default_rng(0).integers(2**62))
    sample = sampled(0, 2400, 1200 / 2400, seed)
    assert 1120 < sample.size < 1280
    cell = max(CELL, 8 * 2 * 60)
    judge = fitted_in_memory(model(kernels=kernels), X, y, sample, cell)
    assert len(out.outliers_) > 20
    same(out, judge, X.slice(0, 300))
    assert len(out.regions_) == len(judge.regions_)


def test_neither_partitions_nor_threads_change_a_bit(tmp_path):
    rows = table(2500)
    X = rows.select(names(rows, "x")).slice(0, 100)
    found = []
    for i, (group, jobs) in enumerate([(2500, 1), (701, 3)]):
        (tmp_path / str(i)).mkdir()
        given = {"estimator": model(kernels=KERNEL), "row_group": group, "engine": Threads(jobs)}
        found.append(in_shards(rows, tmp_path / str(i), **given, most_sampled=1700))
    assert found[0].log_evidence_ == found[1].log_evidence_
    np.testing.assert_array_equal(found[0].predict_dist(X).std, found[1].predict_dist(X).std)


def test_categories_gaps_and_dates_as_in_memory(tmp_path):
    rows = table(1600)
    rng = np.random.default_rng(1)
    place = np.array(["north", "south", "west"])[rng.integers(3, size=1600)]
    when = np.datetime64("2024-01-01") + rng.integers(0, 300, size=1600)
    y = rows["y0"].to_numpy() + (place == "south")
    gaps = np.where(rng.uniform(size=1600) < 0.05, np.nan, rows["x0"].to_numpy())
    rows = pa.table({"x0": pa.array(gaps, from_pandas=True), "x1": rows["x1"], "xp": place, "xw": when, "y0": y})
    X = rows.select(names(rows, "x"))
    out = in_shards(rows, tmp_path)
    same(out, model().fit(X, y), X.slice(0, 200))


@pytest.mark.long
def test_a_logarithmic_scale_as_in_memory(tmp_path):
    rows = table(1500, outliers=20)  # some of them among the rows that tied parameters are learnt from
    X, y = rows.select(names(rows, "x")), np.exp(rows["y0"].to_numpy())
    log = model(kernels=KERNEL, target="log")
    out = in_shards(X.append_column("y0", pa.array(y)), tmp_path, log)
    same(out, log.fit(X, y), X.slice(0, 100))
    same(spngp.load(tmp_path / "model"), log, X.slice(0, 100))


@pytest.mark.parametrize(
    "weights", ["fractions", *(pytest.param(other, marks=pytest.mark.long) for other in ("whole", None))]
)
def test_weights_and_known_variances_as_in_memory(tmp_path, weights):
    rng, rows = np.random.default_rng(5), table(1500, outliers=20)
    X, y = rows.select(names(rows, "x")), rows["y0"].to_numpy()
    given, columns = {}, {}
    if weights is not None:
        given["sample_weight"] = rng.integers(0, 3, 1500) if weights == "whole" else rng.choice([0.5, 1.0, 1.7], 1500)
        columns["weight"] = "w"
    if weights != "whole":
        given["y_variance"], columns["variance"] = rng.uniform(0.0, 0.2, 1500), "v"
    stored = [("w", given.get("sample_weight")), ("v", given.get("y_variance"))]
    for name, values in stored:
        rows = rows if values is None else rows.append_column(name, pa.array(values))
    kernel = model(kernels=KERNEL)
    out = in_shards(rows, tmp_path, kernel, **columns)
    same(out, kernel.fit(X, y, **given), X.slice(0, 100))


@pytest.mark.long
def test_without_context_and_with_tied_parameters(tmp_path):
    rows = table(2000, outliers=20)  # as above
    X = rows.select(names(rows, "x"))
    for i, changes in enumerate([{"overlap": 0.0, "kernels": KERNEL}, {"hyperparameters": "tied", "kernels": KERNEL}]):
        (tmp_path / str(i)).mkdir()
        out = in_shards(rows, tmp_path / str(i), model(**changes))
        same(out, model(**changes).fit(X, rows["y0"].to_numpy()), X.slice(0, 100))


@pytest.mark.long
def test_half_of_all_rows_are_equal(tmp_path):
    rows = table(6000)
    columns = {name: rows[name].to_numpy().copy() for name in rows.schema.names}
    for name in ("x0", "x1", "x2"):
        columns[name][:3000] = 0.25
    rows = pa.table(columns)
    X = rows.select(names(rows, "x"))
    # rows of a region that is too large are drawn at random, and the shape of the noise by draws that come after
    plain = {"hyperparameters": "tied", "noise_shape": "gaussian", "kernels": [KERNEL, SquaredExponential()]}
    out = in_shards(rows, tmp_path, model(**plain))
    assert max(record["rows"] for record in out.regions_) >= 3000
    same(out, model(**plain).fit(X, columns["y0"]), X.slice(2900, 200))
    shards = [shard.stat().st_size for shard in (tmp_path / "model" / "shards").iterdir()]
    assert max(shards) < 400_000  # bytes: equal rows are merged there, and do not travel
