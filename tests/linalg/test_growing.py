"""A factor that grows and shrinks is that of the matrix it stands for, in every version of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from spngp._linalg.growing import GrowingFactor
from spngp._linalg.square import NotPositiveDefiniteError


def covariance(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


def grown(C, steps):
    factor, n = GrowingFactor(), 0
    for m in steps:
        factor, below, triangle = factor.extended(C[:n, n : n + m], C[n : n + m, n : n + m])
        np.testing.assert_allclose(below, np.linalg.solve(np.linalg.cholesky(C[:n, :n]), C[:n, n : n + m]), atol=1e-10)
        assert triangle.shape == (m, m)
        n += m
    return factor


@pytest.mark.parametrize("steps", [[1] * 70, [64, 64, 1], [63, 2, 65], [5, 130, 7], [200]])
def test_grown_by_any_steps(steps, formulas):
    n = sum(steps)
    C = covariance(n)
    factor, L = grown(C, steps), np.linalg.cholesky(C)
    np.testing.assert_allclose(factor.dense(), L, atol=1e-10)
    np.testing.assert_allclose(factor.diagonal, L.diagonal(), atol=1e-10)
    for columns in (1, 2, 3):
        B = np.random.default_rng(1).standard_normal((n, columns))
        for solve, expected in (
            (factor.solve, np.linalg.solve(L, B)),
            (factor.solve_transposed, np.linalg.solve(L.T, B)),
        ):
            found = B.copy()
            solve(found)
            np.testing.assert_allclose(found, expected, atol=1e-10)
    assert factor.nbytes < 8 * (n + 64) ** 2


@pytest.mark.parametrize("gone", [[0], [1, 2, 3], [40, 99], [0, 64, 128], [149], list(range(0, 150, 7))])
def test_rows_taken_out(gone):
    C = covariance(150)
    left = np.delete(np.arange(150), gone)
    factor = GrowingFactor.of(np.linalg.cholesky(C)).without(np.array(gone))
    np.testing.assert_allclose(factor.dense(), np.linalg.cholesky(C[np.ix_(left, left)]), atol=1e-9)


def test_what_stands_above_the_diagonal_is_not_read(formulas):
    C = covariance(100)
    L = np.linalg.cholesky(C)
    factor = GrowingFactor.of(L + np.triu(np.full((100, 100), np.nan), 1))
    np.testing.assert_array_equal(factor.dense(), L)
    for columns in (1, 2, 3):
        B = np.ones((100, columns))
        factor.solve(B)
        np.testing.assert_allclose(B, np.linalg.solve(L, np.ones((100, columns))), atol=1e-10)


def test_versions_do_not_disturb_each_other():
    C = covariance(90)
    first = grown(C, [80])
    one, _, _ = first.extended(C[:80, 80:85], C[80:85, 80:85])
    other, _, _ = first.extended(C[:80, 85:], C[85:, 85:])
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_allclose(first.dense(), np.linalg.cholesky(C[:80, :80]), atol=1e-10)
    np.testing.assert_allclose(one.dense(), np.linalg.cholesky(C[:85, :85]), atol=1e-10)
    rows = np.r_[0:80, 85:90]
    np.testing.assert_allclose(other.dense(), np.linalg.cholesky(C[np.ix_(rows, rows)]), atol=1e-10)
    np.testing.assert_allclose(again.extended(C[:80, 80:85], C[80:85, 80:85])[0].dense(), one.dense(), atol=1e-12)


def test_a_row_that_is_explained_already_is_refused():
    C = covariance(5)
    factor = grown(C, [5])
    with pytest.raises(NotPositiveDefiniteError):
        factor.extended(C[:, :1], C[:1, :1])
