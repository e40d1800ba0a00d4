"""Columns brought to mean zero and standard deviation one, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._typing import Array

# Values further from the median than so many times the range of the middle half say nothing about a column's scale.
_OUT_OF_PROPORTION = 1e4


@dataclass(frozen=True)
class Standardiser:
    """z = (x − mean)/scale, column by column; a constant column keeps a scale of one. NaN stays NaN.

    One value out of all proportion, a slip of the pen or a placeholder, would leave the others no scale at all, so mean
    and scale are taken without it.
    """

    mean: Array
    scale: Array

    @staticmethod
    def of(A: Array) -> Standardiser:
        """Learn from the rows of A; sizes up to the largest float do not overflow."""
        size = np.nanmax(np.abs(A), axis=0)
        size[size == 0] = 1.0
        unit = _in_proportion(A / size)
        mean, scale = np.nanmean(unit, axis=0), np.nanstd(unit, axis=0)
        constant = scale <= 1e-14 * np.maximum(np.abs(mean), 1e-300)
        return Standardiser(mean * size, np.where(constant, 1.0, scale) * np.where(constant, 1.0, size))

    def apply(self, A: Array) -> Array:
        """Into standard units."""
        return (A - self.mean) / self.scale


def _in_proportion(unit: Array) -> Array:
    """The columns, with NaN for values out of all proportion; far values of a column with no spread are its spread."""
    # few values that far off also lie far off in standard deviations, up to the root of their number: no need to sort
    deviation = np.nanmax(np.abs(unit - np.nanmean(unit, axis=0)), axis=0)
    limit = min(10.0, 0.1 * np.sqrt(unit.shape[0]))
    for j in np.flatnonzero(deviation > limit * np.nanstd(unit, axis=0)):
        low, median, high = np.nanpercentile(unit[:, j], [25.0, 50.0, 75.0])
        far = np.abs(unit[:, j] - median) > _OUT_OF_PROPORTION * (high - low)
        if high > low and far.any():
            unit[far, j] = np.nan
    return unit
