"""What happens to the structure as rows come, what is announced, and what bad rows do."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pandas as pd
import pytest

import spngp
from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.streaming import upkeep, whole
from spngp.streaming.upkeep import FALSE_ALARMS, WINDOW

GRID = np.linspace(-1.9, 1.9, 15)[:, np.newaxis]


def series(n, seed=0, noise=0.1, phase=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0] + phase) + noise * rng.standard_normal(n)


def settled(**settings):
    """A model with several regions that are looked after one by one."""
    kernel = SquaredExponential(0.7)
    given = {"max_leaf_size": 30, "overlap": 1, "random_state": 0} | settings
    return SPNGPRegressor(kernel, **given).fit(*series(500))


def one_by_one(model, X, y):
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return model


def kinds(model):
    return [event["kind"] for event in model.events_]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # a handful of rows may leave an optimisation unfinished
def test_from_nothing_the_model_is_about_as_good_as_a_fit():
    X, y = series(70)
    model = one_by_one(SPNGPRegressor(random_state=0), X, y)
    batch = SPNGPRegressor(random_state=0).fit(X, y)
    truth = np.sin(2 * GRID[:, 0])
    errors = [np.sqrt(np.mean((fitted.predict(GRID) - truth) ** 2)) for fitted in (model, batch)]
    assert errors[0] < 1.5 * errors[1] + 0.01
    assert set(kinds(model)) == {"model"}
    assert [event["rows"] for event in model.events_] == [2, 3, 5, 8, 12, 18, 27, 41, 62]
    assert model.row_numbers_.size == 70


def test_regions_that_grow_are_learnt_again_and_cut():
    model = settled()
    X, y = series(300, seed=1)
    for start in range(0, 300, 6):
        model.partial_fit(X[start : start + 6], y[start : start + 6])
    assert {"cut", "region"} <= set(kinds(model))
    assert max(record["rows"] for record in model.regions_) <= 30
    low, high = model.predict_dist(GRID).interval(0.99)
    assert ((low < np.sin(2 * GRID[:, 0])) & (np.sin(2 * GRID[:, 0]) < high)).all()


def test_all_other_regions_stay_untouched():
    model = settled()
    model.partial_fit([[0.0]], [0.1])
    before = model._learnt
    model.partial_fit([[1.5]], [0.2])
    changed = [i for i, (b, a) in enumerate(zip(before.regions, model._learnt.regions, strict=True)) if a is not b]
    assert len(changed) == 1
    assert before.regions[changed[0]].box.contains(before.base.units.inputs.apply(np.array([[1.5]])))[0]


def test_false_alarms_are_as_rare_as_stated():
    rng = np.random.default_rng(0)
    n = 40_000
    alarms = sum(bool(upkeep._drift(transforms, 0)) for transforms in rng.uniform(size=(n, WINDOW)))
    assert alarms == pytest.approx(n * FALSE_ALARMS, abs=4 * np.sqrt(n * FALSE_ALARMS))


@pytest.mark.parametrize(
    ("change", "word"), [({"noise": 0.5}, "spread"), pytest.param({"phase": 1.5}, "values", marks=pytest.mark.long)]
)
def test_drift_is_noticed_and_announced(change, word):
    model = settled(max_leaf_size=100)
    one_by_one(model, *series(250, seed=2))
    calm = [event for event in model.events_ if "the last" in event["reason"]]
    one_by_one(model, *series(400, seed=3, **change))
    alarms = [event for event in model.events_ if "the last" in event["reason"]]
    assert len(calm) <= 1
    assert len(alarms) > len(calm)
    assert any(word in event["reason"] for event in alarms)


def test_outputs_that_move_away_change_the_units():
    model = settled()
    model.partial_fit([[0.0]], [0.1])
    X, y = series(40, seed=4)
    one_by_one(model, X, y + 50.0)
    assert any(event["kind"] == "model" and "has moved" in event["reason"] for event in model.events_)
    assert np.isfinite(model.predict(GRID)).all()


def test_a_failed_update_leaves_the_model_as_it_was_and_fit_for_more(monkeypatch):
    model = settled(noise_shape="gaussian", outliers="trust")
    model.partial_fit([[0.3]], [0.5])
    before, numbers = model.predict(GRID, return_std=True), model.row_numbers_.tolist()

    def fail(*_):
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(whole, "look_after", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            model.partial_fit(*series(5, seed=5))
    np.testing.assert_allclose(model.predict(GRID, return_std=True), before, rtol=1e-12)
    assert model.row_numbers_.tolist() == numbers
    model.partial_fit(*series(4, seed=6))
    naive = Naive(model._learnt)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-10)
    np.testing.assert_allclose(model.predict(GRID), naive.moments(GRID)[0][:, 0], rtol=1e-9, atol=1e-9)


def test_a_small_memory_gives_the_same_predictions():
    roomy, tight = settled(), settled(memory_limit=2e-4)
    X, y = series(40, seed=7)
    for model in (roomy, tight):
        for i in range(len(y)):
            model.predict(X[i : i + 1], return_std=True)
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    for a, b in zip(roomy.predict(GRID, return_std=True), tight.predict(GRID, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    cells = [cell for region in tight._learnt.regions for e in region.experts for cell in (e.own, e.seen)]
    assert sum(cell.nbytes for cell in cells) <= 2e-4 * 1e9


def test_a_window_holds_its_rows_and_no_more():
    model = settled(hyperparameters="fixed", noise_variance=0.01)
    X, y = series(80, seed=8)
    sizes = set()
    for i in range(80):
        model.partial_fit(X[i : i + 1], y[i : i + 1]).forget(keep_last=200)
        sizes.add(model.X_train_.shape[0])
    assert sizes == {200}
    assert model.row_numbers_.tolist() == list(range(380, 580))
    fresh = SPNGPRegressor(SquaredExponential(0.7), max_leaf_size=10**6, hyperparameters="fixed", noise_variance=0.01)
    fresh.fit(model.X_train_, model.y_train_)
    np.testing.assert_allclose(model.predict(GRID), fresh.predict(GRID), atol=0.1)


def test_a_model_that_has_forgotten_all_rows_of_its_fit_is_saved_and_goes_on(tmp_path):
    model = settled(hyperparameters="fixed", noise_variance=0.01)
    model.partial_fit(*series(30, seed=1)).forget(older_than=500)
    model.save(tmp_path / "m")
    loaded = spngp.load(tmp_path / "m", verify=True)
    np.testing.assert_allclose(loaded.predict(GRID), model.predict(GRID), rtol=1e-9)
    assert loaded.row_numbers_.tolist() == list(range(500, 530))
    assert loaded.partial_fit([[0.5]], [0.8]).row_numbers_.size == 31


def test_snapshots_and_threads():
    model = settled()
    model.partial_fit([[0.0]], [0.0])
    snapshot = copy.copy(model)
    before = snapshot.predict(GRID)
    rows = [series(10, seed=seed) for seed in range(4)]
    threads = [threading.Thread(target=one_by_one, args=(model, *part)) for part in rows]
    for thread in threads:
        thread.start()
    for _ in range(20):
        model.predict(GRID)
    for thread in threads:
        thread.join()
    assert model.row_numbers_.size == 541
    np.testing.assert_allclose(snapshot.predict(GRID), before, rtol=1e-9)


# Bad rows


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((1, 2)), [0.0], "features"),
        (np.zeros((0, 1)), [], "0 sample"),
        ([["a"]], [0.0], "'a'"),
        ([[0.0]], ["b"], "'b'"),
        ([[np.nan]], [0.0], "NaN"),
        ([[0.0]], [np.inf], "inf"),
        ([[0.0]], [1e300], "too far from the other values"),
    ],
)
def test_rows_that_are_refused_change_nothing(X, y, message):
    model = SPNGPRegressor(SquaredExponential(0.7), hyperparameters="fixed").fit(*series(40))
    model.partial_fit([[0.1]], [0.2])
    before = model._learnt
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y)
    assert model._learnt is before


def test_other_columns_are_refused_and_change_nothing():
    X, y = series(40)
    table = pd.DataFrame({"a": X[:, 0], "b": X[::-1, 0]})
    model = SPNGPRegressor(SquaredExponential(0.7), hyperparameters="fixed").fit(table, y)
    model.partial_fit(table[:1], y[:1])
    before = model._learnt
    for other in (table.rename(columns={"b": "c"}), table[["b", "a"]], table[["a"]], table.assign(c=0.0)):
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(other[:1], y[:1])
    assert model._learnt is before


def test_a_row_without_any_output_is_remembered_and_teaches_nothing():
    model = settled()
    before = model.predict(GRID)
    model.partial_fit([[0.5]], [np.nan])
    assert model.row_numbers_.size == 501
    np.testing.assert_allclose(model.predict(GRID), before, rtol=1e-9)


@pytest.mark.parametrize("where", ["output", "input"])
def test_a_row_a_billion_standard_deviations_off(where):
    model = settled()
    before = model.predict(GRID)
    model.partial_fit([[1e9 if where == "input" else 0.1]], [1e9 if where == "output" else 0.1])
    np.testing.assert_allclose(model.predict(GRID), before, atol=0.02)
    assert model.outliers_.tolist() == ([[500, 0]] if where == "output" else [])
    one_by_one(model, *series(20, seed=9))
    np.testing.assert_allclose(model.predict(GRID), np.sin(2 * GRID[:, 0]), atol=0.3)


@pytest.mark.long
def test_many_equal_rows_one_after_the_other():
    model = settled()
    rng = np.random.default_rng(0)
    for i, value in enumerate(0.5 + 0.1 * rng.standard_normal(1000)):
        model.partial_fit([[0.25]], [value])
        if i % 10 == 0:
            model.predict([[0.25], [0.3]], return_std=True)
    assert model.row_numbers_.size == 1500
    mean, std = model.predict([[0.25]], return_std=True)
    assert mean[0] == pytest.approx(0.5, abs=0.05)
    assert 0.05 < std[0] < 0.2


def test_what_forget_refuses():
    model = settled()
    model.forget(rows=[3, 5])
    before = model._learnt
    for arguments, message in (
        ({"rows": [3]}, "got 3, which are not"),
        ({"rows": [5000]}, "remembered"),
        ({"rows": ["a"]}, "numbers of rows"),
        ({"keep_last": 0}, "keep_last"),
        ({"older_than": 500}, "at least one row must remain"),
        ({}, "got none"),
        ({"keep_last": 5, "rows": [1]}, "rows and keep_last"),
    ):
        with pytest.raises(ValueError, match=message):
            model.forget(**arguments)
    assert model._learnt is before
    assert model.forget(rows=[]).row_numbers_.size == 498
