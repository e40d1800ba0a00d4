"""A model at one glance: its prediction along the inputs that matter, and how well it predicts rows that are given."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from spngp._support.checks import as_count, as_floats
from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.plotting import _style
from spngp.plotting.density import DensityDisplay
from spngp.plotting.lines import input_names, line, training_rows, without_names

_COLUMNS = 3  # panels in a row
_POINTS = 200  # positions along each input
_OUTER = 0.005  # share of the rows at either end of an input that a panel does not run to


class OverviewDisplay:
    """Panels with the predictive density along each of the most important inputs, the others at their medians.

    With one input there is one panel, with the data. With rows and outputs given, a last panel shows what was observed
    against what was predicted.

    Parameters
    ----------
    panels : list of DensityDisplay
    shares : ndarray of shape (panels, 2)
        The shares of the variance of the mean and of the log std that each panel's input explains, interactions
        included.
    observed : (mean, low, high, y) or None
        Predictions with their 90 % intervals, and what was observed.

    Attributes
    ----------
    axes_ : list of axes
    figure_ : figure

    Examples
    --------
    >>> import numpy as np
    >>> from spngp import GPRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    >>> model = GPRegressor(random_state=0).fit(X, X[:, 1] ** 2 + 0.1 * X[:, 0])
    >>> display = model.plot()
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['x1', 'x0']
    """

    def __init__(self, panels: list[DensityDisplay], shares: Array, observed: tuple[Array, ...] | None = None) -> None:
        self.panels, self.shares, self.observed = panels, shares, observed

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        n_inputs: int = 6,
        output: int = 0,
        ylabel: str = "y",
    ) -> Self:
        """Draw a fitted model.

        Parameters
        ----------
        estimator : SPNGPRegressor or GPRegressor
        X, y : array-like, optional
            Rows to predict and what was observed there.
        n_inputs : int
            The most panels of inputs.
        output : int
            Which output.
        ylabel : str
        """
        n_inputs = as_count(n_inputs, "n_inputs", 1)
        if (X is None) != (y is None):
            raise ValueError(f"X and y go together, got {'y' if X is None else 'X'} alone")
        rows = training_rows(estimator)[0]
        if rows.shape[1] == 1:
            panels, shares = [_panel(estimator, 0, output, ylabel, rows, with_data=True)], np.ones((1, 2))
        else:
            found = estimator.importance()
            shares = np.stack([part.of_output(output).total for part in (found.mean, found.log_std)], axis=1)
            most = np.argsort(-shares[:, 0], kind="stable")[:n_inputs]
            panels = [_panel(estimator, int(j), output, ylabel, rows, with_data=False) for j in most]
            shares = shares[most]
        observed = None
        if X is not None:
            mixture, values = one_output(estimator.predict_dist(X), output), one_output(as_floats(y, "y"), output)
            seen = ~np.isnan(values)
            observed = (mixture.mean[seen], *(border[seen] for border in mixture.interval(0.9)), values[seen])
        return cls(panels, shares, observed).plot()

    def plot(self) -> Self:
        """Draw on a new figure."""
        axes = _style.grid_of_axes(len(self.panels) + (self.observed is not None), _COLUMNS)
        limits = np.array([panel.limits() for panel in self.panels])
        ylim = (float(limits[:, 0].min()), float(limits[:, 1].max()))
        for i, (ax, panel) in enumerate(zip(axes, self.panels, strict=False)):
            panel.plot(ax, interval=0.9, ylim=ylim, n_levels=200, legend=i == 0)
            if len(self.panels) > 1:
                mean, spread = self.shares[i]
                ax.set_title(f"explains {mean:.0%} of the mean, {spread:.0%} of the spread", fontsize="medium")
        if self.observed is not None:
            self._plot_observed(axes[-1])
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _plot_observed(self, ax: Any) -> None:
        assert self.observed is not None
        mean, low, high, y = self.observed
        inside = float(np.mean((low <= y) & (y <= high))) if y.size else float("nan")
        colour = _style.mean_colour(ax)
        ends = (np.minimum(low, mean), np.maximum(high, mean))  # a mean may lie outside a very skew interval
        alpha = max(0.08, min(0.5, 6 / max(1.0, y.size**0.5)))
        ax.vlines(mean, *ends, color=colour, alpha=alpha, lw=1)
        ax.plot(mean, y, "o", color=_style.foreground(), ms=2.6, mew=0, alpha=min(1.0, 2 * alpha))
        whole = _style.limits(np.concatenate([mean, y])) if y.size else (0.0, 1.0)
        ax.plot(whole, whole, color=_style.VERMILION, lw=1)
        ax.set(xlim=whole, ylim=whole, xlabel="predicted", ylabel="observed")
        ax.set_title(f"90 % intervals hold {inside:.0%}", fontsize="medium")


def _panel(estimator: Any, feature: int, output: int, ylabel: str, rows: Array, with_data: bool) -> DensityDisplay:
    ends = (0.0, 1.0) if with_data else (_OUTER, 1.0 - _OUTER)
    low, high = _style.widened(*np.quantile(rows[:, feature], ends).tolist())
    along = line(rows, feature, None, np.linspace(low, high, _POINTS))
    mixture = one_output(without_names(estimator).predict_dist(along.rows), output)
    values = one_output(training_rows(estimator)[1], output) if with_data else None
    return DensityDisplay(
        along.x, mixture, rows[:, feature], values, xlabel=input_names(estimator)[feature], ylabel=ylabel
    )
