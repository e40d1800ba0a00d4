"""Cells: boxes that tile the space and hold many regions each, as units of work and of storage for large sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.network import Node, Product, Split
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
        return _tree(axes, at, children)

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


def regions_of(network: Node) -> tuple[CellTree, list[Node]]:
    """A network apart: the cuts that all its outputs share, and the network of each region between them.

    Regions have the order of leaves in the network.
    """
    roots = network.children if isinstance(network, Product) else (network,)
    axes: list[int] = []
    at: list[float] = []
    children: list[list[int]] = []
    regions: list[Node] = []
    stack: list[tuple[tuple[Node, ...], int, int]] = [(tuple(roots), -1, 0)]  # nodes, the cut above, on which side
    while stack:
        nodes, above, side = stack.pop()
        first = nodes[0]
        number = len(axes) if isinstance(first, Split) else -1 - len(regions)
        if above >= 0:
            children[above][side] = number
        if not isinstance(first, Split):
            regions.append(first if len(nodes) == 1 else Product(nodes))
            continue
        axes.append(first.axis)
        at += first.at
        children.append([0, 0])
        stack += [(tuple(node.children[i] for node in nodes), number, i) for i in range(2)]
    return _tree(axes, at, children), regions


def _tree(axes: list[int], at: list[float], children: list[list[int]]) -> CellTree:
    below = np.array(children, dtype=np.intp).reshape(-1, 2)
    return CellTree(np.array(axes, dtype=np.intp), np.array(at, dtype=np.float64), below)
