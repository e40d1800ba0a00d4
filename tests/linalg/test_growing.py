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


def test_a_row_that_is_explained_but_for_rounding_is_refused_among_others():
    factor = grown(np.eye(1), [1])
    rounding = np.finfo(float).eps
    with pytest.raises(NotPositiveDefiniteError, match="a 3 x 3 covariance matrix is not positive definite"):
        factor.extended(np.array([[0.0, 1.0]]), np.diag([1.0, 1.0 + rounding]))
    found, _, _ = factor.extended(np.array([[0.0, 1.0]]), np.diag([1.0, 1.0 + 20 * rounding]))
    np.testing.assert_allclose(found.diagonal, [1.0, 1.0, np.sqrt(20 * rounding)])


@pytest.mark.parametrize(("n", "m"), [(70, 1), (70, 3), (64, 2), (1, 1), (130, 70)])
def test_a_factor_that_was_copied_without_room_grows_too(n, m):
    C = covariance(n + m)
    factor = GrowingFactor.of(np.linalg.cholesky(C[:n, :n]))
    grown, _, _ = factor.extended(C[:n, n:], C[n:, n:])
    np.testing.assert_allclose(grown.dense(), np.linalg.cholesky(C), atol=1e-10)
    np.testing.assert_allclose(factor.dense(), np.linalg.cholesky(C[:n, :n]), atol=1e-10)


def test_rows_that_follow_need_no_new_memory():
    """A version that grows at its end shares its slabs with the next one."""
    C = covariance(20)
    factor = grown(C, [5])
    longer, _, _ = factor.extended(C[:5, 5:8], C[5:8, 5:8])
    longest, _, _ = longer.extended(C[:8, 8:9], C[8:9, 8:9])
    assert longest._slabs[0] is factor._slabs[0]
    branch, _, _ = longer.extended(C[:8, 9:10], C[9:10, 9:10])
    assert branch._slabs[0] is not factor._slabs[0]


def test_rows_that_need_another_slab_fill_the_last_one_first():
    C = covariance(70)
    factor = grown(C, [60])
    longer, _, _ = factor.extended(C[:60, 60:], C[60:, 60:])
    assert longer._slabs[0] is factor._slabs[0]
    assert [slab.filled for slab in longer._slabs] == [64, 6]
    np.testing.assert_allclose(longer.dense(), np.linalg.cholesky(C), atol=1e-10)


@pytest.mark.parametrize("count", [1, 5, 6, 7, 64, 70])
def test_the_last_entries_of_the_diagonal(count):
    C = covariance(70)
    L = np.linalg.cholesky(C)
    for factor in (GrowingFactor.of(L), grown(C, [70]), grown(C, [66, 4])):
        np.testing.assert_allclose(factor.last_diagonal(count), L.diagonal()[-count:], atol=1e-12)
