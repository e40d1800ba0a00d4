"""Gross errors in y: found whatever their size, and only they."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.learning.proportion import gross_errors


def table(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, d))
    y = 3 * np.sin(5 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, y, rng


@pytest.mark.parametrize("size", [10.0, 60.0, 4e3, 1e6, (10.0, 1e6)])
@pytest.mark.parametrize("signs", [[1.0], [-1.0, 1.0]])
def test_errors_of_every_size_are_found(size, signs):
    X, y, rng = table()
    wrong = np.sort(rng.choice(300, 5, replace=False))
    sizes = np.geomspace(*size, 5) if isinstance(size, tuple) else size
    spoilt = y.copy()
    spoilt[wrong] += sizes * y.std() * rng.choice(signs, 5)
    np.testing.assert_array_equal(np.flatnonzero(gross_errors(X, spoilt[:, np.newaxis])[:, 0]), wrong)
    model = SPNGPRegressor(hyperparameters="tied", random_state=0).fit(X, spoilt)
    assert model.outliers_[:, 0].tolist() == wrong.tolist()
    clean = SPNGPRegressor(hyperparameters="tied", random_state=0).fit(X, y)
    X_new, y_new, _ = table(seed=1)
    errors = [np.sqrt(np.mean((m.predict(X_new) - y_new) ** 2)) for m in (model, clean)]
    assert errors[0] < 1.1 * errors[1]


@pytest.mark.parametrize("size", [30.0, 1e5])
def test_errors_that_come_later_are_found(size):
    X, y, rng = table()
    wrong = 150 + np.sort(rng.choice(150, 3, replace=False))
    y[wrong] += size * y.std()
    model = SPNGPRegressor(hyperparameters="tied", random_state=0).fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    assert model.outliers_[:, 0].tolist() == wrong.tolist()


def test_two_errors_in_many_inputs_are_no_peak():
    for seed in range(8):
        rng = np.random.default_rng([seed, 7])
        X = rng.uniform(size=(95, 15))
        y = X[:, 0] + 0.1 * rng.standard_normal(95)
        y[[10, 60]] += 1000.0
        assert np.flatnonzero(gross_errors(X, y[:, np.newaxis])).tolist() == [10, 60]


@pytest.mark.parametrize("name", ["peak", "step", "rare level", "heavy tail", "lognormal"])
def test_what_is_no_error_is_not_taken_for_one(name):
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(1000, 3))
    y = np.sin(6 * X[:, 1]) + 0.1 * rng.standard_normal(1000)
    if name == "peak":
        y += 50 * np.exp(-0.5 * ((X[:, 0] - 0.4) / 0.005) ** 2)
    elif name == "step":
        y += 50 * (X[:, 0] > 0.98)
    elif name == "rare level":
        X[:, 2] = rng.random(1000) < 0.02
        y += 50 * X[:, 2]
    elif name == "heavy tail":
        y = rng.standard_t(2.5, 1000)
    else:
        y = np.exp(1.5 * rng.standard_normal(1000))
    assert not gross_errors(X, y[:, np.newaxis]).any()
