"""A series whose smoothness and noise change along the input: density of the SPN-GP against a GP, and the noise learnt.

Two waves with silence between them under noise that swells twice. One GP has one length-scale and one noise level; the
experts of an SPN-GP have their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp import GPRegressor, SPNGPRegressor, datasets, metrics
from spngp._support.types import Array
from spngp.experiments.cells import Cells, Row
from spngp.experiments.files import markdown_table
from spngp.experiments.page import Page

DATA: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """Size of the series and of the regions; fresh series to test on."""

    n: int = 501
    max_leaf_size: int = 50
    n_partitions: int = 2
    n_tests: int = 20


QUICK = Settings(n_partitions=1, n_tests=5)


def run(settings: Settings, cells: Cells) -> Page:
    """Fit both models; compare them on fresh series of the same truth."""
    data = datasets.nonstationary(settings.n, random_state=0)
    assert data.function is not None
    assert data.noise_std is not None
    models: dict[str, Any] = {
        "GP": GPRegressor(random_state=0),
        "SPN-GP*": SPNGPRegressor(
            max_leaf_size=settings.max_leaf_size, n_partitions=settings.n_partitions, random_state=0
        ),
    }
    tests = [datasets.nonstationary(settings.n, random_state=1000 + i) for i in range(settings.n_tests)]
    scores: list[Row] = []
    curves: list[Row] = []
    for name, model in models.items():
        mixture = model.fit(data.X, data.Y[:, 0]).predict_dist(data.X)
        noise = model.predict_noise(data.X)
        log_noise, log_truth = np.log(noise), np.log(data.noise_std[:, 0])
        flat = bool(np.ptp(log_noise) < 1e-9)
        scores.append(
            {
                "model": name,
                "log evidence": model.log_evidence_,
                "error of the function": float(np.sqrt(np.mean((mixture.mean - data.function[:, 0]) ** 2))),
                "NLPD": float(np.mean([metrics.nlpd(mixture, test.Y[:, 0]) for test in tests])),
                "95 % holds": float(np.mean([metrics.coverage(mixture, test.Y[:, 0]) for test in tests])),
                "error of log noise": float(np.sqrt(np.mean((log_noise - log_truth) ** 2))),
                "correlation": "flat" if flat else float(np.corrcoef(log_noise, log_truth)[0, 1]),
            }
        )
        curves += [
            {"model": name, "x": float(x), "mean": float(m), "noise_std": float(s)}
            for x, m, s in zip(data.X[:, 0], mixture.mean, noise, strict=True)
        ]
    columns = list(scores[0])
    text = f"""
{markdown_table(columns, [[row[name] for name in columns] for row in scores])}

The error of the function is the root mean square distance of the mean from the truth; NLPD and coverage are averages
over {settings.n_tests} fresh series at the same inputs; error and correlation of the noise are between logarithms.
"""
    caption = (
        "Top: the series, the SPN-GP's density (grey) and a GP's mean with 95 % band (red). Bottom: the noise's "
        "standard deviation as learnt, against the truth."
    )
    figures = {"nonstationary": (_figure(models, data), caption)}
    return Page("Non-stationary series", text, {"scores": scores}, figures, further_tables={"curves": curves})


def _figure(models: dict[str, Any], data: datasets.Dataset) -> Any:
    import matplotlib.pyplot as plt

    from spngp.plotting import DensityDisplay
    from spngp.plotting.legends import legend_below

    x: Array = np.linspace(data.X.min(), data.X.max(), 600)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(10, 6.2), layout="constrained", height_ratios=[2.2, 1], sharex=True
    )
    spn, gp = (models[name].predict_dist(x[:, np.newaxis]) for name in ("SPN-GP*", "GP"))
    DensityDisplay.from_predictions(
        x, spn, data.X, data.Y, ax=top, mean=False, interval=None, legend=False, xlabel="", ylabel="y"
    )
    top.plot(data.X, data.function, color="#0072b2", lw=1.6, label="truth")
    top.plot(x, gp.mean, color="#d62728", lw=1.3, label="GP")
    for border in gp.interval(0.95):
        top.plot(x, border, color="#d62728", lw=0.9, ls="--", label="GP: 95 % band")
    bottom.plot(data.X, data.noise_std, color="#0072b2", lw=1.8, label="truth")
    bottom.plot(x, models["SPN-GP*"].predict_noise(x[:, np.newaxis]), color="black", lw=1.4, label="SPN-GP*")
    bottom.plot(x, models["GP"].predict_noise(x[:, np.newaxis]), color="#d62728", lw=1.3, label="GP")
    bottom.set(xlabel="x (standardised)", ylabel="std of the noise", ylim=(0, None))
    legend_below(figure, top, bottom)
    return figure
