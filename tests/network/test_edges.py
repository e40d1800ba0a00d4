"""Networks at the edges: margins of nothing, regions without rows of their own, columns that are not there."""

import numpy as np
import pytest

from spngp.kernels import SquaredExponential
from spngp.network import Leaf, Split
from spngp.network.conditioning import condition

X = np.array([[-2.0], [-1.5], [-0.2], [0.3], [1.0]])
y = np.array([0.5, 1.0, -1.0, 2.0, 0.1])
LEAF = Leaf(SquaredExponential(0.7), noise_variance=0.1)


def test_a_margin_of_nothing_is_no_context():
    prior = Split(0, [0.0], [LEAF, LEAF])
    none, plain = prior.condition(X, y, margin=0.0), prior.condition(X, y)
    assert none.log_evidence == plain.log_evidence
    np.testing.assert_array_equal(none.predict_dist(X).mean, plain.predict_dist(X).mean)
    for margin in (-1e-9, [0.5, -0.5], np.nan):
        with pytest.raises(ValueError, match="margin must be"):
            prior.condition(X, y, margin=margin)


@pytest.mark.parametrize(("margin", "seen"), [(1.6, [4]), (2.3, [3, 4])])
def test_a_region_without_rows_of_its_own_sees_those_of_others(margin, seen):
    posterior = Split(0, [2.5], [LEAF, LEAF]).condition(X, y, margin=margin)
    at = np.array([[2.6], [3.0]])
    expected = LEAF.condition(X[seen], y[seen]).predict_dist(at)
    found = posterior.predict_dist(at)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.var, expected.var, rtol=1e-12)
    assert posterior.log_evidence == pytest.approx(LEAF.condition(X, y).log_evidence, rel=1e-12)


@pytest.mark.parametrize("at", [[0.0, np.inf], [np.nan], [-np.inf, 0.0], [1.0, 1.0], [2.0, 1.0], [], [[0.0]]])
def test_cuts_are_finite_and_ascending(at):
    with pytest.raises(ValueError, match="at of Split must be"):
        Split(0, at, [LEAF] * (len(at) + 1))


def test_rows_need_the_columns_that_are_cut():
    prior = Split(1, [0.0], [LEAF, LEAF])
    posterior = prior.condition(np.column_stack([X, X]), y)
    message = "X must have at least 2 columns, as a Split cuts axis 1; got 1"
    for ask in (posterior.predict_dist, posterior.covariance, lambda rows: posterior.sample(rows, 1, 0)):
        with pytest.raises(ValueError, match=message):
            ask(X)
    with pytest.raises(ValueError, match=message):
        prior.condition(X, y)


@pytest.mark.parametrize(
    ("before", "now", "is_taken"),
    [
        ({}, {}, True),
        ({"n": 4}, {}, False),  # another row has come
        ({"doubted": 1}, {}, False),
        ({}, {"doubted": 1}, False),
        ({"doubted": 1}, {"doubted": 1}, False),
        ({"missing": 2}, {"missing": 2}, True),
        ({}, {"missing": 2}, False),
        ({"leaf": Leaf(SquaredExponential(0.8), noise_variance=0.1)}, {}, False),
    ],
)
def test_an_earlier_posterior_is_taken_if_it_is_the_same(before, now, is_taken):
    """Whether it is or not, the result is that of conditioning anew."""

    def given(n=5, doubted=None, missing=None, leaf=LEAF, known=None):
        Y, noise = y[:n, np.newaxis].copy(), np.full((n, 1), np.nan)
        if doubted is not None:
            noise[doubted] = 2.0
        if missing is not None:
            Y[missing] = np.nan
        return condition(Split(0, [9.0], [leaf, leaf]), X[:n], Y, own_noise=noise, known=known)

    earlier = given(**before)
    found, expected = given(known=earlier, **now), given(**now)
    assert (found.children[0] is earlier.children[0]) == is_taken
    assert found.log_evidence == pytest.approx(expected.log_evidence, rel=1e-12)
    np.testing.assert_allclose(found.predict_dist(X).mean, expected.predict_dist(X).mean, rtol=1e-12)
