"""What was learnt: a posterior network, and all that it takes to add rows to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spngp._support.memory import Budget
from spngp._support.types import Array
from spngp.box import Box
from spngp.network import Node, conditioning
from spngp.network.placement import place, route
from spngp.network.units import Units
from spngp.noise import NoiseShape
from spngp.structure.context import NearestContext

# Experts less plausible than this get no context rows: much of the cost and hardly any of the prediction.
_LEAST_WEIGHT = 0.01


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """What was learnt, and the rows it was learnt from, so that more can be added.

    Attributes
    ----------
    X, Y : ndarray
        All rows, in the order in which they came, in the units of the user.
    units : Units
        Those that learning works in. Boxes, length-scales, reach and noises below are in them, and so are ``prior``,
        ``own`` and ``seeing``.
    prior : Node
        The network without any rows.
    own : Node
        The posterior network, leaves on their own rows only.
    seeing : Node
        The same with context rows.
    network : Node
        ``seeing`` in the units of the user and with the shape of the noise: what predicts.
    tiles : list of Box
        Boxes without overlap that cover the space: where context rows are looked for.
    scales : ndarray
        Length-scales of the metric.
    overlap : float or ndarray
        Context rows per own row, or a margin per input.
    block_size : int
        Rows of a leaf at most; more remain only where rows coincide.
    budget : Budget
        What decides which experts keep their factors.
    n_fitted : int
        Number of rows that regions and parameters were learnt from; the others came later.
    output_spreads : ndarray
        Standard deviation of each output of the fit.
    reach : ndarray
        For each output, the size above which it is in doubt at once.
    doubts_outliers : bool
        Whether outputs far from what all others say get a larger noise of their own.
    learns_noise_shape : bool
        Whether the noise may have another shape than a Gaussian's.
    noise_shapes : list of NoiseShape
        One per output.
    own_noise : ndarray, optional
        In the shape of Y, the variance of the noise of outputs in doubt and NaN for all others. None if no output is
        in doubt.
    """

    X: Array
    Y: Array
    units: Units
    prior: Node
    own: Node
    seeing: Node
    network: Node
    tiles: list[Box]
    scales: Array
    overlap: float | Array
    block_size: int
    budget: Budget
    n_fitted: int
    output_spreads: Array
    reach: Array
    doubts_outliers: bool
    learns_noise_shape: bool
    noise_shapes: list[NoiseShape]
    own_noise: Array | None = None


def given_rows(
    learnt: Learnt, X: Array, Y: Array, own_noise: Array | None, known: Node | None, n_jobs: int | None
) -> Learnt:
    """The exact posterior given rows X and Y, of which the first are those that ``learnt`` has seen.

    ``own_noise`` is that of all of them. ``known`` is a posterior of own rows without those that have an ``own_noise``,
    for leaves that are the same (without factors, as context replaces them).
    """

    def within_budget(sizes: list[int]) -> list[bool]:
        return learnt.budget.keep(sizes, X.shape[1])

    W, Z = learnt.units.inputs.apply(X), learnt.units.outputs.apply(Y)
    sees_context = np.ndim(learnt.overlap) > 0 or bool(learnt.overlap)
    # leaves with context are factored again: until then evidence is all that is wanted of them
    keep = conditioning.no_factors if sees_context else within_budget
    known = known if sees_context else None
    n_seen = learnt.Y.shape[0]
    if known is None and _same_noise(learnt.own_noise, own_noise, n_seen):
        root, new = learnt.own, slice(n_seen, None)
    else:
        root, new = learnt.prior, slice(None)
    noise = None if own_noise is None else own_noise[new]
    own = conditioning.condition(root, W[new], Z[new], own_noise=noise, known=known, n_jobs=n_jobs, keep=keep)
    learnt = replace(learnt, own=own, seeing=own, X=X, Y=Y, own_noise=own_noise)
    return _with_context(learnt, W, Z, n_jobs, within_budget) if sees_context else learnt


def _same_noise(before: Array | None, now: Array | None, n_seen: int) -> bool:
    """Whether the rows seen before have the noise that they had."""
    if before is None or now is None:
        other = now if before is None else before
        return other is None or bool(np.isnan(other[:n_seen]).all())
    return np.array_equal(before, now[:n_seen], equal_nan=True)


def _with_context(learnt: Learnt, X: Array, Y: Array, n_jobs: int | None, keep: conditioning.Keep) -> Learnt:
    """The network with context rows for the experts that count; X and Y are in the units of learning."""
    overlap = learnt.overlap
    context: conditioning.Context
    if np.ndim(overlap):
        context = conditioning.within_margin(X, overlap)
    else:
        most = int(float(overlap) * learnt.block_size)
        placed = place(learnt.own)
        rows = {item.box: own for item, own in zip(placed, route(placed, X), strict=True)}
        context = NearestContext(X, rows, learnt.tiles, learnt.scales, float(overlap), most)
    seeing = conditioning.add_context(
        learnt.own, X, Y, context, least_weight=_LEAST_WEIGHT, own_noise=learnt.own_noise, n_jobs=n_jobs, keep=keep
    )
    return replace(learnt, seeing=seeing)
