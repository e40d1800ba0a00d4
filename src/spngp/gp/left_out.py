"""Leave-one-out predictions of the last rows of a GP that grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._linalg.square import Square
from spngp._support.types import Array
from spngp.gp.growing import GrowingGP


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The leave-one-out prediction of the last rows of a GP, kept up as rows are added.

    The residual of row i, left out, is alpha_i / precision_i. Of L⁻¹ the columns of the last rows have nothing in the
    rows before them, so both follow from the end of the factor.

    Attributes
    ----------
    alpha : ndarray
        C⁻¹y of these rows.
    precision : ndarray
        Diagonal of C⁻¹: one over the variance of each row given all others.
    first : int
        Position of the first of them.
    """

    alpha: Array
    precision: Array
    first: int = 0

    @staticmethod
    def of(gp: GrowingGP, first: int = 0) -> LeftOut:
        """From the rows at ``first`` and later positions, in O(m³) for m of them."""
        m = gp.n - first
        if m <= 0:
            return LeftOut(np.empty(0), np.empty(0), first)
        end = gp.factor.trailing(first)
        if m == 1:
            return LeftOut(gp.z[first:] / end[0], 1.0 / np.square(end[0]), first)
        alpha = gp.z[first:].copy()
        square = Square(np.asfortranarray(end))
        square.solve_transposed(alpha)
        square.bound_invert()()
        return LeftOut(alpha, square.diagonal.copy(), first)

    def followed_by(self, gp: GrowingGP) -> LeftOut:
        """After rows were added at the end of the GP, in O(n²) for each."""
        n = self.first + self.alpha.size
        m = gp.n - n
        if gp.jitter or m > self.alpha.size:
            return LeftOut.of(gp, self.first)
        if m == 0:
            return self
        # the last m rows of L⁻¹: L⁻ᵀ times the last unit vectors
        last = np.zeros((gp.n, m))
        last[n + np.arange(m), np.arange(m)] = 1.0
        gp.factor.solve_transposed(last, self.first)
        last = last[self.first :]
        return LeftOut(
            np.concatenate([self.alpha, np.zeros(m)]) + last @ gp.z[n:],
            np.concatenate([self.precision, np.zeros(m)]) + np.einsum("ij,ij->i", last, last),
            self.first,
        )

    def deviations(self) -> Array:
        """How many standard deviations each output is from what all other rows predict."""
        return np.abs(self.alpha) / np.sqrt(self.precision)
