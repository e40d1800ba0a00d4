"""Rows in groups, and which of them are near boxes: a group that is too far off is not looked at row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spngp._linalg import compiled
from spngp._support.types import Array, Indices, Mask

_SLACK = 1.0 + 1e-9  # of squared distances, whose last bits depend on the order of sums; as in native.c


class GroupedRows(NamedTuple):
    """Rows in groups, such as those of a region each.

    Attributes
    ----------
    W : ndarray of shape (n, d)
        Group after group.
    starts : ndarray of int, shape (groups + 1,)
    low, high : ndarray of shape (groups, d)
        Corners of the box that the rows of each group fill.
    """

    W: Array
    starts: NDArray[np.int64]
    low: Array
    high: Array

    @staticmethod
    def of(W: Array, groups: Sequence[Indices]) -> GroupedRows:
        """Rows of which each group has some, given their positions."""
        sorted_rows = np.ascontiguousarray(W[np.concatenate(groups)])
        starts = np.concatenate([[0], np.cumsum([rows.size for rows in groups])]).astype(np.int64)
        low, high = (bound.reduceat(sorted_rows, starts[:-1], axis=0) for bound in (np.minimum, np.maximum))
        return GroupedRows(sorted_rows, starts, low, high)

    def near(self, low: Array, high: Array, squared: Array, scales: Array) -> Mask:
        """Which rows are up to a squared distance from one of several boxes, and perhaps some a little farther off.

        The boxes have corners ``low`` and ``high``, (boxes, d), infinite where they are open, and a distance each; a
        negative one is none.
        """
        seen = np.zeros(self.W.shape[0], dtype=bool)
        low, high, squared, scales = (
            np.ascontiguousarray(given, dtype=np.float64) for given in (low, high, squared, scales)
        )
        if compiled.library is not None:
            groups = (self.starts.size - 1, self.starts.ctypes.data, self.low.ctypes.data, self.high.ctypes.data)
            boxes = (squared.size, low.ctypes.data, high.ctypes.data, squared.ctypes.data, scales.ctypes.data)
            compiled.library.mark_near(self.W.ctypes.data, self.W.shape[1], *groups, *boxes, seen.ctypes.data)
            return seen
        for from_, to, most in zip(low, high, squared * _SLACK, strict=True):
            for group in np.flatnonzero(_squared_gaps(from_, to, self.low, self.high, scales) <= most):
                rows = slice(self.starts[group], self.starts[group + 1])
                seen[rows] |= _squared_gaps(from_, to, self.W[rows], self.W[rows], scales) <= most
        return seen


def _squared_gaps(low: Array, high: Array, lows: Array, highs: Array, scales: Array) -> Array:
    """Squared distances of a box from others, in the metric."""
    gaps = np.maximum(np.maximum(low - highs, lows - high), 0.0)
    return np.asarray(np.square(gaps / scales).sum(axis=1))
