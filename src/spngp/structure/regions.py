"""Region graphs: the boxes that a network will be built over, and the rows in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spngp._typing import Array, Indices
from spngp.network import Box


@dataclass(frozen=True, eq=False)
class Partition:
    """One way to cut a region along an axis; ``parts`` run from low to high."""

    axis: int
    at: tuple[float, ...]
    parts: tuple[Region, ...]


@dataclass(frozen=True, eq=False)
class Region:
    """A box, the rows inside it, and the alternative ways to cut it (none: a leaf region).

    ``whole`` marks a region that is offered uncut as well as cut. ``weights`` are the prior probabilities of the
    alternatives, the whole first if it is offered and then the partitions; equal ones by default.
    """

    box: Box
    rows: Indices
    partitions: tuple[Partition, ...] = ()
    whole: bool = False
    weights: tuple[float, ...] | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether experts stand here."""
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


def tiling(root: Region) -> list[Region]:
    """Regions without overlap that cover all rows: following the first partition of each to the end."""
    tiles, stack = [], [root]
    while stack:
        region = stack.pop()
        if region.partitions:
            stack.extend(reversed(region.partitions[0].parts))
        else:
            tiles.append(region)
    return tiles


@dataclass(frozen=True)
class Cut:
    """A proposal to cut along an axis at ascending positions."""

    axis: int
    at: tuple[float, ...]


Proposer: TypeAlias = Callable[[Box, Indices, int], list[Cut]]


def grow(X: Array, propose: Proposer) -> Region:
    """Grow a region graph from the whole space.

    ``propose(box, rows, depth)`` lists the cuts of a region so many cuts below the root (none: a leaf region).

    Regions with equal boxes are one region. Parents are grown before their parts, breadth first, so a strategy that
    draws from a generator draws in a fixed order.
    """
    columns = np.ascontiguousarray(X.T)
    boxes: dict[Box, Indices] = {Box(): np.arange(X.shape[0])}
    cuts: dict[Box, list[Cut]] = {}
    depth = {Box(): 0}
    queue = [Box()]
    for box in queue:  # grows while it is walked
        rows = boxes[box]
        cuts[box] = propose(box, rows, depth[box])
        for cut in cuts[box]:
            side = np.searchsorted(cut.at, columns[cut.axis][rows], side="left")
            for i, part in enumerate(box.cut(cut.axis, cut.at)):
                if part not in boxes:
                    boxes[part], depth[part] = rows[side == i], depth[box] + 1
                    queue.append(part)
    regions: dict[Box, Region] = {}
    stack = [Box()]
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
    return regions[Box()]
