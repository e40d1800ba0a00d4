"""Equal rows taken together: the same evidence and predictions as one by one."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.gp import exact as leaf
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import Repeats, merge
from spngp.kernels import Matern, SquaredExponential


def repeated(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float)
    return X, np.sin(X[:, 0]) + 0.3 * rng.standard_normal(n)


def same(one, other):
    grid = np.random.default_rng(9).uniform(-1, 4, (20, 2))
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-9)
    for got, expected in zip(one.predict(grid), other.predict(grid), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.predict_mean(grid), other.predict_mean(grid), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("keep_factor", [True, False])
def test_merged_rows_say_what_they_say_one_by_one(monkeypatch, keep_factor):
    gp = ExactGP(Matern(1.5, [1.0, 2.0]), 0.1)
    X, y = repeated(60, 0)
    X_context, y_context = repeated(25, 1)
    plain = gp.condition(X, y, X_context + 4.0, y_context)
    X_more, y_more = repeated(30, 2)
    plain_updated = plain.condition(X_more, y_more)
    monkeypatch.setattr(leaf, "_MERGED_ABOVE", 40)
    merged = gp.condition(X, y, X_context + 4.0, y_context, keep_factor=keep_factor)
    assert merged._y.size == 16 + 25
    assert (merged.n_own, merged.n_context) == (60, 25)
    same(merged, plain)
    same(merged.condition(X_more, y_more, keep_factor=keep_factor), plain_updated)
    # rows enough to be merged only with the second lot
    same(gp.condition(X[:30], y[:30]).condition(X[30:], y[30:], X_context + 4.0, y_context), plain)


def test_merging_keeps_count_mean_and_scatter():
    X, y, repeats = merge(np.array([[1.0], [0.0], [1.0]]), np.array([2.0, 5.0, 4.0]), Repeats.of(np.ones(3)))
    np.testing.assert_array_equal(X, [[0.0], [1.0]])
    np.testing.assert_array_equal(y, [5.0, 3.0])
    np.testing.assert_array_equal(repeats.counts, [1.0, 2.0])
    assert repeats.scatter == 2.0
    again = merge(np.vstack([X, [[0.0]]]), np.append(y, 7.0), repeats.followed_by(Repeats.of(np.ones(1))))[2]
    np.testing.assert_array_equal(again.counts, [2.0, 2.0])
    assert again.scatter == 4.0
    assert Repeats.of(np.ones(3)).log_density(0.1, np.full(3, 0.1)) == 0.0


@pytest.mark.parametrize(("noise_variance", "n_distinct"), [(0.1, 3), (0.0, 6)])
def test_rows_are_merged_above_a_number_of_them_and_only_where_there_is_noise(monkeypatch, noise_variance, n_distinct):
    X, y = np.repeat([[0.0], [1.0], [2.0]], 2, axis=0), np.repeat([0.5, 0.1, -0.4], 2)
    gp = ExactGP(SquaredExponential(), noise_variance)
    for threshold, expected in ((6, 6), (5, n_distinct)):
        monkeypatch.setattr(leaf, "_MERGED_ABOVE", threshold)
        posterior = gp.condition(X, y)
        assert posterior._y.size == expected
        assert posterior.n_own == 6
        np.testing.assert_allclose(posterior.predict_mean(X), y, atol=0.1 if noise_variance else 1e-6)


@pytest.mark.long
def test_a_hundred_thousand_equal_rows():
    rng = np.random.default_rng(0)
    y = 3.0 + 2.0 * rng.standard_normal(100_000)
    model = SPNGPRegressor(random_state=0).fit(np.ones((y.size, 3)), y)
    mean, std = model.predict(np.ones((1, 3)), return_std=True)
    assert mean[0] == pytest.approx(y.mean(), abs=0.01)
    assert std[0] == pytest.approx(y.std(), rel=0.1)


def test_many_equal_rows_among_others():
    rng = np.random.default_rng(1)
    X = np.vstack([np.tile([0.5, -0.5], (20_000, 1)), rng.standard_normal((2_000, 2))])
    y = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    model = SPNGPRegressor(max_leaf_size=300, random_state=0).fit(X, y)
    assert model.predict([[0.5, -0.5]])[0] == pytest.approx(0.5, abs=0.02)
    assert np.sqrt(np.mean((model.predict(X[-200:]) - X[-200:, 0]) ** 2)) < 0.1
