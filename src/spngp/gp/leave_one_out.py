"""Leave-one-out in closed form: the prediction of each row from all other rows, and which rows mislead the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from spngp._linalg.square import INVERTED_WHOLE, Square
from spngp._support.types import Array, Indices, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Kernel

FEW_ROWS = 100
_TINY = float(np.finfo(float).tiny)
_MOST_SOLVED, _MANY = 0.5, 400  # of all rows, if there are so many: to solve for more takes longer than to invert
_TOO_LITTLE = 0.01  # nats: where all is noise, a row misleads the others only about how much of it there is


def misleading_rows(gp: ExactGP, limit: float, among: Mask | None = None) -> tuple[Indices, Array]:
    """Own rows that mislead the rest, and the squared leave-one-out residual of each.

    A row misleads the rest if

    - its output is more than ``limit`` standard deviations from what all other own rows predict, and
    - without it, the sum of the other rows' leave-one-out log densities is larger.

    Candidates are tried one by one, the farthest first, and those found are left out from then on. Merged rows are no
    candidates, nor are rows that ``among`` does not mark. Context is not used.

    Of n rows, none is more than √n standard deviations off, if it was among those that the variance was learnt from. So
    of few rows, unless ``among`` marks some that came later, standard deviations are those that the other residuals
    show, and the limit is that of Student's t with the same probability.
    """
    own = gp._n_first
    square = gp._present_factor().leading(own)
    if gp._L is not None:  # scratch memory may be overwritten, a factor that is kept may not
        square = Square(square.array.copy(order="F"))
    alpha = gp._y[:own].copy()
    square.solve(alpha)
    square.solve_transposed(alpha)
    square.bound_invert()()
    diagonal, open_ = square.diagonal.copy(), np.zeros(own, dtype=bool)
    open_[gp.rows_seen_once] = True if among is None else among[gp.rows_seen_once]
    kept = np.ones(own, dtype=bool)
    found: list[int] = []
    squares: list[float] = []
    few = among is None and own <= FEW_ROWS
    if few:
        limit = float(student.isf(norm.sf(limit), own - 1))

    def sizes() -> Array:
        """Squared residuals of the rows that are left, in units of their variances."""
        z2 = np.where(kept, alpha * alpha / diagonal, 0.0)
        if few:
            with np.errstate(over="ignore"):  # where all others are predicted exactly
                z2 *= (kept.sum() - 1) / np.maximum(z2.sum() - z2, own * _TINY)
        return np.where(open_, z2, 0.0)

    if not (sizes() > limit * limit).any():  # the usual case: no candidates
        return np.array(found, dtype=np.intp), np.array(squares)
    P = np.tril(square.array) + np.tril(square.array, -1).T
    while True:
        z2 = sizes()
        i = int(np.argmax(z2))
        if not z2[i] > limit * limit:
            break
        open_[i] = kept[i] = False
        column = P[:, i].copy()
        alpha_without = alpha - column * (alpha[i] / diagonal[i])
        diagonal_without = np.where(kept, diagonal - column * (column / diagonal[i]), 1.0)
        before = float((alpha**2 / diagonal)[kept].sum()) + _TINY
        now = float((alpha_without**2 / diagonal_without)[kept].sum()) + _TINY
        gain = float(np.log(diagonal_without / diagonal)[kept].sum())
        gain += float(kept.sum()) * math.log(before / now) + _TOO_LITTLE if few else before - now
        if gain > 0.0:
            found.append(i)
            squares.append((alpha[i] / diagonal[i]) ** 2)
            P -= np.outer(column, column / diagonal[i])
            alpha, diagonal = np.where(kept, alpha_without, 0.0), diagonal_without
        else:
            kept[i] = True
    return np.array(found, dtype=np.intp), np.array(squares)


def leave_one_out(gp: ExactGP, rows: Indices) -> tuple[Array, Array]:
    """For own rows, each in turn left out: its output minus the mean, and the latent variance without it.

    Closed form: with alpha = C⁻¹y the residual is alpha_i / (C⁻¹)_ii, and 1 / (C⁻¹)_ii is the variance. The latent
    variance includes what is known of the variance of the row's output: it is no learnt noise.
    """
    L = gp._present_factor()
    if rows.size > _MOST_SOLVED * gp._y.size > _MOST_SOLVED * _MANY:
        precision = inverse_diagonal(L if gp._L is None else Square(L.array.copy(order="F")))[rows]
    else:
        columns = np.zeros((gp._y.size, rows.size), order="F")
        columns[rows, np.arange(rows.size)] = 1.0
        L.solve(columns)
        precision = np.einsum("ij,ij->j", columns, columns)
    noise = gp._noise_per_row()[rows] - known_variances(gp, rows)
    return gp._alpha[rows] / precision, np.maximum(1.0 / precision - noise, 0.0)


def inverse_diagonal(factor: Square) -> Array:
    """The diagonal of C⁻¹, at half of the cost of all of it; L⁻¹ takes the place of the factor L."""
    for step in factor.triangle_inversion(INVERTED_WHOLE) if factor.n else ():
        step()
    columns = (factor.array[j:, j] for j in range(factor.n))
    return np.array([column @ column for column in columns])


def leave_one_out_by_context(gp: ExactGP, rows: Indices, n_context: Sequence[int]) -> list[tuple[Array, Array]]:
    """The same, once for each number of context rows, the first ones: with one factorisation for all.

    In L⁻¹e_i and L⁻¹y the first entries do not depend on later rows. So sums of their products up to an entry are
    (C⁻¹)_ii and alpha_i of the rows before it.
    """
    L, own = gp._present_factor(), gp._n_first
    columns, z = np.zeros((gp._y.size, rows.size), order="F"), gp._y.copy()
    columns[rows, np.arange(rows.size)] = 1.0
    L.solve(columns)
    L.solve(z)
    noise = gp._noise_per_row()[rows] - known_variances(gp, rows)
    found, start = [], 0
    precision, alpha = np.zeros(rows.size), np.zeros(rows.size)
    for end in own + np.asarray(n_context):
        further = columns[start:end]
        precision = precision + np.einsum("ij,ij->j", further, further)
        alpha = alpha + z[start:end] @ further
        found.append((alpha / precision, np.maximum(1.0 / precision - noise, 0.0)))
        start = end
    return found


def mean_of_part(gp: ExactGP, part: Kernel, rows: Indices) -> Array:
    """What one part of a sum of kernels adds to the mean at own rows."""
    return np.asarray(part.covariances(gp._X[rows], gp._X) @ gp._alpha)


def shares(gp: ExactGP, rows: Indices) -> Array:
    """The shares of a row that own rows count as, by their positions: ones, unless weights are fractional."""
    return np.ones(rows.size) if gp._repeats is None else gp._repeats.shares[rows]


def known_variances(gp: ExactGP, rows: Indices) -> Array:
    """What is known of the variance of the outputs of own rows, by their positions; zeros if nothing is."""
    return np.zeros(rows.size) if gp._variances is None else gp._variances[rows]


def standardised_residuals(
    gp: ExactGP, X: Array, y: Array, n_draws: int, rng: np.random.Generator, known: KnownVariances | None = None
) -> Array:
    """Leave-one-out residuals of rows over their standard deviations, and draws of what the prior ``gp`` expects.

    Shape (n, 1 + n_draws), the rows' residuals first. Closed form: with alpha = C⁻¹y they are alpha_i / √(C⁻¹)_ii; and
    for y drawn from the GP, alpha is L⁻ᵀ times white noise.
    """
    square = gp.condition(X, y, known=known)._present_factor()
    alphas = np.empty((y.size, 1 + n_draws), order="F")
    alphas[:, 0] = y
    square.solve(alphas[:, 0])
    alphas[:, 1:] = rng.standard_normal((y.size, n_draws))
    square.solve_transposed(alphas)
    return alphas / np.sqrt(inverse_diagonal(square))[:, np.newaxis]  # the factor was made for this
