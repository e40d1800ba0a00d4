"""What a model believes over two inputs: maps of mean and standard deviation, with the borders of regions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from spngp._support.checks import as_count, as_floats
from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.plotting import _style
from spngp.plotting.expert_regions import ExpertRegion, expert_regions
from spngp.plotting.lines import input_names, training_rows, without_names


class PlaneDisplay:
    """Maps of the predictive mean and standard deviation over two inputs, the other inputs held where they are.

    Parameters
    ----------
    x, y : array-like of shape (m,) and (k,)
        Positions along the two inputs.
    mean, std : array-like of shape (k, m)
    borders : list of (x0, x1, y0, y1, weight)
        Rectangles of regions, clipped to the map, and how plausible each is.
    rows : ndarray of shape (n, 2), optional
        Data to mark.
    xlabel, ylabel, title : str

    Attributes
    ----------
    axes_, figure_ : the two axes (mean, standard deviation) and the figure

    Examples
    --------
    >>> import numpy as np
    >>> from spngp import SPNGPRegressor
    >>> from spngp.plotting import PlaneDisplay
    >>> X = np.random.default_rng(0).uniform(size=(60, 2))
    >>> model = SPNGPRegressor(max_leaf_size=30, hyperparameters="fixed", random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> display = PlaneDisplay.from_estimator(model, n_points=10)
    >>> display.mean.shape
    (10, 10)
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        mean: Any,
        std: Any,
        *,
        borders: list[tuple[float, float, float, float, float]] | None = None,
        rows: Array | None = None,
        xlabel: str = "x0",
        ylabel: str = "x1",
        title: str = "y",
    ) -> None:
        self.x, self.y = as_floats(x, "x").ravel(), as_floats(y, "y").ravel()
        self.mean, self.std = as_floats(mean, "mean"), as_floats(std, "std")
        for name in ("mean", "std"):
            if getattr(self, name).shape != (self.y.size, self.x.size):
                shape = (self.y.size, self.x.size)
                raise ValueError(f"{name} must have shape (len(y), len(x)) = {shape}, got {getattr(self, name).shape}")
        self.borders, self.rows = borders or [], rows
        self.xlabel, self.ylabel, self.title = xlabel, ylabel, title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        features: tuple[int, int] = (0, 1),
        at: Any = None,
        output: int = 0,
        n_points: int = 80,
        title: str = "y",
        axes: Any = None,
    ) -> Self:
        """Draw a fitted model over two of its inputs, the other inputs at their medians or ``at`` a row.

        Data are marked only if the model has no other inputs; otherwise they do not lie in this plane.
        """
        X = training_rows(estimator)[0]
        d = X.shape[1]
        if d < 2:
            raise ValueError(f"PlaneDisplay needs a model of at least two inputs, got {d}")
        i, j = (as_count(feature, "features", 0) for feature in features)
        if i == j or max(i, j) >= d:
            raise ValueError(f"features must be two different inputs out of {d}, 0 to {d - 1}, got {tuple(features)}")
        centre = np.median(X, axis=0) if at is None else as_floats(at, "at").ravel()
        if centre.shape != (d,):
            raise ValueError(f"at must have one value per input ({d}), got shape {centre.shape}")
        x, y = (np.linspace(*_style.limits(X[:, k]), n_points) for k in (i, j))
        rows = np.tile(centre, (n_points * n_points, 1))
        rows[:, i], rows[:, j] = np.tile(x, n_points), np.repeat(y, n_points)
        mixture = one_output(without_names(estimator).predict_dist(rows), output)
        shape = (n_points, n_points)
        names = input_names(estimator)
        return cls(
            x,
            y,
            mixture.mean.reshape(shape),
            mixture.std.reshape(shape),
            borders=_borders(expert_regions(estimator, output), (i, j), centre, (x, y)),
            rows=X[:, [i, j]] if d == 2 else None,
            xlabel=names[i],
            ylabel=names[j],
            title=title,
        ).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw on two axes, or on those of a new figure."""
        axes = _style.two_axes(axes, figsize=(10, 4.2), sharex=True, sharey=True)
        for ax, values, colours, name in zip(
            axes, (self.mean, self.std), ("cividis", "magma"), ("mean", "standard deviation"), strict=True
        ):
            image = ax.pcolormesh(self.x, self.y, values, cmap=colours, shading="nearest", rasterized=True)
            ax.figure.colorbar(image, ax=ax, label=f"{name} of {self.title}".replace("$", r"\$"))
            for x0, x1, y0, y1, weight in self.borders:
                ax.plot([x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0], color="white", lw=0.9, alpha=0.8 * weight**0.5)
            if self.rows is not None:
                ax.plot(self.rows[:, 0], self.rows[:, 1], ".", color="white", ms=2.5, mec="black", mew=0.2, alpha=0.8)
            ax.set(xlim=self.x[[0, -1]], ylim=self.y[[0, -1]])
            ax.set_xlabel(self.xlabel, parse_math=False)
        axes[0].set_ylabel(self.ylabel, parse_math=False)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _borders(
    regions: list[ExpertRegion], features: tuple[int, int], centre: Array, grids: tuple[Array, Array]
) -> list[tuple[float, float, float, float, float]]:
    """The rectangles in which regions meet the plane, clipped to the map."""
    others = np.setdiff1d(np.arange(centre.size), features)
    found = []
    for region in regions:
        inside = (centre[others] > region.low[others]) & (centre[others] <= region.high[others])
        if not inside.all() or region.weight < 1e-2:
            continue
        sides: list[float] = []
        for feature, grid in zip(features, grids, strict=True):
            sides += np.clip([region.low[feature], region.high[feature]], grid[0], grid[-1]).tolist()
        found.append((sides[0], sides[1], sides[2], sides[3], region.weight))
    return found
