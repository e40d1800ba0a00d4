"""The kernel of a function that is constant between cuts across one input, and jumps there."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from spngp._linalg.square import PackedGram, Square
from spngp._support.checks import as_count
from spngp._support.types import Array
from spngp.kernels.base import Kernel

_LARGEST: Any = 1e300  # position of a cut; Any, since values may be of any kind of number


class PiecewiseConstant(Kernel):
    """variance · max(0, 1 − |u(x) − u(x')|), where u counts the cuts of one input that are below: levels between cuts.

    Every cell between two cuts has a level of its own, independent of all others, N(0, variance). Where only rows on
    either side of a gap are known, nobody knows where in it the jump is: across a gap around a cut u rises linearly, so
    that the mean goes from one level to the next and the variance between them is large. In a sum, for the jumps of a
    function that is smooth otherwise.

    Parameters
    ----------
    axis : int
        The input that is cut.
    at : sequence of float
        Where, in ascending order; a row exactly on a cut is below it.
    variance : float or Parameter
        Prior variance of the levels.
    gaps : sequence of float
        The width of the gap around each cut, which is its middle; none by default. Gaps do not overlap.

    Examples
    --------
    >>> from spngp.kernels import PiecewiseConstant
    >>> PiecewiseConstant(axis=0, at=[1.0, 2.0], variance=4.0).gram([[0.5], [1.0], [2.0]])
    array([[4., 4., 0.],
           [4., 4., 0.],
           [0., 0., 4.]])
    >>> PiecewiseConstant(axis=0, at=[1.0], gaps=[0.5]).gram([[0.75], [1.125], [1.25]])
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.75],
           [0.  , 0.75, 1.  ]])
    """

    axis: int
    at: tuple[float, ...]
    gaps: tuple[float, ...]
    variance: float

    def __init__(
        self, axis: int = 0, at: Iterable[float] = (0.0,), variance: Any = 1.0, gaps: Iterable[float] = ()
    ) -> None:
        self.axis = as_count(axis, "axis of PiecewiseConstant", 0)
        cuts, widths = _finite(at), _finite(gaps)
        if not cuts or any(low >= high for low, high in pairwise(cuts)):
            raise ValueError(f"at of PiecewiseConstant must be finite numbers that ascend strictly, got {at!r}")
        if widths is None or len(widths) not in (0, len(cuts)) or min(widths, default=0.0) < 0:
            raise ValueError(f"gaps of PiecewiseConstant must be {len(cuts)} numbers >= 0, one per cut, got {gaps!r}")
        sides = [(cut - 0.5 * width, cut + 0.5 * width) for cut, width in zip(cuts, widths, strict=False)]
        if any(low[1] > high[0] for low, high in pairwise(sides)):
            raise ValueError(f"gaps of PiecewiseConstant must not overlap, got {gaps!r} around {at!r}")
        self.at, self.gaps = cuts, widths
        self._declare(variance=variance, scalar=("variance",))

    def _structure(self) -> dict[str, Any]:
        return {"axis": self.axis, "at": self.at, "gaps": self.gaps}

    def moved(self, at: Iterable[float], gaps: Iterable[float] = ()) -> PiecewiseConstant:
        """The same kernel with other cuts, which ascend, and gaps."""
        other = self._with_table(self.parameters)
        assert isinstance(other, PiecewiseConstant)
        other.at, other.gaps = tuple(map(float, at)), tuple(map(float, gaps))
        return other

    def cells(self, X: Array) -> Array:
        """For each row, how many cuts are below it, and in a gap how far across it is."""
        x = X[:, self.axis]
        below = np.searchsorted(self.at, x, side="left").astype(np.float64)
        if any(self.gaps):
            cuts, widths = np.array(self.at), np.array(self.gaps)
            for i in (below - 1.0, below):  # the gap of the cut below, and of the one above
                near = np.clip(i, 0, cuts.size - 1).astype(np.intp)
                across = (x - cuts[near]) / np.where(widths[near] > 0.0, widths[near], 1.0) + 0.5
                inside = (i == near) & (widths[near] > 0.0) & (across > 0.0) & (across < 1.0)
                below = np.where(inside, near + across, below)
        return below

    def check_inputs(self, d: int) -> None:
        """Raise an error unless there is such an input."""
        if self.axis >= d:
            raise ValueError(
                f"PiecewiseConstant cuts input {self.axis}, so X must have more columns than that, got {d}"
            )

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        apart = np.abs(self.cells(X1)[:, np.newaxis] - self.cells(X2))
        return self.variance * np.maximum(0.0, 1.0 - apart)

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
        return scaled.moved((cut * scale for cut in self.at), (width * scale for width in self.gaps))

    def evaluation(self, X: Array, square: Square) -> PiecewiseConstantEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return PiecewiseConstantEvaluation(self.cells(X))


def _finite(values: Any) -> tuple[float, ...] | None:
    """The numbers as floats; None if they are not finite numbers."""
    given = tuple(values) if isinstance(values, Iterable) else (None,)
    if not all(isinstance(value, numbers.Real) and -_LARGEST < value < _LARGEST for value in given):
        return None
    return tuple(float(value) for value in given)


class PiecewiseConstantEvaluation:
    """Levels on fixed rows, which stay in their cells."""

    def __init__(self, cells: Array) -> None:
        alike = np.maximum(0.0, 1.0 - pdist(cells[:, np.newaxis], "cityblock"))
        self._alike = PackedGram(alike, np.ones(cells.size))

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for this variance."""
        self._gram = PackedGram(*(values[0] * part for part in self._alike))
        return self._gram

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the log variance."""
        return np.array([g_pairs @ self._gram.pairs + g_diagonal @ self._gram.diagonal])
