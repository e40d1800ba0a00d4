"""Region graphs: boxes, the rows in each, and the alternative ways to cut them. Networks are built over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network import Box


@dataclass(frozen=True, eq=False)
class Partition:
    """One way to cut a region along an axis; ``parts`` run from low to high."""

    axis: int
    at: tuple[float, ...]
    parts: tuple[Region, ...]


@dataclass(frozen=True, eq=False)
class Region:
    """A box, the rows inside it, and the alternative ways to cut it.

    Without partitions it is a leaf region. ``whole`` marks a region that is both: experts on all of its rows are one
    more alternative besides its partitions. ``weights`` are the prior probabilities of the alternatives, the whole
    first if it is one and then the partitions; equal ones by default. ``smooth`` marks one whose experts have the noise
    profile of all rows.
    """

    box: Box
    rows: Indices
    partitions: tuple[Partition, ...] = ()
    whole: bool = False
    weights: tuple[float, ...] | None = None
    smooth: bool = False

    @property
    def is_leaf(self) -> bool:
        """Whether the region has experts of its own."""
        return self.whole or not self.partitions


def distinct_regions(root: Region) -> Iterator[Region]:
    """Every region once, parts before the regions they are part of."""
    seen: set[int] = set()
    stack: list[tuple[Region, bool]] = [(root, False)]
    while stack:
        region, expanded = stack.pop()
        if expanded:
            yield region
        elif id(region) not in seen:
            seen.add(id(region))
            stack.append((region, True))
            stack.extend((part, False) for partition in region.partitions for part in reversed(partition.parts))


def leaf_regions(root: Region) -> list[Region]:
    """The regions that experts are needed for."""
    return [region for region in distinct_regions(root) if region.is_leaf]


def tiling(root: Region, size: int = 0) -> list[Region]:
    """Regions that cover all rows without overlap, each cut by its first partition if it has more than ``size``."""
    tiles, stack = [], [root]
    while stack:
        region = stack.pop()
        if region.partitions and region.rows.size > size:
            stack.extend(reversed(region.partitions[0].parts))
        else:
            tiles.append(region)
    return tiles


@dataclass(frozen=True)
class Cut:
    """A proposal to cut along an axis at ascending positions."""

    axis: int
    at: tuple[float, ...]


# ``propose(box, rows, depth)``: the alternative cuts of a region; none for a leaf region.
Proposer: TypeAlias = Callable[[Box, Indices, int], list[Cut]]

# The size of a region graph is the sum over its regions of their rows plus 50. It may be 256 times the number of
# training rows, or a million if that is more (so each of 1,500 rows may lie in up to 667 regions). The time of a fit
# grows in proportion to the size.
_MOST_TIMES_ROWS = 256  # size per training row
_ALWAYS_ALLOWED = 1_000_000  # size
_ROWS_PER_REGION = 50  # added to the rows of each region
MOST_CUTS = _ALWAYS_ALLOWED // _ROWS_PER_REGION  # alternative cuts of one region; more are too many in any graph


def too_many_regions(n_rows: int, n_regions: int) -> ValueError:
    """The error for a region graph that is too large, with the number of its regions when it was given up."""
    return ValueError(
        f"alternative cuts make too many regions of {n_rows:,} rows, more than {n_regions:,}; "
        "lower n_partitions, widen spacing or raise max_leaf_size"
    )


def grow(X: Array, propose: Proposer, whole: Box = Box.EVERYWHERE) -> Region:
    """Grow a region graph from the whole space, or from the box that holds all rows.

    Regions with equal boxes are one region. Regions are cut breadth first, so that a strategy which draws from a
    generator draws in a fixed order. Alternative cuts multiply from level to level: the graph is refused as soon as it
    is too large (see the constants above).

    Parameters
    ----------
    X : ndarray of shape (n, d)
    propose : callable
        ``propose(box, rows, depth)`` lists the alternative cuts of a region, none for a leaf region; ``depth`` is the
        number of cuts between the region and the root.
    whole : Box
        The box of the root.
    """
    allowed = max(_ALWAYS_ALLOWED, _MOST_TIMES_ROWS * X.shape[0])
    held = 0
    columns = np.ascontiguousarray(X.T)
    boxes: dict[Box, Indices] = {whole: np.arange(X.shape[0])}
    cuts: dict[Box, list[Cut]] = {}
    depth = {whole: 0}
    queue = [whole]
    for box in queue:  # grows while it is walked
        rows = boxes[box]
        cuts[box] = propose(box, rows, depth[box])
        for cut in cuts[box]:
            side = np.searchsorted(cut.at, columns[cut.axis][rows], side="left")
            for i, part in enumerate(box.cut(cut.axis, cut.at)):
                if part not in boxes:
                    boxes[part], depth[part] = rows[side == i], depth[box] + 1
                    queue.append(part)
                    held += boxes[part].size + _ROWS_PER_REGION
            if held > allowed:
                raise too_many_regions(X.shape[0], len(boxes))
    regions: dict[Box, Region] = {}
    stack = [whole]
    while stack:  # parts before the regions that share them
        box = stack[-1]
        groups = [box.cut(cut.axis, cut.at) for cut in cuts[box]]
        missing = [part for group in groups for part in group if part not in regions]
        if missing:
            stack += missing
            continue
        stack.pop()
        partitions = tuple(
            Partition(cut.axis, cut.at, tuple(regions[part] for part in group))
            for cut, group in zip(cuts[box], groups, strict=True)
        )
        if box not in regions:
            regions[box] = Region(box, boxes[box], partitions)
    return regions[whole]
