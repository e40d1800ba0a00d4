"""What must be known of a model that has gone on after its fit, besides its rows and its network."""

from __future__ import annotations

from dataclasses import dataclass

from spngp._support.types import Array, Indices
from spngp.box import Box


@dataclass(frozen=True, kw_only=True)
class Event:
    """A change of the structure of a model by the rows that came.

    Attributes
    ----------
    rows : int
        How many rows had come.
    kind : str
        "cut": a region was cut. "region": its experts were learnt again. "past": later rows contradicted earlier ones,
        which hardly count any more. "reach": it was made to see less far. "model": everything was learnt again.
    reason : str
        Why, in words.
    box : Box
        The region, in the units of learning; everywhere for the whole model.
    """

    rows: int
    kind: str
    reason: str
    box: Box


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """The state of a living model (:mod:`spngp.streaming`) as plain records.

    Attributes
    ----------
    numbers : ndarray
        The number of each row: how many came before it, forgotten ones included.
    n_ever : int
        How many rows have come, forgotten ones included.
    n_learnt : int
        Rows that everything was last learnt from.
    since : int
        Number of the row at which many regions began to drift, the last time they did; 0 if they never did.
    log_prior : float
        Log of the prior probability of the alternatives that are left, of those that were learnt.
    seen_noise : ndarray of shape (n, kinds)
        The variance of the noise of each row as leaves of other regions see it.
    tied_noise : list of tuple
        Outputs and noise variances that are those of all regions.
    boxes : list of Box
        The leaf regions. The following have one entry for each.
    reaches : ndarray of shape (regions, 2)
        How far each sees: a squared distance, and a key among the rows at this distance.
    noise : ndarray of shape (regions, kinds)
        Variance of the noise of its rows, as leaves of other regions see them.
    counts : ndarray of shape (regions, 3)
        Own rows when it was learnt, own rows that came since, and context rows when its reach was set.
    surprises : list of list of ndarray
        For each output, the most recent probability integral transforms.
    curvatures : list of list of ndarray
        For each output and kernel, the curvature of the log evidence per row at the tied parameters; empty if unknown.
    shaped : tuple of int
        Numbers of rows and of outputs in doubt when the shape of the noise was learnt.
    events : list of Event
        Changes of the structure since the first fit, the most recent ones.
    """

    numbers: Indices
    n_ever: int
    n_learnt: int
    since: int
    log_prior: float
    seen_noise: Array
    tied_noise: list[tuple[int, float]]
    boxes: list[Box]
    reaches: Array
    noise: Array
    counts: Indices
    surprises: list[list[Array]]
    curvatures: list[list[Array]]
    shaped: tuple[int, int]
    events: list[Event]
