"""What was learnt from rows that are elsewhere: a model whose regions lie in shards, one for each cell of the space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from spngp._support.types import Array, Indices
from spngp.learning.surprises import Surprises
from spngp.network import Leaf, Node
from spngp.network.rescaling import in_units
from spngp.network.units import Units
from spngp.noise import NoiseShape
from spngp.structure.cells import CellTree


@runtime_checkable
class Shelf(Protocol):
    """Where shards are: a place that opens them one by one and keeps some of them open."""

    def network(self, cell: int, prepare: Callable[[Node], Node]) -> Node:
        """The network of a cell, as ``prepare`` makes it of what the shard holds when it is opened."""


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
    shelf: Shelf | None = None

    @property
    def tree(self) -> CellTree:
        """The cells."""
        return CellTree(self.axes, self.at, self.children)

    @property
    def n_rows(self) -> int:
        """Rows learnt from."""
        return int(self.rows.sum())

    def by_cell(self, X: Array) -> Iterator[tuple[Indices, Node]]:
        """For each cell that holds some of the rows: their positions, and the network that predicts them.

        Rows, cuts and outputs are in the units of the user.
        """
        cells = self.tree.cell_of(self.units.inputs.apply(X))
        order = np.argsort(cells, kind="stable")
        starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
        for rows in np.split(order, starts[1:]) if order.size else []:
            yield rows, self.network_of(int(cells[rows[0]]))

    def networks(self) -> Iterator[tuple[int, Node]]:
        """Every cell with its network, one after the other."""
        for cell in range(self.rows.size):
            yield cell, self.network_of(cell)

    def network_of(self, cell: int) -> Node:
        """The network of a cell in the units of the user, with the shape of the noise."""
        if self.shelf is None:
            raise ValueError("a model in shards must be opened by its directory; load the directory, not a file in it")
        return self.shelf.network(cell, self._in_units)

    def _in_units(self, network: Node) -> Node:
        surprises = Surprises(self.counts, self.surprise_variances)

        def shape_of(leaf: Leaf) -> NoiseShape:
            return surprises.added_to(self.noise_shapes[leaf.output], leaf.output, leaf.noise_variance)

        return in_units(network, self.units, shape_of)
