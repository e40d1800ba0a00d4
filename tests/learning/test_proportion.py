"""Single values out of all proportion: they neither set the scale of the others nor spoil what is learnt from them."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.estimators.scaling import Columns
from spngp.kernels import SquaredExponential


@pytest.mark.parametrize(
    ("n", "hyperparameters"), [(300, "tied"), pytest.param(1_100, "adaptive", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    ("where", "value"), [("relevant input", 1e12), ("other input", 1e12), ("output", 1e12), ("output", -9999.0)]
)
def test_one_value_out_of_all_proportion_does_not_spoil_the_others(where, value, n, hyperparameters):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, 2))
    truth = np.sin(X[:, 0])
    y = truth + 0.1 * rng.standard_normal(n)
    if where == "output":
        y[17] = value
    else:
        X[17, 0 if where == "relevant input" else 1] = value
    model = SPNGPRegressor(hyperparameters=hyperparameters, random_state=0).fit(X, y)
    others = np.delete(np.arange(n), 17)
    mean, std = model.predict(X[others], return_std=True)
    assert np.sqrt(np.mean((mean - truth[others]) ** 2)) < 0.03
    assert 0.08 < std.min() <= std.max() < 0.2
    assert model.outliers_.tolist() == ([[17, 0]] if where == "output" else [])


@pytest.mark.long
def test_nor_does_one_that_comes_later():
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (400, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    y[350] = 1e12
    model = SPNGPRegressor(random_state=0).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert model.outliers_.tolist() == [[350, 0]]
    assert np.sqrt(np.mean((model.predict(X) - np.sin(2 * X[:, 0])) ** 2)) < 0.05


@pytest.mark.parametrize(("batch", "n_first"), [(1, 10), pytest.param(50, 60, marks=pytest.mark.long)])
def test_outputs_that_become_others_are_trusted(batch, n_first):
    X = np.linspace(0, 1, n_first + 50)[:, np.newaxis]
    rng = np.random.default_rng(8)
    y = 1e-4 * rng.standard_normal(n_first + 50)
    y[n_first:] += 1.0  # ten thousand times what was seen before
    models = [SPNGPRegressor(outliers=how, random_state=0) for how in ("doubt", "trust")]
    for model in models:
        model.fit(X[:n_first], y[:n_first])
        for start in range(n_first, n_first + 50, batch):
            model.partial_fit(X[start : start + batch], y[start : start + batch])
    doubting = models[0]
    assert set(doubting.outliers_[:, 0]) <= {n_first - 1, n_first}  # the edge may look like a slip
    got, expected = (model.predict(X[-40:]) for model in models)
    assert expected.min() > 0.5
    assert (np.abs(got - 1.0) < np.abs(expected - 1.0) + 0.1).all()


X_LINE = np.linspace(0, 1, 200)[:, np.newaxis]
X_PLANE = np.random.default_rng(5).uniform(size=(200, 2))


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (X_LINE, np.exp(-0.5 * ((X_LINE[:, 0] - 0.5) / 0.02) ** 2)),
        pytest.param(X_LINE, np.exp(-0.5 * ((X_LINE[:, 0] - 0.5) / 0.005) ** 2), marks=pytest.mark.long),
        pytest.param(
            X_LINE, (X_LINE[:, 0] > 0.85) + 1e-6 * np.random.default_rng(6).standard_normal(200), marks=pytest.mark.long
        ),
        (X_LINE, (X_LINE[:, 0] > 0.99) + 1e-6 * np.random.default_rng(6).standard_normal(200)),
        (X_PLANE, (X_PLANE[:, 0] > 0.83) * (1 + X_PLANE[:, 1]) + 1e-5 * np.random.default_rng(7).standard_normal(200)),
    ],
)
def test_peaks_and_steps_are_not_out_of_proportion(X, y):
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert len(model.outliers_) <= 2  # of a step, the rows at the edge may be doubted
    # two rows of 200 are a step as well: ignored they would cost all of the deviation, one row half way costs .37
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.38 * y.std()


@pytest.mark.parametrize("huge", [1e50, 1e100, 1e145])
def test_any_size_is_doubted(huge):
    X = np.linspace(0, 1, 50)[:, np.newaxis]
    y = 1e6 * np.sin(6 * X[:, 0])
    y[7] = huge
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert np.abs(np.delete(model.predict(X) - 1e6 * np.sin(6 * X[:, 0]), 7)).max() < 1e5
    assert model.outliers_.tolist() == [[7, 0]]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("kernels", "size", "huge", "spread"),
    [
        (None, 1.0, 1e300, r"0\.7"),
        (None, 1e100, 1e300, r"7\.\d+e\+99"),
        (SquaredExponential(0.3), 1.0, 1e300, r"0\.7"),
        (SquaredExponential(0.3, 1e200), 1e100, 1e300, r"7\.\d+e\+99"),
        (SquaredExponential(0.3, 1e300), 1e150, 1e200, r"7\.\d+e\+149"),  # not far, but its square is no float
    ],
)
def test_sizes_whose_squares_overflow_are_refused(kernels, size, huge, spread, later):
    X = np.linspace(0, 1, 50)[:, np.newaxis]
    y = size * np.sin(6 * X[:, 0])
    model = SPNGPRegressor(kernels, random_state=0)
    if later:
        model.fit(X, y)
    y[7] = huge
    message = rf"^y holds 1e\+[23]00, which is too far from the other values .about .* ± {spread}"
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y)


def test_scale_of_a_column_without_what_is_out_of_proportion():
    rng = np.random.default_rng(3)
    column = rng.standard_normal(1000)
    plain = Columns.of(column[:, np.newaxis])
    for far in (1e3, 1e9, -1e300):
        found = Columns.of(np.append(column, far)[:, np.newaxis])
        np.testing.assert_allclose([found.mean, found.scale], [plain.mean, plain.scale])
    assert plain.reach[0] == pytest.approx(50 * np.abs((column - column.mean()) / column.std()).max())


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).standard_cauchy(1000),
        np.append(np.zeros(999), 1.0),
        np.append(np.where(np.arange(999) % 2, 0.3, 0.1 + 0.2), 1e5),  # differ by rounding alone
        np.append(np.where(np.arange(999) % 2, 0.0, 1e-17), 1.0),
        np.append(1e-6 * np.random.default_rng(1).standard_normal(800), np.linspace(1, 2, 200)),
        np.exp(4 * np.random.default_rng(2).standard_normal(1000)),
        np.array([0.0, 1.0, 1000.0]),
        np.append(np.random.default_rng(3).standard_normal(50), [np.nan] * 30),
    ],
)
def test_heavy_tails_and_rare_levels_are_what_a_column_is_like(values):
    found = Columns.of(values[:, np.newaxis])
    np.testing.assert_allclose([found.mean[0], found.scale[0]], [np.nanmean(values), np.nanstd(values)])
