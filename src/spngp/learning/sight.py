"""How many rows beyond its border a leaf region sees: as many as predictions gain from.

The default overlap is what smooth functions with little noise need. Where noise decides what can be known, fewer rows
do about as well, in a fraction of the time; where what lies farther off misleads, because parameters differ from place
to place or there is no noise to excuse it, fewer do better. So some regions predict their own outputs, each left out in
turn, with shares of the context that they would have, nearest first.

Two figures tell what a share is worth, in nats a row. What its predictions gain over those with all context is what
counts, but differs by chance by more than is worth having. How far they are from those, by the divergence

    KL = ½ (log v/v₁ + (v₁ + (m − m₁)²)/v − 1),

hardly does, as the outputs themselves have no part in it; but it takes the predictions with all context for the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.gp.leave_one_out import leave_one_out_by_sight, shares
from spngp.learning.blocks import observed
from spngp.learning.noise_shapes import learn_noise_shape, log_densities
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied
from spngp.noise import GAUSSIAN
from spngp.structure import Region, tiling
from spngp.structure.context import NearestContext

_SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)  # of the default overlap, ascending
_REGIONS = 8  # that are looked at; a set of fewer keeps the default
_ROWS = 250  # of each, that are left out
_SURE_GAIN, _LEAST_GAIN = 3.0, 0.01  # of a share that is better: standard errors, and nats a row
_MOST_LOST = 0.004  # nats a row by which predictions with fewer rows may differ from those with all


def share_worth_seeing(tied: Tied, X: Array, Y: Array, plan: Plan) -> float:
    """The share of the default overlap that predicts best, if that is clear; else the least that does about as well."""
    tiles = [tile for tile in tiling(tied.regions) if tile.rows.size]
    if plan.overlap is not None or len(tiles) < _REGIONS:
        return 1.0
    overlap = float(plan.overlap_of(X.shape[0], X.shape[0] / len(tiles)))
    rows = {tile.box: tile.rows for tile in tiles}
    context = NearestContext(X, rows, list(rows), tied.scales, overlap, int(overlap * plan.block_size))
    chosen = [tiles[(2 * i + 1) * len(tiles) // (2 * _REGIONS)] for i in range(_REGIONS)]
    tasks = [(tile, k) for tile in chosen if tile.rows.size <= plan.block_size for k in range(Y.shape[1])]

    def held_out(task: tuple[Region, int]) -> list[Array]:
        tile, k = task
        return _held_out(tied, k, tile.rows, context(tile.box), X, Y[:, k], plan)

    found = map_leaves(held_out, tasks, plan.n_jobs, [int((1.0 + overlap) * tile.rows.size) for tile, _ in tasks])
    parts = []
    for k in range(Y.shape[1]):
        of_output = [one for (_, output), one in zip(tasks, found, strict=True) if output == k and one]
        if of_output:
            parts.append(_compared([np.concatenate(one, axis=1) for one in zip(*of_output, strict=True)], plan))
    compared = np.concatenate([np.empty((3, len(_SHARES), 0)), *parts], axis=2)
    return _chosen(*compared) if compared.size else 1.0


def _chosen(gains: Array, divergences: Array, weights: Array) -> float:
    """The share, by what each gains over all context, its divergence from that, and weights, row by row."""
    n_rows = weights[0].sum()
    gain, divergence = ((weights * own).sum(axis=1) / n_rows for own in (gains, divergences))
    error = np.sqrt((weights * (gains - gain[:, np.newaxis]) ** 2).sum(axis=1)) / n_rows
    by_chance = np.maximum(_LEAST_GAIN, _SURE_GAIN * error)
    if (gain > by_chance).any():
        return _SHARES[int(np.argmax(gain))]
    return _SHARES[int(np.argmax((divergence <= _MOST_LOST) & (gain >= -by_chance)))]


def _compared(held_out: Sequence[Array], plan: Plan) -> Array:
    """For each share and row, the gain over all context, the divergence from it, and the weight: (3, shares, rows)."""
    learns = plan.learns_noise_shape and plan.hyperparameters != "fixed"
    shapes = [learn_noise_shape(one) if learns else GAUSSIAN for one in held_out]
    densities = np.array([log_densities(one, shape) for one, shape in zip(held_out, shapes, strict=True)])
    residuals, latent, noise, weights = np.moveaxis(np.array(held_out), 1, 0)
    variances = latent + noise
    ratio = (variances[-1] + (residuals - residuals[-1]) ** 2) / variances
    divergences = 0.5 * (np.log(variances / variances[-1]) + ratio - 1.0)
    return np.array([densities - densities[-1], divergences, weights])


def _held_out(tied: Tied, k: int, rows: Indices, around: Indices, X: Array, y: Array, plan: Plan) -> list[Array]:
    """For each share of the context, own rows left out, as ``learn_noise_shape`` takes them; or nothing."""
    own, context = (observed(some, X, y, plan.variances_of(k)) for some in (rows, around))
    if not own.y.size:
        return []
    try:
        likeliest = max((own.given_to(gp, keep_factor=False) for gp in tied.gps[k]), key=lambda gp: gp.log_evidence)
        seeing = likeliest.condition(own.X[:0], own.y[:0], context.X, context.y, context_known=context.variances)
        some = seeing.rows_seen_once
        some = some[:: math.ceil(some.size / _ROWS) or 1]
        counts = [round(share * context.y.size) for share in _SHARES]
        noise, weights = np.full(some.size, seeing.noise_variance), shares(seeing, some)
        return [np.stack([*left, noise, weights]) for left in leave_one_out_by_sight(seeing, some, counts)]
    except NotPositiveDefiniteError:
        return []
