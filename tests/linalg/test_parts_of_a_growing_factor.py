"""First and last rows of a factor that grows, and solutions of single rows."""

from __future__ import annotations

import numpy as np
import pytest

from spngp._linalg.growing import GrowingFactor


def covariance(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


def grown(C, steps):
    factor, n = GrowingFactor(), 0
    for m in steps:
        factor, _, _ = factor.extended(C[:n, n : n + m], C[n : n + m, n : n + m])
        n += m
    return factor


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128])
def test_the_first_rows_are_a_factor_in_the_same_memory(n):
    C = covariance(130)
    whole = grown(C, [100, 30])
    first, L = whole.leading(n), np.linalg.cholesky(C[:n, :n])
    np.testing.assert_allclose(first.dense(), L, atol=1e-10)
    np.testing.assert_allclose(first.diagonal, L.diagonal(), atol=1e-10)
    assert [slab is mine for slab, mine in zip(whole._slabs, first._slabs, strict=False)] == [True] * -(-n // 64)
    assert first.nbytes == sum(slab.array.nbytes for slab in whole._slabs[: -(-n // 64)])
    other = covariance(n + 2, seed=1)
    other[:n, :n] = C[:n, :n]
    other += 100 * np.diag(np.arange(n + 2) >= n)
    longer, _, _ = first.extended(other[:n, n:], other[n:, n:])
    np.testing.assert_allclose(longer.dense(), np.linalg.cholesky(other), atol=1e-10)
    np.testing.assert_allclose(whole.dense(), np.linalg.cholesky(C), atol=1e-10)


@pytest.mark.parametrize("first", [0, 5, 64, 99, 100])
def test_the_last_rows_and_columns(first):
    C = covariance(100)
    L = np.linalg.cholesky(C)
    np.testing.assert_allclose(grown(C, [70, 30]).trailing(first), L[first:, first:], atol=1e-10)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_solutions_of_rows(count, formulas):
    C = covariance(70)
    factor, rows = grown(C, [70]), np.random.default_rng(2).standard_normal((count, 75))
    before = rows.copy()
    factor.solve_rows(rows)
    np.testing.assert_allclose(rows[:, :70], np.linalg.solve(np.linalg.cholesky(C), before[:, :70].T).T, atol=1e-10)
    np.testing.assert_array_equal(rows[:, 70:], before[:, 70:])


@pytest.mark.parametrize("gone", [[0], [3, 40], [69]])
def test_rows_that_have_nothing_to_do_with_others_are_taken_out(gone):
    C = np.diag(np.linspace(1.0, 4.0, 70))
    factor = grown(C, [70]).without(np.array(gone))
    np.testing.assert_allclose(factor.dense(), np.sqrt(np.delete(np.delete(C, gone, 0), gone, 1)), atol=1e-12)
