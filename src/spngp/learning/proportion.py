"""Values out of all proportion to the rest of their column: a slip of the pen or a placeholder."""

from __future__ import annotations

import numpy as np

from spngp._support.types import Array

# One value in so many, or a single one, is out of all proportion if it lies so many times as far from the median as any
# other. More of them are what the column is like: a peak, a step, a rare level.
_FEW = 100_000
PROPORTION = 100.0
FEWEST_ROWS = 20  # of fewer, nothing is known about what is usual


def few_of(n: int) -> int:
    """How many of n values may be out of all proportion."""
    return max(1, n // _FEW)


def in_units(A: Array) -> tuple[Array, Array]:
    """The columns divided by their largest values, and these."""
    size = np.nanmax(np.abs(A), axis=0)
    size[size == 0] = 1.0
    return A / size, size


def in_proportion(A: Array) -> Array:
    """The columns with NaN for values out of all proportion."""
    n = A.shape[0]
    if n < FEWEST_ROWS:
        return A
    unit, size = in_units(A)
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
        rounding = 1e-12 * max(abs(median), min(1.0, 1.0 / size[j]))
        far = np.flatnonzero((top[:-1] >= PROPORTION * top[1:]) & (top[1:] > rounding))
        if far.size:
            A = A.copy()
            A[distance >= top[far[-1]], j] = np.nan
    return A
