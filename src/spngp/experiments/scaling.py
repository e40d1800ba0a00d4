"""Time and memory against the number of rows, for SPN-GP with default settings and for one full GP while it can.

Rows come from a generator (eight inputs, length-scales and noise that differ by region), so any number can be had. Each
fit runs in a process of its own, whose peak memory is measured.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spngp import GPRegressor, SPNGPRegressor, metrics
from spngp.datasets import regional
from spngp.experiments.cells import Cells, Row
from spngp.experiments.files import markdown_table
from spngp.experiments.page import Page

DATA: tuple[str, ...] = ()
COLOURS = {"SPN-GP*": "#000000", "full GP": "#d62728"}


@dataclass(frozen=True)
class Settings:
    """Numbers of training rows; all models predict the same number of test rows with variances."""

    spn_rows: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    gp_rows: tuple[int, ...] = (1_000, 2_000, 4_000)
    n_test: int = 10_000


QUICK = Settings(spn_rows=(1_000, 3_000, 10_000), gp_rows=(500, 1_000), n_test=2_000)


def run(settings: Settings, cells: Cells) -> Page:
    """Every model at every size it is asked for."""
    rows: list[Row] = []
    for model, sizes in (("full GP", settings.gp_rows), ("SPN-GP*", settings.spn_rows)):
        for n in sizes:
            rows += cells.get(f"{model}, {n} rows", partial(_in_own_process, model, n, settings.n_test))
    columns = ["model", "rows", "fit (s)", "predict (s)", "peak memory (GB)", "RMSE", "NLPD"]
    spn, gp = (_exponent([row for row in rows if row["model"] == model]) for model in ("SPN-GP*", "full GP"))
    text = f"""
{markdown_table(columns, [[row[name] for name in columns] for row in rows])}

Prediction is of {settings.n_test} rows with variances; SPN-GP* has one thread per core. Fitted exponents of the time to
fit, over the upper half of the sizes: SPN-GP* {spn:.2f}, full GP {gp:.2f}.
"""
    caption = (
        f"Time to fit and to predict {settings.n_test} rows, and peak memory, against the number of training rows. "
        f"Time to fit grows as N to the power of {spn:.2f} (SPN-GP*) and {gp:.2f} (full GP)."
    )
    return Page("Scaling", text, {"scaling": rows}, {"scaling": (_figure(rows), caption)})


def _in_own_process(model: str, n: int, n_test: int) -> list[Row]:
    """Measure in a fresh process: its peak memory is that of this fit alone."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return [pool.apply(_measure, (model, n, n_test))]


def _measure(name: str, n: int, n_test: int) -> Row:
    train, test = regional(n, random_state=0), regional(n_test, random_state=1)
    model: Any = GPRegressor(random_state=0) if name == "full GP" else SPNGPRegressor(n_jobs=-1, random_state=0)
    start = time.perf_counter()
    model.fit(train.X, train.Y[:, 0])
    fitted = time.perf_counter()
    mixture = model.predict_dist(test.X)
    predicted = time.perf_counter()
    return {
        "model": name,
        "rows": n,
        "fit (s)": fitted - start,
        "predict (s)": predicted - fitted,
        "peak memory (GB)": _peak_memory(),
        "RMSE": metrics.rmse(mixture, test.Y[:, 0]),
        "NLPD": metrics.nlpd(mixture, test.Y[:, 0]),
    }


def _peak_memory() -> float:
    """Of this process, in GB; not known on Windows."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux; what getrusage tells there includes the process that started this one
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024.0 / 1e9
    if sys.platform == "win32":
        return float("nan")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9  # bytes on macOS


def _exponent(rows: list[Row]) -> float:
    """Slope of log time over log rows, in the upper half of the sizes."""
    upper = rows[-max(2, (len(rows) + 1) // 2) :]
    return float(np.polyfit(np.log([row["rows"] for row in upper]), np.log([row["fit (s)"] for row in upper]), 1)[0])


def _figure(rows: list[Row]) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    for ax, column in zip(axes, ("fit (s)", "predict (s)", "peak memory (GB)"), strict=True):
        for model, colour in COLOURS.items():
            own = [(row["rows"], row[column]) for row in rows if row["model"] == model]
            ax.plot(*zip(*own, strict=True), "o-", color=colour, lw=1.8, label=model)
        ax.set(xscale="log", yscale="log", xlabel="training rows", title=column)
        if column.endswith("(GB)"):
            ax.set(yscale="linear", ylim=(0, None))
        ax.grid(alpha=0.3)
    axes[0].legend(framealpha=0.9)
    return figure
