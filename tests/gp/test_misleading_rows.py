"""Rows that mislead the rest, by their definition: leave-one-out of all others, with and without each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import misleading_rows
from spngp.kernels import SquaredExponential

PRIOR = ExactGP(SquaredExponential(0.7), 0.04)


def left_out(X, y, kept):
    """Residual and variance of each row that is kept, from all others that are."""
    found = []
    for i in kept:
        others = [j for j in kept if j != i]
        mean, variance = PRIOR.condition(X[others], y[others]).predict(X[i : i + 1])
        found.append((y[i] - mean[0], variance[0]))
    return np.array(found).T


def by_definition(X, y, limit, among=None):
    kept, open_ = list(range(len(y))), set(range(len(y)) if among is None else np.flatnonzero(among))
    few, found = among is None and len(y) <= 100, {}
    if few:
        limit = student.isf(norm.sf(limit), len(y) - 1)
    while True:
        residuals, variances = left_out(X, y, kept)
        sizes = residuals**2 / variances
        if few:
            sizes *= (len(kept) - 1) / (sizes.sum() - sizes)
        candidates = [(size, i) for size, i in zip(sizes, kept, strict=True) if i in open_ and size > limit**2]
        if not candidates:
            return found
        i = max(candidates)[1]
        place = kept.index(i)
        open_.discard(i)
        rest = kept[:place] + kept[place + 1 :]
        now, now_variances = left_out(X, y, rest)
        before, before_variances = np.delete(residuals, place), np.delete(variances, place)
        squares = (before**2 / before_variances).sum(), (now**2 / now_variances).sum()
        gain = np.log(before_variances / now_variances).sum()  # of log densities, twice
        gain += len(rest) * np.log(squares[0] / squares[1]) + 0.01 if few else squares[0] - squares[1]
        if gain > 0:
            found[i] = residuals[place] ** 2
            kept = rest


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_rows_that_mislead_are_those_of_the_definition(seed, later):
    """Some far off, others where the function is steep; a low limit, so that many are tried."""
    rng = np.random.default_rng(seed)
    n = 14 + 3 * seed
    X = rng.uniform(-2, 2, (n, 1))
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(n)
    y[rng.choice(n, 3, replace=False)] += rng.choice([-1, 1], 3) * rng.uniform(0.5, 3.0, 3)
    among = np.arange(n) % 2 == 0 if later else None
    for limit in (1.0, 2.0):
        found, squares = misleading_rows(PRIOR.condition(X, y), limit, among)
        expected = by_definition(X, y, limit, among)
        assert found.tolist() == list(expected)
        np.testing.assert_allclose(squares, list(expected.values()), rtol=1e-7)


def test_others_that_are_predicted_exactly_leave_no_doubt():
    X, y = 1e3 * np.arange(20.0)[:, np.newaxis], np.zeros(20)  # rows so far apart that they know nothing of each other
    y[3] = 10.0
    found, squares = misleading_rows(PRIOR.condition(X, y), 4.0)
    assert found.tolist() == [3]
    np.testing.assert_allclose(squares, 100.0)
