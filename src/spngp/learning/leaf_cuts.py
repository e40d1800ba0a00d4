"""Leaf regions of a large set that are cut once more, where their own rows say that the noise changes within them.

Cuts for size follow the mean: they are made along inputs that it changes with. A region of some hundred rows may still
hold quiet rows and noisy ones; leave-one-out residuals under the tied parameters tell them apart, by the same gain as
:mod:`spngp.learning.cut_candidates`. A cut costs the mean, whose experts then learn from fewer rows, so it must gain
much for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.learning.cut_candidates import noisy_outputs, promising, residual_sizes
from spngp.learning.paired_cuts import first_of_two
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied
from spngp.network import Box
from spngp.structure import leaf_regions
from spngp.structure.regions import Cut, Partition, Region, distinct_regions

_FEWEST = 60  # rows of a part
_LEAST_GAIN, _LEAST_GAIN_PER_ROW = 10.0, 0.05
_DEEPEST = 4  # cuts above each other
_TELLING_GAIN_PER_ROW, _LEAST_SHARE = 0.1, 0.25  # of the regions first learnt from, for leaf regions to be looked at


def noise_changes_within(tied: Tied, X: Array, Y: Array, plan: Plan) -> bool:
    """Whether of the regions that the tied parameters were learnt from, many would gain much from a cut."""
    if plan.block_size < 2 * _FEWEST:
        return False

    def is_cut(rows: Indices) -> bool:
        return bool(_cut(Region(Box(), rows), tied, X, Y, plan, _TELLING_GAIN_PER_ROW).partitions)

    found = map_leaves(is_cut, tied.sampled, plan.n_jobs, [rows.size for rows in tied.sampled])
    return sum(found) >= _LEAST_SHARE * len(found) > 0


def cut_leaves(tied: Tied, X: Array, Y: Array, plan: Plan) -> Tied:
    """The same with leaf regions cut further."""
    leaves = [region for region in leaf_regions(tied.regions) if region.rows.size <= plan.block_size]

    def cut(region: Region) -> Region:
        return _cut(region, tied, X, Y, plan)

    found = map_leaves(cut, leaves, plan.n_jobs, [region.rows.size for region in leaves])
    by_box = {leaf.box: new for leaf, new in zip(leaves, found, strict=True)}
    new = [_shared(region, by_box) for region in found]
    changed = {id(leaf): one for leaf, one in zip(leaves, new, strict=True) if one is not leaf}
    return replace(tied, regions=_with(changed, tied.regions)) if changed else tied


def _shared(region: Region, by_box: dict[Box, Region]) -> Region:
    """The region with parts that other regions with the same box are, or come to be."""
    partitions = []
    for one in region.partitions:
        parts = tuple(by_box.setdefault(part.box, _shared(part, by_box)) for part in one.parts)
        partitions.append(replace(one, parts=parts))
    return replace(region, partitions=tuple(partitions)) if partitions else region


def _cut(region: Region, tied: Tied, X: Array, Y: Array, plan: Plan, gain: float = _LEAST_GAIN_PER_ROW) -> Region:
    """A region cut in two once or more often, where that gains so much per row, or as it is."""
    rows = region.rows
    if rows.size < 2 * _FEWEST:
        return region
    known = None if plan.variances is None else plan.variances[rows]
    sizes = residual_sizes(tied, X[rows], noisy_outputs(tied, Y[rows]), known=known)
    observed = ~np.isnan(Y[rows])

    def leaves_enough(cut: Cut, inside: Indices) -> bool:
        """Whether every output that is known at all is known often enough on both sides."""
        sides = inside[X[rows[inside], cut.axis] <= cut.at[0]], inside[X[rows[inside], cut.axis] > cut.at[0]]
        counts = np.array([observed[side].sum(axis=0) for side in sides])
        return bool((counts[:, observed.any(axis=0)] >= _FEWEST).all())

    def part(box: Box, inside: Indices, depth: int) -> Region:
        least = max(_LEAST_GAIN, gain * inside.size)
        cuts = promising(X[rows[inside]], sizes[inside], least, _FEWEST) if depth < _DEEPEST else []
        if not cuts and depth + 1 < _DEEPEST:
            cuts = first_of_two(X[rows[inside]], sizes[inside], 2.0 * least, _FEWEST)
        found = [cut for cut in cuts if leaves_enough(cut, inside)]
        if not found:
            return Region(box, rows[inside])
        cut = found[0]
        below = X[rows[inside], cut.axis] <= cut.at[0]
        sides = zip(box.cut(cut.axis, cut.at), (inside[below], inside[~below]), strict=True)
        parts = tuple(part(*side, depth + 1) for side in sides)
        return Region(box, rows[inside], (Partition(cut.axis, cut.at, parts),))

    found = part(region.box, np.arange(rows.size), 0)
    return found if found.partitions else region


def _with(changed: Mapping[int, Region], root: Region) -> Region:
    """The region graph with other regions instead of some of its leaves, by their ids."""
    made = dict(changed)
    for region in distinct_regions(root):
        if id(region) in made or not region.partitions:
            continue
        partitions = tuple(
            replace(one, parts=tuple(made.get(id(part), part) for part in one.parts)) for one in region.partitions
        )
        made[id(region)] = replace(region, partitions=partitions)
    return made[id(root)]
