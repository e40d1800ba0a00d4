"""The main job on embedded data: ``make demo``.

A single GP, a network built by hand and ``SPNGPRegressor`` with default arguments, all on Silverman's motorcycle
data: a table of how well each predicts rows it has not seen, and a figure of what each believes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from spngp import GPRegressor, SPNGPRegressor, datasets, metrics
from spngp._support.types import Array
from spngp.kernels import SquaredExponential
from spngp.network import Leaf, Node, Split, Sum

FIGURE = Path("demo") / "motorcycle.png"


def network() -> Node:
    """Before, during and after the impact, each with its own length-scale and noise; where to cut is left open."""
    before = Leaf(SquaredExponential(length_scale=10.0, variance=100.0), noise_variance=4.0)
    impact = Leaf(SquaredExponential(length_scale=5.0, variance=3000.0), noise_variance=600.0)
    after = Leaf(SquaredExponential(length_scale=10.0, variance=500.0), noise_variance=300.0)
    return Sum(
        [
            Split(axis=0, at=[first, second], children=[before, impact, after])
            for first in (12.0, 13.0, 14.0, 15.0)
            for second in (36.0, 39.0, 42.0)
        ]
    )


# Fits rows; the result has ``predict_dist``, and its log evidence as ``log_evidence`` or ``log_evidence_``.
Fit: TypeAlias = Callable[[Array, Array], Any]


def held_out(fit: Fit, X: Array, y: Array, folds: int = 10) -> tuple[float, float, float]:
    """RMSE, NLPD and share of 95 % intervals that hold, over rows left out in turn."""
    fold = np.random.default_rng(0).permutation(np.arange(y.size) % folds)
    scores = []
    for k in range(folds):
        test = fold == k
        mixture = fit(X[~test], y[~test]).predict_dist(X[test])
        scores.append([score(mixture, y[test]) for score in (metrics.rmse, metrics.nlpd, metrics.coverage)])
    rmse, nlpd, coverage = np.array(scores).T
    return float(np.sqrt(np.mean(rmse**2))), float(nlpd.mean()), float(coverage.mean())


def draw(path: Path, X: Array, y: Array, fitted: dict[str, Any]) -> None:
    """A panel for each model: the density of its prediction, its mean and its 95 % interval."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid = np.linspace(X.min() - 1, X.max() + 1, 600)
    levels = np.linspace(-210.0, 160.0, 500)
    figure, axes = plt.subplots(1, len(fitted), figsize=(14, 4.4), sharey=True, layout="constrained")
    for axis, (title, model) in zip(axes, fitted.items(), strict=True):
        mixture = model.predict_dist(grid[:, np.newaxis])
        low, high = mixture.interval(0.95)
        density = mixture.density(levels).T
        axis.pcolormesh(grid, levels, density / density.max(axis=0), cmap="Greys", vmax=1.6, rasterized=True)
        axis.plot(grid, mixture.mean, color="#0072b2", lw=1.8, label="mean")
        axis.plot(grid, low, color="#d55e00", lw=1.0, label="95 % interval")
        axis.plot(grid, high, color="#d55e00", lw=1.0)
        axis.plot(X[:, 0], y, ".", color="black", ms=4, label="measurements")
        axis.set(title=title, xlabel="time after impact (ms)", xlim=grid[[0, -1]], ylim=(-210, 160))
    axes[0].set_ylabel("head acceleration (g)")
    axes[0].legend(loc="upper left", framealpha=0.9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(figure: Path = FIGURE) -> None:
    """Print the table and write the figure."""
    data = datasets.load("motorcycle")
    X, y = data.X, data.Y[:, 0]
    models: dict[str, Fit] = {
        "Single GP": GPRegressor(random_state=0).fit,
        "By hand, 12 ways to cut": network().condition,
        "SPNGPRegressor, 30 rows a leaf": SPNGPRegressor(max_leaf_size=30, random_state=0).fit,
    }
    print(
        f"Motorcycle data: {y.size} rows, {data.inputs[0]} (ms) -> {data.outputs[0]} (g). Ten-fold cross-validation:\n"
    )
    print(f"{'model':<32}{'log evidence':>13}{'RMSE':>8}{'NLPD':>8}{'95 % holds':>12}")
    fitted = {}
    for name, fit in models.items():
        rmse, nlpd, coverage = held_out(fit, X, y)
        fitted[name] = copy.deepcopy(fit(X, y))
        evidence = getattr(fitted[name], "log_evidence_", None) or fitted[name].log_evidence
        print(f"{name:<32}{evidence:>13.1f}{rmse:>8.1f}{nlpd:>8.3f}{coverage:>11.0%}")
    draw(figure, X, y, fitted)
    print(f"\nfigure: {figure}")


if __name__ == "__main__":
    main()
