"""Groups of rows along a column: one for each value if there are few, else windows that overlap.

Whatever a page shows along a column is an average over rows that occur, so inputs that go together stay together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spngp._support.types import Array, Indices
from spngp.report.columns import Column

_FEW_VALUES = 12  # distinct numbers that get a group each
_MOST_LEVELS = 30  # levels shown, those with most rows
_POSITIONS = 32
_LEAST_ROWS, _SHARE = 20, 1 / 6  # rows of a window
_FEWEST = 5  # rows between two gaps
_GAP = 0.12  # share of the range without any row that interrupts a line


@dataclass(frozen=True)
class Windows:
    """Groups of rows in the order of their values.

    Attributes
    ----------
    at : ndarray of shape (m,)
        Where each group stands: the mean value of its rows.
    weights : ndarray of shape (m, n)
        Of the rows in each group; they add up to one.
    breaks : list of int
        Groups before which no rows occur for a while.
    distinct : bool
        Whether each group has one value.
    left : int
        Levels that are not shown.
    """

    at: Array
    weights: Array
    breaks: list[int]
    distinct: bool
    left: int = 0

    def spread(self) -> Array:
        """How many rows' worth each average has."""
        return 1.0 / np.square(self.weights).sum(axis=1)


def windows(column: Column, values: Array) -> Windows:
    """The groups along one column, for the value of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.report.columns import Column
    >>> from spngp.report.windows import windows
    >>> found = windows(Column("size", "ordered", (0,), ("S", "M", "L")), np.array([0.0, 2.0, 2.0]))
    >>> found.at.tolist(), found.weights.tolist()
    ([0.0, 2.0], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    """
    if np.isnan(values).any():  # rows where it is missing belong to no group
        known = np.flatnonzero(~np.isnan(values))
        found = windows(column, values[known])
        weights = np.zeros((found.at.size, values.size))
        weights[:, known] = found.weights
        return replace(found, weights=weights)
    distinct, counts = np.unique(values, return_counts=True)
    if column.has_levels or distinct.size <= _FEW_VALUES:
        kept = np.sort(np.argsort(-counts, kind="stable")[:_MOST_LEVELS])
        weights = (values[np.newaxis, :] == distinct[kept, np.newaxis]) / counts[kept, np.newaxis]
        return Windows(distinct[kept], weights, [], True, distinct.size - kept.size)
    order = np.argsort(values, kind="stable")
    parts = np.split(order, _gaps(values[order]))
    parts = [part for part in parts if part.size >= max(_FEWEST, 0.01 * order.size)] or [order]  # without odd ones out
    windowed = [_overlapping(values, part, order.size) for part in parts]
    at, weights = (np.concatenate(each) for each in zip(*windowed, strict=True))
    breaks = np.cumsum([places.size for places, _ in windowed])[:-1]
    return Windows(at, weights, [int(place) for place in breaks], False)


def _overlapping(values: Array, part: Indices, n: int) -> tuple[Array, Array]:
    """Windows over a part of the n rows, in the order of their values: where they stand, and their weights."""
    size = min(part.size, max(_LEAST_ROWS, round(_SHARE * n)))
    count = max(1, min(round(_POSITIONS * part.size / n), part.size // 3))
    weights = np.zeros((count, values.size))
    for i, centre in enumerate(np.linspace(0, part.size - 1, count) if count > 1 else [0.5 * (part.size - 1)]):
        distance = np.abs(np.arange(part.size) - centre) / (0.5 * size + 1.0)
        near = np.flatnonzero(distance < 1.0)
        weights[i, part[near]] = (1.0 - distance[near] ** 3) ** 3
    weights /= weights.sum(axis=1, keepdims=True)
    at = weights @ values
    kept = np.concatenate([[True], np.diff(at) > 0])  # ties would put two groups in one place
    return at[kept], weights[kept]


def changes(values: Array) -> bool:
    """Whether there are different values; NaN is left out."""
    known = values[~np.isnan(values)]
    return bool(known.size and np.ptp(known) > 0)


def _gaps(ordered: Array) -> Indices:
    """Where no rows occur for a while, among values in their order."""
    return np.flatnonzero(np.diff(ordered) > _GAP * (ordered[-1] - ordered[0])) + 1


def sample(n: int, most: int) -> Indices:
    """Which of n rows to look at, if they are more than ``most``; always the same."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))
