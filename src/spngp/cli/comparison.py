"""The main job on embedded data: ``spngp demo``.

A single GP, a network built by hand and ``SPNGPRegressor`` with default arguments, all on Silverman's motorcycle data:
a table of how well each predicts rows it has not seen, and a figure of what each believes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spngp import GPRegressor, SPNGPRegressor, datasets
from spngp._support.types import Array
from spngp.experiments.cross_validation import Fit, cross_validated
from spngp.kernels import SquaredExponential
from spngp.network import Leaf, Node, Split, Sum
from spngp.plotting.legends import legend_below

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


def draw(path: Path, X: Array, y: Array, fitted: dict[str, Any]) -> None:
    """A panel for each model: the density of its prediction, its mean and its 95 % interval."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from spngp.plotting import DensityDisplay

    grid = np.linspace(X.min() - 1, X.max() + 1, 600)
    figure, axes = plt.subplots(1, len(fitted), figsize=(14, 4.8), sharey=True, layout="constrained")
    for ax, (title, model) in zip(axes, fitted.items(), strict=True):
        mixture = model.predict_dist(grid[:, np.newaxis])
        labels = {"xlabel": "time after impact (ms)", "ylabel": "head acceleration (g)" if ax is axes[0] else ""}
        DensityDisplay.from_predictions(grid, mixture, X, y, ax=ax, ylim=(-210.0, 160.0), legend=False, **labels)
        ax.set_title(title)
    legend_below(figure, axes[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(figure: Path = FIGURE, folds: int = 10) -> None:
    """Print the table and write the figure."""
    data = datasets.load("motorcycle")
    X, y = data.X, data.Y[:, 0]
    models: dict[str, Fit] = {
        "Single GP": lambda X, y: GPRegressor(random_state=0).fit(X, y),
        "By hand, 12 ways to cut": network().condition,
        "SPNGPRegressor()": lambda X, y: SPNGPRegressor(random_state=0).fit(X, y),
    }
    print(f"Motorcycle data: {y.size} rows, {data.inputs[0]} (ms) -> {data.outputs[0]} (g).")
    print(f"Cross-validation in {folds} folds:\n")
    print(f"{'model':<32}{'log evidence':>13}{'RMSE':>8}{'NLPD':>8}{'95 % holds':>12}")
    fitted = {}
    for name, fit in models.items():
        scores, fitted[name] = cross_validated(fit, X, y, folds), fit(X, y)
        evidence = getattr(fitted[name], "log_evidence_", None) or fitted[name].log_evidence
        print(f"{name:<32}{evidence:>13.1f}{scores.rmse:>8.1f}{scores.nlpd:>8.3f}{scores.coverage[0.95]:>11.0%}")
    draw(figure, X, y, fitted)
    print(f"\nfigure: {figure}")


if __name__ == "__main__":
    main()
