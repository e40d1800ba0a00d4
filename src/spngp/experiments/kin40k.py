"""Kin40K: RMSE and NLPD against rows per expert, for committees and SPN-GPs, with the full GP as the line.

All models share the hyper-parameters of a full GP, as in the paper; committees share out the rows at random. Experts of
an SPN-GP* also see three context rows for each of their own when they predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from spngp import GPRegressor, SPNGPRegressor, datasets, metrics
from spngp.committees import RULES, ProductOfExperts
from spngp.experiments.cells import Cells, Row
from spngp.experiments.files import markdown_table
from spngp.experiments.page import Page
from spngp.kernels import Kernel, SquaredExponential
from spngp.predictive import GaussianMixture

DATA = ("kin40k",)

# Published parameters of a full GP on standardised rows.
LENGTH_SCALES = (2.477, 2.306, 1.336, 1.480, 1.574, 1.137, 1.170, 1.668)
SIGNAL_VARIANCE = 1.0222  # variances of the output
NOISE_VARIANCE = 0.0021676  # variances of the output
# RMSE in the paper's figure, by rows per expert.
PRINTED = {
    "PoE": {156: 0.518, 625: 0.285, 2500: 0.161},
    "BCM": {156: 0.451, 625: 0.270, 2500: 0.161},
    "rBCM": {156: 0.395, 625: 0.252, 2500: 0.161},
    "SPN-GP*": {844: 0.150, 2483: 0.138},
}
COLOURS = {
    "PoE": "#56b4e9",
    "gPoE": "#cc79a7",
    "BCM": "#e69f00",
    "rBCM": "#009e73",
    "SPN-GP": "#888888",
    "SPN-GP*": "#000000",
}
STYLES = {"gPoE": "--"}  # its mean is the PoE's


@dataclass(frozen=True)
class Settings:
    """Numbers of experts: cuts at the median make powers of two."""

    n_experts: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    overlap: float = 3.0
    full_gp: bool = True
    n_test: int = 30_000


QUICK = Settings(n_experts=(16, 64), full_gp=False, n_test=3_000)


def run(settings: Settings, cells: Cells) -> Page:
    """Every model at every size."""
    rows: list[Row] = []
    for n_experts in settings.n_experts:
        rows += cells.get(f"committees of {n_experts}", partial(_committees, n_experts, settings))
        for overlap in (0.0, settings.overlap):
            name = f"SPN-GP{'*' if overlap else ''} of {n_experts}"
            rows += cells.get(name, partial(_network, n_experts, overlap, settings))
    rows += cells.get("SPNGPRegressor()", partial(_default, settings))
    if settings.full_gp:
        rows += cells.get("full GP", partial(_full, settings))
    table = [
        [model, *(_shown(rows, model, n_experts) for n_experts in reversed(settings.n_experts))] for model in COLOURS
    ]
    sizes = [f"{_size(n_experts)} rows" for n_experts in reversed(settings.n_experts)]
    others = [f"{row['model']}: {row['rmse']:.4f} / {row['nlpd']:.3f}" for row in rows if row["model"] not in COLOURS]
    text = f"""
RMSE / NLPD on {settings.n_test} test rows of the classic split, outputs standardised by the training rows:

{markdown_table(["rows per expert", *sizes], table)}

{"; ".join(others)}. {_verdict(rows, settings)}
"""
    caption = (
        "RMSE (left) and NLPD (right) on Kin40K against the rows an expert owns; hollow marks are read off the paper. "
        "SPN-GP* experts also see three context rows for each of their own."
    )
    return Page("Kin40K", text, {"kin40k": rows}, {"kin40k": (_figure(rows), caption)})


def _rows(settings: Settings) -> tuple[datasets.Dataset, datasets.Dataset]:
    train, test = datasets.load("kin40k").classic_split()
    return train, test.take(slice(settings.n_test))


def _size(n_experts: int) -> int:
    return 10_000 // n_experts


def _score(
    model: str, n_experts: int, mixture: GaussianMixture, train: datasets.Dataset, test: datasets.Dataset
) -> Row:
    scale = float(train.Y.std())
    scores = metrics.scores(mixture, test.Y[:, 0])
    return {
        "model": model,
        "rows_per_expert": _size(n_experts),
        "rmse": scores.rmse / scale,
        "nlpd": scores.nlpd - float(np.log(scale)),
        "coverage": scores.coverage[0.95],
    }


def _shared(train: datasets.Dataset) -> dict[str, Any]:
    return {"hyperparameters": "fixed", "noise_variance": NOISE_VARIANCE * float(train.Y.var()), "n_jobs": -1}


def _kernel(train: datasets.Dataset) -> Kernel:
    """The published parameters are those of standardised rows."""
    standardised = SquaredExponential(list(LENGTH_SCALES), SIGNAL_VARIANCE)
    return standardised.rescaled(train.X.std(axis=0), float(train.Y.std()))


def _committees(n_experts: int, settings: Settings) -> list[Row]:
    train, test = _rows(settings)
    model = ProductOfExperts(_kernel(train), n_experts=n_experts, random_state=0, **_shared(train))
    found = model.fit(train.X, train.Y[:, 0]).predict_dist_by_rule(test.X)
    return [_score(rule, n_experts, found[rule], train, test) for rule in RULES]


def _network(n_experts: int, overlap: float, settings: Settings) -> list[Row]:
    train, test = _rows(settings)
    size = -(-len(train) // n_experts)
    model = SPNGPRegressor([_kernel(train)], max_leaf_size=size, overlap=overlap, random_state=0, **_shared(train))
    name = "SPN-GP*" if overlap else "SPN-GP"
    return [_score(name, n_experts, model.fit(train.X, train.Y[:, 0]).predict_dist(test.X), train, test)]


def default_model() -> SPNGPRegressor:
    """The estimator with default arguments, but for threads and seed."""
    return SPNGPRegressor(n_jobs=-1, random_state=0)


def _default(settings: Settings) -> list[Row]:
    train, test = _rows(settings)
    model = default_model().fit(train.X, train.Y[:, 0])
    return [_score("SPNGPRegressor()", 32, model.predict_dist(test.X), train, test)]


def _full(settings: Settings) -> list[Row]:
    train, test = _rows(settings)
    model = GPRegressor(_kernel(train), **_shared(train)).fit(train.X, train.Y[:, 0])
    return [_score("full GP", 1, model.predict_dist(test.X), train, test)]


def _find(rows: list[Row], model: str, n_experts: int) -> Row:
    return next(row for row in rows if row["model"] == model and row["rows_per_expert"] == _size(n_experts))


def _shown(rows: list[Row], model: str, n_experts: int) -> str:
    row = _find(rows, model, n_experts)
    return f"{row['rmse']:.3f} / {row['nlpd']:.2f}"


def _verdict(rows: list[Row], settings: Settings) -> str:
    """Whether SPN-GP* is ahead of every committee at every size, in words."""
    behind = [
        f"{rule} at {_size(n_experts)} rows ({score})"
        for n_experts in settings.n_experts
        for rule in RULES
        for score in ("rmse", "nlpd")
        if _find(rows, "SPN-GP*", n_experts)[score] >= _find(rows, rule, n_experts)[score]
    ]
    return f"SPN-GP* is behind {', '.join(behind)}." if behind else "SPN-GP* is ahead of every committee at every size."


def _figure(rows: list[Row]) -> Any:
    import matplotlib.pyplot as plt

    from spngp.plotting.legends import legend_below

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.9), layout="constrained")
    for ax, score in zip(axes, ("rmse", "nlpd"), strict=True):
        for model, colour in COLOURS.items():
            points = sorted((row["rows_per_expert"], row[score]) for row in rows if row["model"] == model)
            width = 2.4 if model.startswith("SPN") else 1.4
            ax.plot(
                *zip(*points, strict=True),
                marker="o",
                color=colour,
                lw=width,
                ms=4.5,
                ls=STYLES.get(model, "-"),
                label=model,
            )
            if score == "rmse" and model in PRINTED:
                ax.plot(*zip(*PRINTED[model].items(), strict=True), "s", mfc="none", mec=colour, ms=7)
        for row in rows:
            if row["model"] == "full GP":
                ax.axhline(row[score], color="#d62728", lw=1.5, label="full GP")
            if row["model"] == "SPNGPRegressor()":
                ax.axhline(row[score], color="#0072b2", lw=1.5, ls="--", label="SPNGPRegressor()")
        sizes = sorted({row["rows_per_expert"] for row in rows if row["model"] == "PoE"})
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.set(xlabel="rows per expert", ylabel={"rmse": "RMSE", "nlpd": "NLPD (nats)"}[score])
    axes[0].set_ylim(0, None)
    axes[1].set_ylim(*_nlpd_limits(rows))
    axes[0].plot([], [], "s", mfc="none", mec="#555555", ms=7, label="printed in the paper")
    legend_below(figure, axes[0])
    return figure


def _nlpd_limits(rows: list[Row]) -> tuple[float, float]:
    """PoE and BCM leave the scale; what lies above 2 is cut."""
    values = [row["nlpd"] for row in rows]
    return min(values) - 0.15, min(max(values) + 0.15, 2.0)
