"""Any sequence of rows that come and go, of saves and loads: the posterior is that of conditioning from scratch."""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spngp
from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.gp.growing import given_together
from spngp.kernels import Matern, SquaredExponential
from spngp.streaming import conditioned
from spngp.streaming.conditioned import seen_numbers

SETTINGS = {
    "no context": {"overlap": 0},
    "overlap": {"overlap": 1.5},
    "margin": {"margin": 0.4},
    "alternative cuts": {"overlap": 1, "n_partitions": 2},
    "fixed": {"overlap": 1, "hyperparameters": "fixed", "noise_variance": 0.04},
    "tied": {"overlap": 1, "hyperparameters": "tied"},
    "trust": {"overlap": 2, "outliers": "trust"},
    "known variances": {"overlap": 1},
}
KNOWN = {"known variances": np.linspace(0.0, 0.5, 45)}  # y_variance of the fit


def rows(n, n_outputs, rng):
    X = np.round(rng.uniform(-2, 2, (n, 2)), 1)  # equal distances, and now and then equal rows
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 1])], axis=1)[:, :n_outputs]
    Y = Y + 0.2 * rng.standard_normal(Y.shape)
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    return X, Y


@cache
def fitted(name, n_outputs):
    kernels = [SquaredExponential([1.0, 1.0]), Matern(1.5, [1.5, 1.5])]
    model = SPNGPRegressor(kernels, max_leaf_size=12, random_state=0, noise_shape="gaussian", **SETTINGS[name])
    return model.fit(*rows(45, n_outputs, np.random.default_rng(0)), y_variance=KNOWN.get(name))


def step(model, what, size, rng, n_outputs):
    if what == "add":
        return model.partial_fit(*rows(size, n_outputs, rng))
    if what == "measure":  # outputs of known variances
        X, Y = rows(size, n_outputs, rng)
        return model.partial_fit(X, Y, y_variance=rng.uniform(0, 1, Y.shape))
    if what == "gross error":
        X, Y = rows(1, n_outputs, rng)
        return model.partial_fit(X, Y + 10.0**size)
    if what == "forget":
        return model.forget(rows=rng.choice(model.row_numbers_, size, replace=False))
    if what == "forget the oldest":
        return model.forget(older_than=int(model.row_numbers_[size]))
    if what == "window":
        return model.forget(keep_last=max(10, model.row_numbers_.size - size))
    if what == "predict":
        model.predict(rng.uniform(-2, 2, (size, 2)), return_std=True)
        return model
    if what == "pickle":
        return pickle.loads(pickle.dumps(model))
    if what == "fork":  # another model goes on from here with other rows
        copy.copy(model).partial_fit(*rows(size, n_outputs, rng)).predict(np.zeros((1, 2)))
        return model
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m")
        return spngp.load(Path(folder) / "m", verify=True)


ADDING = ["add", "add", "measure", "predict", "gross error"]
STEPS = [*ADDING, "forget", "forget the oldest", "window", "save", "pickle", "fork"]


def assert_exact(model, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(*rows(1, model.n_outputs_, rng))
    naive = Naive(model._learnt)
    X = rng.uniform(-2.2, 2.2, (6, 2))
    mean, variance = naive.moments(X)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-8, abs=1e-8)
    found = model.predict_dist(X)
    np.testing.assert_allclose(found.mean.reshape(mean.shape), mean, rtol=1e-8, atol=1e-8)
    shaped = found.var.reshape(mean.shape)
    if not model.outliers_.size:  # else the shape of the noise adds to the variance
        np.testing.assert_allclose(shaped, variance, rtol=1e-8, atol=1e-8)
    # the network says the same
    np.testing.assert_allclose(model.network_.predict_dist(X).mean.reshape(mean.shape), mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.network_.predict_dist(X).var.reshape(mean.shape), shaped, rtol=1e-8, atol=1e-8)
    assert model.network_.log_evidence == pytest.approx(model.log_evidence_, rel=1e-8, abs=1e-8)
    assert model.X_train_.shape[0] == model.row_numbers_.size


@pytest.mark.filterwarnings("ignore")  # optimisations of so few rows may stop early
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("name", list(SETTINGS))
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 9)), min_size=2, max_size=9),
    seed=st.integers(0, 2**20),
)
def test_any_sequence_of_rows_that_come_and_go_is_exact(name, n_outputs, steps, seed):
    rng = np.random.default_rng(seed)
    model = copy.copy(fitted(name, n_outputs))
    for what, size in steps:
        model = step(model, what, size, rng, n_outputs)
    assert_exact(model, rng)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["overlap", "no context", "trust"])
def test_many_rows_one_at_a_time_are_exact_after_cuts_and_learning(name):
    rng = np.random.default_rng(3)
    model = copy.copy(fitted(name, 1))
    for i in range(60):
        model = step(model, "add", 1, rng, 1)
        if i % 9 == 0:
            model = step(model, "predict", 3, rng, 1)
    kinds = {event["kind"] for event in model.events_}
    assert "cut" in kinds
    assert "region" in kinds
    assert_exact(model, rng)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_what_regions_remember_to_have_seen_is_all_that_they_see(n_outputs):
    rng = np.random.default_rng(4)
    model = copy.copy(fitted("overlap", n_outputs))
    for i in range(70):
        model = step(model, "add", 1, rng, n_outputs)
        model = step(model, "forget", 1, rng, n_outputs) if i % 8 == 0 else step(model, "predict", 2, rng, n_outputs)
    living = model._learnt
    assert any(region.sight is not None for region in living.regions)
    for region in living.regions:
        seen = region.reach.sees(region.box, np.array(living.log.W.values), living.base.scales)
        np.testing.assert_array_equal(seen_numbers(living, region), living.log.numbers.values[seen])


@pytest.mark.filterwarnings("ignore")
def test_experts_of_a_region_take_a_row_together(monkeypatch):
    rng = np.random.default_rng(6)
    model = copy.copy(fitted("fixed", 1))
    sizes = []

    def noted(gps, *given):
        sizes.append(len(gps))
        return given_together(gps, *given)

    monkeypatch.setattr(conditioned, "given_together", noted)
    X, Y = rows(12, 1, rng)
    for i in range(12):
        model.predict(X[[i // 4]], return_std=True)
        model.partial_fit(X[[i // 4]], Y[[i]])
    assert 2 in sizes
    assert_exact(model, rng)


@pytest.mark.parametrize("batches", [(30,), (1,) * 30, (7, 11, 12)])
def test_order_and_batches_do_not_matter(batches):
    rng = np.random.default_rng(5)
    X, Y = rows(30, 1, rng)
    model = copy.copy(fitted("fixed", 1))
    model.max_leaf_size = 12
    order = rng.permutation(30)
    at = 0
    for size in batches:
        chosen = order[at : at + size]
        model.partial_fit(X[chosen], Y[chosen])
        at += size
    naive = Naive(model._learnt)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-10)
