"""Rows from before a drift count while they may be true, and hardly where later rows contradict them."""

from __future__ import annotations

import numpy as np
import pytest

import spngp
from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.streaming.ageing import without_the_past

GRID = np.linspace(-1.9, 1.9, 15)[:, np.newaxis]


def series(n, seed=0, noise=0.1, phase=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0] + phase) + noise * rng.standard_normal(n)


def streamed(*parts, **settings):
    """A model of 500 rows to which further ones are added one at a time."""
    given = {"max_leaf_size": 100, "overlap": 1, "random_state": 0} | settings
    model = SPNGPRegressor(SquaredExponential(0.7), **given).fit(*series(500))
    for X, y in parts:
        for i in range(len(y)):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    return model


def aged(model):
    """Numbers of the rows that hardly count."""
    known = model._learnt.log.known
    return np.empty(0) if known is None else model.row_numbers_[known.values[:, 0] > 0]


@pytest.mark.filterwarnings("ignore")  # regions of few rows may leave an optimisation unfinished
@pytest.mark.parametrize("hyperparameters", ["adaptive", "fixed"])
def test_a_new_function_takes_the_place_of_the_old_one(hyperparameters, tmp_path):
    settings = {"hyperparameters": hyperparameters, "noise_variance": 0.01, "noise_shape": "gaussian"}
    model = streamed(series(400, seed=1, phase=1.5), **settings)
    old = aged(model)
    assert old.size > 450
    assert (old >= 500).sum() < 5  # where both functions agree
    assert any(event["kind"] == "past" and "hardly count any more" in event["reason"] for event in model.events_)
    X, y = series(300, seed=2, phase=1.5)
    low, high = model.predict_interval(X, 0.9)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.13
    assert 0.84 < np.mean((low <= y) & (y <= high)) < 0.96
    naive = Naive(model._learnt)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-8)
    np.testing.assert_allclose(model.predict(GRID), naive.moments(GRID)[0][:, 0], rtol=1e-7, atol=1e-7)
    model.save(tmp_path / "m")
    loaded = spngp.load(tmp_path / "m").partial_fit(X[:1], y[:1])
    np.testing.assert_array_equal(aged(loaded), old)
    np.testing.assert_allclose(loaded.predict(GRID), model.partial_fit(X[:1], y[:1]).predict(GRID), rtol=1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_rows_count_as_long_as_the_function_stays(noise):
    model = streamed(series(200, seed=1, noise=noise))
    assert aged(model).size == 0
    # and would even if every region were suspected
    assert without_the_past(model._learnt, range(len(model._learnt.regions)))[1] == 0


def test_a_gross_error_ages_nothing():
    model = streamed(series(20, seed=1))
    model.partial_fit([[0.3]], [50.0])
    assert model.outliers_.tolist() == [[520, 0]]
    assert without_the_past(model._learnt, range(len(model._learnt.regions)))[1] == 0
