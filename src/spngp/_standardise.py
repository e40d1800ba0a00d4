"""Columns brought to mean zero and standard deviation one, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._typing import Array

# One value in so many, or a single one, is out of all proportion if it lies so many times as far from the median as any
# other. More of them are what the column is like: a peak, a step, a rare level.
_FEW = 100_000
_PROPORTION = 100.0
_FEWEST_ROWS = 20  # of fewer, nothing is known about what is usual


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
        unit, size = _in_units(_in_proportion(A))
        mean, scale = np.nanmean(unit, axis=0), np.nanstd(unit, axis=0)
        constant = scale <= 1e-14 * np.maximum(np.abs(mean), 1e-300)
        farthest = np.nanmax(np.abs(unit - mean), axis=0)
        # half way to what is out of proportion: a little noise, or another mean, makes no difference
        unknown = constant | (A.shape[0] < _FEWEST_ROWS)
        reach = np.where(unknown, np.inf, 0.5 * _PROPORTION * farthest / np.where(constant, 1.0, scale))
        return Standardiser(mean * size, np.where(constant, 1.0, scale) * np.where(constant, 1.0, size), reach)

    def apply(self, A: Array) -> Array:
        """Into standard units."""
        return (A - self.mean) / self.scale


def few_of(n: int) -> int:
    """How many of n values may be out of all proportion."""
    return max(1, n // _FEW)


def _in_units(A: Array) -> tuple[Array, Array]:
    """The columns divided by their largest values, and these."""
    size = np.nanmax(np.abs(A), axis=0)
    size[size == 0] = 1.0
    return A / size, size


def _in_proportion(A: Array) -> Array:
    """The columns with NaN for values out of all proportion."""
    n = A.shape[0]
    if n < _FEWEST_ROWS:
        return A
    unit, size = _in_units(A)
    # such a value also lies far off in standard deviations, and those cost less than a median
    deviation = np.nanmax(np.abs(unit - np.nanmean(unit, axis=0)), axis=0)
    suspects = np.flatnonzero(deviation > min(5.0, 0.5 * np.sqrt(n)) * np.nanstd(unit, axis=0))
    few = few_of(n)
    for j in suspects:
        median = float(np.nanmedian(unit[:, j]))
        distance = np.abs(unit[:, j] - median)
        known = distance[~np.isnan(distance)]
        if known.size <= few:
            continue
        top = np.sort(np.partition(known, -few - 1)[-few - 1 :])[::-1]
        # what the others differ by must be more than rounding
        rounding = 1e-12 * max(abs(median), 1.0 / max(1.0, size[j]))
        far = np.flatnonzero((top[:-1] >= _PROPORTION * top[1:]) & (top[1:] > rounding))
        if far.size:
            A = A.copy()
            A[distance >= top[far[-1]], j] = np.nan
    return A
