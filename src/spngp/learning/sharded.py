"""What was learnt from rows that are elsewhere: a model whose regions lie in shards, one for each cell of the space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.learning.surprises import Surprises
from spngp.network import Leaf, Node
from spngp.network.rescaling import in_units
from spngp.network.units import Units
from spngp.noise import NoiseShape
from spngp.structure.cells import CellTree


class OpenCell(Protocol):
    """A shard that has been opened: the regions of a cell, each with a network."""

    @property
    def tree(self) -> CellTree:
        """The cuts between the regions."""

    def network(self, region: int) -> Node:
        """The network of a region, in the units of learning."""


@runtime_checkable
class Shelf(Protocol):
    """Where shards are: a place that opens them one by one and keeps some of them open."""

    def cell(self, cell: int) -> OpenCell:
        """The shard of a cell."""


class Group(NamedTuple):
    """Positions of rows in one region of one cell."""

    cell: int
    region: int
    rows: Indices


@dataclass(frozen=True, kw_only=True)
class Sharded:
    """A posterior network in shards: a tree of cuts, and for each of its cells a network in a file.

    Attributes
    ----------
    units : Units
        The units that learning worked in; cuts and shards are in these units.
    axes, at, children : ndarray
        The tree of cells, see :class:`spngp.structure.cells.CellTree`.
    rows : ndarray
        Rows learnt from, by cell.
    sizes : ndarray
        Bytes of each shard.
    log_evidence : float
        In the units of the user.
    noise_shapes : list of NoiseShape
        One per output.
    surprise_variances : ndarray, optional
        For each output, the variance of a surprise; None if there are none.
    counts : ndarray
        How many values each output has.
    in_doubt : ndarray of shape (count, 2)
        Row and output of every output in doubt.
    donors : ndarray
        Some rows of inputs, in the units of the user, for rows that lack inputs.
    cut_axes : ndarray
        Inputs along which regions are cut.
    n_regions, n_experts : int
        Number of leaf regions, and of experts in them.
    shelf : Shelf, optional
        Where the shards are; None in a file.
    """

    units: Units
    axes: Indices
    at: Array
    children: Indices
    rows: Indices
    sizes: Indices
    log_evidence: float
    noise_shapes: list[NoiseShape]
    surprise_variances: Array | None
    counts: Indices
    in_doubt: Indices
    donors: Array
    cut_axes: Indices
    n_regions: int
    n_experts: int
    shelf: Shelf | None = None

    @property
    def tree(self) -> CellTree:
        """The cells."""
        return CellTree(self.axes, self.at, self.children)

    @property
    def n_rows(self) -> int:
        """Rows learnt from."""
        return int(self.rows.sum())

    def by_region(self, X: Array) -> list[Group]:
        """The rows of X, in the units of the user, in groups by region."""
        W = self.units.inputs.apply(X)
        groups = []
        for cell, rows in _together(self.tree.cell_of(W)):
            inner = self._shelf().cell(cell).tree.cell_of(W[rows])
            groups += [Group(cell, region, rows[own]) for region, own in _together(inner)]
        return groups

    def regions(self) -> Iterator[tuple[int, int, Node]]:
        """Every region with its cell and its network, one after the other."""
        for cell in range(self.rows.size):
            for region in range(self._shelf().cell(cell).tree.n_cells):
                yield cell, region, self.network_of(cell, region)

    def network_of(self, cell: int, region: int) -> Node:
        """The network of a region in the units of the user, with the shape of the noise."""
        return self._in_units(self._shelf().cell(cell).network(region))

    def box_of(self, cell: int, region: int) -> Box:
        """The box of a region, in the units of the user."""
        inner = self._shelf().cell(cell).tree.boxes()[region]
        inputs, box = self.units.inputs, inner.intersection(self.tree.boxes()[cell])
        return Box(tuple((j, inputs.invert_cut(j, low), inputs.invert_cut(j, high)) for j, low, high in box.sides))

    def _shelf(self) -> Shelf:
        if self.shelf is None:
            raise ValueError("a model in shards must be opened by its directory; load the directory, not a file in it")
        return self.shelf

    def _in_units(self, network: Node) -> Node:
        surprises = Surprises(self.counts, self.surprise_variances)

        def shape_of(leaf: Leaf) -> NoiseShape:
            return surprises.added_to(self.noise_shapes[leaf.output], leaf.output, leaf.noise_variance)

        return in_units(network, self.units, shape_of)


def _together(keys: Indices) -> list[tuple[int, Indices]]:
    """Positions of equal keys, key by key."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    return [(int(keys[rows[0]]), rows) for rows in np.split(order, starts[1:])] if order.size else []
