"""How good is a predictive distribution? Scores of Gaussian mixtures against what was observed.

All take a :class:`~spngp.predictive.GaussianMixture`, or a :class:`~spngp.transformed.TransformedMixture`, and the
observed values of the same shape; NaN is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from spngp._support.checks import as_floats
from spngp._support.types import Array
from spngp.mixture_spread import mean_absolute, mean_difference
from spngp.predictive import GaussianMixture
from spngp.transformed import TransformedMixture

Distribution: TypeAlias = GaussianMixture | TransformedMixture

_NUMBERS_AT_ONCE = 2**20  # rows times components scored together: bounds the memory
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # probabilities of the central intervals whose coverage is reported
_BINS = 10  # bins of the histogram of the probability integral transform


def rmse(mixture: Distribution, y: Any) -> float:
    """Root mean squared error of the mean."""
    return float(np.sqrt(np.nanmean((_observed(mixture, y) - mixture.mean) ** 2)))


def nlpd(mixture: Distribution, y: Any) -> float:
    """Mean negative log predictive density: lower is better, in nats."""
    return float(-np.nanmean(mixture.logpdf(_observed(mixture, y))))


def crps(mixture: Distribution, y: Any) -> float:
    """Mean continuous ranked probability score, in the units of y: E|Y − y| − ½ E|Y − Y'|.

    Examples
    --------
        >>> import numpy as np
        >>> from spngp.metrics import crps
        >>> from spngp.predictive import GaussianMixture
        >>> standard_normal = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
        >>> round(crps(standard_normal, [0.0]), 4)
        0.2337
    """
    return float(np.nanmean(crps_of_rows(mixture, y)))


def crps_of_rows(mixture: Distribution, y: Any) -> Array:
    """Continuous ranked probability score of each observation, in the shape of y; NaN where y is.

    In closed form for up to 16 components; for more, within 1e-8 of the mean distance between two draws, E|Y − Y'|. Of
    a transformed mixture, by quadrature, to about 1e-6 of itself.
    """
    y = _observed(mixture, y)
    if isinstance(mixture, TransformedMixture):
        return mixture.crps_of_rows(y)
    size = mixture.means.shape[-1]
    observed = y.reshape(-1)
    log_weights, means, variances = (
        part.reshape(-1, size) for part in (mixture.log_weights, mixture.means, mixture.variances)
    )
    scores = np.empty(observed.size)
    step = max(1, _NUMBERS_AT_ONCE // size)
    for start in range(0, observed.size, step):
        rows = slice(start, start + step)
        weights = np.exp(log_weights[rows])
        used = weights > 0
        centres, widths = np.where(used, means[rows], 0.0), np.where(used, variances[rows], 1.0)
        error = np.einsum("ik,ik->i", weights, mean_absolute(observed[rows, np.newaxis] - centres, widths))
        scores[rows] = error - 0.5 * mean_difference(weights, centres, widths)
    return scores.reshape(y.shape)


def coverage(mixture: Distribution, y: Any, level: float = 0.95) -> float:
    """Share of observations inside the central interval of that probability."""
    y = _observed(mixture, y)
    low, high = mixture.interval(level)
    return float(((low <= y) & (y <= high))[~np.isnan(y)].mean())


def sharpness(mixture: Distribution, level: float = 0.95) -> float:
    """Mean width of the central interval of that probability, in the units of y."""
    low, high = mixture.interval(level)
    return float(np.mean(high - low))


def pit(mixture: Distribution, y: Any) -> Array:
    """Probability integral transform: the predictive cdf at each observation; uniform if calibrated."""
    return mixture.cdf(_observed(mixture, y))


@dataclass(frozen=True)
class Scores:
    """How good predictions of one output are, over all rows where it was observed; NaN if there are none.

    Attributes
    ----------
    n : int
        Number of observations.
    rmse, mae : float
        Root mean squared and mean absolute error of the mean, in the units of y.
    nlpd : float
        Mean negative log predictive density, in nats.
    crps : float
        Mean continuous ranked probability score, in the units of y.
    std_of_y, mean_std : float
        Standard deviation of what was observed, and mean of what was predicted.
    coverage : dict of float to float
        Share of observations inside the central interval of each probability.
    pit : tuple of float
        Share of observations in each tenth of the predictive cdf; all equal if calibrated.
    """

    n: int
    rmse: float
    mae: float
    nlpd: float
    crps: float
    std_of_y: float
    mean_std: float
    coverage: dict[float, float]
    pit: tuple[float, ...]

    @property
    def r2(self) -> float:
        """Share of the variance of y that the mean explains; NaN if y is constant."""
        return 1.0 - (self.rmse / self.std_of_y) ** 2 if self.std_of_y > 0 else float("nan")


def scores(mixture: Distribution, y: Any, levels: Sequence[float] = LEVELS) -> Scores:
    """All scores of predictions of one output, shape (n,); NaN in y is left out.

    Examples
    --------
        >>> import numpy as np
        >>> from spngp.metrics import scores
        >>> from spngp.predictive import GaussianMixture
        >>> standard_normal = GaussianMixture(np.zeros((3, 1)), np.zeros((3, 1)), np.ones((3, 1)))
        >>> found = scores(standard_normal, [-1.0, 1.0, 3.0])
        >>> round(found.rmse, 3), round(found.coverage[0.95], 3)
        (1.915, 0.667)
    """
    tally = Tally()
    tally.add(mixture, y)
    return tally.scores(levels)


class Tally:
    """Gathers the scores of one output batch by batch; it keeps five numbers per row."""

    def __init__(self) -> None:
        self._rows: list[Array] = [np.empty((5, 0))]
        self._crps = 0.0

    def add(self, mixture: Distribution, y: Any) -> None:
        """Compare a batch of predictions, shape (n,), with what was observed."""
        y = _observed(mixture, y)
        seen = ~np.isnan(y)
        if seen.any():
            mixture, y = mixture[seen], y[seen]
            self._rows.append(np.stack([y, mixture.mean, mixture.std, mixture.logpdf(y), pit(mixture, y)]))
            self._crps += crps(mixture, y) * y.size

    def scores(self, levels: Sequence[float] = LEVELS) -> Scores:
        """The scores of all batches together."""
        y, mean, std, log_density, cdf = np.concatenate(self._rows, axis=1)
        if not y.size:
            nan = float("nan")
            return Scores(0, nan, nan, nan, nan, nan, nan, dict.fromkeys(levels, nan), (nan,) * _BINS)
        counts, _ = np.histogram(cdf, bins=_BINS, range=(0.0, 1.0))
        return Scores(
            n=int(y.size),
            rmse=float(np.sqrt(np.mean((y - mean) ** 2))),
            mae=float(np.mean(np.abs(y - mean))),
            nlpd=float(-np.mean(log_density)),
            crps=self._crps / y.size,
            std_of_y=float(np.std(y)),
            mean_std=float(np.mean(std)),
            # y lies in the central interval of that probability exactly if its cdf lies in the middle share
            coverage={level: float(np.mean(np.abs(cdf - 0.5) <= 0.5 * level)) for level in levels},
            pit=tuple((counts / y.size).tolist()),
        )


def _observed(mixture: Distribution, y: Any) -> Array:
    values = as_floats(y, "y")
    if values.shape != mixture.shape:
        raise ValueError(f"y must have the shape of the predictions, {mixture.shape}, got {values.shape}")
    return values
