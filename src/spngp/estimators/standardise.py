"""Columns brought to mean zero and standard deviation one, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array
from spngp.learning.proportion import FEWEST_ROWS, PROPORTION, in_proportion, in_units


@dataclass(frozen=True)
class Standardiser:
    """z = (x − mean)/scale, column by column; a constant column keeps a scale of one. NaN stays NaN.

    A single value out of all proportion, a slip of the pen or a placeholder, would leave the others no scale at all, so
    mean and scale are taken without it.

    Attributes
    ----------
    mean, scale : ndarray
        One per column.
    reach : ndarray
        Values further off than this, in units of the scale, are out of all proportion to those it was learnt from.
    """

    mean: Array
    scale: Array
    reach: Array

    @staticmethod
    def of(A: Array) -> Standardiser:
        """Learn from the rows of A; sizes up to the largest float do not overflow."""
        unit, size = in_units(in_proportion(A))
        mean, scale = np.nanmean(unit, axis=0), np.nanstd(unit, axis=0)
        constant = scale <= 1e-14 * np.maximum(np.abs(mean), 1e-300)
        farthest = np.nanmax(np.abs(unit - mean), axis=0)
        # half way to what is out of proportion: a little noise, or another mean, makes no difference
        unknown = constant | (A.shape[0] < FEWEST_ROWS)
        reach = np.where(unknown, np.inf, 0.5 * PROPORTION * farthest / np.where(constant, 1.0, scale))
        return Standardiser(mean * size, np.where(constant, 1.0, scale) * np.where(constant, 1.0, size), reach)

    def apply(self, A: Array) -> Array:
        """Into standard units."""
        return (A - self.mean) / self.scale
