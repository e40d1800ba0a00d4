"""Single values out of all proportion: they neither set the scale of the others nor spoil what is learnt from them."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp._standardise import Standardiser


@pytest.mark.parametrize(("n", "hyperparameters"), [(300, "tied"), (2_000, "adaptive")])
@pytest.mark.parametrize("where", ["relevant input", "other input", "output"])
def test_one_value_out_of_all_proportion_does_not_spoil_the_others(where, n, hyperparameters):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, 2))
    truth = np.sin(X[:, 0])
    y = truth + 0.1 * rng.standard_normal(n)
    if where == "output":
        y[17] = 1e12
    else:
        X[17, 0 if where == "relevant input" else 1] = 1e12
    model = SPNGPRegressor(hyperparameters=hyperparameters, random_state=0).fit(X, y)
    others = np.delete(np.arange(n), 17)
    mean, std = model.predict(X[others], return_std=True)
    assert np.sqrt(np.mean((mean - truth[others]) ** 2)) < 0.03
    assert 0.08 < std.min() <= std.max() < 0.2
    assert model.outliers_.tolist() == ([[17, 0]] if where == "output" else [])


@pytest.mark.parametrize("huge", [1e50, 1e100, 1e145])
def test_any_size_is_doubted(huge):
    X = np.linspace(0, 1, 50)[:, np.newaxis]
    y = np.sin(6 * X[:, 0])
    y[7], y[30] = huge, -huge
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert np.abs(np.delete(model.predict(X) - np.sin(6 * X[:, 0]), [7, 30])).max() < 0.1
    assert model.outliers_.tolist() == [[7, 0], [30, 0]]


def test_sizes_whose_squares_overflow_are_refused():
    X = np.linspace(0, 1, 50)[:, np.newaxis]
    y = np.sin(6 * X[:, 0])
    y[7] = 1e300
    with pytest.raises(ValueError, match=r"y holds 1e\+300, which is too far from the other values .*"):
        SPNGPRegressor(random_state=0).fit(X, y)


def test_scale_of_a_column_without_what_is_out_of_proportion():
    rng = np.random.default_rng(3)
    column = rng.standard_normal(1000)
    plain = Standardiser.of(column[:, np.newaxis])
    far = Standardiser.of(np.append(column, 1e9)[:, np.newaxis])
    np.testing.assert_allclose([far.mean, far.scale], [plain.mean, plain.scale])
    # heavy tails and rare levels are what a column is like, not out of proportion
    for values in (rng.standard_cauchy(1000), np.append(np.zeros(999), 1.0), np.exp(2 * column)):
        found = Standardiser.of(values[:, np.newaxis])
        np.testing.assert_allclose([found.mean[0], found.scale[0]], [values.mean(), values.std()])
