"""The kernel of a function that is constant between cuts across one input, and jumps there."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._linalg.square import PackedGram, Square
from spngp._support.checks import as_count
from spngp._support.types import Array
from spngp.kernels.base import Kernel


class PiecewiseConstant(Kernel):
    """variance where two rows lie between the same cuts of one input, else 0: every cell has a level of its own.

    Levels are independent, each N(0, variance). In a sum, for the jumps of a function that is smooth otherwise.

    Parameters
    ----------
    axis : int
        The input that is cut.
    at : sequence of float
        Where, in ascending order; a row exactly on a cut is below it.
    variance : float or Parameter
        Prior variance of the levels.

    Examples
    --------
    >>> from spngp.kernels import PiecewiseConstant
    >>> PiecewiseConstant(axis=0, at=[1.0, 2.0], variance=4.0).gram([[0.5], [1.0], [2.0]])
    array([[4., 4., 0.],
           [4., 4., 0.],
           [0., 0., 4.]])
    """

    axis: int
    at: tuple[float, ...]
    variance: float

    def __init__(self, axis: int = 0, at: Iterable[float] = (0.0,), variance: Any = 1.0) -> None:
        self.axis = as_count(axis, "axis of PiecewiseConstant", 0)
        cuts = tuple(at) if isinstance(at, Iterable) else ()
        finite = all(isinstance(cut, numbers.Real) and math.isfinite(cut) for cut in cuts)
        if not (cuts and finite and all(low < high for low, high in pairwise(cuts))):
            raise ValueError(f"at of PiecewiseConstant must be finite numbers in ascending order, got {at!r}")
        self.at = tuple(float(cut) for cut in cuts)
        self._declare(variance=variance, scalar=("variance",))

    def _structure(self) -> dict[str, Any]:
        return {"axis": self.axis, "at": self.at}

    def moved(self, at: Iterable[float]) -> PiecewiseConstant:
        """The same kernel with other cuts."""
        other = self._with_table(self.parameters)
        assert isinstance(other, PiecewiseConstant)
        other.at = tuple(float(cut) for cut in at)
        return other

    def cells(self, X: Array) -> NDArray[np.intp]:
        """For each row, how many cuts are below it."""
        return np.searchsorted(self.at, X[:, self.axis], side="left")

    def check_inputs(self, d: int) -> None:
        """Raise an error unless there is such an input."""
        if self.axis >= d:
            raise ValueError(
                f"PiecewiseConstant cuts input {self.axis}, so X must have more columns than that, got {d}"
            )

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        return np.where(self.cells(X1)[:, np.newaxis] == self.cells(X2), self.variance, 0.0)

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.full(X.shape[0], self.variance)

    def slope_variances(self, d: int) -> Array:
        """None but at the cuts."""
        return np.zeros(d)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        scaled = self._scaled_by({"variance": output_scale**2})
        assert isinstance(scaled, PiecewiseConstant)
        scale = float(input_scales if np.ndim(input_scales) == 0 else input_scales[self.axis])
        return scaled.moved(cut * scale for cut in self.at)

    def evaluation(self, X: Array, square: Square) -> PiecewiseConstantEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return PiecewiseConstantEvaluation(self.cells(X), square)


class PiecewiseConstantEvaluation:
    """Levels on fixed rows, which stay in their cells."""

    def __init__(self, cells: NDArray[np.intp], square: Square) -> None:
        n = cells.size
        members = np.zeros((n, int(cells.max(initial=0)) + 1))
        members[np.arange(n), cells] = 1.0
        self._same = PackedGram(np.empty(n * (n - 1) // 2), np.ones(n))
        square.bound_inner_products(members)()
        square.bound_pack(self._same.pairs)()

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for this variance."""
        self._gram = PackedGram(*(values[0] * part for part in self._same))
        return self._gram

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the log variance."""
        return np.array([g_pairs @ self._gram.pairs + g_diagonal @ self._gram.diagonal])
