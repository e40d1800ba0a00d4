"""Squared Euclidean distances between rows, in NumPy and BLAS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist

from spngp._linalg.scratch import empty
from spngp._linalg.square import Square
from spngp._support.types import Array

# Largest squared norm of features for which squared distances are expanded into inner products.
_EXPANDABLE = 1e4

# Largest squared distance: beyond it every covariance is zero anyway, and formulas like (1 + s)·e⁻ˢ would give ∞ · 0.
FARTHEST = 1e290


class SquaredDistances:
    """Squared Euclidean distances between all pairs of rows, computed again and again as the rows move.

    |a − b|² = |a|² + |b|² − 2a·b is one matrix product but loses about |a|²·1e-16. Where that could reach 1e-11, or if
    ``exact`` asks for it, differences are summed instead, at two to four times the cost.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        The rows, in either memory order; the caller changes them in place.
    square : Square
        Memory to work in.
    """

    def __init__(self, features: Array, square: Square, exact: bool = False) -> None:
        self._features, self._square, self._exact = features, square, exact
        self.pairs = empty(features.shape[0] * (features.shape[0] - 1) // 2)
        self._squares = np.empty(features.shape[0])
        self._inner_products = square.bound_inner_products(features, -2)
        self._add_sums = square.bound_add_sums(self._squares)
        self._pack = square.bound_pack(self.pairs)

    def update(self) -> Array:
        """The distances for the rows as they are now, in ``pairs``; negative by a rounding error at most."""
        if self._square.n < 2:
            return self.pairs
        if not self._exact:
            self._inner_products()
            # squares taken from the product itself: equal rows cancel to exactly zero
            np.multiply(self._square.diagonal, -0.5, out=self._squares)
            if np.maximum.reduce(self._squares) <= _EXPANDABLE:
                self._add_sums()
                self._pack()
                return self.pairs
        pdist(self._features, "sqeuclidean", out=self.pairs)
        return np.minimum(self.pairs, FARTHEST, out=self.pairs)


class ExpandedDistances(NamedTuple):
    """|a − b|² = |a|² + |b|² − 2a·b as one matrix product of extended rows a and b."""

    left: Array
    right: Array

    @staticmethod
    def of(A: Array, B: Array | None = None) -> ExpandedDistances | None:
        """For the rows of A and of B (of A itself by default); None if rounding errors would be too large."""
        B = A if B is None else B
        a, b = (np.einsum("ij,ij->i", rows, rows)[:, np.newaxis] for rows in (A, B))
        if not max(a.max(initial=0.0), b.max(initial=0.0)) <= _EXPANDABLE:
            return None
        left = np.concatenate([-2.0 * A, a, np.ones(a.shape)], axis=1)
        return ExpandedDistances(left, np.concatenate([B, np.ones(b.shape), b], axis=1))

    def __call__(self, start: int, stop: int) -> Array:
        """From ``A[start:stop]`` to ``B[start:]``; negative by a rounding error at most."""
        return np.asarray(self.left[start:stop] @ self.right[start:].T)


def squared_distances(A: Array, B: Array, exact: bool = False) -> Array:
    """Squared Euclidean distances between the rows of A and of B, by the same rule as :class:`SquaredDistances`."""
    expanded = None if exact else ExpandedDistances.of(A, B)
    return np.minimum(cdist(A, B, "sqeuclidean"), FARTHEST) if expanded is None else expanded(0, A.shape[0])


def centre(X: Array) -> Array:
    """A row to subtract before features are formed: the median of three rows, which one outlier cannot move far.

    Distances do not change, but inputs far from the origin (years, coordinates) keep their digits.
    """
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    first, middle, last = X[0], X[X.shape[0] // 2], X[-1]
    return np.maximum(np.minimum(first, middle), np.minimum(np.maximum(first, middle), last))
