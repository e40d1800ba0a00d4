"""The face for river: its own checks, and what they do not look at."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")

from river import checks

from spngp.adapters.river import SPNGPOnline


def instance():
    return SPNGPOnline(**next(SPNGPOnline._unit_test_params()))


@pytest.mark.parametrize("check", [pytest.param(check, id=check.__name__) for check in checks.yield_checks(instance())])
def test_rivers_checks(check):
    check(instance())


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return [{"a": float(a), "b": float(b)} for a, b in X], np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def test_one_row_at_a_time_and_many_at_once_are_the_same():
    X, y = rows(40)
    one, many = instance(), instance()
    for x, value in zip(X, y, strict=True):
        one.learn_one(x, value)
    many.learn_one(X[0], y[0])
    many.learn_many(pd.DataFrame(X[1:])[["b", "a"]], pd.Series(y[1:]))
    expected = [one.predict_one(x) for x in X]
    np.testing.assert_allclose(many.predict_many(pd.DataFrame(X)), expected, rtol=1e-9)
    assert one.model.row_numbers_.size == many.model.row_numbers_.size == 40


def test_the_distribution_is_that_of_the_model():
    X, y = rows(30)
    model = instance()
    for x, value in zip(X, y, strict=True):
        model.learn_one(x, value)
    found = model.predict_one({"a": 0.3, "b": -0.1}, with_dist=True)
    mixture = model.model.predict_dist(np.array([[0.3, -0.1]]))
    assert found.mu == found.mode == model.predict_one({"b": -0.1, "a": 0.3}) == mixture.mean[0]
    assert found.sigma == mixture.std[0]
    assert found.cdf(found.quantile(0.3)) == pytest.approx(0.3)
    low, high = found.interval(0.9)
    assert low < found.mu < high
    assert found(found.mu) == pytest.approx(np.exp(mixture.logpdf(mixture.mean))[0])
    assert np.isfinite(found.sample())
    assert found.n_samples == 30
    with pytest.raises(NotImplementedError, match="learn_one"):
        found.update(1.0)


def test_features_that_are_missing_or_new():
    X, y = rows(20)
    model = instance()
    for x, value in zip(X, y, strict=True):
        model.learn_one(x, value)
    mean = float(np.mean([x["b"] for x in X]))
    assert model.predict_one({"a": 0.5}) == pytest.approx(model.predict_one({"a": 0.5, "b": mean, "c": 7.0}))


def test_a_window_remembers_the_last_rows():
    X, y = rows(40)
    model = SPNGPOnline(window=15, hyperparameters="fixed", seed=0)
    for x, value in zip(X, y, strict=True):
        model.learn_one(x, value)
    assert model.model.row_numbers_.tolist() == list(range(25, 40))
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_one(X[0]) == pytest.approx(model.predict_one(X[0]), abs=1e-9)


def test_texts_are_levels_that_rows_may_add():
    rng = np.random.default_rng(0)
    cities, effects = ("Graz", "Linz", "Wien"), (0.0, 3.0, -2.0)
    model = instance()
    for i in range(60):
        city = 0 if i < 20 else i % 3  # the others come later
        a = rng.uniform(-1, 1)
        model.learn_one({"a": a, "city": cities[city]}, effects[city] + a + 0.05 * rng.normal())
    found = [model.predict_one({"city": city, "a": 0.2}) for city in cities]
    np.testing.assert_allclose(found, np.add(effects, 0.2), atol=0.5)
    many = model.predict_many(pd.DataFrame({"a": [0.2] * 3, "city": cities}))
    np.testing.assert_allclose(many, found)
    known, unseen, missing = (
        model.predict_one({"city": city, "a": 0.2}, with_dist=True).sigma for city in ("Graz", "Wels", None)
    )
    assert min(unseen, missing) > 2 * known
    model.learn_one({"a": 0.1}, 0.5)  # no city: a level as well
    model.learn_one({"a": 0.1, "city": float("nan")}, 0.4)
    assert sorted(model.model.columns_.columns[1].levels) == ["(missing)", *cities]
    with pytest.raises(ValueError, match="feature 'a' was no text in the first row, got 'x'"):
        model.learn_one({"a": "x", "city": "Graz"}, 1.0)


def test_a_first_row_that_fails_leaves_nothing_behind():
    model = instance()
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": 1.0}, float("inf"))
    assert model.predict_one({"a": 1.0}) == 0.0
    model.learn_one({"city": "Graz", "b": 2.0}, 1.0)
    assert np.isfinite(model.predict_one({"city": "Graz", "b": 2.0}))
