"""Ways to cut the input space: each turns rows into a region graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from spngp._support.checks import as_count
from spngp._support.types import Array, Indices
from spngp.network import Box
from spngp.structure.regions import MOST_CUTS, Cut, Region, grow, too_many_regions


class Strategy(Protocol):
    """Turns rows into a region graph; random choices come from the generator only."""

    @property
    def max_leaf_size(self) -> int:
        """Regions with more rows are cut."""

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows."""

    def in_metric(self, length_scales: Array, units: Array) -> Strategy:
        """The same strategy for inputs divided by ``units``; ``length_scales`` are those learnt from such inputs."""


@dataclass(frozen=True)
class Compact:
    """A k-d tree in the kernel's metric: cut the widest side, in units of the length-scales, at the median.

    Parameters
    ----------
    max_leaf_size : int
        Regions with more rows are cut.
    length_scales : sequence of float, optional
        One per input, in the units of X. By default all one, or in an estimator those that its kernels learn.
    n_partitions : int
        Alternative cuts of every region: along the next widest sides and, if there are fewer inputs than this, at other
        quantiles of the widest. The number of regions grows as a power of it.
    whole_size : int
        A set of up to this many rows, but more than ``max_leaf_size``, is modelled uncut as well, and with one cut
        along every input; the evidence weighs these alternatives.
    """

    max_leaf_size: int
    length_scales: Sequence[float] | None = None
    n_partitions: int = 1
    whole_size: int = 0

    def in_metric(self, length_scales: Array, units: Array) -> Compact:
        """With the learnt length-scales, unless ``length_scales`` were given."""
        if self.length_scales is None:
            return replace(self, length_scales=length_scales.tolist())
        given = np.asarray(self.length_scales, dtype=float)
        return replace(self, length_scales=(given / units).tolist()) if given.shape == units.shape else self

    # share of the rows: a cut whose smaller part has less is taken only if no axis offers a better one
    _SMALLEST_PART = 0.2

    def regions(
        self,
        X: Array,
        rng: np.random.Generator,
        first: Mapping[Box, Cut] | None = None,
        whole: Box = Box.EVERYWHERE,
    ) -> Region:
        """The region graph of these rows, all in the box ``whole``; no random choice is made.

        Boxes in ``first`` are cut as it says.
        """
        scales = np.ones(X.shape[1]) if self.length_scales is None else np.asarray(self.length_scales, dtype=float)
        if scales.shape != (X.shape[1],) or not (scales > 0).all():
            raise ValueError(
                f"length_scales must be {X.shape[1]} numbers > 0, one per input, got {self.length_scales!r}"
            )
        small = X.shape[0] <= self.whole_size

        def propose(box: Box, rows: Indices, depth: int) -> list[Cut]:
            if first is not None and box in first:
                return [first[box]]
            if rows.size <= self.max_leaf_size:
                return []
            n_cuts = max(X.shape[1], self.n_partitions) if small and depth == 0 else self.n_partitions
            inside = np.take(X, rows, axis=0)
            widths = _extents(inside) / scales
            order = [int(axis) for axis in np.argsort(-widths, kind="stable") if widths[axis] > 0]
            cuts = self._cuts(inside, order, [0.5], n_cuts)
            if len(cuts) < self.n_partitions:  # too few inputs: other quantiles of the widest side
                spread = np.arange(1, self.n_partitions + 1) / (self.n_partitions + 1)
                levels = sorted(spread[spread != 0.5], key=lambda level: abs(level - 0.5))
                cuts += [cut for cut in self._cuts(inside, order[:1], levels, n_cuts) if cut not in cuts]
            return cuts[:n_cuts]

        root = grow(X, propose, whole)
        return replace(root, whole=True) if small and root.partitions else root

    def _cuts(self, inside: Array, order: Sequence[int], levels: Sequence[float], wanted: int) -> list[Cut]:
        """Up to ``wanted`` fair cuts, widest axes first; if there are fewer, lopsided cuts follow them."""
        fair: list[Cut] = []
        lopsided: list[Cut] = []
        for axis in order:
            for level in levels:
                at, smaller_side = cut_between_values(inside[:, axis], level)
                (lopsided if smaller_side < self._SMALLEST_PART else fair).append(Cut(axis, (at,)))
                if len(fair) == wanted:
                    return fair
        return fair + lopsided


def _extents(rows: Array) -> Array:
    """Largest minus smallest value of each column. 64 rows are laid side by side, as NumPy is faster on long rows."""
    n, d = rows.shape
    joined = 64
    whole = rows[: n - n % joined].reshape(-1, joined * d)
    parts = [rows[n - n % joined :]]
    if whole.size:
        parts += [whole.min(axis=0).reshape(joined, d), whole.max(axis=0).reshape(joined, d)]
    return np.asarray(np.ptp(np.concatenate(parts), axis=0))


def cut_between_values(values: Array, level: float) -> tuple[float, float]:
    """The cut between two different values nearest to the quantile ``level``, and the share of the smaller side.

    Equal values are never separated, so rows seen later with one of these values go the same way.
    """
    ordered = np.sort(values)
    n = ordered.size
    ends = np.flatnonzero(np.diff(ordered) > 0)  # after these positions the value changes
    end = int(ends[np.argmin(np.abs(ends + 1 - level * n))])
    low, high = float(ordered[end]), float(ordered[end + 1])
    middle = low + 0.5 * (high - low)
    at = middle if low <= middle < high else low
    return at, min(end + 1, n - end - 1) / n


@dataclass(frozen=True)
class RandomAxes:
    """The paper's Algorithm 1: a random axis for every region, and alternative cuts at many positions along it.

    Parameters
    ----------
    max_leaf_size : int
        Regions with more rows are cut (the paper's O).
    spacing : float or sequence of float, optional
        Distance δ between cut positions along each axis, in the units of X. Positions are multiples of δ counted from
        the smallest value of that axis, and lie strictly inside the region. The number of regions grows quickly as δ
        falls.
    n_partitions : int
        Without ``spacing``: the number of cut positions in every region, evenly spaced between its smallest and largest
        value.
    """

    max_leaf_size: int
    spacing: float | Sequence[float] | None = None
    n_partitions: int = 1

    def __post_init__(self) -> None:
        if self.spacing is not None and not (np.asarray(self.spacing, dtype=float) > 0).all():
            raise ValueError(f"spacing must be > 0, got {self.spacing!r}")
        as_count(self.n_partitions, "n_partitions", 1)

    def in_metric(self, length_scales: Array, units: Array) -> RandomAxes:
        """With the spacing, which is in the units of X, divided by ``units``."""
        if self.spacing is None or np.asarray(self.spacing).shape not in ((), units.shape):
            return self
        return replace(self, spacing=(np.asarray(self.spacing, dtype=float) / units).tolist())

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows."""
        lowest = X.min(axis=0)
        if np.asarray(self.spacing).shape not in ((), (X.shape[1],)):
            raise ValueError(f"spacing must be one number or one per input ({X.shape[1]}), got {self.spacing!r}")

        def positions(values: Array, axis: int) -> Array:
            low, high = float(values.min()), float(values.max())
            if self.spacing is None:
                if self.n_partitions > MOST_CUTS:
                    raise too_many_regions(X.shape[0], self.n_partitions)
                grid = low + (high - low) * np.arange(1, self.n_partitions + 1) / (self.n_partitions + 1)
            else:
                spacing = float(np.broadcast_to(np.asarray(self.spacing, dtype=float), (X.shape[1],))[axis])
                first, last = math.floor((low - lowest[axis]) / spacing), math.ceil((high - lowest[axis]) / spacing)
                if last - first > MOST_CUTS:
                    raise too_many_regions(X.shape[0], last - first)
                grid = lowest[axis] + spacing * np.arange(max(first, 1), last + 1)
            # both sides of a cut must hold rows, or regions would be cut without end
            return np.unique(grid[(grid >= low) & (grid < high)])

        def propose(box: Box, rows: Indices, depth: int) -> list[Cut]:
            if rows.size <= self.max_leaf_size:
                return []
            for axis in rng.permutation(X.shape[1]):  # the first of them that can be cut
                cuts = [Cut(int(axis), (float(at),)) for at in positions(X[rows, axis], int(axis))]
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
        Most cuts between the root and a leaf region; no limit by default.
    n_partitions : int
        Alternative partitions of the root; the cuts of each lie ``1/n_partitions`` of a width above the last one's.
    """

    max_leaf_size: int
    n_parts: int = 4
    depth: int | None = None
    n_partitions: int = 1

    def __post_init__(self) -> None:
        as_count(self.n_parts, "n_parts", 2)
        as_count(self.n_partitions, "n_partitions", 1)
        if self.depth is not None:
            as_count(self.depth, "depth", 0)

    def in_metric(self, length_scales: Array, units: Array) -> EqualWidth:
        """Itself: the widths are shares of each region's width, so they have no units."""
        return self

    def regions(self, X: Array, rng: np.random.Generator) -> Region:
        """The region graph of these rows."""

        def propose(box: Box, rows: Indices, depth: int) -> list[Cut]:
            if rows.size <= self.max_leaf_size or depth == self.depth:
                return []
            for axis in rng.permutation(X.shape[1]):  # the first of them that can be cut
                low, high = float(X[rows, axis].min()), float(X[rows, axis].max())
                width = (high - low) / self.n_parts
                inner = low + width * np.arange(1, self.n_parts)
                if (np.diff([low, *inner, high]) > 0).all():
                    shifts = np.arange(self.n_partitions if depth == 0 else 1) / self.n_partitions
                    return [Cut(int(axis), tuple((inner + shift * width).tolist())) for shift in shifts]
            return []

        return grow(X, propose)
