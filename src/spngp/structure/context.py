"""Context rows: what a leaf sees beyond its border when it predicts (SPN-GP*)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spngp._typing import Array, Indices
from spngp.network import Box


class NearestContext:
    """The rows nearest to a box from outside, in the kernel's metric: a share of the number of rows inside.

    Rows are looked up tile by tile, nearest first, and the search ends when no row of the next tile can be near enough;
    the result is exact.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All rows.
    rows : mapping of Box to indices
        The rows inside each box that may be asked for, and inside each tile.
    tiles : sequence of Box
        Boxes without overlap that cover the space: where to look.
    scales : ndarray of shape (d,)
        Length-scales of the metric.
    share : float
        How many context rows per row inside.
    most : int, optional
        How many at most.
    """

    def __init__(
        self,
        X: Array,
        rows: Mapping[Box, Indices],
        tiles: Sequence[Box],
        scales: Array,
        share: float,
        most: int | None = None,
    ) -> None:
        self._X, self._own, self._scales, self._share, self._most = X, rows, scales, share, most
        self._rows = [rows[tile] for tile in tiles if rows[tile].size]
        self._low = np.array([X[own].min(axis=0) for own in self._rows])
        self._high = np.array([X[own].max(axis=0) for own in self._rows])
        self._found: dict[Box, Indices] = {}  # a box is asked for once per kernel and output

    def __call__(self, box: Box) -> Indices:
        """Indices of the context rows of a box, nearest first."""
        if box not in self._found:
            self._found[box] = self._nearest(box)
        return self._found[box]

    def _nearest(self, box: Box) -> Indices:
        wanted = round(self._share * self._own[box].size)
        wanted = wanted if self._most is None else min(wanted, self._most)
        found, distances = np.empty(0, dtype=np.intp), np.empty(0)
        if wanted == 0 or not box.sides:
            return found
        low, high = np.full(self._scales.size, -np.inf), np.full(self._scales.size, np.inf)
        for axis, start, stop in box.sides:
            low[axis], high[axis] = start, stop
        bounds = self._squared_gaps(low, high, self._low, self._high)
        for tile in np.argsort(bounds, kind="stable"):
            full = found.size == wanted
            if full and bounds[tile] > distances[-1]:
                break
            rows = self._rows[tile][~box.contains(self._X[self._rows[tile]])]
            squared = self._squared_gaps(low, high, self._X[rows], self._X[rows])
            if full:
                rows, squared = rows[squared <= distances[-1]], squared[squared <= distances[-1]]
            found, distances = np.concatenate([found, rows]), np.concatenate([distances, squared])
            nearest = np.argsort(distances, kind="stable")[:wanted]
            found, distances = found[nearest], distances[nearest]
        return found

    def _squared_gaps(self, low: Array, high: Array, bottom: Array, top: Array) -> Array:
        """Squared distance in the metric from the box [low, high] to each box [bottom, top]."""
        gaps = np.maximum(np.maximum(low - top, bottom - high), 0.0) / self._scales
        return np.einsum("ij,ij->i", gaps, gaps)
