"""How good is a predictive distribution? Scores of Gaussian mixtures against what was observed.

All take a :class:`~spngp.predictive.GaussianMixture` and the observed values of the same shape; NaN is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from spngp._support.checks import as_floats
from spngp._support.types import Array
from spngp.predictive import GaussianMixture


def rmse(mixture: GaussianMixture, y: Any) -> float:
    """Root mean squared error of the mean."""
    return float(np.sqrt(np.nanmean((_observed(mixture, y) - mixture.mean) ** 2)))


def nlpd(mixture: GaussianMixture, y: Any) -> float:
    """Mean negative log predictive density: lower is better, in nats."""
    return float(-np.nanmean(mixture.logpdf(_observed(mixture, y))))


def crps(mixture: GaussianMixture, y: Any) -> float:
    """Mean continuous ranked probability score, in the units of y: E|Y − y| − ½ E|Y − Y'|, in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.metrics import crps
    >>> from spngp.predictive import GaussianMixture
    >>> standard_normal = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
    >>> round(crps(standard_normal, [0.0]), 4)
    0.2337
    """
    y = _observed(mixture, y)[..., np.newaxis]
    weights, means, variances = mixture.weights, mixture.means, mixture.variances
    error = np.einsum("...k,...k->...", weights, _mean_absolute(y - means, variances))
    spread = _mean_absolute(
        means[..., :, np.newaxis] - means[..., np.newaxis, :],
        variances[..., :, np.newaxis] + variances[..., np.newaxis, :],
    )
    return float(np.nanmean(error - 0.5 * np.einsum("...j,...k,...jk->...", weights, weights, spread)))


def coverage(mixture: GaussianMixture, y: Any, level: float = 0.95) -> float:
    """Share of observations inside the central interval of that probability."""
    y = _observed(mixture, y)
    low, high = mixture.interval(level)
    return float(((low <= y) & (y <= high))[~np.isnan(y)].mean())


def sharpness(mixture: GaussianMixture, level: float = 0.95) -> float:
    """Mean width of the central interval of that probability, in the units of y."""
    low, high = mixture.interval(level)
    return float(np.mean(high - low))


def pit(mixture: GaussianMixture, y: Any) -> Array:
    """Probability integral transform: the predictive cdf at each observation; uniform if calibrated."""
    return mixture.cdf(_observed(mixture, y))


def _observed(mixture: GaussianMixture, y: Any) -> Array:
    values = as_floats(y, "y")
    if values.shape != mixture.shape:
        raise ValueError(f"y must have the shape of the predictions, {mixture.shape}, got {values.shape}")
    return values


def _mean_absolute(mean: Array, variance: Array) -> Array:
    """E|Z| of a normal variable."""
    std = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))
    z = mean / std
    return np.asarray(mean * (2.0 * ndtr(z) - 1.0) + 2.0 * std * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
