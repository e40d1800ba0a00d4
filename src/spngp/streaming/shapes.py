"""The shape of the noise of a living model, learnt again when rows or outputs in doubt have grown by half.

After many regions have drifted, it is learnt from the rows since then, and its variance with it: experts weigh all rows
that they remember by one noise variance, but a new observation has the noise of the present.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spngp._support.types import Array
from spngp.gp.left_out import LeftOut
from spngp.learning.noise_shapes import gaussian_noise, learn_noise_shape
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.streaming.conditioned import given_own, given_seen, growing
from spngp.streaming.living import Living, Shaped

_GROWTH = 1.5  # times as many rows, or outputs in doubt, as when the shape was last learnt
_GROWTH_SINCE = 1.1  # the same for rows since a drift: regions are learnt again meanwhile, each with another noise
_ROWS_IN_ALL = 6000  # rows that it is learnt from, about
_ROWS_SINCE = 600  # the same for rows since a drift, of which each region has few
_FEWEST = 50  # rows since a drift from which the shape of the noise can be learnt
_LEAST_PROBABILITY = 0.05  # of an expert that is asked, as a share of the most probable one's in its region


def current_shapes(living: Living, n_jobs: int | None = None) -> tuple[NoiseShape, ...]:
    """The shape of each output's noise."""
    known = living.shape.content
    n_doubted = len(living.doubts)
    learns = living.base.learns_noise_shape
    if not (learns or (living.base.doubts_outliers and (n_doubted or known.n_doubted))):
        return known.shapes
    n_rows = _count(living)
    growth = _GROWTH_SINCE if n_rows < living.log.n else _GROWTH
    grown = learns and not known.n_rows / growth <= n_rows <= growth * known.n_rows
    more_doubts = n_doubted != known.n_doubted and not known.n_doubted < n_doubted <= _GROWTH * known.n_doubted
    if grown or more_doubts:
        shapes = tuple(_learnt(living, k) for k in range(living.n_outputs))
        known = living.shape.content = Shaped(shapes, n_rows, n_doubted)
    return known.shapes


def shapes_of_leaves(living: Living, n_jobs: int | None = None) -> Callable[[int, float], NoiseShape]:
    """The shape of the noise of a leaf, given its output and its noise variance, surprises included."""
    shapes = current_shapes(living, n_jobs)
    surprises = living.base.surprises(living.log.n_observed)
    return lambda output, noise_variance: surprises.added_to(shapes[output], output, noise_variance)


def _count(living: Living) -> int:
    """Rows that the shape can be learnt from: all, or those since the drift if these are enough."""
    n = living.log.n
    later = n - int(np.searchsorted(living.log.numbers.values, living.since)) if living.since else n
    return later if later >= _FEWEST else n


def _learnt(living: Living, k: int) -> NoiseShape:
    """The shape of one output's noise, from the leave-one-out residuals of some regions."""
    reach = living.base.reach[k]
    # outputs out of all proportion are errors, not noise: they must not widen its shape
    numbers = np.array([number for number, output in living.doubts if output == k], dtype=np.intp)
    doubted = bool((np.abs(living.log.Z.values[living.log.positions(numbers), k]) <= reach).any())
    residuals: list[Array] = []
    n_rows = 0
    since = living.since if _count(living) < living.log.n else 0
    for i in np.random.default_rng(0).permutation(len(living.regions)):
        found = _residuals(living, int(i), k, since)
        residuals += found
        n_rows += sum(part.shape[1] for part in found[:1])
        if n_rows >= (_ROWS_SINCE if since else _ROWS_IN_ALL):
            break
    if not residuals or not (living.base.learns_noise_shape or doubted):
        return GAUSSIAN
    held_out = np.concatenate(residuals, axis=1)
    held_out = held_out[:, np.abs(held_out[0]) <= reach]
    if living.base.learns_noise_shape:
        return learn_noise_shape(held_out, adds_variance=doubted or bool(since))
    return gaussian_noise(held_out)


def _residuals(living: Living, i: int, k: int, since: int) -> list[Array]:
    """For each plausible expert of a region: residuals of own rows, latent variances, noise variance and weight.

    Of rows with the number ``since`` or a larger one.
    """
    region = living.regions[i]
    experts = region.of_output(k)
    if not region.numbers.size:
        return []
    weights = living.index.log_path_weights([expert.leaf for expert in experts], living.values)
    parts = []
    for expert in experts:
        weight = float(np.exp(weights[expert.leaf]))
        if weights[expert.leaf] < max(weights.values()) + np.log(_LEAST_PROBABILITY):
            continue
        content = (given_seen if region.sees_beyond else given_own)(living, region, expert)
        gp = growing(content)
        left = LeftOut.of(gp)
        own = np.isin(content.numbers, region.numbers[region.numbers >= since])
        residual = (left.alpha / left.precision)[own]
        # what is known of a row's noise is none of its shape
        known = living.log.known_at(content.numbers)
        known = np.zeros(gp.n) if known is None else known[:, k]
        latent = np.maximum(1.0 / left.precision - gp.noise + known, 0.0)[own]
        usual = expert.prior.noise_at(gp.X[own])
        parts.append(np.stack(np.broadcast_arrays(residual, latent, usual, weight)))
    return parts
