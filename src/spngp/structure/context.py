"""Context rows: what a leaf sees beyond its border when it predicts (SPN-GP*)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network import Box

_FIRST = 8  # so many times the rows wanted are looked at, in the nearest tiles, to tell how far to look


class NearestContext:
    """The rows nearest to a box from outside, in the kernel's metric: a share of the number of rows inside.

    Rows of the nearest tiles say how far one has to look at most, and then all tiles within that distance are looked
    at, all at once: the result is exact.

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
        self._own, self._scales, self._share, self._most = rows, scales, share, most
        occupied = [rows[tile] for tile in tiles if rows[tile].size]
        self._order = np.concatenate(occupied) if occupied else np.empty(0, dtype=np.intp)
        self._columns = np.ascontiguousarray(X[self._order].T)  # tile by tile, axis by axis
        sizes = np.array([own.size for own in occupied], dtype=np.intp)
        self._stops = np.cumsum(sizes)
        self._starts: Indices = self._stops - sizes
        self._low = np.minimum.reduceat(self._columns, self._starts, axis=1) if occupied else self._columns
        self._high = np.maximum.reduceat(self._columns, self._starts, axis=1) if occupied else self._columns
        self._found: dict[Box, Indices] = {}  # a box is asked for once per kernel and output

    def __call__(self, box: Box) -> Indices:
        """Indices of the context rows of a box, nearest first."""
        if box not in self._found:
            self._found[box] = self._nearest(box)
        return self._found[box]

    def _nearest(self, box: Box) -> Indices:
        wanted = round(self._share * self._own[box].size)
        wanted = wanted if self._most is None else min(wanted, self._most)
        if wanted == 0 or not box.sides:
            return np.empty(0, dtype=np.intp)
        bounds = self._squared_gaps(box, self._low, self._high)
        reach = self._reach(box, bounds, wanted)
        near = np.flatnonzero(bounds <= reach)
        found, distances = self._outside(box, near[np.argsort(bounds[near], kind="stable")], reach)
        if found.size > wanted:  # sorting all would be the larger part of the work
            close = np.flatnonzero(distances <= np.partition(distances, wanted - 1)[wanted - 1])
            found, distances = found[close], distances[close]
        return found[np.argsort(distances, kind="stable")[:wanted]]

    def _reach(self, box: Box, bounds: Array, wanted: int) -> float:
        """A squared distance within which there are as many rows as wanted, because some tiles have them.

        ``bounds`` are the tiles' own distances, and the nearest tiles are asked.
        """
        enough = int(_FIRST * wanted * bounds.size / self._order.size) + 2
        if enough >= bounds.size:
            return np.inf
        _, distances = self._outside(box, np.argpartition(bounds, enough)[:enough], np.inf)
        return float(np.partition(distances, wanted - 1)[wanted - 1]) if distances.size >= wanted else np.inf

    def _outside(self, box: Box, tiles: Indices, reach: float) -> tuple[Indices, Array]:
        """The rows of some tiles outside the box and within a squared distance of it, and their squared distances."""
        if tiles.size == self._starts.size:
            places, squared = self._distances(box, self._columns, None, reach)
        else:
            starts, sizes = self._starts[tiles], self._stops[tiles] - self._starts[tiles]
            before = np.cumsum(sizes) - sizes  # rows of the tiles ahead
            spans = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
            places, squared = self._distances(box, self._columns, spans, reach)
        return self._order[places], squared

    def _distances(self, box: Box, columns: Array, places: Indices | None, reach: float) -> tuple[Indices, Array]:
        """Which of the places (all: None) lie outside the box and within reach, and their squared distances."""
        if places is None:
            squared, inside = np.zeros(columns.shape[1]), np.ones(columns.shape[1], dtype=bool)
        else:
            squared, inside = np.zeros(places.size), np.ones(places.size, dtype=bool)
        for axis, low, high in box.sides:
            values = columns[axis] if places is None else columns[axis][places]
            below, above = low - values, values - high
            inside &= (below < 0) & (above <= 0)
            gap = np.maximum(np.maximum(below, above, out=above), 0.0, out=above)
            gap /= self._scales[axis]
            squared += np.square(gap, out=gap)
            if reach < np.inf:  # rows too far along the first axes need not be looked at along the others
                near = np.flatnonzero(squared <= reach)
                if near.size < 0.7 * squared.size:
                    places = near if places is None else places[near]
                    squared, inside = squared[near], inside[near]
        chosen = np.flatnonzero(~inside & (squared <= reach))
        return chosen if places is None else places[chosen], squared[chosen]

    def _squared_gaps(self, box: Box, bottom: Array, top: Array) -> Array:
        """Squared distance in the metric from the box to each box [bottom, top], given axis by axis."""
        squared = np.zeros(bottom.shape[1])
        for axis, low, high in box.sides:
            gap = np.maximum(np.maximum(low - top[axis], bottom[axis] - high), 0.0) / self._scales[axis]
            squared += gap * gap
        return squared
