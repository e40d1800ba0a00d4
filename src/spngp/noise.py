"""The shape of the noise: Gaussian noise is an assumption, and residuals of held-out rows say what is true of it.

Leaves are exact GPs with Gaussian noise, which sets the mean and the variance of every prediction. Real noise often has
a sharper peak and longer tails of the same variance: a few rows lie ten standard deviations off. A :class:`NoiseShape`
keeps the variance and mixes Gaussians of different widths,

    noise ~ Σ_j weight_j N(0, factor_j · noise_variance),   Σ_j weight_j factor_j = 1,

with weights learnt from closed-form leave-one-out residuals. Means, variances and evidences stay as they are;
densities, quantiles and intervals get the right shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spngp._support.types import Array

# Factors of the noise variance that are tried.
_FACTORS = 4.0 ** np.arange(-2.0, 7.0)
_PSEUDO_ROWS = 20.0  # rows in favour of plain Gaussian noise, so that a small set keeps it
_LEAST_WEIGHT = 1e-5
_STEPS = 200


@dataclass(frozen=True)
class NoiseShape:
    """A scale mixture of Gaussians with mean zero; its variance is in units of the noise variance, one as a rule.

    Parameters
    ----------
    weights, factors : tuple of float
        Probability and variance of each part.

    Examples
    --------
    >>> from spngp.noise import NoiseShape
    >>> shape = NoiseShape.scaled([0.9, 0.1], [1.0, 11.0])
    >>> shape.factors
    (0.5, 5.5)
    """

    weights: tuple[float, ...] = (1.0,)
    factors: tuple[float, ...] = (1.0,)

    @staticmethod
    def scaled(weights: ArrayLike, factors: ArrayLike) -> NoiseShape:
        """The shape with these proportions, brought to variance one."""
        shares, variances = np.asarray(weights, dtype=np.float64), np.asarray(factors, dtype=np.float64)
        shares = shares / shares.sum()
        return NoiseShape(tuple(shares.tolist()), tuple((variances / (shares @ variances)).tolist()))

    @property
    def variance(self) -> float:
        """Σ_j weight_j factor_j."""
        return float(np.dot(self.weights, self.factors))

    def sample(self, size: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Independent draws."""
        part = rng.choice(len(self.weights), size, p=self.weights)
        return np.sqrt(np.array(self.factors))[part] * rng.standard_normal(size)


GAUSSIAN = NoiseShape()


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
