"""Halos: the rows around a cell that its leaves may see. First how far each leaf can see at most, then who is there.

A leaf sees a number of rows, the nearest ones. As many rows of its own cell lie within some distance of its box; rows
of other cells that are farther off cannot be among the nearest. So the search is exact, and few rows travel.
"""

from __future__ import annotations

import itertools

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.outofcore.cells import own_rows
from spngp.outofcore.spill import write_groups
from spngp.outofcore.work import Frame, LeafTable, Summary, Work
from spngp.structure.context import squared_distances
from spngp.structure.grouped_rows import GroupedRows

_SLACK = 1.0 + 1e-9  # of squared distances, whose last bits depend on the order of sums


def measure_reach(work: Work, cell: int) -> Summary:
    """For each leaf of a cell, a squared distance from its box within which there are as many rows as it sees."""
    frame, leaves = work.known(), _leaves(work.known())
    scales, plan = frame.ground.tied.scales, frame.ground.plan
    W = plan.units.inputs.apply(own_rows(work, cell).X)
    most = int(frame.overlap * plan.block_size)
    found, sample = [], None
    for i in np.flatnonzero(leaves.cell == cell):
        box = _box(leaves.low[i], leaves.high[i])
        wanted = min(round(frame.overlap * int(leaves.rows[i])), most)
        reach = _distance_of(wanted, box, W, scales)
        if not np.isfinite(reach):  # a cell of few rows
            if sample is None:
                sample = np.load(work.directory / "sample.npy", allow_pickle=False)
            reach = _distance_of(wanted, box, sample, scales)
        found.append(reach * _SLACK)
    return {"squared_reach": np.array(found)}


def _distance_of(wanted: int, box: Box, W: Array, scales: Array) -> float:
    """Squared distance from the box within which so many rows outside it are; infinite if there are fewer."""
    if not wanted or not box.sides:
        return -1.0
    squared = squared_distances(box, W, scales)[~box.contains(W)]
    return float(np.partition(squared, wanted - 1)[wanted - 1]) if squared.size >= wanted else np.inf


def exchange(work: Work, cell: int) -> Summary:
    """Write the rows of a cell that leaves of other cells may see, by these cells."""
    frame, leaves, rows = work.known(), _leaves(work.known()), own_rows(work, cell)
    W, scales = frame.ground.plan.units.inputs.apply(rows.X), frame.ground.tied.scales
    own = np.flatnonzero(leaves.cell == cell)
    groups = [inside for i in own if (inside := np.flatnonzero(_box(leaves.low[i], leaves.high[i]).contains(W))).size]
    grouped, order = GroupedRows.of(W, groups), np.concatenate(groups)
    starts = np.searchsorted(leaves.cell, np.arange(frame.tree.n_cells + 1))  # leaves stand in the order of cells
    chosen: list[Indices] = []
    for target, ends in enumerate(itertools.pairwise(starts)):
        theirs = slice(*ends) if target != cell else slice(0)
        seen = grouped.near(leaves.low[theirs], leaves.high[theirs], leaves.squared_reach[theirs], scales)
        chosen.append(np.sort(order[seen]))
    counts = np.array([one.size for one in chosen])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    write_groups(work.halo(cell), rows.taken(np.concatenate(chosen)).columns(), offsets)
    return {"counts": counts}


def _leaves(frame: Frame) -> LeafTable:
    assert frame.leaves is not None
    return frame.leaves


def _box(low: Array, high: Array) -> Box:
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    return Box(tuple((int(j), float(low[j]), float(high[j])) for j in bounded))
