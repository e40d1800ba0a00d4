"""How many rows beyond its border a leaf region sees: as many as predictions gain from.

The default overlap is what functions need that are smooth far beyond a region. Where they are not, farther rows say
nothing new, and cost time; where parameters differ from place to place, or there is no noise to excuse it, they
mislead. So some regions predict their own outputs, each left out in turn, with shares of the context that they would
have, nearest first. A share is taken if it predicts better than all context, or else if it does as well: if neither
densities nor means are farther from those with all context than is worth knowing. Outputs differ from their
predictions by chance, so what is as good is told by the predictions alone: by the divergence

    KL = ½ (log v/v₁ + (v₁ + (m − m₁)²)/v − 1)

and by the variance of the function, without noise, which is the error of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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
_FEWEST, _REGIONS = 6, 12  # regions that a set must have, and that are looked at
_ROWS = 200  # of each, that are left out
_SURE_GAIN, _LEAST_GAIN = 1.0, 0.01  # of a share that is better: standard errors, and nats a row
_FARTHER = 1.2  # its squared errors, relative to those with all context, at most
_MOST_LOST = 0.004  # nats a row by which predictions of one that is as good may differ from those with all context
_LESS_SURE = 1.05  # times the variance of the function with all context, that it may leave


def share_worth_seeing(tied: Tied, X: Array, Y: Array, plan: Plan) -> float:
    """The share of the default overlap that predicts best, if that is clear; else the least that does about as well."""
    tiles = [tile for tile in tiling(tied.regions) if tile.rows.size]
    if plan.overlap is not None or len(tiles) < _FEWEST:
        return 1.0
    overlap = float(plan.overlap_of(X.shape[0], X.shape[0] / len(tiles)))
    rows = {tile.box: tile.rows for tile in tiles}
    context = NearestContext(X, rows, list(rows), tied.scales, overlap, int(overlap * plan.block_size))
    count = min(_REGIONS, len(tiles))
    chosen = [tiles[(2 * i + 1) * len(tiles) // (2 * count)] for i in range(count)]
    tasks = [(tile, k) for tile in chosen if tile.rows.size <= plan.block_size for k in range(Y.shape[1])]

    def held_out(task: tuple[Region, int]) -> list[Array]:
        tile, k = task
        return _held_out(tied, k, tile.rows, context(tile.box), X, Y[:, k], plan)

    found = map_leaves(held_out, tasks, plan.n_jobs, [int((1.0 + overlap) * tile.rows.size) for tile, _ in tasks])
    parts, regions = [], []
    for k in range(Y.shape[1]):
        of_output = [one for (_, output), one in zip(tasks, found, strict=True) if output == k and one]
        if of_output:
            parts.append(_Compared.of([np.concatenate(one, axis=1) for one in zip(*of_output, strict=True)], plan))
            regions += [one[0].shape[1] for one in of_output]
    return _chosen(_Compared.joined(parts), regions) if sum(regions) else 1.0


class _Compared(NamedTuple):
    """What shares of the context are worth to rows that are left out; all but the weights are (shares, rows).

    Attributes
    ----------
    gains : ndarray
        Log density over that with all context.
    divergences : ndarray
        From the prediction with all context.
    latent : ndarray
        Variance of the function.
    squares : ndarray
        Squared errors.
    weights : ndarray of shape (rows,)
    """

    gains: Array
    divergences: Array
    latent: Array
    squares: Array
    weights: Array

    def means(self) -> list[Array]:
        """Of each, over rows by their weights: one number for each share."""
        return [own @ self.weights / self.weights.sum() for own in self[:-1]]

    @staticmethod
    def of(held_out: Sequence[Array], plan: Plan) -> _Compared:
        """From what ``learn_noise_shape`` takes, for each share."""
        learns = plan.learns_noise_shape and plan.hyperparameters != "fixed"
        shapes = [learn_noise_shape(one) if learns else GAUSSIAN for one in held_out]
        densities = np.array([log_densities(one, shape) for one, shape in zip(held_out, shapes, strict=True)])
        residuals, latent, noise, weights = np.moveaxis(np.array(held_out), 1, 0)
        variances = latent + noise
        ratio = (variances[-1] + (residuals - residuals[-1]) ** 2) / variances
        divergences = 0.5 * (np.log(variances / variances[-1]) + ratio - 1.0)
        return _Compared(densities - densities[-1], divergences, latent, residuals**2, weights[0])

    @staticmethod
    def joined(parts: Sequence[_Compared]) -> _Compared:
        return _Compared(*(np.concatenate(own, axis=-1) for own in zip(*parts, strict=True)))


def _chosen(compared: _Compared, regions: Sequence[int]) -> float:
    """The share; ``regions`` are the numbers of rows that belong to the same one, which gain or lose together."""
    gain, divergence, latent, squared = compared.means()
    firsts = np.cumsum([0, *(count for count in regions if count)])[:-1]
    of_regions = np.add.reduceat(compared.weights * (compared.gains - gain[:, np.newaxis]), firsts, axis=1)
    error = np.sqrt(np.square(of_regions).sum(axis=1)) / compared.weights.sum()
    by_chance = np.maximum(_LEAST_GAIN, _SURE_GAIN * error)
    better = (gain > by_chance) & (squared <= _FARTHER * squared[-1])
    if better.any():
        return _SHARES[int(np.argmax(np.where(better, gain, -np.inf)))]
    alike = (divergence <= _MOST_LOST) & (latent <= _LESS_SURE * latent[-1]) & (gain >= -by_chance)
    return _SHARES[int(np.argmax(alike))]


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
