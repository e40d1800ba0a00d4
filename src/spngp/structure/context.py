"""Context rows: what a leaf sees beyond its border when it predicts (SPN-GP*)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network import Box

_FIRST = 8  # rows of the nearest tiles that are looked at first, per row wanted, to bound the search


class NearestContext:
    """The rows outside a box that are nearest to it in the kernel's metric, in proportion to the rows inside.

    The search is exact. Rows of the nearest tiles give a radius within which there are enough rows; then all tiles
    within this radius are searched.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All rows.
    rows : mapping of Box to indices
        The rows inside each box that may be asked for, and inside each tile.
    tiles : sequence of Box
        Boxes that cover the space without overlap.
    scales : ndarray of shape (d,)
        Length-scales of the metric.
    share : float
        Number of context rows per row inside the box.
    most : int, optional
        Largest number of context rows.
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
        sizes = np.array([inside.size for inside in occupied], dtype=np.intp)
        self._stops = np.cumsum(sizes)
        self._starts: Indices = self._stops - sizes
        self._low = np.minimum.reduceat(self._columns, self._starts, axis=1) if occupied else self._columns
        self._high = np.maximum.reduceat(self._columns, self._starts, axis=1) if occupied else self._columns
        self._found: dict[Box, Indices] = {}  # by box, as every kernel and output asks for the same ones

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
        radius = self._squared_radius(box, bounds, wanted)
        near = np.flatnonzero(bounds <= radius)
        found, distances = self._outside(box, near[np.argsort(bounds[near], kind="stable")], radius)
        if found.size > wanted:  # sorting all of them would take longer than the search
            close = np.flatnonzero(distances <= np.partition(distances, wanted - 1)[wanted - 1])
            found, distances = found[close], distances[close]
        return found[np.argsort(distances, kind="stable")[:wanted]]

    def _squared_radius(self, box: Box, bounds: Array, wanted: int) -> float:
        """A squared distance from the box within which the nearest tiles have at least ``wanted`` rows.

        ``bounds`` are the squared distances of the tiles. Infinite if the nearest tiles have too few rows.
        """
        enough = int(_FIRST * wanted * bounds.size / self._order.size) + 2
        if enough >= bounds.size:
            return np.inf
        _, distances = self._outside(box, np.argpartition(bounds, enough)[:enough], np.inf)
        return float(np.partition(distances, wanted - 1)[wanted - 1]) if distances.size >= wanted else np.inf

    def _outside(self, box: Box, tiles: Indices, radius: float) -> tuple[Indices, Array]:
        """Rows of these tiles outside the box and within the squared ``radius`` of it, and their squared distances."""
        if tiles.size == self._starts.size:
            places, squared = self._distances(box, self._columns, None, radius)
        else:
            starts, sizes = self._starts[tiles], self._stops[tiles] - self._starts[tiles]
            before = np.cumsum(sizes) - sizes  # rows of the tiles ahead
            spans = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
            places, squared = self._distances(box, self._columns, spans, radius)
        return self._order[places], squared

    def _distances(self, box: Box, columns: Array, places: Indices | None, radius: float) -> tuple[Indices, Array]:
        """The places outside the box and within the squared ``radius`` of it, and their squared distances.

        ``places`` are positions in ``columns``, None for all of them.
        """
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
            if radius < np.inf:  # rows too far off along the first axes are dropped before the next axis
                near = np.flatnonzero(squared <= radius)
                if near.size < 0.7 * squared.size:
                    places = near if places is None else places[near]
                    squared, inside = squared[near], inside[near]
        chosen = np.flatnonzero(~inside & (squared <= radius))
        return chosen if places is None else places[chosen], squared[chosen]

    def _squared_gaps(self, box: Box, bottom: Array, top: Array) -> Array:
        """Squared distance in the metric from the box to each box [bottom, top], given axis by axis."""
        squared = np.zeros(bottom.shape[1])
        for axis, low, high in box.sides:
            gap = np.maximum(np.maximum(low - top[axis], bottom[axis] - high), 0.0) / self._scales[axis]
            squared += gap * gap
        return squared
