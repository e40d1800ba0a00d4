"""What a model believes along one input: the density of its prediction in grey."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from spngp._support.checks import as_floats
from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.network import Node
from spngp.plotting import _style
from spngp.plotting.lines import as_line, input_names, line, training_rows, without_names
from spngp.predictive import GaussianMixture


class DensityDisplay:
    """The predictive density along one input, with its mean, a central interval and the data.

    With several inputs it is a slice: the other inputs stay at their medians, or at the row given. Rows of the data do
    not lie in the slice then, so only their positions along the input are marked, as a rug.

    Parameters
    ----------
    x : array-like of shape (m,)
        Positions along the input.
    mixture : GaussianMixture
        The prediction at each.
    X, y : array-like of shape (n,), optional
        Data: positions and outputs. Positions alone are drawn as a rug.
    xlabel, ylabel : str

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure

    Examples
    --------
    >>> from spngp import GPRegressor, datasets
    >>> from spngp.plotting import DensityDisplay
    >>> data = datasets.load("motorcycle")
    >>> model = GPRegressor(random_state=0).fit(data.X, data.Y[:, 0])
    >>> display = DensityDisplay.from_estimator(model, ylabel="acceleration (g)")
    >>> display.ax_.get_ylabel()
    'acceleration (g)'
    """

    def __init__(
        self, x: Any, mixture: GaussianMixture, X: Any = None, y: Any = None, *, xlabel: str = "x", ylabel: str = "y"
    ) -> None:
        self.x = as_floats(x, "x").ravel()
        if mixture.shape != self.x.shape:
            raise ValueError(f"mixture must have one prediction per x, {self.x.shape}, got {mixture.shape}")
        self.mixture = mixture
        self.X = None if X is None else as_floats(X, "X").ravel()
        self.y = None if y is None else as_floats(y, "y").ravel()
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        feature: int = 0,
        at: Any = None,
        output: int = 0,
        grid: Any = None,
        ylabel: str = "y",
        **plot: Any,
    ) -> Self:
        """Draw a fitted model along one input, with the rows it has learnt from unless others are given.

        Parameters
        ----------
        estimator : SPNGPRegressor or GPRegressor
        X, y : array-like, optional
            Rows to show; those of training by default.
        feature : int
            The input to run along.
        at : array-like of shape (d,), optional
            Where all other inputs are held; their medians by default.
        output : int
            Which output.
        grid : array-like, optional
            Positions along the input; 400 over the range of the rows by default.
        ylabel : str
        **plot
            Passed to :meth:`plot`.
        """
        seen, outputs = training_rows(estimator)
        rows = seen if X is None else as_floats(X, "X").reshape(-1, seen.shape[1])
        along = line(rows, feature, at, grid)
        mixture = one_output(without_names(estimator).predict_dist(along.rows), output)
        values: Array | None = None
        if rows.shape[1] == 1 and (X is None or y is not None):
            values = one_output(outputs if X is None else as_floats(y, "y"), output)
        name = input_names(estimator)[feature]
        return cls(along.x, mixture, rows[:, feature], values, xlabel=name, ylabel=ylabel).plot(**plot)

    @classmethod
    def from_network(
        cls,
        network: Node,
        grid: Any,
        X: Any = None,
        y: Any = None,
        *,
        output: int = 0,
        xlabel: str = "x",
        ylabel: str = "y",
        **plot: Any,
    ) -> Self:
        """Draw a network, prior or posterior, of one input at the positions of ``grid``."""
        x, rows = as_line(grid)
        mixture = one_output(network.predict_dist(rows), output)
        return cls(x, mixture, X, y, xlabel=xlabel, ylabel=ylabel).plot(**plot)

    @classmethod
    def from_predictions(cls, x: Any, mixture: GaussianMixture, X: Any = None, y: Any = None, **options: Any) -> Self:
        """Draw mixtures that were computed elsewhere, one per position."""
        labels = {name: options.pop(name) for name in ("xlabel", "ylabel") if name in options}
        return cls(x, mixture, X, y, **labels).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        interval: float | None = 0.95,
        mean: bool = True,
        relative: bool = True,
        ylim: tuple[float, float] | None = None,
        n_levels: int = 400,
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : axes, optional
        interval : float or None
            Probability of the central interval whose borders are drawn; None for no interval.
        mean : bool
            Whether to draw the mean.
        relative : bool
            Grey relative to the highest density at the same position (default), which shows shape; else relative to
            the highest of all, which shows that a wide prediction is a thin one.
        ylim : (low, high), optional
        n_levels : int
            Rows of the grey image.
        legend : bool
        """
        ax = _style.axes(ax)
        low, high = self.limits() if ylim is None else ylim
        levels = np.linspace(low, high, n_levels)
        density = self.mixture.density(levels).T
        top = density.max(axis=0) if relative else density.max()
        shade = np.sqrt(density / np.where(top > 0, top, 1.0))  # the root lets tails show
        self.image_ = ax.pcolormesh(
            self.x, levels, shade, cmap=_style.greys(ax), vmin=0.0, vmax=1.7, shading="nearest", rasterized=True
        )
        if interval is not None:
            for border in self.mixture.interval(interval):
                ax.plot(self.x, border, color=_style.VERMILION, lw=0.9, label=f"{interval:.0%} interval")
        if mean:
            ax.plot(self.x, self.mixture.mean, color=_style.mean_colour(ax), lw=1.6, label="mean")
        if self.X is not None and self.y is not None:
            style = {"color": _style.foreground(), "ms": 3.2, "mew": 0}
            ax.plot(self.X, self.y, "o", alpha=max(0.25, min(1.0, 30 / self.X.size**0.5)), label="data", **style)
        elif self.X is not None:
            base = np.full(self.X.size, 0.012)  # of the height of the axes
            ax.plot(self.X, base, "|", transform=ax.get_xaxis_transform(), color=_style.foreground(), ms=6, alpha=0.35)
        ax.set(xlim=(self.x.min(), self.x.max()), ylim=(low, high))
        ax.set_xlabel(self.xlabel, parse_math=False)
        ax.set_ylabel(self.ylabel, parse_math=False)
        if legend:
            handles, names = ax.get_legend_handles_labels()
            distinct = dict(zip(names, handles, strict=True))
            ax.legend(distinct.values(), distinct.keys(), loc="best", framealpha=0.85)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def limits(self) -> tuple[float, float]:
        """Limits of y that hold nearly all of the prediction, and the data."""
        low, high = self.mixture.interval(0.995)
        values = [low, high] if self.y is None else [low, high, self.y[~np.isnan(self.y)]]
        return _style.limits(np.concatenate(values))
