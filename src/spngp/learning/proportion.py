"""Values out of all proportion to the rest of their column: a slip of the pen or a placeholder.

Of inputs and outputs alike, a single value that is a hundred times as far off as all others. Of outputs also a few in a
hundred, if a gap sets them apart that the values on its near side do not lead one to expect, and if no input tells
where they are: such outputs are gross errors.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier

from spngp._support.types import Array, Mask

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


# Gross errors among outputs
_SHARE = 0.025  # of all rows that gross errors can be; of few rows, _SHARE_OF_FEW or _FEW_ERRORS
_SHARE_OF_FEW, _FEW_ERRORS = 0.1, 3
_LEAST_RATIO = 2.0  # of distances from the median, from one side of the gap to the other
_LEAST_DISTANCE = 6.0  # standard deviations from the median, as far as the middle half of the rows shows them
_LEAST_SURPRISE = 9.0  # nats: minus the log probability of such a gap, if the tail went on as it does before it
_TOLD = 0.5  # share of suspects whose neighbours are suspects too: then they are where the inputs say
_BY_CHANCE = 0.05  # probability below which that is no accident, whichever input shows it
_FEWEST_FOR_TREE = 10  # suspects
_MOST_OTHERS = 20_000  # rows that suspects are told from


def most_errors(n: int) -> int:
    """How many of n outputs can be gross errors at most."""
    return max(int(_SHARE * n), min(_FEW_ERRORS, int(_SHARE_OF_FEW * n)), 1)


def gross_errors(X: Array, Y: Array) -> Mask:
    """Which outputs are gross errors, in the shape of Y."""
    found = np.zeros(Y.shape, dtype=bool)
    for k in range(Y.shape[1]):
        observed = np.flatnonzero(~np.isnan(Y[:, k]))
        suspects = _beyond_a_gap(Y[observed, k])
        if suspects.any() and not told_by_inputs(X[observed], suspects):
            found[observed, k] = suspects
    return found


def _beyond_a_gap(values: Array) -> Mask:
    """Values beyond the nearest gap that is too wide to be one of a tail; none if there is no such gap.

    Distances from the median beyond some point follow about a power law with an exponent α that the nearest of them
    show (Hill's estimate). The log of the ratio of the k-th largest to the next is then exponential with rate α·k
    (Rényi), so a ratio r has the probability r^(−α·k).
    """
    none = np.zeros(values.size, dtype=bool)
    most = most_errors(values.size)
    if values.size < FEWEST_ROWS:
        return none
    scale = float(np.abs(values).max())
    if scale == 0.0:
        return none
    distance = np.abs(values / scale - float(np.median(values / scale)))
    spread = 1.4826 * float(np.median(distance))
    n_tail = max(FEWEST_ROWS // 4, min(most, values.size // 4))
    top = np.sort(np.partition(distance, -most - n_tail - 1)[-most - n_tail - 1 :])[::-1]
    if spread <= 0.0 or top[0] < _LEAST_DISTANCE * spread:
        return none
    for k in range(most, 0, -1):
        tail = top[k : k + n_tail + 1]
        if top[k - 1] < max(_LEAST_RATIO * tail[0], _LEAST_DISTANCE * spread) or tail[-1] <= 0.0:
            continue
        alpha = 1.0 / max(float(np.log(tail[:-1] / tail[-1]).mean()), 1e-3)
        if alpha * k * np.log(top[k - 1] / tail[0]) >= _LEAST_SURPRISE:
            return np.asarray(distance >= top[k - 1])
    return none


def _chance(n_beside: int, count: int, n: int) -> float:
    """Probability that so many of the neighbours of ``count`` random rows, two of each, are among them as well.

    Two rows that are neighbours of each other count twice, so pairs are what is counted.
    """
    return float(binom.sf(-(-n_beside // 2) - 1, count, min(1.0, 2.0 * (count - 1) / (n - 1))))


def told_by_inputs(X: Array, suspects: Mask) -> bool:
    """Whether inputs tell which rows are suspects: a peak, a step or a rare level, not errors."""
    rng = np.random.default_rng(0)
    others = np.flatnonzero(~suspects)
    if others.size > _MOST_OTHERS:
        others = rng.choice(others, _MOST_OTHERS, replace=False)
    # in a random order: where an input has few values, neighbours are equally near, and the first ones are taken
    rows = rng.permutation(np.concatenate([np.flatnonzero(suspects), others]))
    X, suspects = X[rows], suspects[rows]
    places = np.flatnonzero(suspects)
    count = places.size
    if count < 2:
        return False
    unit, _ = in_units(X - X.mean(axis=0))
    views = [unit, *[unit[:, [j]] for j in range(X.shape[1])]] if X.shape[1] > 1 else [unit]
    for view in views:
        neighbours = NearestNeighbors(n_neighbors=3).fit(view)
        nearest = neighbours.kneighbors(view[places], return_distance=False)
        beside = [int(suspects[own[own != i]][:2].sum()) for i, own in zip(places, nearest, strict=True)]
        if sum(beside) >= _TOLD * 2 * count and _chance(sum(beside), count, rows.size) * len(views) < _BY_CHANCE:
            return True
    if count < _FEWEST_FOR_TREE:
        return False
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=3, random_state=0)
    told = cross_val_predict(tree, unit, suspects, cv=5, method="predict_proba")[places, 1]
    return float(np.mean(told >= 0.5)) >= _TOLD
