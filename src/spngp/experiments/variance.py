"""What more and more experts do to the predictive variance: committees against SPN-GPs.

A fixed number of rows is shared out to ever more experts. Every expert of a committee speaks everywhere. Where most of
them know nothing, a product of their Gaussians is still sharper than any of them (PoE), or their many small corrections
to the prior add up wrongly (BCM); weak experts pull the mean towards the prior's. In an SPN-GP only the experts of a
region speak there, with the weight of their evidence.

The truth is a draw from the model's own prior over the unit square, observed with noise everywhere but in a disk. So
all models know the right hyper-parameters, and what differs is how experts are put together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp import GPRegressor, SPNGPRegressor, metrics
from spngp._support.types import Array
from spngp.committees import ProductOfExperts
from spngp.experiments.cells import Cells, Row
from spngp.experiments.files import markdown_table
from spngp.experiments.kin40k import COLOURS, STYLES
from spngp.experiments.page import Page
from spngp.kernels import SquaredExponential
from spngp.predictive import GaussianMixture

DATA: tuple[str, ...] = ()

PANELS = {
    "nlpd": "NLPD of new observations",
    "coverage": "95 % bands that hold the function",
    "std": "mean std of the function",
    "std_in_hole": "mean std in the hole",
}


@dataclass(frozen=True)
class Settings:
    """The problem, in the units of the unit square; the function has variance one."""

    n: int = 4096
    n_test: int = 2000
    length_scale: float = 0.1
    noise_std: float = 0.2
    hole: float = 0.2
    overlap: float = 3.0
    n_experts: tuple[int, ...] = (1, 4, 16, 64, 256)
    n_seeds: int = 3


QUICK = Settings(n=1024, n_test=500, n_experts=(1, 4, 16, 64), n_seeds=1)


def run(settings: Settings, cells: Cells) -> Page:
    """Every model with every number of experts, over a few draws of the truth."""
    rows: list[Row] = []
    for seed in range(settings.n_seeds):
        for n_experts in settings.n_experts:
            rows += cells.get(f"{n_experts} experts, seed {seed}", partial(_cell, n_experts, seed, settings))
    few, many = settings.n_experts[0], settings.n_experts[-1]
    table = [
        [model, *(" → ".join(f"{_mean(rows, model, n, score):.3g}" for n in (few, many)) for score in PANELS)]
        for model in COLOURS
    ]
    text = f"""
{markdown_table(["model", *PANELS.values()], table)}

From {few} to {many} experts; means over {settings.n_seeds} draws of {settings.n} rows; the function has standard
deviation one, the noise {settings.noise_std:g}. One expert is the full GP (but for the rBCM, which weighs a single
expert as well), so the left figures say what the right ones should be.
"""
    caption = (
        "The same rows with ever more experts. PoE becomes surer as each expert knows less, gPoE less sure than it "
        "could be; SPN-GP* stays close to the full GP (one expert) in all four."
    )
    return Page("Variance and the number of experts", text, {"variance": rows}, {"variance": (_figure(rows), caption)})


def _problem(seed: int, settings: Settings) -> tuple[Array, Array, Array, Array]:
    """Training inputs and outputs, test inputs and the true function there."""
    rng = np.random.default_rng(seed)
    n_waves = 2000
    frequencies = rng.standard_normal((2, n_waves)) / settings.length_scale
    phases, amplitudes = rng.uniform(0.0, 2.0 * np.pi, n_waves), rng.standard_normal(n_waves)

    def function(X: Array) -> Array:
        return np.cos(X @ frequencies + phases) @ amplitudes * np.sqrt(2.0 / n_waves)

    X = rng.random((2 * settings.n, 2))
    X = X[~_in_hole(X, settings)][: settings.n]
    X_test = rng.random((settings.n_test, 2))
    y = function(X) + settings.noise_std * rng.standard_normal(len(X))
    return X, y, X_test, function(X_test)


def _in_hole(X: Array, settings: Settings) -> NDArray[np.bool_]:
    return np.hypot(X[:, 0] - 0.5, X[:, 1] - 0.5) < settings.hole


def _cell(n_experts: int, seed: int, settings: Settings) -> list[Row]:
    X, y, X_test, truth = _problem(seed, settings)
    kernel = SquaredExponential(settings.length_scale)
    shared: dict[str, Any] = {"hyperparameters": "fixed", "noise_variance": settings.noise_std**2, "n_jobs": -1}
    found: dict[str, GaussianMixture] = {}
    committee = ProductOfExperts(kernel, n_experts=n_experts, random_state=seed, **shared)
    found |= committee.fit(X, y).predict_dist_by_rule(X_test, latent=True)
    for name, overlap in (("SPN-GP", 0.0), ("SPN-GP*", settings.overlap)):
        size = -(-len(X) // n_experts)
        model: Any = GPRegressor(kernel, **shared)
        if n_experts > 1:
            model = SPNGPRegressor([kernel], max_leaf_size=size, overlap=overlap, **shared)
        found[name] = model.fit(X, y).predict_dist(X_test, latent=True)
    observed = truth + settings.noise_std * np.random.default_rng(10_000 + seed).standard_normal(truth.size)
    return [_score(name, n_experts, mixture, X_test, truth, observed, settings) for name, mixture in found.items()]


def _score(
    name: str, n_experts: int, latent: GaussianMixture, X: Array, truth: Array, observed: Array, settings: Settings
) -> Row:
    noisy = GaussianMixture(latent.log_weights, latent.means, latent.variances + settings.noise_std**2)
    scores = metrics.scores(latent, truth)
    return {
        "model": name,
        "experts": n_experts,
        "nlpd": metrics.nlpd(noisy, observed),
        "coverage": scores.coverage[0.95],
        "std": scores.mean_std,
        "std_in_hole": float(latent.std[_in_hole(X, settings)].mean()),
        "rmse": scores.rmse,
    }


def _mean(rows: list[Row], model: str, n_experts: int, score: str) -> float:
    return float(np.mean([row[score] for row in rows if row["model"] == model and row["experts"] == n_experts]))


def _figure(rows: list[Row]) -> Any:
    import matplotlib.pyplot as plt

    from spngp.plotting.legends import legend_below

    counts = sorted({row["experts"] for row in rows})
    figure, axes = plt.subplots(1, len(PANELS), figsize=(14, 4.2), layout="constrained")
    for ax, (score, title) in zip(axes, PANELS.items(), strict=True):
        for model, colour in COLOURS.items():
            values = [_mean(rows, model, count, score) for count in counts]
            width = 2.4 if model.startswith("SPN") else 1.4
            ax.plot(counts, values, marker="o", color=colour, lw=width, ms=4.5, ls=STYLES.get(model, "-"), label=model)
        ax.set_xscale("log", base=2)
        ax.set_xticks(counts, [str(count) for count in counts])
        ax.set(xlabel="experts", title=title)
    axes[1].axhline(0.95, color="#888888", lw=1, ls=":")
    axes[1].set_ylim(0, 1.03)
    legend_below(figure, axes[0])
    return figure
