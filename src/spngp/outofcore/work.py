"""The work of a fit out of core: a directory of files, and what every step must know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from spngp._support.types import Array, Indices
from spngp.columns import InputColumns
from spngp.gp.row_weights import KnownVariances
from spngp.learning.ground import Ground
from spngp.learning.tied import Tied
from spngp.network.row_noise import Kind, kinds_of
from spngp.outofcore.facts import Facts
from spngp.outofcore.spill import aside
from spngp.structure.cells import CellTree

# What a step tells of its work: small arrays by name. Nothing else travels.
Summary: TypeAlias = dict[str, Any]


def _none() -> Indices:
    return np.empty((0, 0), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Frame:
    """What was learnt from the sample, and what has been counted since: all that a step needs besides its own files.

    Attributes
    ----------
    columns : InputColumns
    inputs, targets : sequence of str
        Names of the columns of the data set.
    ground : Ground
        In the units of learning; its regions are left out.
    again : sequence of Tied
        What its tied parameters become where outputs that they rest on are in doubt.
    tree : CellTree
    n_rows : int
        Rows learnt from, as often as they count.
    seed : int
    transforms : sequence of Transform
        The scale of each output.
    facts : Facts
    parts : ndarray of shape (parts, 2)
        The piece of each routed part, and its place among the parts of that piece.
    part_rows : ndarray of shape (parts, cells)
        How many rows of each cell each part has.
    reach : ndarray
        For each output the distance from zero beyond which it is in doubt at once; infinite if too many are.
    overlap : float
        Context rows per own row.
    leaves : LeafTable, optional
        All leaf regions, once cells are cut.
    tied_noise : tuple of (int, float)
        Outputs and noise variances that all leaves share.
    halos : ndarray of shape (cells, cells)
        How many rows of each cell another sees.
    """

    columns: InputColumns
    inputs: Sequence[str]
    targets: Sequence[str]
    ground: Ground
    again: Sequence[Tied]
    tree: CellTree
    n_rows: int
    seed: int
    transforms: Sequence[Any]
    facts: Facts
    parts: Indices = field(default_factory=_none)
    part_rows: Indices = field(default_factory=_none)
    reach: Array = field(default_factory=lambda: np.empty(0))
    overlap: float = 0.0
    leaves: LeafTable | None = None
    tied_noise: tuple[tuple[int, float], ...] = ()
    halos: Indices = field(default_factory=_none)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of inputs and of outputs."""
        units = self.ground.plan.units
        return units.inputs.mean.size, units.outputs.mean.size

    @property
    def noise_kinds(self) -> list[Kind]:
        """The kinds of noise that rows of other regions are seen with."""
        return kinds_of(self.ground.tied.labels)

    def known(self, noted: Array) -> KnownVariances | None:
        """What is known of the noise of rows, in the units of learning."""
        found = self.facts.known(noted, self.sizes[1])
        return None if found is None else found.divided_by(self.ground.plan.units.outputs.scale)


@dataclass(frozen=True, eq=False)
class LeafTable:
    """Leaf regions of all cells: cell, box, number of rows, and how far rows may be to be context."""

    cell: Indices
    low: Array
    high: Array
    rows: Indices
    squared_reach: Array


@dataclass(frozen=True, eq=False)
class Work:
    """A directory, and the frame as far as it is known.

    Attributes
    ----------
    directory : Path
        For spill files; every process must see it under this name.
    shards : Path
        The directory that becomes the model.
    frame : Frame, optional
    """

    directory: Path
    shards: Path
    frame: Frame | None = None

    def known(self) -> Frame:
        """The frame."""
        assert self.frame is not None
        return self.frame

    def part(self, number: int, place: int) -> Path:
        """Rows of a piece, by cell."""
        return self.directory / "routed" / f"{number:06d}-{place:04d}.arrow"

    def cell(self, cell: int) -> Path:
        """Own rows of a cell, with their noise."""
        return self.directory / "cells" / f"{cell:06d}.arrow"

    def own(self, cell: int) -> Path:
        """The network of a cell given own rows."""
        return self.directory / "own" / f"{cell:06d}.spngp"

    def halo(self, cell: int) -> Path:
        """Rows of a cell that other cells may see, by these cells."""
        return self.directory / "halos" / f"{cell:06d}.arrow"

    def sample(self, number: int) -> Path:
        """Rows of a piece that are in the sample."""
        return self.directory / "sample" / f"{number:06d}.arrow"

    def with_frame(self, **changes: Any) -> Work:
        """The same work with more that is known."""
        return replace(self, frame=replace(self.known(), **changes))


# ``step(work, item)``: does its work in files, and tells of it.
Step: TypeAlias = Callable[[Work, Any], Summary]


class Engine(Protocol):
    """Who does the steps: threads of this process, or workers elsewhere."""

    def map(self, step: Callable[[Any], Summary], items: Sequence[Any], advance: Callable[[], None]) -> list[Summary]:
        """``[step(item) for item in items]``, in any order; ``advance`` is called for each that is done."""


def run(
    work: Work, engine: Engine, name: str, step: Step, items: Sequence[Any], advance: Callable[[], None]
) -> list[Summary]:
    """Do a step for every item, those left out that an earlier try has done; the summaries, in order."""
    numbers = [item if isinstance(item, int) else item.number for item in items]
    paths = [work.directory / "done" / f"{name}-{number:06d}.npz" for number in numbers]
    missing = [i for i, path in enumerate(paths) if not path.exists()]
    for _ in range(len(items) - len(missing)):
        advance()
    engine.map(partial(_done, work, step), [(items[i], paths[i]) for i in missing], advance)
    return [_read(path) for path in paths]


def _done(work: Work, step: Step, task: tuple[Any, Path]) -> Summary:
    item, path = task
    summary = step(work, item)
    with aside(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **summary)
    return {}


def _read(path: Path) -> Summary:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}
