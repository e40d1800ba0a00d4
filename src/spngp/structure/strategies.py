"""Ways to cut the input space: each turns rows into a region graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from spngp._typing import Array, Indices
from spngp.network import Box
from spngp.structure.regions import Cut, Region, grow


class Strategy(Protocol):
    """Turns rows into a region graph; random choices come from the generator only."""

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows."""


@dataclass(frozen=True)
class Compact:
    """A k-d tree in the kernel's metric: cut the widest side, in units of the length-scales, at the median.

    Parameters
    ----------
    max_leaf_size : int
        Regions with more rows are cut.
    length_scales : sequence of float, optional
        One per input; all one by default.
    n_partitions : int
        Alternative cuts of every region: along the next widest sides and, where inputs are few, at other quantiles of
        the widest. The number of regions grows as a power of it.
    whole_size : int
        A set with more rows than ``max_leaf_size`` but no more than this is cheap enough to be offered uncut, and cut
        once along every input: the evidence decides.
    """

    max_leaf_size: int
    length_scales: Sequence[float] | None = None
    n_partitions: int = 1
    whole_size: int = 0

    # a cut that leaves a part smaller than this share is taken only if no axis offers a better one
    _SMALLEST_PART = 0.2

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows; no random choice is made."""
        scales = np.ones(X.shape[1]) if self.length_scales is None else np.asarray(self.length_scales, dtype=float)
        small = X.shape[0] <= self.whole_size

        def propose(box: Box, rows: Indices) -> list[Cut]:
            if rows.size <= self.max_leaf_size:
                return []
            n_cuts = X.shape[1] if small and not box.sides else self.n_partitions
            inside = X[rows]
            widths = np.ptp(inside, axis=0) / scales
            order = [int(axis) for axis in np.argsort(-widths, kind="stable") if widths[axis] > 0]
            cuts = self._cuts(inside, order, [0.5])
            if len(cuts) < self.n_partitions:  # few inputs: other positions along the widest
                spread = np.arange(1, self.n_partitions + 1) / (self.n_partitions + 1)
                others = sorted(spread[spread != 0.5], key=lambda level: abs(level - 0.5))
                cuts += [cut for cut in self._cuts(inside, order[:1], others) if cut not in cuts]
            return cuts[:n_cuts]

        root = grow(X, propose)
        return replace(root, whole=True) if small and root.partitions else root

    def _cuts(self, inside: Array, order: Sequence[int], levels: Sequence[float]) -> list[Cut]:
        """Cuts by preference: widest axes first, lopsided cuts last."""
        found = [(axis, *cut_between_values(inside[:, axis], level)) for axis in order for level in levels]
        found.sort(key=lambda cut: cut[2] < min(self._SMALLEST_PART, 1.0), reverse=False)
        return [Cut(axis, (at,)) for axis, at, _ in found]


def cut_between_values(values: Array, level: float) -> tuple[float, float]:
    """A position between two different values, nearest to a quantile, and the share of the smaller side.

    Equal values are never separated, so rows seen later with one of these values go the same way.
    """
    ordered = np.sort(values)
    n = ordered.size
    ends = np.flatnonzero(np.diff(ordered) > 0)  # a cut after position i separates
    end = int(ends[np.argmin(np.abs(ends + 1 - level * n))])
    low, high = float(ordered[end]), float(ordered[end + 1])
    middle = low + 0.5 * (high - low)
    at = middle if low <= middle < high else low
    return at, min(end + 1, n - end - 1) / n


@dataclass(frozen=True)
class RandomAxes:
    """The paper's Algorithm 1: a random axis for every region, and a cut at every multiple of a spacing along it.

    Parameters
    ----------
    max_leaf_size : int
        Regions with more rows are cut (the paper's O).
    spacing : float or sequence of float
        Distance δ between cut positions along each axis, in the units of X. Positions are multiples of δ counted from
        the smallest value of that axis, and lie strictly inside the region.
    """

    max_leaf_size: int
    spacing: float | Sequence[float]

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows."""
        lowest, highest = X.min(axis=0), X.max(axis=0)
        spacing = np.broadcast_to(np.asarray(self.spacing, dtype=float), (X.shape[1],))
        if not (spacing > 0).all():
            raise ValueError(f"spacing must be > 0, got {self.spacing!r}")

        def positions(box: Box, axis: int) -> list[float]:
            low, high = box.side(axis)
            low, high = max(low, float(lowest[axis])), min(high, float(highest[axis]))
            count = math.ceil((highest[axis] - lowest[axis]) / spacing[axis])
            grid = [float(lowest[axis] + k * spacing[axis]) for k in range(1, count)]
            return [at for at in grid if low < at < high]

        def propose(box: Box, rows: Indices) -> list[Cut]:
            if rows.size <= self.max_leaf_size:
                return []
            for axis in rng.permutation(X.shape[1]):  # the first that can be cut
                cuts = [Cut(int(axis), (at,)) for at in positions(box, int(axis))]
                if cuts:
                    return cuts
            return []

        return grow(X, propose)


@dataclass(frozen=True)
class EqualWidth:
    """One partition of every region into sub-regions of equal width along a random axis, to a given depth.

    Parameters
    ----------
    max_leaf_size : int
        Regions with more rows are cut.
    n_parts : int
        Sub-regions per partition (the paper's experiments use 4).
    depth : int, optional
        How often a row's region is cut at most; no limit by default.
    n_offsets : int
        Alternative partitions under the root, their cuts shifted against each other by equal shares of a width.
    """

    max_leaf_size: int
    n_parts: int = 4
    depth: int | None = None
    n_offsets: int = 1

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows."""
        lowest, highest = X.min(axis=0), X.max(axis=0)

        def propose(box: Box, rows: Indices) -> list[Cut]:
            level = sum((low > -math.inf) + (high < math.inf) for _, low, high in box.sides)
            if rows.size <= self.max_leaf_size or (self.depth is not None and level > 0 and level >= self.depth):
                return []
            for axis in rng.permutation(X.shape[1]):
                low, high = box.side(int(axis))
                low, high = max(low, float(lowest[axis])), min(high, float(highest[axis]))
                width = (high - low) / self.n_parts
                inner = low + width * np.arange(1, self.n_parts)
                if width > 0 and (np.diff([low, *inner, high]) > 0).all():
                    shifts = np.arange(self.n_offsets) / self.n_offsets if not box.sides else np.zeros(1)
                    return [Cut(int(axis), _inside(inner + shift * width, high)) for shift in shifts]
            return []

        return grow(X, propose)


def _inside(positions: Array, high: float) -> tuple[float, ...]:
    return tuple(float(at) for at in positions if at < high)
