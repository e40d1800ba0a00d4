"""Context rows: what a leaf sees beyond its border when it predicts (SPN-GP*)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spngp._linalg import compiled
from spngp._support.types import Array, Indices, Mask
from spngp.network import Box

_FEW_ROWS = 16  # rows that are looked at all at once
_EXCESS = 0.1  # share of the rows wanted that equal rows may add to them
_FIRST = 8  # rows of the nearest tiles that are looked at first, per row wanted, to bound the search


@dataclass(frozen=True)
class Reach:
    """How far a leaf sees: a rule that depends on a row alone, not on the other rows or their order.

    Attributes
    ----------
    squared : float
        Squared distance from the box, in the metric, up to which rows are context.
    key : float
        Of rows at exactly this distance, those with a :func:`row_keys` up to this one are.
    """

    squared: float
    key: float = 1.0

    def sees(self, box: Box, W: Array, scales: Array) -> Indices:
        """Positions of the rows that lie in the box or within reach of it."""
        if compiled.library is None or W.shape[0] <= _FEW_ROWS or not box.sides or not W.flags.c_contiguous:
            return np.flatnonzero(self._sees(box, W, scales))
        near = _near(box, W, scales, self.squared)
        if near.size and near.min() < 0:  # rounding could decide
            close = near < 0
            near = np.where(close, -1 - near, near)
            close[close] = ~self._sees(box, W[near[close]], scales)
            near = near[~close]
        return near

    def _sees(self, box: Box, W: Array, scales: Array) -> Mask:
        squared = squared_distances(box, W, scales)
        seen = np.asarray(squared <= self.squared)
        if self.key < 1.0:
            at = np.flatnonzero(squared == self.squared)
            seen[at] = row_keys(W[at]) <= self.key
        return np.asarray(seen | box.contains(W))


def nearby(box: Box, W: Array, scales: Array, squared: float) -> Indices:
    """Positions of all rows up to a squared distance from a box, and perhaps of some a little farther off."""
    if compiled.library is None or not box.sides:
        return np.flatnonzero(squared_distances(box, W, scales) <= squared)
    near = _near(box, np.ascontiguousarray(W), scales, squared)
    return np.where(near < 0, -1 - near, near)


def _near(box: Box, W: Array, scales: Array, squared: float) -> Indices:
    """The same from the compiled library: a position i is −1 − i where rounding could decide about the row."""
    assert compiled.library is not None
    axes, sides = _sides(box)
    lengths, found = np.ascontiguousarray(scales, dtype=np.float64), np.empty(W.shape[0], dtype=np.int64)
    arrays = (axes.ctypes.data, sides.ctypes.data, lengths.ctypes.data)
    count = compiled.library.near_box(W.ctypes.data, *W.shape, axes.size, *arrays, squared, found.ctypes.data)
    return np.asarray(found[:count])


@lru_cache(maxsize=8192)  # a region that lives is asked again and again
def _sides(box: Box) -> tuple[NDArray[np.int64], Array]:
    """Axes of the sides; and of each its lower and upper limit."""
    return (
        np.array([axis for axis, _, _ in box.sides], dtype=np.int64),
        np.array([limits for _, *limits in box.sides], dtype=np.float64),
    )


def squared_distances(box: Box, W: Array, scales: Array) -> Array:
    """Squared distance of each row from a box, in the metric; zero inside."""
    squared = np.zeros(W.shape[0])
    for axis, low, high in box.sides:
        values = W[:, axis]
        gap = np.maximum(np.maximum(low - values, values - high), 0.0)
        gap /= scales[axis]
        squared += np.square(gap, out=gap)
    return squared


def row_keys(W: Array) -> Array:
    """A number between 0 and 1 for each row, as good as random, that depends on its values alone."""
    bits = np.ascontiguousarray(W).view(np.uint64)
    mixed = np.full(W.shape[0], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(W.shape[1]):
        mixed = (mixed ^ bits[:, j]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def nearest(squared: Array, W: Array, wanted: int) -> tuple[Indices, Reach]:
    """Positions of the ``wanted`` rows with the smallest squared distances, nearest first, and how far that reaches.

    Among equal distances, keys decide. Rows that are equal go together, so there may be up to a tenth more, or fewer.
    If there are fewer rows than wanted, all of them are within reach.
    """
    if squared.size <= wanted:
        return np.argsort(squared, kind="stable"), Reach(np.inf)
    farthest = float(np.partition(squared, wanted - 1)[wanted - 1]) if wanted else -1.0
    close = np.flatnonzero(squared <= farthest)
    reach = Reach(farthest)
    if close.size > wanted:
        at = close[squared[close] == farthest]
        keys = row_keys(W[at])
        n_missing = wanted - (close.size - at.size)
        last = float(np.partition(keys, n_missing - 1)[n_missing - 1])
        if int((keys <= last).sum()) > n_missing + _EXCESS * wanted:  # rows that are equal go together: none of them
            last = float(np.max(keys[keys < last], initial=-1.0))
        reach = Reach(farthest, last)
        close = np.concatenate([close[squared[close] < farthest], at[keys <= reach.key]])
    return close[np.argsort(squared[close], kind="stable")], reach


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
        self._X, self._own, self._scales, self._share, self._most = X, rows, scales, share, most
        occupied = [rows[tile] for tile in tiles if rows[tile].size]
        self._order = np.concatenate(occupied) if occupied else np.empty(0, dtype=np.intp)
        self._columns = np.ascontiguousarray(X[self._order].T)  # tile by tile, axis by axis
        sizes = np.array([inside.size for inside in occupied], dtype=np.intp)
        self._stops = np.cumsum(sizes)
        self._starts: Indices = self._stops - sizes
        self._low = np.minimum.reduceat(self._columns, self._starts, axis=1) if occupied else self._columns
        self._high = np.maximum.reduceat(self._columns, self._starts, axis=1) if occupied else self._columns
        # by box, as every kernel and output asks for the same ones
        self._found: dict[Box, tuple[Indices, Reach]] = {}

    def __call__(self, box: Box) -> Indices:
        """Indices of the context rows of a box, nearest first."""
        return self._searched(box)[0]

    def reach(self, box: Box) -> Reach:
        """How far from a box its context rows reach."""
        return self._searched(box)[1]

    def _searched(self, box: Box) -> tuple[Indices, Reach]:
        if box not in self._found:
            self._found[box] = self._nearest(box)
        return self._found[box]

    def _nearest(self, box: Box) -> tuple[Indices, Reach]:
        wanted = round(self._share * self._own[box].size)
        wanted = wanted if self._most is None else min(wanted, self._most)
        if wanted == 0 or not box.sides:
            return np.empty(0, dtype=np.intp), Reach(-1.0)
        bounds = self._squared_gaps(box, self._low, self._high)
        radius = self._squared_radius(box, bounds, wanted)
        near = np.flatnonzero(bounds <= radius)
        found, distances = self._outside(box, near[np.argsort(bounds[near], kind="stable")], radius)
        chosen, reach = nearest(distances, self._X[found], wanted)
        if reach.squared == np.inf > radius:  # as many as wanted within the radius, but not all there are
            reach = Reach(float(distances.max()))
        return found[chosen], reach

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
