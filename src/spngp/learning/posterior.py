"""What was learnt, and the exact update with more rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spngp._memory import Budget
from spngp._parallel import one_blas_thread
from spngp._standardise import few_of
from spngp._typing import Array
from spngp.network import Box, Node, conditioning
from spngp.network.placement import place, route
from spngp.network.pruning import prune
from spngp.noise import NoiseShape
from spngp.structure.context import NearestContext

# Experts less plausible than this get no context rows: much of the cost and hardly any of the prediction.
_LEAST_WEIGHT = 0.01


@dataclass
class Learnt:
    """What was learnt, and the rows it was learnt from, so that more can be added.

    Attributes
    ----------
    own : Node
        The posterior network, leaves on their own rows only.
    network : Node
        The same with context rows, pruned: what predicts.
    tiles : list of Box
        Boxes without overlap that cover the space: where context rows are looked for.
    scales : ndarray
        Length-scales of the metric.
    budget : Budget
        What decides which experts keep their factors.
    noise_shapes : list of NoiseShape
        One per output.
    reach : ndarray
        For each output, how large one may be not to be in doubt at once.
    own_noise : ndarray, optional
        In the shape of Y, the variance of the noise of outputs in doubt and NaN for all others; none if all are others.
    negligible : float
        Probability of all alternatives together that ``network`` goes without; ``own`` has them all, so that rows that
        are added may bring any of them back.
    """

    own: Node
    network: Node
    tiles: list[Box]
    scales: Array
    overlap: float | Array
    block_size: int
    budget: Budget
    X: Array
    Y: Array
    noise_shapes: list[NoiseShape]
    reach: Array
    own_noise: Array | None = None
    negligible: float = 0.0


def add_rows(
    learnt: Learnt,
    X: Array,
    Y: Array,
    n_jobs: int | None = None,
    own_noise: Array | None = None,
    known: Node | None = None,
) -> Learnt:
    """The exact update: regions and parameters stay, everything else is as if all rows had come at once.

    ``known`` is the posterior of own rows before some got ``own_noise``, for leaves that are what they were (without
    factors, as context replaces them).
    """

    def within_budget(sizes: list[int]) -> list[bool]:
        return learnt.budget.keep(sizes, X.shape[1])

    with one_blas_thread():
        sees_context = np.ndim(learnt.overlap) > 0 or bool(learnt.overlap)
        # leaves with context are factored again: until then evidence is all that is wanted of them
        keep = conditioning.no_factors if sees_context else within_budget
        beyond = np.abs(Y) > learnt.reach
        # where many are, with those before, outputs have become others: all that are new are trusted
        many = beyond.sum(axis=0) + (np.abs(learnt.Y) > learnt.reach).sum(axis=0)
        beyond &= many <= few_of(learnt.Y.shape[0] + Y.shape[0])
        if beyond.any():
            own_noise = np.where(beyond, Y * Y, np.nan if own_noise is None else own_noise)
        known = known if sees_context else None
        own = conditioning.condition(learnt.own, X, Y, own_noise=own_noise, known=known, n_jobs=n_jobs, keep=keep)
        if learnt.own_noise is not None or own_noise is not None:
            parts = [(learnt.own_noise, learnt.Y), (own_noise, Y)]
            own_noise = np.concatenate([np.full(y.shape, np.nan) if part is None else part for part, y in parts])
        if learnt.Y.size:
            X, Y = np.concatenate([learnt.X, X]), np.concatenate([learnt.Y, Y])
        network = prune(own, learnt.negligible)
        learnt = replace(learnt, own=own, network=network, X=X, Y=Y, own_noise=own_noise)
        return _with_context(learnt, n_jobs, within_budget) if sees_context else learnt


def _with_context(learnt: Learnt, n_jobs: int | None, keep: conditioning.Keep) -> Learnt:
    """The network with context rows for the experts that count."""
    overlap = learnt.overlap
    context: conditioning.Context
    if np.ndim(overlap):
        context = conditioning.within_distance(learnt.X, overlap)
    else:
        most = int(float(overlap) * learnt.block_size)
        placed = place(learnt.network)
        rows = {item.box: own for item, own in zip(placed, route(placed, learnt.X), strict=True)}
        context = NearestContext(learnt.X, rows, learnt.tiles, learnt.scales, float(overlap), most)
    network = conditioning.add_context(
        learnt.network,
        learnt.X,
        learnt.Y,
        context,
        least_weight=_LEAST_WEIGHT,
        own_noise=learnt.own_noise,
        n_jobs=n_jobs,
        keep=keep,
    )
    return replace(learnt, network=network)
