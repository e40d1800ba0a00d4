"""Halos: the rows around a cell that its leaves may see. First how far each leaf can see at most, then who is there.

A leaf sees a number of rows, the nearest ones. As many rows of its own cell lie within some distance of its box; rows
of other cells that are farther off cannot be among the nearest. So the search is exact, and few rows travel.
"""

from __future__ import annotations

import itertools

import numpy as np

from spngp._support.types import Array, Indices, Mask
from spngp.box import Box
from spngp.outofcore.cells import own_rows
from spngp.outofcore.spill import write_groups
from spngp.outofcore.work import Frame, LeafTable, Summary, Work
from spngp.structure.context import nearby, squared_distances

_PAIRS = 4_000_000  # of a leaf's rows and a leaf that are compared at once: 32 MB an array
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
    groups, low, high = _groups(W, leaves, np.flatnonzero(leaves.cell == cell))
    starts = np.searchsorted(leaves.cell, np.arange(frame.tree.n_cells + 1))  # leaves stand in the order of cells
    chosen: list[Indices] = []
    at_once = max(1, _PAIRS * frame.tree.n_cells // (len(groups) * leaves.cell.size))  # cells
    for first in range(0, frame.tree.n_cells, at_once):
        ends = starts[first : first + at_once + 1]
        near = _near_leaves(low, high, leaves, scales, ends[0], ends[-1])
        for target, (start, stop) in enumerate(itertools.pairwise(ends), first):
            theirs = near[:, start - ends[0] : stop - ends[0]] if target != cell else near[:, :0]
            seen = np.zeros(W.shape[0], dtype=bool)
            for j in np.flatnonzero(theirs.any(axis=0)):
                some = np.concatenate([groups[i] for i in np.flatnonzero(theirs[:, j])])
                some = some[~seen[some]]
                box = _box(leaves.low[start + j], leaves.high[start + j])
                seen[some[nearby(box, W[some], scales, float(leaves.squared_reach[start + j]))]] = True
            chosen.append(np.flatnonzero(seen))
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


def _groups(W: Array, leaves: LeafTable, own: Indices) -> tuple[list[Indices], Array, Array]:
    """Rows of each leaf of a cell, and the corners of the box that they fill."""
    groups = [np.flatnonzero(_box(leaves.low[i], leaves.high[i]).contains(W)) for i in own]
    groups = [rows for rows in groups if rows.size]
    low = np.array([W[rows].min(axis=0) for rows in groups])
    high = np.array([W[rows].max(axis=0) for rows in groups])
    return groups, low, high


def _near_leaves(low: Array, high: Array, leaves: LeafTable, scales: Array, first: int, last: int) -> Mask:
    """Which of some leaves may see rows in which boxes, shape (boxes, leaves)."""
    squared = np.zeros((low.shape[0], last - first))
    for axis in range(low.shape[1]):
        below = leaves.low[first:last, axis] - high[:, axis, np.newaxis]
        above = low[:, axis, np.newaxis] - leaves.high[first:last, axis]
        squared += np.square(np.maximum(np.maximum(below, above), 0.0) / scales[axis])
    return np.asarray(squared <= leaves.squared_reach[first:last])
