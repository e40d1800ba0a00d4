import copy
import pickle
import threading
import time

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from spngp._linalg.square import NotPositiveDefiniteError, PackedGram, Square
from spngp.gp.leave_one_out import inverse_diagonal
from spngp.kernels.distances import FARTHEST, SquaredDistances

packed = PackedGram.pack
empty = Square.zeros


def _pair(i, j, n):
    return i * n - i * (i + 1) // 2 + j - i - 1


def positive_definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 90])
def test_packing_follows_the_order_of_pdist_and_is_undone_by_dense(n):
    A = positive_definite(n)
    np.testing.assert_array_equal(packed(A).pairs, squareform(A - np.diag(np.diag(A)), checks=False))
    np.testing.assert_array_equal(packed(A).dense(), A)


@pytest.mark.parametrize("n", [1, 2, 17, 90])
def test_factor_solve_determinant_and_inverse(n):
    A = positive_definite(n)
    L = empty(n)
    assert L.factor(packed(A), 0.5) == 0.0
    C = A + 0.5 * np.eye(n)
    np.testing.assert_allclose(np.tril(L.array), np.linalg.cholesky(C), rtol=1e-12)
    assert L.log_determinant() == pytest.approx(np.linalg.slogdet(C)[1], rel=1e-12)
    for right in (np.arange(float(n)), np.asfortranarray(np.arange(3.0 * n).reshape(n, 3))):
        solution = right.copy(order="F")
        L.solve(solution)
        L.solve_transposed(solution)
        np.testing.assert_allclose(C @ solution, right, rtol=1e-10, atol=1e-12)
    L.bound_invert()()
    np.testing.assert_allclose(np.tril(L.array), np.tril(np.linalg.inv(C)), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("n", [0, 1, 2, *range(24, 131), 257])
def test_the_inverse_by_halves_is_the_inverse_and_touches_nothing_else(n):
    """Leading blocks of a larger matrix too; what lies outside the block's lower triangle is NaN and stays so."""
    A = positive_definite(n, seed=n)
    for stride in (n, n + 5):
        whole = np.full((stride, stride), np.nan, order="F")
        lower = np.tril_indices(n)
        whole[lower] = np.linalg.cholesky(A)[lower]
        Square(whole).leading(n).bound_invert()()
        np.testing.assert_allclose(whole[lower], np.linalg.inv(A)[lower], rtol=1e-11, atol=1e-14 / max(n, 1))
        assert np.isnan(whole).sum() == stride**2 - lower[0].size


@pytest.mark.parametrize("n", [0, 1, 47, 48, 49, 130])
def test_the_diagonal_of_the_inverse_without_the_rest_of_it(n):
    """What lies above the diagonal is NaN and has no say."""
    A = positive_definite(n, seed=n)
    L = np.full((n, n), np.nan, order="F")
    lower = np.tril_indices(n)
    L[lower] = np.linalg.cholesky(A)[lower]
    np.testing.assert_allclose(inverse_diagonal(Square(L)), np.diag(np.linalg.inv(A)), rtol=1e-11)


@pytest.mark.parametrize("inverted_whole", [1, 16, 50, 1000])
def test_the_inverse_of_a_nearly_singular_matrix_loses_less_than_its_factor_did(inverted_whole):
    """Condition 1e11, rows in order, the worst case; judged by the same factor inverted in extended precision."""
    x = np.linspace(0.0, 1.0, 120)
    C = np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / 0.1**2) + 1e-10 * np.eye(120)
    square = Square(np.asfortranarray(C))
    assert square.cholesky()
    L = np.tril(square.array).astype(np.longdouble)
    L_inverse = np.zeros_like(L)
    for i, row in enumerate(np.eye(120)):
        L_inverse[i] = (row - L[i, :i] @ L_inverse[:i]) / L[i, i]
    expected = L_inverse.T @ L_inverse
    lost_in_the_factor = np.abs(expected @ (L @ L.T - C) @ expected).max()
    square.bound_invert(inverted_whole)()
    assert np.abs(np.tril(square.array) - np.tril(expected)).max() < 0.02 * lost_in_the_factor


def test_symmetric_product_and_rank_one_update_read_the_lower_triangle_only():
    A = positive_definite(8)
    lower = Square(np.asfortranarray(np.tril(A) + np.triu(np.full((8, 8), np.nan), 1)))
    B = np.asfortranarray(np.random.default_rng(1).standard_normal((8, 3)))
    product = np.empty((8, 3), order="F")
    lower.bound_product(B, product)()
    np.testing.assert_allclose(product, A @ B)
    v = np.arange(8.0)
    lower.bound_subtract_outer(v)()
    np.testing.assert_allclose(np.tril(lower.array), np.tril(A - np.outer(v, v)))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 1), (30, 7)])
def test_extended_factor_equals_the_factor_of_the_whole(n, m):
    A = positive_definite(n + m)
    whole, first = empty(n + m), empty(n)
    whole.factor(packed(A), 0.1)
    first.factor(packed(A[:n, :n]), 0.1)
    extended = first.extended(A[:n, n:], packed(A[n:, n:]), 0.1)
    np.testing.assert_allclose(extended.array, np.tril(whole.array), rtol=1e-10, atol=1e-12)


def test_rows_that_repeat_known_ones_are_extended_by_a_jitter_of_their_own_scale():
    """What the first rows leave unexplained is rounding error: it must not pass for information, nor set the jitter."""
    x = np.linspace(0, 1, 5)
    A = 1e4 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / 0.2**2)
    first = empty(5)
    assert first.factor(packed(A), 0.0) == 0.0
    extended = first.extended(A, packed(A), 0.0)
    assert (extended.diagonal[5:] ** 2 > 0.5e-10 * 1e4).all()
    with pytest.raises(NotPositiveDefiniteError, match=r"5 x 5 .* even with 0 times its mean diagonal"):
        first.extended(A, packed(A), 0.0, jitters=(0.0,))


def test_with_jitter_the_extended_factor_is_that_of_the_whole_but_for_the_jitter():
    """Whatever the attempts before it, with less, have left behind."""
    x = np.r_[np.linspace(0, 1, 5), 2.0, 2.3, 0.25, 0.5]  # two that depend on each other, then two that are known
    A = 9.0 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / 0.2**2)
    first = empty(5)
    first.factor(packed(A[:5, :5]), 0.0)
    L = first.extended(A[:5, 5:], packed(A[5:, 5:]), 0.0).array
    off = L @ L.T - A
    jitter = off.diagonal()[5:]
    assert 1e-12 < jitter.min() <= jitter.max() < 1e-4
    np.testing.assert_allclose(off, np.diag(np.r_[np.zeros(5), jitter]), atol=1e-12)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda square: pickle.loads(pickle.dumps(square))])
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_a_copy_works_in_memory_of_its_own(clone, n):
    L = empty(12)
    L.factor(packed(positive_definite(12)), 0.0)
    block = L.leading(n)
    twin = clone(block)
    before = block.array.copy()
    np.testing.assert_array_equal(twin.array, before)
    ours, theirs = np.arange(float(n)), np.arange(float(n))
    twin.solve(ours)
    block.solve(theirs)
    np.testing.assert_array_equal(ours, theirs)
    if n:
        twin.bound_invert()()
    np.testing.assert_array_equal(block.array, before)


@pytest.mark.parametrize(
    ("bind", "name"),
    [
        (lambda A: A.bound_pack(np.empty(5)), "pairs"),
        (lambda A: A.bound_unpack(np.empty(6, np.float32)), "pairs"),
        (lambda A: A.bound_unpack(np.empty(12)[::2]), "pairs"),
        (lambda A: A.bound_unpack(np.empty((6, 1))), "pairs"),
        (lambda A: A.bound_solve(np.empty(3)), "B"),
        (lambda A: A.bound_solve(np.empty(8)[::2]), "B"),
        (lambda A: A.bound_solve(np.empty((4, 3))), "B"),
        (lambda A: A.bound_solve(np.empty((4, 3), np.int64, "F")), "B"),
        (lambda A: A.bound_subtract_outer(np.empty(5)), "v"),
        (lambda A: A.bound_add_sums(np.empty(8)[::2]), "v"),
        (lambda A: A.bound_product(np.empty((4, 3)), np.empty((4, 3), order="F")), "B"),
        (lambda A: A.bound_product(np.empty((4, 3), order="F"), np.empty((4, 2), order="F")), "out"),
        (lambda A: A.bound_inner_products(np.empty((4, 6))[:, ::2]), "features"),
        (lambda A: A.bound_inner_products(np.empty((5, 3))), "features"),
    ],
)
def test_an_array_that_lapack_would_misread_is_refused_when_it_is_bound(bind, name):
    with pytest.raises(ValueError, match=f"{name} must be float64 of shape"):
        bind(empty(4))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_solving_for_no_columns_is_nothing_to_do(n, order):
    L = empty(n)
    L.factor(packed(positive_definite(n)), 0.0)
    for transposed in (False, True):
        L.bound_solve(np.empty((n, 0), order=order), transposed=transposed)()
        L.bound_solve(np.empty((0, n)).T, transposed=transposed)()


def test_a_leading_block_of_a_factor_is_the_factor_of_the_block():
    A = positive_definite(12)
    L = empty(12)
    L.factor(packed(A), 0.0)
    block = L.leading(5)
    assert np.shares_memory(block.array, L.array)
    b = np.arange(5.0)
    block.solve(b)
    np.testing.assert_allclose(np.linalg.cholesky(A[:5, :5]) @ b, np.arange(5.0), atol=1e-12)


def test_jitter_is_used_only_when_needed_and_as_little_as_works():
    singular = np.ones((4, 4))
    L = empty(4)
    jitter = L.factor(packed(singular), 0.0)
    assert 0 < jitter <= 1e-6
    lower = np.tril(L.array)
    np.testing.assert_allclose(lower @ lower.T, singular + jitter * np.eye(4), rtol=1e-12)


@pytest.mark.parametrize("bad", [-np.eye(3), np.full((3, 3), np.nan), np.array([[1.0, 2.0], [2.0, 1.0]])])
def test_an_indefinite_matrix_ends_in_one_error_that_says_how_large(bad):
    with pytest.raises(NotPositiveDefiniteError, match=f"{len(bad)} x {len(bad)} .* not (positive definite|finite)"):
        empty(len(bad)).factor(packed(bad), 0.0)


@pytest.mark.parametrize("wrong", [np.zeros((3, 3)), np.zeros((3, 2), order="F"), np.zeros((2, 2), np.float32, "F")])
def test_a_matrix_that_lapack_would_misread_is_refused(wrong):
    with pytest.raises(ValueError, match="Fortran-ordered"):
        Square(wrong)


@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1.0), (1e9, 1.0), (0.0, 1e7), (-3e5, 1e-3)])
def test_squared_distances_keep_their_digits_far_from_the_origin_and_with_outliers(offset, spread):
    rng = np.random.default_rng(0)
    X = offset + rng.standard_normal((40, 3))
    X[0] += spread
    X[7] = X[3]
    expected = pdist(X, "sqeuclidean")
    for exact in (False, True):
        distances = SquaredDistances(X.copy(), empty(40), exact)
        np.testing.assert_allclose(distances.update(), expected, rtol=1e-10, atol=1e-11)
        assert distances.update()[_pair(3, 7, 40)] == 0.0  # equal rows


@pytest.mark.parametrize("exact", [False, True])
def test_squared_distances_that_overflow_stop_short_of_infinity(exact):
    X = np.array([[0.0], [1.0], [1e155], [-1e300]])
    found = squareform(SquaredDistances(X, empty(4), exact).update())
    np.testing.assert_array_equal(found[:2, :2], [[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(found[2:, :2], FARTHEST)


def test_squared_distances_follow_rows_that_are_changed_in_place():
    X = np.random.default_rng(0).standard_normal((5, 2))
    distances = SquaredDistances(X, empty(5))
    first = distances.update().copy()
    X *= 3.0
    np.testing.assert_allclose(distances.update(), 9 * first)


def test_lapack_calls_release_the_gil():
    """While one thread factors a large matrix, another must be able to run Python code."""
    n = 3000
    L = Square(np.asfortranarray(positive_definite(n)))
    started, ticks = threading.Event(), []

    def factor():
        started.set()
        L.cholesky()

    thread = threading.Thread(target=factor)
    thread.start()
    started.wait()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    # held, the GIL would let no tick through between the start and the end of the call
    assert len(ticks) > 10


@pytest.mark.parametrize("order", ["C", "F"])
def test_inner_products_take_rows_in_either_memory_order(order):
    X = np.asarray(np.random.default_rng(0).standard_normal((6, 3)), order=order)
    A = empty(6)
    A.bound_inner_products(X, -2)()
    np.testing.assert_allclose(np.tril(A.array), np.tril(-2 * X @ X.T), rtol=1e-12)


def test_a_covariance_of_no_rows_needs_no_jitter():
    assert Square.zeros(0).factor_filled(lambda: None, 0.1) == 0.0
    assert Square.zeros(0).factor(packed(np.empty((0, 0))), 0.1) == 0.0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_jitter_is_in_units_of_the_mean_diagonal_however_the_matrix_is_given(scale):
    singular = scale * np.ones((4, 4))
    given, filled = empty(4), empty(4)

    def fill():
        filled.array[:] = singular

    jitters = given.factor(packed(singular), 0.0), filled.factor_filled(fill, 0.0)
    assert jitters[0] == jitters[1]
    assert 0.9e-10 * scale < jitters[0] < 1.1e-6 * scale
    np.testing.assert_array_equal(np.tril(given.array), np.tril(filled.array))


def test_two_rows_are_too_many_for_the_other_order():
    with pytest.raises(ValueError, match=r"B must be float64 of shape \(2, 3\) without gaps"):
        empty(2).bound_solve(np.empty((2, 3)))
    one = empty(1)
    one.factor(packed(np.array([[4.0]])), 0.0)
    B = np.array([[2.0, 4.0, 6.0]])  # of one row both orders are the same
    one.solve(B)
    np.testing.assert_array_equal(B, [[1.0, 2.0, 3.0]])


def test_inner_products_are_taken_once_unless_said_otherwise():
    X = np.random.default_rng(0).standard_normal((5, 2))
    A = empty(5)
    A.bound_inner_products(X)()
    np.testing.assert_allclose(np.tril(A.array), np.tril(X @ X.T), rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("factor", [1, -2])
def test_inner_products_of_rows_in_either_order(order, factor):
    X = np.asarray(np.random.default_rng(3).standard_normal((6, 3)), order=order)
    square = Square.zeros(6)
    square.bound_inner_products(X, factor)()
    np.testing.assert_allclose(np.tril(square.array), np.tril(factor * X @ X.T), atol=1e-14)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_columns_of_a_larger_matrix_are_solved_in_place(columns):
    A = positive_definite(5)
    L = empty(5)
    L.factor(packed(A), 0.0)
    whole = np.asfortranarray(np.random.default_rng(0).standard_normal((9, 4)))
    before = whole.copy()
    L.solve(whole[:5, :columns])
    np.testing.assert_allclose(np.tril(L.array) @ whole[:5, :columns], before[:5, :columns], atol=1e-12)
    np.testing.assert_array_equal(whole[5:], before[5:])
    np.testing.assert_array_equal(whole[:, columns:], before[:, columns:])


def test_two_rows_in_the_other_order_are_refused():
    with pytest.raises(ValueError, match="Fortran-ordered"):
        Square(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="Fortran-ordered"):
        Square(np.zeros((2, 3), order="F"))
    assert Square(np.zeros((1, 1))).n == 1
