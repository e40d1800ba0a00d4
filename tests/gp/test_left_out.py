"""Leave-one-out predictions of the last rows, kept up as rows come."""

import numpy as np
import pytest

from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP
from spngp.gp.left_out import LeftOut
from spngp.kernels import SquaredExponential

PRIOR = ExactGP(SquaredExponential([1.0, 2.0]), 0.04)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(n), np.full(n, 0.04)


def naive(gp, X, y, first):
    """alpha and precision of the last rows, from the inverse of the whole covariance."""
    inverse = np.linalg.inv(PRIOR.kernel.gram(X) + 0.04 * np.eye(len(y)))
    return (inverse @ y)[first:], inverse.diagonal()[first:]


@pytest.mark.parametrize(("n", "first"), [(30, 0), (30, 12), (30, 28), (30, 29), (90, 70), (1, 0)])
def test_of_the_last_rows(n, first):
    X, y, noise = rows(n)
    gp = GrowingGP.of(PRIOR, X, y, noise)
    left = LeftOut.of(gp, first)
    alpha, precision = naive(gp, X, y, first)
    assert left.first == first
    np.testing.assert_allclose(left.alpha, alpha, rtol=1e-9)
    np.testing.assert_allclose(left.precision, precision, rtol=1e-9)
    np.testing.assert_allclose(left.deviations(), np.abs(alpha) / np.sqrt(precision), rtol=1e-9)


def test_of_no_rows():
    X, y, noise = rows(4)
    left = LeftOut.of(GrowingGP.of(PRIOR, X, y, noise), 4)
    assert (left.alpha.size, left.precision.size, left.first) == (0, 0, 4)


@pytest.mark.parametrize("first", [0, 8])
@pytest.mark.parametrize("more", [0, 1, 2, 3, 20])
def test_followed_by_few_rows_and_by_more_than_there_were(first, more):
    X, y, noise = rows(10 + more)
    gp = GrowingGP.of(PRIOR, X[:10], y[:10], noise[:10])
    left = LeftOut.of(gp, first)
    found = left.followed_by(gp.given(X[10:], y[10:], noise[10:]))
    alpha, precision = naive(gp, X, y, first)
    assert found.first == first
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-8)
    np.testing.assert_allclose(found.precision, precision, rtol=1e-8)


def test_with_jitter_everything_is_found_anew():
    prior = ExactGP(SquaredExponential([1.0, 1.0]), 0.0)
    X, y, _ = rows(10)
    gp = GrowingGP.of(prior, X, y, np.zeros(10))
    again = gp.given(X[:2], y[:2], np.zeros(2))
    assert again.jitter > 0
    found, expected = LeftOut.of(gp).followed_by(again), LeftOut.of(again)
    np.testing.assert_array_equal(found.alpha, expected.alpha)
    np.testing.assert_array_equal(found.precision, expected.precision)
