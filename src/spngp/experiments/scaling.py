"""Time and memory against the number of rows, for SPN-GP with default settings and for one full GP while it can.

Rows come from a generator (eight inputs, length-scales and noise that differ by region), so any number can be had. Each
fit runs in a process of its own, whose peak memory is measured. ``benchmarks/scale.py`` measures by the same function
what else there is to know: tied parameters, LAPACK's share, threads and peers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from spngp import GPRegressor, SPNGPRegressor
from spngp.experiments.cells import Cells, Row
from spngp.experiments.files import markdown_table
from spngp.experiments.measuring import exponent, in_own_process, measure
from spngp.experiments.page import Page

DATA: tuple[str, ...] = ()
COLOURS = {"SPN-GP*": "#000000", "full GP": "#d62728"}
PANELS = {"fit s": "time to fit (s)", "predict s": "time to predict (s)", "peak GB": "peak memory (GB)"}
COLUMNS = ["model", "rows", "fit s", "fit cpu s", "predict s", "peak GB", "RMSE", "truth", "NLPD"]

# By number of threads.
MODELS: dict[str, Callable[[int], Any]] = {
    "full GP": lambda threads: GPRegressor(n_jobs=threads, random_state=0),
    "SPN-GP*": lambda threads: SPNGPRegressor(n_jobs=threads, random_state=0),
}


@dataclass(frozen=True)
class Settings:
    """Numbers of training rows; all models predict the same number of test rows with variances."""

    spn_rows: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000)
    gp_rows: tuple[int, ...] = (1_000, 2_000, 4_000)
    n_test: int = 100_000
    threads: int = 2


QUICK = Settings(spn_rows=(1_000, 3_000, 10_000), gp_rows=(500, 1_000), n_test=2_000)


def run(settings: Settings, cells: Cells) -> Page:
    """Every model at every size it is asked for."""
    rows: list[Row] = []
    for model, sizes in (("full GP", settings.gp_rows), ("SPN-GP*", settings.spn_rows)):
        for n in sizes:
            rows += cells.get(f"{model}, {n} rows", partial(_cell, model, n, settings))
    spn, gp = (
        exponent([row for row in rows if row["model"] == model], "fit s", at_least=sizes[1])
        for model, sizes in (("SPN-GP*", settings.spn_rows), ("full GP", settings.gp_rows[:1] * 2))
    )
    growth = f"{spn:.2f} from {settings.spn_rows[1]:,} rows on (SPN-GP*) and {gp:.2f} (full GP)"
    text = f"""
{markdown_table(COLUMNS, [[row[name] for name in COLUMNS] for row in rows])}

Prediction is of {settings.n_test:,} rows with variances; SPN-GP* works on {settings.threads} threads, and its seconds
of CPU are those of all of them. RMSE and NLPD are in units of the standard deviation of y; `truth` is the RMSE against
the function without noise. Time to fit grows as N to the power of {growth}.
"""
    caption = (
        f"Time to fit, time to predict {settings.n_test:,} rows, and peak memory, against the number of training rows. "
        f"Time to fit grows as N to the power of {growth}."
    )
    return Page("Scaling", text, {"scaling": rows}, {"scaling": (_figure(rows), caption)})


def _cell(model: str, n: int, settings: Settings) -> list[Row]:
    return [in_own_process(_measured, model, n, settings.n_test, settings.threads)]


def _measured(model: str, n: int, n_test: int, threads: int) -> Row:
    return {"model": model, **measure(MODELS[model](threads), n, n_test)}


def _figure(rows: list[Row]) -> Any:
    import matplotlib.pyplot as plt

    from spngp.plotting.legends import legend_below

    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for ax, (column, title) in zip(axes, PANELS.items(), strict=True):
        for model, colour in COLOURS.items():
            points = [(row["rows"], row[column]) for row in rows if row["model"] == model]
            ax.plot(*zip(*points, strict=True), "o-", color=colour, lw=1.8, label=model)
        ax.set(xscale="log", yscale="log", xlabel="training rows", title=title)
        if column == "peak GB":
            ax.set(yscale="linear", ylim=(0, None))
        ax.grid(alpha=0.3)
    legend_below(figure, axes[0])
    return figure
