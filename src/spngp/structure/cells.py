"""Cells: boxes that tile the space and hold many regions each, as units of work and of storage for large sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.structure.regions import Cut, Region


@dataclass(frozen=True, eq=False)
class CellTree:
    """A tree of cuts whose ends are cells, numbered from 0; without cuts, the whole space is one cell.

    Attributes
    ----------
    axes, at : ndarray
        Axis and position of each cut. The first is the root's.
    children : ndarray of shape (cuts, 2)
        What lies below and above each cut: the number of a further cut, or −1 − c for cell c.
    """

    axes: Indices
    at: Array
    children: Indices

    @staticmethod
    def of(root: Region, most_rows: float, always: Collection[Box] = ()) -> CellTree:
        """The top of a region graph: regions of at most ``most_rows`` rows are cells, unless they are in ``always``.

        Every region must have one way to be cut at most, in two. Cells have the order of leaves in a network.
        """
        axes: list[int] = []
        at: list[float] = []
        children: list[list[int]] = []
        n_cells = 0
        stack: list[tuple[Region, int, int]] = [(root, -1, 0)]  # a region, the cut above it, and on which side
        while stack:
            region, above, side = stack.pop()
            cut = region.partitions and (region.rows.size > most_rows or region.box in always)
            number = len(axes) if cut else -1 - n_cells
            if above >= 0:
                children[above][side] = number
            if not cut:
                n_cells += 1
                continue
            (partition,) = region.partitions
            axes.append(partition.axis)
            at += partition.at
            children.append([0, 0])
            # a network is walked from its last children to its first
            stack += [(part, number, i) for i, part in enumerate(partition.parts)]
        return CellTree(np.array(axes, dtype=np.intp), np.array(at), np.array(children, dtype=np.intp).reshape(-1, 2))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.axes.size + 1

    def cell_of(self, W: Array) -> Indices:
        """The number of the cell that holds each row; a row on a cut belongs below."""
        found = np.empty(W.shape[0], dtype=np.intp)
        stack = [(0 if self.axes.size else -1, np.arange(W.shape[0]))]
        while stack:
            number, rows = stack.pop()
            if number < 0:
                found[rows] = -1 - number
            elif rows.size:
                below = W[rows, self.axes[number]] <= self.at[number]
                stack += [
                    (int(child), rows[side]) for child, side in zip(self.children[number], (below, ~below), strict=True)
                ]
        return found

    def boxes(self) -> list[Box]:
        """The box of each cell."""
        found = [Box.EVERYWHERE] * self.n_cells
        for number, box in self._walk():
            if number < 0:
                found[-1 - number] = box
        return found

    def cuts(self) -> dict[Box, Cut]:
        """All cuts by the box that each is made in, as :meth:`spngp.structure.Compact.regions` takes them."""
        return {
            box: Cut(int(self.axes[number]), (float(self.at[number]),)) for number, box in self._walk() if number >= 0
        }

    def _walk(self) -> list[tuple[int, Box]]:
        """Every cut and cell with its box."""
        walked = [(0 if self.axes.size else -1, Box.EVERYWHERE)]
        for number, box in walked:  # grows while it is walked
            if number >= 0:
                parts = box.cut(int(self.axes[number]), (float(self.at[number]),))
                walked += [(int(child), part) for child, part in zip(self.children[number], parts, strict=True)]
        return walked
