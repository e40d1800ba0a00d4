"""Are predictions as certain as they say? The probability integral transform and the coverage of intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.stats import binom

from spngp import metrics
from spngp._support.checks import as_floats
from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.plotting import _style
from spngp.predictive import GaussianMixture


def coverage_curve(pit: Array, levels: Array) -> Array:
    """Share of observations inside the central interval of each probability.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.plotting.calibration import coverage_curve
    >>> coverage_curve(np.array([0.05, 0.3, 0.5, 0.9]), np.array([0.5, 0.95]))
    array([0.5, 1. ])
    """
    return np.asarray((np.abs(2.0 * pit - 1.0)[:, np.newaxis] <= levels + 1e-12).mean(axis=0))


class CalibrationDisplay:
    """Two panels: a histogram of the probability integral transform, and coverage against nominal coverage.

    If predictions are calibrated, the histogram is flat and the coverage is on the diagonal, up to chance: for this
    number of rows, it stays inside the shaded band in 95 % of cases.

    Parameters
    ----------
    pit : array-like of shape (n,)
        The predictive cdf at each observation.

    Attributes
    ----------
    axes_, figure_ : the two axes and the figure

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.plotting import CalibrationDisplay
    >>> from spngp.predictive import GaussianMixture
    >>> y = np.random.default_rng(0).standard_normal(200)
    >>> mixture = GaussianMixture(np.zeros((200, 1)), np.zeros((200, 1)), np.ones((200, 1)))
    >>> CalibrationDisplay.from_predictions(mixture, y).pit.shape
    (200,)
    """

    def __init__(self, pit: Any) -> None:
        self.pit = as_floats(pit, "pit").ravel()
        if self.pit.size == 0 or not ((self.pit >= 0) & (self.pit <= 1)).all():
            raise ValueError(f"pit must hold at least one value, all in [0, 1], got {self.pit.size} values")

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, output: int = 0, axes: Any = None) -> Self:
        """Draw for rows that the model has not seen; missing outputs are left out."""
        mixture = one_output(estimator.predict_dist(X), output)
        return cls.from_predictions(mixture, one_output(as_floats(y, "y"), output), axes=axes)

    @classmethod
    def from_predictions(cls, mixture: GaussianMixture, y: Any, *, axes: Any = None) -> Self:
        """Draw for mixtures and what was observed; NaN is left out."""
        values = metrics.pit(mixture, y)
        return cls(values[~np.isnan(values)]).plot(axes)

    def plot(self, axes: Any = None, *, n_bins: int | None = None) -> Self:
        """Draw on two axes, or on those of a new figure."""
        axes = _style.two_axes(axes, figsize=(8.4, 3.8))
        n = self.pit.size
        n_bins = int(np.clip(n // 15, 5, 20)) if n_bins is None else n_bins
        grey = {"color": _style.foreground(), "alpha": 0.14, "lw": 0}
        low, high = binom.ppf([0.025, 0.975], n, 1.0 / n_bins) * n_bins / n
        axes[0].hist(self.pit, np.linspace(0, 1, n_bins + 1), density=True, color=_style.SKY, ec=_style.BLUE, lw=0.8)
        axes[0].axhspan(low, high, zorder=2, **grey)
        axes[0].axhline(1.0, color=_style.foreground(), lw=1, ls="--")
        axes[0].set(xlabel="predictive cdf at the observation (PIT)", ylabel="density", xlim=(0, 1))
        levels = np.linspace(0.0, 1.0, 101)
        band = binom.ppf([[0.025], [0.975]], n, levels) / n
        axes[1].fill_between(levels, *band, **grey)
        axes[1].plot([0, 1], [0, 1], color=_style.foreground(), lw=1, ls="--", label="calibrated")
        axes[1].plot(levels, coverage_curve(self.pit, levels), color=_style.VERMILION, lw=1.8, label=counted(n, "row"))
        axes[1].set(xlabel="probability of the central interval", ylabel="share of observations inside")
        axes[1].set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes[1].legend(loc="upper left", frameon=False)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
