"""The main job on embedded data: ``make demo``.

A network built by hand and a single GP, both on Silverman's motorcycle data: a table of how well each predicts rows
it has not seen, and a figure of what each believes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spngp import datasets
from spngp._typing import Array
from spngp.kernels import SquaredExponential
from spngp.leaf import ExactGP
from spngp.network import Leaf, Node, Split, Sum
from spngp.training import fit_gp

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


def single_gp(X: Array, y: Array) -> Node:
    """One GP whose length-scale, variance and noise maximise the evidence."""
    start = ExactGP(SquaredExponential(length_scale=5.0, variance=2000.0), noise_variance=500.0)
    best = fit_gp(start, X, y)
    return Leaf(best.kernel, best.noise_variance)


def held_out(prior: Node, X: Array, y: Array, folds: int = 10) -> tuple[float, float, float]:
    """RMSE, mean negative log density and share of 95 % intervals that hold, over rows left out in turn."""
    fold = np.random.default_rng(0).permutation(np.arange(y.size) % folds)
    mean, log_density, inside = np.empty(y.size), np.empty(y.size), np.empty(y.size, dtype=bool)
    for k in range(folds):
        test = fold == k
        mixture = prior.condition(X[~test], y[~test]).predict_dist(X[test])
        low, high = mixture.interval(0.95)
        mean[test], log_density[test] = mixture.mean, mixture.logpdf(y[test])
        inside[test] = (low <= y[test]) & (y[test] <= high)
    return float(np.sqrt(np.mean((mean - y) ** 2))), float(-log_density.mean()), float(inside.mean())


def draw(path: Path, X: Array, y: Array, posteriors: dict[str, Node]) -> None:
    """Two panels: the density of each model's prediction, its mean and its 95 % interval."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid = np.linspace(X.min() - 1, X.max() + 1, 600)
    levels = np.linspace(-210.0, 160.0, 500)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
    for axis, (title, posterior) in zip(axes, posteriors.items(), strict=True):
        mixture = posterior.predict_dist(grid)
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


def main() -> None:
    """Print the table and write the figure."""
    data = datasets.load("motorcycle")
    X, y = data.X, data.Y[:, 0]
    priors = {"Single GP": single_gp(X, y), "Network, 12 ways to cut": network()}
    print(
        f"Motorcycle data: {y.size} rows, {data.inputs[0]} (ms) -> {data.outputs[0]} (g). Ten-fold cross-validation:\n"
    )
    print(f"{'model':<26}{'log evidence':>13}{'RMSE':>8}{'NLPD':>8}{'95 % holds':>12}")
    posteriors = {}
    for name, prior in priors.items():
        posteriors[name] = prior.condition(X, y)
        rmse, nlpd, coverage = held_out(prior, X, y)
        print(f"{name:<26}{posteriors[name].log_evidence:>13.1f}{rmse:>8.1f}{nlpd:>8.3f}{coverage:>11.0%}")
    draw(FIGURE, X, y, posteriors)
    print(f"\nfigure: {FIGURE}")


if __name__ == "__main__":
    main()
