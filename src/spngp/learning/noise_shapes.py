"""The shape of the noise, learnt from leave-one-out residuals of some leaves that count."""

from __future__ import annotations

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.gp.leave_one_out import leave_one_out
from spngp.network import Node
from spngp.network.prediction import PlacedLeaf
from spngp.noise import GAUSSIAN, NoiseShape

_EXPERTS = 12  # that the shape is learnt from
_COUNTING_WEIGHT = 0.05  # probability that such an expert has at least
_ROWS = 2000  # of each expert at most

# Factors of the noise variance that are tried.
_FACTORS = 4.0 ** np.arange(-2.0, 7.0)
_PSEUDO_ROWS = 20.0  # rows in favour of plain Gaussian noise, so that a small set keeps it
_LEAST_WEIGHT = 1e-5
_STEPS = 200


def noise_shapes(
    network: Node,
    n_outputs: int,
    doubted: Array | None,
    reach: Array,
    learns: bool,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[NoiseShape]:
    """The shape of each output's noise, from the residuals of some leaves that count; Gaussian unless it ``learns``.

    Where outputs are ``doubted`` (not NaN) the noise is that of the others, and the shape adds the variance of all, but
    for residuals beyond ``reach``, one number per output: they are no noise of any shape.
    """
    shapes = []
    leaves = [item for item in network.responsibilities() if item.leaf.gp.rows_seen_once.size]

    def residuals(task: tuple[PlacedLeaf, Indices]) -> Array:
        (leaf, _, weight), rows = task
        residual, latent_variance = leave_one_out(leaf.gp, rows)
        return np.stack(np.broadcast_arrays(residual, latent_variance, leaf.noise_variance, weight))

    for k in range(n_outputs):
        adds_variance = doubted is not None and not bool(np.isnan(doubted[:, k]).all())
        weights = np.array([item.weight if item.leaf.output == k else 0.0 for item in leaves])
        counting = np.flatnonzero(weights >= max(min(_COUNTING_WEIGHT, weights.max(initial=0.0)), np.finfo(float).tiny))
        tasks = []
        for i in rng.permutation(counting)[:_EXPERTS]:
            rows = leaves[i].leaf.gp.rows_seen_once
            tasks.append((leaves[i], rng.choice(rows, min(rows.size, _ROWS), replace=False)))
        if not tasks or not (learns or adds_variance):
            shapes.append(GAUSSIAN)
            continue
        found = np.concatenate(map_leaves(residuals, tasks, n_jobs), axis=1)
        found = found[:, np.abs(found[0]) <= reach[k]]
        shapes.append(learn_noise_shape(found, keeps_variance=not adds_variance) if learns else gaussian_noise(found))
    return shapes


def learn_noise_shape(held_out: Array, keeps_variance: bool = True) -> NoiseShape:
    """The shape that makes held-out residuals most plausible, by expectation–maximisation.

    Parameters
    ----------
    held_out : ndarray of shape (4, n)
        For each row that was held out: output minus predicted mean; the function's variance; the noise's variance;
        how much it counts, 1 for a whole row.
    keeps_variance : bool
        Whether the shape is brought to variance one: yes, if the noise variances are those of all rows.
    """
    residuals, latent_variances, noise_variances, weights = held_out
    variances = latent_variances[:, np.newaxis] + noise_variances[:, np.newaxis] * _FACTORS
    log_density = -0.5 * np.log(variances) - 0.5 * residuals[:, np.newaxis] ** 2 / variances
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    prior = np.where(_FACTORS == 1.0, _PSEUDO_ROWS, 0.0)
    shares = np.full(_FACTORS.size, 1.0 / _FACTORS.size)
    for _ in range(_STEPS):
        joint = density * shares
        shares = prior + (weights / joint.sum(axis=1)) @ joint
        shares /= shares.sum()
    used = shares >= _LEAST_WEIGHT
    shape = NoiseShape(tuple((shares[used] / shares[used].sum()).tolist()), tuple(_FACTORS[used].tolist()))
    return NoiseShape.scaled(shape.weights, shape.factors) if keeps_variance else shape


def gaussian_noise(held_out: Array) -> NoiseShape:
    """A Gaussian with the variance of held-out residuals, which are those of :func:`learn_noise_shape`."""
    residuals, latent_variances, noise_variances, weights = held_out
    excess = float(weights @ (residuals**2 - latent_variances)) / float(weights @ noise_variances)
    return NoiseShape((1.0,), (max(excess, 1.0),))
