"""How many rows beyond its border a leaf region sees: as many as predictions gain from.

The default overlap is what functions need that are smooth far beyond a region. Where they are not, farther rows say
nothing new, and cost time; where there is hardly any noise to excuse a kernel that does not quite fit there, they
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
from spngp.gp.leave_one_out import known_variances, leave_one_out_by_context, shares
from spngp.learning.blocks import observed, spread_out
from spngp.learning.noise_shapes import learn_noise_shape, log_densities
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied
from spngp.learning.tied_evidence import evidence
from spngp.noise import GAUSSIAN
from spngp.structure import Region, tiling
from spngp.structure.context import NearestContext

_SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)  # of the default overlap, ascending
_FEWEST, _REGIONS = 6, 12  # regions that must tell something, and that are looked at
_OUTPUTS = 3  # that are looked at
_ROWS = 200  # of each region, that are left out
_DISTINCT = 0.9  # of the context, at least: equal rows are seen together or not at all, whatever the share
_SURE_GAIN, _LEAST_GAIN = 1.0, 0.01  # of a share that is better: standard errors, and nats a row
_FARTHER = 1.2  # times the squared errors with all context, that it may have
_MOST_LOST = 0.004  # nats a row by which predictions of one that is as good may differ from those with all context
_LESS_SURE = 1.05  # times the variance of the function and the squared errors with all context, that it may have


def context_share(tied: Tied, X: Array, Y: Array, plan: Plan) -> float:
    """The share of the default overlap that predicts best, if that is clear; else the least that does as well."""
    tiles = [tile for tile in tiling(tied.regions) if 0 < tile.rows.size <= plan.block_size]
    if plan.overlap is not None or len(tiles) < _FEWEST:
        return 1.0
    overlap = float(plan.overlap_of(X.shape[0], X.shape[0] / len(tiles)))
    rows = {tile.box: tile.rows for tile in tiling(tied.regions)}
    context = NearestContext(X, rows, list(rows), tied.scales, overlap, int(overlap * plan.block_size))
    chosen = spread_out(len(tiles), _REGIONS)
    tasks = [(tiles[i], k) for k in spread_out(Y.shape[1], _OUTPUTS) for i in chosen]

    def left_out(task: tuple[Region, int]) -> list[Array]:
        tile, k = task
        return _left_out(tied, k, tile.rows, context(tile.box), X, Y[:, k], plan)

    found = map_leaves(left_out, tasks, plan.n_jobs, [int((1.0 + overlap) * tile.rows.size) for tile, _ in tasks])
    parts, regions = [], []
    for k in range(Y.shape[1]):
        told = [(i, one) for i, ((_, output), one) in enumerate(zip(tasks, found, strict=True)) if output == k and one]
        if told:
            by_share = zip(*(one for _, one in told), strict=True)
            parts.append(_Compared.of([np.concatenate(one, axis=1) for one in by_share], plan))
            regions += [np.full(one[0].shape[1], i % len(chosen)) for i, one in told]
    return _chosen(_Compared.joined(parts), np.concatenate(regions)) if parts else 1.0


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

    @staticmethod
    def of(left_out: Sequence[Array], plan: Plan) -> _Compared:
        """From what ``learn_noise_shape`` takes, and the known variances of the outputs, for each share."""
        learns = plan.learns_noise_shape and plan.hyperparameters != "fixed"
        shapes = [learn_noise_shape(one) if learns else GAUSSIAN for one in left_out]
        densities = np.array([log_densities(one, shape) for one, shape in zip(left_out, shapes, strict=True)])
        residuals, latent, noise, weights, known = np.moveaxis(np.array(left_out), 1, 0)
        variances = latent + noise
        ratio = (variances[-1] + (residuals - residuals[-1]) ** 2) / variances
        divergences = 0.5 * (np.log(variances / variances[-1]) + ratio - 1.0)
        return _Compared(densities - densities[-1], divergences, latent - known, residuals**2, weights[0])

    @staticmethod
    def joined(parts: Sequence[_Compared]) -> _Compared:
        """Of several outputs."""
        return _Compared(*(np.concatenate(own, axis=-1) for own in zip(*parts, strict=True)))


def _chosen(compared: _Compared, regions: Indices) -> float:
    """The share; ``regions`` are the numbers of those that rows belong to, which gain or lose together."""
    total = float(compared.weights.sum())
    if np.unique(regions).size < _FEWEST or not total > 0.0:
        return 1.0
    gain, divergence, latent, squared = (own @ compared.weights / total for own in compared[:-1])
    deviations = compared.weights * (compared.gains - gain[:, np.newaxis])
    error = np.array([np.linalg.norm(np.bincount(regions, own)) for own in deviations]) / total
    by_chance = np.maximum(_LEAST_GAIN, _SURE_GAIN * error)
    better = (gain > by_chance) & (squared <= _FARTHER * squared[-1])
    if better.any():
        return _SHARES[int(np.argmax(np.where(better, gain, -np.inf)))]
    alike = (divergence <= _MOST_LOST) & (gain >= -by_chance)
    alike &= (latent <= _LESS_SURE * latent[-1]) & (squared <= _LESS_SURE * squared[-1])
    return _SHARES[int(np.argmax(alike))]


def _left_out(tied: Tied, k: int, rows: Indices, around: Indices, X: Array, y: Array, plan: Plan) -> list[Array]:
    """For each share of the context, own rows left out, as ``learn_noise_shape`` takes them, and known variances.

    Nothing if they cannot be, or if many rows of the context are equal.
    """
    own, context = (observed(some, X, y, plan.variances_of(k)) for some in (rows, around))
    if not own.y.size or np.unique(context.X, axis=0).shape[0] < _DISTINCT * context.y.size:
        return []
    likeliest = tied.gps[k][int(np.argmax([evidence(gp, [own]) for gp in tied.gps[k]]))]
    try:
        seeing = likeliest.condition(
            *(own.X, own.y, context.X, context.y), known=own.variances, context_known=context.variances
        )
    except NotPositiveDefiniteError:
        return []
    some = seeing.rows_seen_once
    some = some[:: math.ceil(some.size / _ROWS) or 1]
    counts = [round(share * context.y.size) for share in _SHARES]
    told = np.full(some.size, seeing.noise_variance), shares(seeing, some), known_variances(seeing, some)
    return [np.stack([*left, *told]) for left in leave_one_out_by_context(seeing, some, counts)]
