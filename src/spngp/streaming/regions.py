"""The leaf regions of a living model: their own rows, their experts, and how far they see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP
from spngp.gp.left_out import LeftOut
from spngp.structure.context import Reach


@dataclass(frozen=True, eq=False)
class Margin:
    """How far a leaf sees: a distance along every input."""

    distances: Array

    def sees(self, box: Box, W: Array, scales: Array) -> Indices:
        """Positions of the rows that lie in the box or within the margin around it."""
        sides = ((axis, low - self.distances[axis], high + self.distances[axis]) for axis, low, high in box.sides)
        return np.flatnonzero(Box(tuple(sides)).contains(W))


NOTHING_BEYOND = Reach(-1.0)  # no context


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A GP given the rows of some numbers, as it was when last asked for.

    Attributes
    ----------
    gp : GrowingGP or ExactGP
        An exact GP is one of a fit, whose factor is taken over when it is needed.
    numbers : ndarray
        The number of each of its rows, in the GP's order.
    told : int
        Rows with smaller numbers have been looked at.
    revision : int
        The model's revision when it was last looked at: rows forgotten or verdicts changed later are not known to it.
    left_out : LeftOut, optional
    """

    gp: GrowingGP | ExactGP
    numbers: Indices
    told: int
    revision: int
    left_out: LeftOut | None = None

    @property
    def is_growing(self) -> bool:
        """Whether rows can be added to the GP as it is."""
        return isinstance(self.gp, GrowingGP)


class Cell:
    """A place for a conditioned GP, which versions of a model share: whoever asks brings it up to date.

    It may be empty: the GP is then computed anew. So copies and pickles of a model leave it away.
    """

    __slots__ = ("__weakref__", "content")

    def __init__(self, content: Conditioned | None = None) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Any, ...]:
        return Cell, ()

    @property
    def nbytes(self) -> int:
        """Memory of the factor that it holds."""
        content = self.content
        if content is None:
            return 0
        if isinstance(content.gp, GrowingGP):
            return content.gp.factor.nbytes
        return 8 * content.gp.shape_of_rows[0] ** 2 if content.gp.has_factor else 0


@dataclass(frozen=True, eq=False)
class LivingExpert:
    """One of the alternative GPs of a region, for one output.

    Attributes
    ----------
    leaf : int
        Position of its leaf in the index.
    output : int
    label : str
    prior : ExactGP
        Kernel and noise.
    tied_noise : bool
        Whether it takes its own noise for that of every row, because all regions share it.
    log_evidence : float
        Of the own rows.
    own, seen : Cell
        The GP given its own rows, and given all rows that it sees.
    """

    leaf: int
    output: int
    label: str
    prior: ExactGP
    tied_noise: bool
    log_evidence: float = 0.0
    own: Cell = field(default_factory=Cell)
    seen: Cell = field(default_factory=Cell)


class Sight(NamedTuple):
    """What a region saw when its reach was set."""

    numbers: Indices  # of rows, ascending, its own among them
    told: int  # rows with smaller numbers were looked at


@dataclass(frozen=True, eq=False)
class LivingRegion:
    """A leaf region.

    Attributes
    ----------
    box : Box
    reach : Reach or Margin
        Fixed when the region is learnt, so that what it sees does not depend on the order in which rows come.
    numbers : ndarray
        Numbers of its own rows, ascending.
    experts : tuple of LivingExpert
        Of all outputs.
    noise : ndarray
        For each kind of noise, its variance, as leaves of other regions see its rows: that of an expert, or the average
        over all of an output, when they were learnt.
    n_learnt : int
        Own rows when its experts were learnt.
    arrived : int
        Own rows that have come since.
    n_wanted : int
        Context rows that it had when its reach was set.
    surprises : ndarray of shape (p, …)
        The most recent probability integral transforms of outputs that came, given the own rows before them.
    sight : Sight, optional
        Spares its GPs a look at all rows when they are first asked.
    """

    box: Box
    reach: Reach | Margin
    numbers: Indices
    experts: tuple[LivingExpert, ...]
    noise: Array
    n_learnt: int
    arrived: int
    n_wanted: int
    surprises: tuple[Array, ...]
    sight: Sight | None = None

    @property
    def sees_beyond(self) -> bool:
        """Whether it has context."""
        return isinstance(self.reach, Margin) or self.reach.squared >= 0.0

    def of_output(self, k: int) -> list[LivingExpert]:
        """The experts for one output."""
        return [expert for expert in self.experts if expert.output == k]


def no_surprises(n_outputs: int) -> tuple[Array, ...]:
    """Where none has been seen yet."""
    return tuple(np.empty(0) for _ in range(n_outputs))
