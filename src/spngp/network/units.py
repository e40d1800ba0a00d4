"""Units: a leaf's GP may work with shifted and scaled rows and outputs; the leaf translates to those of the user."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array


@dataclass(frozen=True, eq=False)
class Affine:
    """z = (x − mean)/scale, column by column, and back; NaN stays NaN.

    Parameters
    ----------
    mean, scale : ndarray
        One per column.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.network.units import Affine
    >>> celsius = Affine(np.array([32.0]), np.array([1.8]))
    >>> celsius.apply(np.array([[212.0]])), celsius.invert(np.array([[100.0]]))
    (array([[100.]]), array([[212.]]))
    """

    mean: Array
    scale: Array

    @staticmethod
    def shifted(mean: Array) -> Affine:
        """A shift without a change of scale."""
        return Affine(mean, np.ones(mean.size))

    @property
    def keeps_scale(self) -> bool:
        """Whether every scale is one."""
        return bool((self.scale == 1.0).all())

    def apply(self, A: Array) -> Array:
        """From the units of the user."""
        return (A - self.mean) / self.scale

    def invert(self, Z: Array) -> Array:
        """Back into the units of the user."""
        return Z * self.scale + self.mean

    def column(self, j: int) -> Affine:
        """The map of column ``j`` alone."""
        return Affine(self.mean[j : j + 1], self.scale[j : j + 1])

    def invert_cut(self, column: int, at: float) -> float:
        """The same cut in the units of the user: the largest x with ``apply(x) <= at``, so every row stays on its side.

        ``invert`` is not enough: by rounding, a row next to the cut could end up on the other side.
        """
        if not math.isfinite(at):
            return at
        mean, scale = float(self.mean[column]), float(self.scale[column])
        low = high = at * scale + mean
        step = math.ulp(low)
        while (low - mean) / scale > at:
            low, step = low - step, 2.0 * step
        step = math.ulp(high)
        while (high - mean) / scale <= at:
            high, step = high + step, 2.0 * step
        while (middle := low + 0.5 * (high - low)) not in (low, high):
            low, high = (middle, high) if (middle - mean) / scale <= at else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class Units:
    """How inputs and outputs of the user become those that GPs work with.

    Parameters
    ----------
    inputs, outputs : Affine
    """

    inputs: Affine
    outputs: Affine
