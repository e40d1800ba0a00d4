"""The shape of the noise: Gaussian, or another one that leave-one-out residuals have shown.

Leaves are exact GPs with Gaussian noise, which sets the mean of every prediction. Real noise often has a sharper peak
and longer tails: a few rows lie ten standard deviations off. A :class:`NoiseShape` mixes Gaussians of different widths,

    noise ~ Σ_j weight_j N(0, factor_j · noise_variance),

learnt from closed-form leave-one-out residuals. Means and evidences stay as they are; variances, densities, quantiles
and intervals are what rows that were held out show. A further part of small weight is for surprises: outputs that no
noise seen so far explains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spngp._support.types import Array


@dataclass(frozen=True)
class NoiseShape:
    """A scale mixture of Gaussians with mean zero; its variance is in units of the noise variance, near one.

    Parameters
    ----------
    weights, factors : tuple of float
        Probability and variance of each part.
    surprises : bool
        Whether the last part is one of surprises. Where the noise of a GP changes with the inputs, other parts change
        with it, but a surprise is never smaller than where the noise is usual.

    Examples
    --------
    >>> from spngp.noise import NoiseShape
    >>> shape = NoiseShape.scaled([0.9, 0.1], [1.0, 11.0])
    >>> shape.factors
    (0.5, 5.5)
    """

    weights: tuple[float, ...] = (1.0,)
    factors: tuple[float, ...] = (1.0,)
    surprises: bool = False

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

    def with_surprises(self, probability: float, factor: float) -> NoiseShape:
        """The shape with a further part: rare outputs that the noise of the others says nothing about.

        Parameters
        ----------
        probability : float
            Weight of the further part, between 0 and 1.
        factor : float
            Its variance.

        Examples
        --------
        >>> from spngp.noise import GAUSSIAN
        >>> GAUSSIAN.with_surprises(0.01, 100.0)
        NoiseShape(weights=(0.99, 0.01), factors=(1.0, 100.0), surprises=True)
        """
        weights = tuple((1.0 - probability) * weight for weight in self.weights)
        return NoiseShape((*weights, probability), (*self.factors, factor), surprises=True)

    def variances(self, noise: Array, usual: float) -> Array:
        """Variance of each part, (n, parts), where that of the noise is ``noise``, (n,), and usually ``usual``."""
        found = noise[:, np.newaxis] * np.array(self.factors)
        if self.surprises:
            found[:, -1] = np.maximum(noise, usual) * self.factors[-1]
        return found

    def variance_at(self, noise: Array, usual: float) -> Array:
        """Variance of all parts together, (n,)."""
        return np.asarray(self.variances(noise, usual) @ np.array(self.weights))

    def sample(self, noise: Array, usual: float, n_samples: int, rng: np.random.Generator) -> Array:
        """Independent draws, (n, n_samples), where the variance of the noise is ``noise`` and usually ``usual``."""
        size = (noise.size, n_samples)
        part = rng.choice(len(self.weights), size, p=self.weights)
        stds = np.sqrt(self.variances(noise, usual))
        return np.take_along_axis(stds, part, axis=1) * rng.standard_normal(size)


GAUSSIAN = NoiseShape()
