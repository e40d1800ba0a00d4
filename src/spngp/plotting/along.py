"""Which kernel is plausible, and how large the noise is, along one input."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from spngp._support.checks import as_floats
from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.network import Node, prediction
from spngp.plotting import _style
from spngp.plotting.lines import as_line, input_names, line, training_rows, without_names
from spngp.plotting.names import leaf_name, short_names


class KernelWeightsDisplay:
    """Posterior plausibility of each kernel along one input, as a strip of colours that add up to one.

    Parameters
    ----------
    x : array-like of shape (m,)
    weights : array-like of shape (m, kernels)
    names : list of str
        The kernels.
    xlabel : str

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure

    Examples
    --------
    >>> from spngp.kernels import Linear, SquaredExponential
    >>> from spngp.network import Leaf, Sum
    >>> from spngp.plotting import KernelWeightsDisplay
    >>> prior = Sum([Leaf(Linear()), Leaf(SquaredExponential())], weights=[0.25, 0.75])
    >>> display = KernelWeightsDisplay.from_network(prior, [0.0, 1.0])
    >>> display.names, display.weights[0].tolist()
    (['Linear', 'SE'], [0.25, 0.75])
    """

    def __init__(self, x: Any, weights: Any, names: list[str], *, xlabel: str = "x") -> None:
        self.x, self.weights = as_floats(x, "x").ravel(), as_floats(weights, "weights")
        self.names, self.xlabel = list(names), xlabel
        if self.weights.shape != (self.x.size, len(self.names)):
            raise ValueError(
                f"weights must have shape (positions, kernels) = {(self.x.size, len(self.names))}, "
                f"got {self.weights.shape}"
            )

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature: int = 0, at: Any = None, output: int = 0, grid: Any = None, **plot: Any
    ) -> Self:
        """Draw a fitted model along one input, the other inputs at their medians or ``at`` a row."""
        along = line(training_rows(estimator)[0], feature, at, grid)
        weights = without_names(estimator).predict_kernel_weights(along.rows)
        weights = weights if weights.ndim == 2 else weights[:, output]
        name = input_names(estimator)[feature]
        names = list(short_names(estimator).values())
        return cls(along.x, weights, names, xlabel=name).plot(**plot)

    @classmethod
    def from_network(cls, network: Node, grid: Any, *, output: int = 0, xlabel: str = "x", **plot: Any) -> Self:
        """Draw a network of one input; kernels are told apart by the labels of leaves, or by their kind."""
        x, rows = as_line(grid)
        leaves = [item.leaf for item in reversed(network.responsibilities())]  # the first child's leaves first
        names = list(dict.fromkeys(leaf_name(leaf) for leaf in leaves))
        columns = [
            one_output(prediction.average(network, rows, lambda leaf, _: float(leaf_name(leaf) == name)), output)  # noqa: B023
            for name in names
        ]
        return cls(x, np.stack(columns, axis=-1), names, xlabel=xlabel).plot(**plot)

    def plot(self, ax: Any = None, *, colours: dict[str, str] | None = None, legend: bool = True) -> Self:
        """Draw; ``colours`` maps names of kernels to colours, to match another figure."""
        ax = _style.axes(ax, figsize=(6.4, 1.6))
        palette = _style.colours(self.names) | (colours or {})
        tops = np.minimum(np.cumsum(self.weights, axis=1), 1.0)
        below = np.zeros(self.x.size)
        for i, name in enumerate(self.names):
            ax.fill_between(self.x, below, tops[:, i], color=palette[name], lw=0, step="mid", label=name)
            below = tops[:, i]
        ax.set(ylabel="kernel weight", xlim=(self.x.min(), self.x.max()), ylim=(0, 1), yticks=[0, 0.5, 1])
        ax.set_xlabel(self.xlabel, parse_math=False)
        if legend:
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(self.names), 4), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class NoiseDisplay:
    """The learnt standard deviation of the noise along one input.

    Parameters
    ----------
    x : array-like of shape (m,)
    noise_std : array-like of shape (m,)
    xlabel, ylabel : str

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure

    Examples
    --------
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.network import Leaf, Split
    >>> from spngp.plotting import NoiseDisplay
    >>> quiet, loud = (Leaf(SquaredExponential(), noise_variance=v) for v in (1.0, 9.0))
    >>> display = NoiseDisplay.from_network(Split(0, [5.0], [quiet, loud]), [4.0, 6.0])
    >>> display.noise_std.tolist()
    [1.0, 3.0]
    """

    def __init__(self, x: Any, noise_std: Any, *, xlabel: str = "x", ylabel: str = "noise std") -> None:
        self.x, self.noise_std = as_floats(x, "x").ravel(), as_floats(noise_std, "noise_std").ravel()
        if self.x.shape != self.noise_std.shape:
            raise ValueError(f"noise_std must have one value per x, {self.x.shape}, got {self.noise_std.shape}")
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature: int = 0,
        at: Any = None,
        output: int = 0,
        grid: Any = None,
        ylabel: str = "noise std",
        **plot: Any,
    ) -> Self:
        """Draw a fitted model along one input, the other inputs at their medians or ``at`` a row."""
        along = line(training_rows(estimator)[0], feature, at, grid)
        noise = one_output(without_names(estimator).predict_noise(along.rows), output)
        return cls(along.x, noise, xlabel=input_names(estimator)[feature], ylabel=ylabel).plot(**plot)

    @classmethod
    def from_network(
        cls,
        network: Node,
        grid: Any,
        *,
        output: int = 0,
        xlabel: str = "x",
        ylabel: str = "noise std",
        **plot: Any,
    ) -> Self:
        """Draw a network of one input."""
        x, rows = as_line(grid)
        variance: Array = prediction.average(network, rows, lambda leaf, X: leaf.noise_at(X))
        return cls(x, np.sqrt(one_output(variance, output)), xlabel=xlabel, ylabel=ylabel).plot(**plot)

    def plot(self, ax: Any = None) -> Self:
        """Draw, from zero: noise of half the size looks like half."""
        ax = _style.axes(ax, figsize=(6.4, 1.8))
        ax.fill_between(self.x, 0, self.noise_std, color=_style.VERMILION, alpha=0.25, lw=0, step="mid")
        ax.plot(self.x, self.noise_std, color=_style.VERMILION, lw=1.4, drawstyle="steps-mid")
        ax.set(xlim=(self.x.min(), self.x.max()))
        ax.set_xlabel(self.xlabel, parse_math=False)
        ax.set_ylabel(self.ylabel, parse_math=False)
        ax.set_ylim(0, 1.1 * float(self.noise_std.max()) or 1.0)
        self.ax_, self.figure_ = ax, ax.figure
        return self
