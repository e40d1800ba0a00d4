"""Context rows: what a leaf sees beyond its border when it predicts (SPN-GP*)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._typing import Array, Indices
from spngp.network import Box
from spngp.structure.regions import Region


class NearestContext:
    """The rows nearest to a box from outside, in the kernel's metric: a share of the number of rows inside.

    Rows are looked up region by region, nearest first, and the search ends when no row of the next region can be near
    enough; the result is exact.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All rows.
    regions : sequence of Region
        Regions without overlap that cover all rows: where to look.
    scales : ndarray of shape (d,)
        Length-scales of the metric.
    share : float
        How many context rows per row inside.
    """

    def __init__(self, X: Array, regions: Sequence[Region], scales: Array, share: float) -> None:
        self._Z = X / scales
        self._scales, self._share = scales, share
        filled = [region for region in regions if region.rows.size]
        self._rows = [region.rows for region in filled]
        self._low = np.array([self._Z[rows].min(axis=0) for rows in self._rows])
        self._high = np.array([self._Z[rows].max(axis=0) for rows in self._rows])
        self.reach: dict[Box, float] = {}

    def __call__(self, box: Box, own: Indices) -> Indices:
        """Indices of the context rows of a box, given the rows inside it, nearest first."""
        wanted = round(self._share * own.size)
        if wanted == 0 or not box.sides:
            return own[:0]
        low, high = self._limits(box)
        gaps = np.maximum(np.maximum(low - self._high, self._low - high), 0.0)
        order = np.argsort(np.einsum("ij,ij->i", gaps, gaps), kind="stable")
        bounds = np.einsum("ij,ij->i", gaps[order], gaps[order])
        found, distances = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        count, farthest = 0, np.inf
        for position, bound in zip(order, bounds, strict=True):
            if count >= wanted and bound > farthest:
                break
            rows = self._rows[position]
            squared = self._squared_distances(rows, low, high)
            keep = (squared > 0) & (squared <= farthest)
            found.append(rows[keep])
            distances.append(squared[keep])
            count += int(keep.sum())
            if count >= wanted:
                rows, squared = np.concatenate(found), np.concatenate(distances)
                nearest = np.argsort(squared, kind="stable")[:wanted]
                found, distances, count = [rows[nearest]], [squared[nearest]], wanted
                farthest = float(squared[nearest[-1]])
        rows, squared = np.concatenate(found), np.concatenate(distances)
        self.reach[box] = float(squared.max(initial=0.0))
        return rows[np.argsort(squared, kind="stable")]

    def _limits(self, box: Box) -> tuple[Array, Array]:
        low, high = np.full(self._scales.size, -np.inf), np.full(self._scales.size, np.inf)
        for axis, start, stop in box.sides:
            low[axis], high[axis] = start / self._scales[axis], stop / self._scales[axis]
        return low, high

    def _squared_distances(self, rows: Indices, low: Array, high: Array) -> Array:
        # a row exactly on the lower border is outside, at distance zero: count it as just outside
        Z = self._Z[rows]
        gap = np.maximum(np.maximum(low - Z, Z - high), 0.0)
        squared = np.einsum("ij,ij->i", gap, gap)
        outside = ((low >= Z) | (high < Z)).any(axis=1)
        return np.where(outside, np.maximum(squared, np.finfo(np.float64).tiny), 0.0)
