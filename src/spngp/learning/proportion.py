"""Values out of all proportion to the rest of their column: a slip of the pen or a placeholder."""

from __future__ import annotations

import numpy as np

from spngp._support.types import Array

# A value is out of all proportion if it is at least PROPORTION times as far from the median as all values nearer to it,
# and if no more than one value in _FEW, or a single one, is that far off. More of them belong to the column: a peak, a
# step or a rare level.
PROPORTION = 100.0  # ratio of distances from the median
_FEW = 100_000  # values
FEWEST_ROWS = 20  # with fewer rows, nothing is out of all proportion


def few_of(n: int) -> int:
    """How many of n values can be out of all proportion at most."""
    return max(1, n // _FEW)


def in_units(A: Array) -> tuple[Array, Array]:
    """Each column divided by its largest absolute value, and these values."""
    size = np.nanmax(np.abs(A), axis=0)
    size[size == 0] = 1.0
    return A / size, size


def in_proportion(A: Array) -> Array:
    """The columns with NaN for values out of all proportion."""
    n = A.shape[0]
    if n < FEWEST_ROWS:
        return A
    unit, size = in_units(A)
    # a value out of all proportion is also many standard deviations off, which is cheaper to tell than a median
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
        # among values that differ by rounding errors alone, nothing is out of proportion
        rounding = 1e-12 * max(abs(median), min(1.0, 1.0 / size[j]))
        far = np.flatnonzero((top[:-1] >= PROPORTION * top[1:]) & (top[1:] > rounding))
        if far.size:
            A = A.copy()
            A[distance >= top[far[-1]], j] = np.nan
    return A
