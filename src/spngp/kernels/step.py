"""The kernel of a step: two levels, with a border across one input."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from spngp._linalg.square import PackedGram, Square
from spngp._support.checks import as_count
from spngp._support.types import Array
from spngp.kernels.base import Kernel


class Step(Kernel):
    """variance · s(x) · s(x'), where s is ½ above a cut of one input and −½ at or below it: two levels.

    A step of height h ~ N(0, variance), half of it on either side. Together with a constant, the two levels are free.

    Parameters
    ----------
    axis : int
        The input that is cut.
    at : float
        Where; a row exactly on the cut is below it.
    variance : float or Parameter
        Prior variance of the height.

    Examples
    --------
    >>> from spngp.kernels import Step
    >>> Step(axis=0, at=2.0, variance=4.0).gram([[1.0], [2.0], [3.0]])
    array([[ 1.,  1., -1.],
           [ 1.,  1., -1.],
           [-1., -1.,  1.]])
    """

    axis: int
    at: float
    variance: float

    def __init__(self, axis: int = 0, at: float = 0.0, variance: Any = 1.0) -> None:
        self.axis = as_count(axis, "axis of Step", 0)
        if not isinstance(at, numbers.Real) or not math.isfinite(at):
            raise ValueError(f"at of Step must be a finite number, got {at!r}")
        self.at = float(at)
        self._declare(variance=variance, scalar=("variance",))

    def _structure(self) -> dict[str, Any]:
        return {"axis": self.axis, "at": self.at}

    def moved(self, axis: int, at: float) -> Step:
        """The same step elsewhere."""
        step = self._with_table(self.parameters)
        assert isinstance(step, Step)
        step.axis, step.at = axis, float(at)
        return step

    def sides(self, X: Array) -> Array:
        """½ for rows above the cut, −½ for those at or below it."""
        return np.where(X[:, self.axis] > self.at, 0.5, -0.5)

    def check_inputs(self, d: int) -> None:
        """Raise an error unless there is such an input."""
        if self.axis >= d:
            raise ValueError(f"Step cuts input {self.axis}, so X must have more columns than that, got {d}")

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        return np.outer(self.variance * self.sides(X1), self.sides(X2))

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.full(X.shape[0], 0.25 * self.variance)

    def slope_variances(self, d: int) -> Array:
        """None but at the cut."""
        return np.zeros(d)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        scaled = self._scaled_by({"variance": output_scale**2})
        assert isinstance(scaled, Step)
        scale = input_scales if np.ndim(input_scales) == 0 else input_scales[self.axis]
        return scaled.moved(self.axis, self.at * float(scale))

    def evaluation(self, X: Array, square: Square) -> StepEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return StepEvaluation(self.sides(X), square)


class StepEvaluation:
    """A step on fixed rows, which stay on their sides."""

    def __init__(self, sides: Array, square: Square) -> None:
        n = sides.size
        self._products = PackedGram(np.empty(n * (n - 1) // 2), sides * sides)
        square.bound_inner_products(np.ascontiguousarray(sides[:, np.newaxis]))()
        square.bound_pack(self._products.pairs)()

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for this variance."""
        self._gram = PackedGram(*(values[0] * part for part in self._products))
        return self._gram

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the log variance."""
        return np.array([g_pairs @ self._gram.pairs + g_diagonal @ self._gram.diagonal])
