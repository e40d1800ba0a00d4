"""The shape of the noise, learnt from leave-one-out residuals of some plausible leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import norm

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.gp.leave_one_out import known_variances, leave_one_out, shares
from spngp.network import Leaf, Node
from spngp.network.prediction import PlacedLeaf
from spngp.noise import GAUSSIAN, NoiseShape

_ROWS_IN_ALL = 12_000  # of all experts that the shape of an output's noise is learnt from, about
_LEAST_PROBABILITY = 0.05  # posterior probability that each of them has at least, as a share of the most probable one's
_ROWS = 2000  # rows of each expert, at most

_FACTORS = 4.0 ** np.arange(-3.0, 7.0)  # variances of the mixture's parts, in units of the noise variance
_GAUSSIAN = 0.5  # prior probability that the noise is Gaussian and has the variance that the GP says
_SPREADS = (0.7, 1.3, 2.0)  # else log variances of single rows have one of these standard deviations,
_CENTRES = np.log(2.0) * np.arange(-5.0, 1.5, 0.5)  # and one of these means
_WIDEST = 64.0  # factor of a part that such a guess may have; farther parts have to be seen
_PSEUDO_ROWS = 20.0  # imaginary rows with noise as those guesses have it, by what the rows say about each
_ROWS_FOR_VARIANCE = 100.0  # from about so many on, rows know the noise variance better than a coarse mixture does
_ROWS_FOR_SCALE = 200.0  # from so many on, what is held out has a say about the scale of the noise
_SHIFTS = 4.0 ** np.array([-0.25, -0.5, 0.25])  # factors of all parts together that are tried then, between two parts
_LEAST_WEIGHT = 1e-5  # parts of the mixture with a smaller weight are dropped
_STEPS = 200  # of expectation–maximisation


def noise_shapes(
    network: Node,
    n_outputs: int,
    doubted: Array | None,
    reach: Array,
    learns: bool,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    *,
    keeps_variance: bool = False,
) -> list[ShapeFound]:
    """The shape of each output's noise, with the variance of what it was learnt from.

    Parameters
    ----------
    network : Node
        A posterior, in the units of learning.
    n_outputs : int
    doubted : ndarray or None
        In the shape of Y, not NaN for outputs in doubt. A leaf's noise variance leaves these out, so for an output that
        has some, the shape gets a variance above one, which includes them.
    reach : ndarray
        For each output, the largest residual that is used: beyond it, outputs are errors and not noise.
    learns : bool
        Whether the shape is learnt; if not, it is Gaussian.
    rng : Generator
        Chooses the leaves and rows to learn from.
    n_jobs : int, optional
    keeps_variance : bool
        Whether the variance of the noise stays that of the GPs, of many rows; see :func:`learn_noise_shape`.
    """
    found = [item for item in network.responsibilities() if item.leaf.gp.rows_seen_once.size]
    leaves = [Weighed(item.leaf.output, item.weight, partial(_of, item)) for item in found]
    adds_variance = [doubted is not None and not bool(np.isnan(doubted[:, k]).all()) for k in range(n_outputs)]
    return shapes_by(leaves, adds_variance, reach, learns, rng, n_jobs, keeps_variance=keeps_variance)


class ShapeFound(NamedTuple):
    """The shape of an output's noise.

    Attributes
    ----------
    shape : NoiseShape
    variance : float
        Of predictions of rows that were left out, on average: that of the function and that of the noise, without what
        is known of single outputs. Zero where no row was left out.
    """

    shape: NoiseShape
    variance: float = 0.0


class Weighed(NamedTuple):
    """A leaf with rows that can be left out one by one, which is opened if it is chosen."""

    output: int
    weight: float
    open: Callable[[], Leaf]


def _of(item: PlacedLeaf) -> Leaf:
    return item.leaf


def shapes_by(
    leaves: Sequence[Weighed],
    adds_variances: Sequence[bool],
    reach: Array,
    learns: bool,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    *,
    keeps_variance: bool = False,
) -> list[ShapeFound]:
    """The shape of each output's noise by some of these leaves; ``adds_variances`` tells which outputs are in doubt."""

    def residuals(task: tuple[Leaf, float, Indices]) -> Array:
        leaf, weight, rows = task
        residual, latent_variance = leave_one_out(leaf.gp, rows)
        noise = leaf.noise_of_own(rows)
        told = noise, weight * shares(leaf.gp, rows), known_variances(leaf.gp, rows)
        return np.stack(np.broadcast_arrays(residual, latent_variance, *told))

    shapes: list[ShapeFound] = []
    for k, adds_variance in enumerate(adds_variances):
        weights = np.array([item.weight if item.output == k else 0.0 for item in leaves])
        least = max(_LEAST_PROBABILITY * weights.max(initial=0.0), np.finfo(float).tiny)
        tasks, n_rows = [], 0
        for i in rng.permutation(np.flatnonzero(weights >= least)):
            leaf = leaves[i].open()
            rows = leaf.gp.rows_seen_once
            tasks.append((leaf, leaves[i].weight, rng.choice(rows, min(rows.size, _ROWS), replace=False)))
            n_rows += tasks[-1][-1].size
            if n_rows >= _ROWS_IN_ALL:
                break
        if not tasks or not (learns or adds_variance):
            shapes.append(ShapeFound(GAUSSIAN))
            continue
        found = np.concatenate(map_leaves(residuals, tasks, n_jobs), axis=1)
        found = found[:, np.abs(found[0]) <= reach[k]]
        held_out, known = found[:4], found[4]
        shape = learn_noise_shape(held_out, adds_variance, keeps_variance) if learns else gaussian_noise(held_out)
        shapes.append(ShapeFound(shape, _mean_variance(held_out, known)))
    return shapes


def _mean_variance(held_out: Array, known: Array) -> float:
    """Variance of predictions of rows that were held out, given as in :func:`learn_noise_shape`, without what is known.

    A new output has no known variance.
    """
    _, latent, noise, weights = held_out
    total = float(weights.sum())
    return float(weights @ (latent - known + noise)) / total if total > 0.0 else 0.0


def learn_noise_shape(held_out: Array, adds_variance: bool = False, keeps_variance: bool = False) -> NoiseShape:
    """The shape that held-out residuals show, and as far as they are few, that they let one expect.

    Few rows choose between guesses: a Gaussian, and scale mixtures whose log variances are normal, of several spreads
    and centres. Their average, each by its posterior probability, is the prior of a free mixture in units of
    ``_PSEUDO_ROWS`` rows, which is brought to its maximum by expectation–maximisation.

    GPs learn their noise from their own rows as they stand. What they predict of a row that is held out, by other rows
    and by parameters that many rows share, may be off by more, or by less. So from ``_ROWS_FOR_SCALE`` rows on, the
    mixture is also scaled to where held-out residuals are likeliest, and the more rows there are, the more its variance
    is the one that it then has.

    Parameters
    ----------
    held_out : ndarray of shape (4, n)
        For each row that was held out: its output minus the predicted mean; the variance of the latent function; the
        noise variance; the row's weight, 1 for a whole row.
    adds_variance : bool
        Whether the noise variances leave out outputs in doubt, so that the shape's is above one.
    keeps_variance : bool
        Whether the shape of many rows has variance one: to judge GPs by, whose noise has no excuse to be off. That of
        few rows is as wide as their guesses are.
    """
    weights = held_out[3]
    n_rows = float(weights.sum())
    guesses, prior = _guesses()
    density = _densities(held_out, _FACTORS)
    log_posterior = np.log(prior) + weights @ np.log(density @ guesses.T + np.finfo(float).tiny)
    posterior = np.exp(log_posterior - log_posterior.max())
    imaginary = _PSEUDO_ROWS * (posterior / posterior.sum()) @ guesses
    factors, shares = _FACTORS, _maximised(np.full(_FACTORS.size, 1.0 / _FACTORS.size), density, weights, imaginary)
    width = _ROWS_FOR_VARIANCE / (n_rows + _ROWS_FOR_VARIANCE)  # power of the mixture's variance that is believed
    if not keeps_variance and n_rows > _ROWS_FOR_SCALE:
        found = [(_log_likelihood(held_out, shares, factors), factors, shares)]
        for shift in _SHIFTS:
            factors = shift * _FACTORS
            shares = _maximised(shares, _densities(held_out, factors), weights, imaginary)
            found.append((_log_likelihood(held_out, shares, factors), factors, shares))
        _, factors, shares = max(found, key=lambda one: one[0])
        factors = factors * _likeliest_scale(held_out, shares, factors)
        width = max(width, 1.0 - _ROWS_FOR_SCALE / n_rows)
    used = shares >= _LEAST_WEIGHT
    shares, factors = shares[used] / shares[used].sum(), factors[used]
    if not adds_variance:
        factors = factors * float(shares @ factors) ** (width - 1.0)
    return NoiseShape(tuple(shares.tolist()), tuple(factors.tolist()))


def _maximised(shares: Array, density: Array, weights: Array, imaginary: Array) -> Array:
    """Shares of the parts by expectation–maximisation, from these on."""
    for _ in range(_STEPS):
        shares = imaginary + shares * ((weights / (density @ shares)) @ density)
        shares /= shares.sum()
    return shares


def _densities(held_out: Array, factors: Array) -> Array:
    """Density of each residual, (n, parts), if its noise were that of the part; a row's largest is one."""
    variances = _variances(held_out, factors)
    log_density = -0.5 * np.log(variances) - 0.5 * held_out[0][:, np.newaxis] ** 2 / variances
    return np.asarray(np.exp(log_density - log_density.max(axis=1, keepdims=True)))


def _log_likelihood(held_out: Array, shares: Array, factors: Array) -> float:
    """Log density of all residuals under the mixture, without a constant."""
    return float(held_out[3] @ _log_densities(held_out, shares, factors))


def _log_densities(held_out: Array, shares: Array, factors: Array) -> Array:
    """The same of each residual, as one whole row."""
    variances = _variances(held_out, factors)
    parts = np.log(np.maximum(shares, np.finfo(float).tiny)) - 0.5 * np.log(variances)
    return np.asarray(logsumexp(parts - 0.5 * held_out[0][:, np.newaxis] ** 2 / variances, axis=1))


def log_densities(held_out: Array, shape: NoiseShape) -> Array:
    """Log density of each residual, given as in :func:`learn_noise_shape`, without a constant."""
    return _log_densities(held_out, np.array(shape.weights), np.array(shape.factors))


def _variances(held_out: Array, factors: Array) -> Array:
    """Variance of each residual, (n, parts), if its noise were that of the part."""
    return np.asarray(held_out[1][:, np.newaxis] + held_out[2][:, np.newaxis] * factors)


def _likeliest_scale(held_out: Array, shares: Array, factors: Array) -> float:
    """The common factor of all parts with which the residuals are likeliest, near one."""
    nearest = np.log(_FACTORS[1] / _FACTORS[0]) / 2.0
    found = minimize_scalar(
        lambda log_scale: -_log_likelihood(held_out, shares, factors * np.exp(log_scale)),
        bounds=(-nearest, nearest),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return float(np.exp(found.x))


def _guesses() -> tuple[Array, Array]:
    """Shapes that noise often has, as weights of the mixture's parts, (m, parts), and their prior probabilities."""
    borders = np.log(_FACTORS[:-1] * _FACTORS[1:]) / 2.0
    borders[_FACTORS[1:] > _WIDEST] = np.inf
    rows = [np.where(_FACTORS == 1.0, 1.0, 0.0)]
    for spread in _SPREADS:
        for centre in _CENTRES:
            below = norm.cdf((borders - centre) / spread)
            rows.append(np.diff(np.concatenate([[0.0], below, [1.0]])))
    others = len(rows) - 1
    return np.array(rows), np.array([_GAUSSIAN, *[(1.0 - _GAUSSIAN) / others] * others])


def gaussian_noise(held_out: Array) -> NoiseShape:
    """A Gaussian with the variance of held-out residuals, given as in :func:`learn_noise_shape`."""
    residuals, latent_variances, noise_variances, weights = held_out
    excess = float(weights @ (residuals**2 - latent_variances)) / float(weights @ noise_variances)
    return NoiseShape((1.0,), (max(excess, 1.0),))
