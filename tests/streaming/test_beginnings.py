"""A stream that goes on from a fit: one that kept no factors, and one whose equal rows differ in what is known."""

from __future__ import annotations

import numpy as np
import pytest

from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential

KERNELS = [SquaredExponential([1.0, 1.0]), Matern(1.5, [1.5, 1.5])]
SETTINGS = {"max_leaf_size": 30, "overlap": 1, "noise_shape": "gaussian", "random_state": 0}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


def assert_exact(model, X):
    naive = Naive(model._learnt)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-9)
    np.testing.assert_allclose(model.predict(X), naive.moments(X)[0][:, 0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_more", [1, 7])
@pytest.mark.parametrize("asked_before", [False, True])
def test_from_a_fit_without_room_for_factors(n_more, asked_before):
    X, y = rows(90 + n_more)
    models = []
    for limit in (None, 4e-4):
        model = SPNGPRegressor(KERNELS, memory_limit=limit, **SETTINGS).fit(X[:90], y[:90])
        if asked_before:
            model.predict(X[:5], return_std=True)
        models.append(model.partial_fit(X[90:], y[90:]))
    assert_exact(models[1], X[:20] + 0.05)
    with_room, without = (model.predict(X + 0.01, return_std=True) for model in models)
    np.testing.assert_allclose(without, with_room, rtol=1e-8)


@pytest.mark.parametrize("hyperparameters", ["fixed", "tied"])
def test_equal_rows_whose_known_variances_differ(hyperparameters):
    X, y = rows(60)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    variances = np.where(np.arange(120) % 2, 0.0, np.random.default_rng(1).uniform(0.1, 2.0, 120))
    order = np.random.default_rng(2).permutation(120)
    settings = {**SETTINGS, "hyperparameters": hyperparameters}
    model = SPNGPRegressor(KERNELS, **settings).fit(X[order], y[order], y_variance=variances[order])
    model.partial_fit(X[:3] + 0.02, y[:3])
    assert_exact(model, X[:20] + 0.05)
    gone = np.sort(np.random.default_rng(3).choice(120, 40, replace=False))
    model.forget(rows=gone)
    assert_exact(model, X[:20] + 0.05)
