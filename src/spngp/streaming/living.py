"""A living model: a posterior network that rows can be added to and taken from, one at a time, in milliseconds.

It is a value: adding a row makes a new one, which shares nearly everything with the old. What is costly, the GPs given
their rows, is kept in cells that versions share and that are brought up to date when they are needed
(:mod:`spngp.streaming.conditioned`). The posterior is a function of the structure (regions, experts, reaches, the
noise of each row) and of the rows that are remembered; it does not depend on the order in which they came.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spngp._support.types import Array, Indices
from spngp._support.versions import VersionedSequence
from spngp.box import Box
from spngp.learning import Learnt
from spngp.learning.upkeep import Event
from spngp.network import Sum
from spngp.network.row_noise import Kind
from spngp.noise import NoiseShape
from spngp.streaming.index import Index
from spngp.streaming.memory import FactorMemory
from spngp.streaming.regions import LivingExpert, LivingRegion
from spngp.streaming.rows import RowLog

_revisions = itertools.count(1)


def next_revision() -> int:
    """A number that no version of any model has had: something was forgotten, or a verdict has changed."""
    return next(_revisions)


class Lineage:
    """The versions of a model that cells may be shared by: in all of them, a number stands for the same row.

    Attributes
    ----------
    looked : tuple, optional
        What a region saw when it last looked at rows that came, and what it was asked.
    """

    def __init__(self, n_ever: int) -> None:
        self._n_ever, self._lock = n_ever, threading.Lock()
        self.looked: tuple[tuple[Any, ...], Indices] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Lineage, (-1,)  # a copy's rows are its own

    def claim(self, n_ever: int, count: int) -> bool:
        """Give the next ``count`` numbers to rows; false if another version has given them to others already."""
        with self._lock:
            free = self._n_ever == n_ever
            if free:
                self._n_ever += count
        return free


@dataclass(frozen=True, eq=False)
class Shaped:
    """The shape of each output's noise, and of how many rows and outputs in doubt it was learnt."""

    shapes: tuple[NoiseShape, ...]
    n_rows: int
    n_doubted: int


class ShapeCell:
    """The shapes of the noise, learnt again when they are asked for and out of date."""

    __slots__ = ("content",)

    def __init__(self, content: Shaped) -> None:
        self.content = content


@dataclass(frozen=True, eq=False)
class Living:
    """A model and its rows.

    Attributes
    ----------
    base : Learnt
        What does not change as rows come: units, metric, tied parameters and the like. It has no rows.
    log : RowLog
    index : Index
        The prior network.
    values : ndarray
        Log evidence of every node of the index, in the units of learning.
    regions : sequence of LivingRegion
        The leaf regions.
    where : mapping
        For the position of a leaf in the index, the position of its region and of its expert there.
    doubts : mapping
        Noise variance of each output in doubt, by number of its row and output.
    revision : int
        Changes whenever rows are forgotten or verdicts change.
    tied_noise : frozenset
        Outputs and noise variances that are those of all regions.
    noise_kinds : tuple of (int, str)
        Whose noise rows of other regions are seen with; see :func:`spngp.network.row_noise.noise_kinds`.
    first_later : int
        Rows with this number or a larger one came after parameters were learnt; only their outputs are judged anew.
    n_learnt : int
        Rows that everything was last learnt from.
    curvatures : tuple
        For each output and kernel, the curvature of the log evidence at the tied parameters; empty if unknown.
    events : tuple of Event
    since : int
        Number of the row at which many regions began to drift, the last time they did; 0 if they never did.
    log_prior : float
        Log of the prior probability of the alternatives that are left, of those that were learnt.
    tiling : bool
        Whether every row lies in one region: no sum has a cut below it.
    shape : ShapeCell
    memory : FactorMemory
    lineage : Lineage
    """

    base: Learnt
    log: RowLog
    index: Index
    values: Array
    regions: VersionedSequence[LivingRegion]
    where: Mapping[int, tuple[int, int]]
    doubts: Mapping[tuple[int, int], float]
    revision: int
    tied_noise: frozenset[tuple[int, float]]
    noise_kinds: tuple[Kind, ...]
    first_later: int
    n_learnt: int
    curvatures: tuple[tuple[Array, ...], ...]
    events: tuple[Event, ...]
    since: int
    log_prior: float
    tiling: bool
    shape: ShapeCell
    memory: FactorMemory
    lineage: Lineage = field(repr=False)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.log.Y.values.shape[1]

    @property
    def arrived(self) -> int:
        """Rows that have come since everything was learnt."""
        return self.log.n_ever - self.first_later

    @property
    def log_evidence(self) -> float:
        """log p of all remembered outputs, in the units of the user."""
        scales = self.base.units.outputs.scale
        return self.log_prior + float(self.values[self.index.root]) - float(self.log.n_observed @ np.log(scales))

    def expert(self, leaf: int) -> tuple[LivingRegion, LivingExpert]:
        """The region and the expert of a leaf."""
        region, expert = self.where[leaf]
        return self.regions[region], self.regions[region].experts[expert]

    def own_noise(self, numbers: Indices) -> Array:
        """Noise variances of outputs in doubt at these rows, NaN for others; shape (rows, outputs)."""
        noise = np.full((numbers.size, self.n_outputs), np.nan)
        if self.doubts:
            place = {int(number): i for i, number in enumerate(numbers.tolist())}
            for (number, output), variance in self.doubts.items():
                if number in place:
                    noise[place[number], output] = variance
        return noise


def tiles(index: Index) -> bool:
    """Whether no sum of a network has a cut below it."""
    sums = (i for i in index.in_use() if isinstance(index.entries[i].node, Sum))
    return not any(_cuts(index, i) for i in sums)


def _cuts(index: Index, top: int) -> bool:
    """Whether a node or one below it is a cut."""
    box = index.entries[top].box
    return any(index.entries[i].box != box for i in index.in_use(top))


def located(regions: Iterable[LivingRegion]) -> dict[int, tuple[int, int]]:
    """For each leaf, its region and its place there."""
    return {expert.leaf: (i, j) for i, region in enumerate(regions) for j, expert in enumerate(region.experts)}


def announced(living: Living, kind: str, reason: str, box: Box = Box.EVERYWHERE) -> tuple[Event, ...]:
    """The events with one more; the oldest of very many are left out."""
    most = 1000
    return (*living.events, Event(rows=living.log.n_ever, kind=kind, reason=reason, box=box))[-most:]
