"""A series that drifts: learnt row by row, with and without forgetting, and shown as an animation.

    python examples/drifting_series.py                     # writes drifting_series.gif and drifting_series.png
    python examples/drifting_series.py --rows 200 --frames 5 --window 60 -o first_look.gif

The demand of a small grid over the hours of a day: its evening peak wanders and grows from day to day, and after two
thirds of the time the noise doubles. Two models predict every row before they learn it. One remembers all rows, the
other the last 200 (``forget(keep_last=200)``). Both are exact given their rows, and take milliseconds a row.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from numpy.typing import NDArray

from spngp import SPNGPRegressor

mpl.use("Agg")
import matplotlib.pyplot as plt

HOURS = np.linspace(0.0, 24.0, 160)
ALL, LAST = "#8c8c8c", "#0b63a5"


def demand(hour: NDArray[np.float64], when: float) -> NDArray[np.float64]:
    """Mean demand at an hour, ``when`` from 0 to 1 through the series."""
    morning = 1.2 * np.exp(-0.5 * ((hour - 8.0) / 1.5) ** 2)
    evening = (1.0 + 1.2 * when) * np.exp(-0.5 * ((hour - 17.0 - 4.0 * when) / 2.0) ** 2)
    return 2.0 + morning + evening


def rows(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hours and demands, in the order in which they come."""
    rng = np.random.default_rng(seed)
    hours, when = rng.uniform(0.0, 24.0, n), np.arange(n) / n
    noise = np.where(when < 2.0 / 3.0, 0.12, 0.24)
    values = [demand(hour, moment) for hour, moment in zip(hours, when, strict=True)]
    return hours[:, np.newaxis], np.array(values) + noise * rng.standard_normal(n)


def stream(n: int, n_frames: int, window: int, seed: int) -> list[dict[str, Any]]:
    """What each frame shows: rows so far, both predictions over the day, and errors and coverage so far."""
    X, y = rows(n, seed)
    models = {name: SPNGPRegressor(max_leaf_size=60, random_state=0) for name in ("all", "last")}
    errors: dict[str, list[float]] = {name: [] for name in models}
    inside: dict[str, list[bool]] = {name: [] for name in models}
    moments = set(np.linspace(20, n, n_frames).astype(int).tolist())
    frames = []
    for i in range(n):
        for name, model in models.items():
            if i:
                mixture = model.predict_dist(X[i : i + 1])
                low, high = mixture.interval(0.95)
                errors[name].append(float(mixture.mean[0] - y[i]))
                inside[name].append(bool(low[0] <= y[i] <= high[0]))
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        if i >= window:
            models["last"].forget(keep_last=window)
        if i + 1 in moments:
            frame: dict[str, Any] = {"n": i + 1, "X": X[: i + 1, 0], "y": y[: i + 1]}
            for name, model in models.items():
                mixture = model.predict_dist(HOURS[:, np.newaxis])
                frame[name] = (mixture.mean, *mixture.interval(0.95))
                frame[f"{name} errors"], frame[f"{name} inside"] = np.array(errors[name]), np.array(inside[name])
            frames.append(frame)
    return frames


def smoothed(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Average over the last ``width`` values at each."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    stops = np.arange(1, values.size + 1)
    starts = np.maximum(stops - width, 0)
    return (total[stops] - total[starts]) / (stops - starts)


def draw(axes: Any, frame: dict[str, Any], n: int, window: int) -> None:
    """One frame."""
    top, bottom = axes
    for axis in axes:
        axis.clear()
        axis.spines[["top", "right"]].set_visible(False)
    count = frame["n"]
    old, new = slice(0, max(0, count - window)), slice(max(0, count - window), None)
    top.plot(frame["X"][old], frame["y"][old], ".", color="#d9d9d9", markersize=3)
    top.plot(frame["X"][new], frame["y"][new], ".", color="#4d4d4d", markersize=3.5)
    top.plot(HOURS, demand(HOURS, count / n), color="#c0392b", linewidth=1.2, linestyle=(0, (4, 2)))
    mean, low, high = frame["last"]
    top.fill_between(HOURS, low, high, color=LAST, alpha=0.18, linewidth=0)
    top.plot(HOURS, mean, color=LAST, linewidth=1.8)
    top.plot(HOURS, frame["all"][0], color=ALL, linewidth=1.5)
    top.set(xlim=(0, 24), ylim=(1.2, 5.2), xlabel="hour of the day", ylabel="demand", xticks=range(0, 25, 4))
    label = f"after {count:,} rows"
    top.text(0.01, 0.97, label, transform=top.transAxes, va="top", fontsize=11, fontweight="bold")
    names = [("truth now", "#c0392b"), (f"last {window} rows, 95 % of observations", LAST), ("all rows", ALL)]
    for i, (text, colour) in enumerate(names):
        top.text(0.01, 0.885 - 0.075 * i, text, transform=top.transAxes, va="top", fontsize=9, color=colour)
    for name, colour in (("all", ALL), ("last", LAST)):
        error = np.sqrt(smoothed(frame[f"{name} errors"] ** 2, 100))
        bottom.plot(np.arange(2, count + 1), error, color=colour, linewidth=1.5)
    noise = np.where(np.arange(n) < 2 * n / 3, 0.12, 0.24)
    bottom.plot(np.arange(n), noise, color="#c0392b", linewidth=1.0, linestyle=(0, (4, 2)))
    bottom.set(xlim=(0, n), ylim=(0, 0.75), xlabel="rows", ylabel="error, last 100 rows")
    held = float(np.mean(frame["last inside"][-200:]))
    told = f"of the last 200 rows, the 95 % interval held {held:.0%}"
    bottom.text(0.99, 0.99, told, transform=bottom.transAxes, ha="right", va="top", fontsize=9, color=LAST)
    bottom.text(0.01, 0.99, "dashed: the noise", transform=bottom.transAxes, va="top", fontsize=9, color="#c0392b")


def main(arguments: list[str] | None = None) -> Path:
    """Stream, draw, save; returns where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--window", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", default="drifting_series.gif")
    given = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # optimisations of the first handful of rows may stop early
        frames = stream(given.rows, given.frames, given.window, given.seed)
    figure, axes = plt.subplots(2, 1, figsize=(7.2, 5.6), height_ratios=[2.2, 1.0], layout="constrained")
    animation = FuncAnimation(figure, lambda frame: draw(axes, frame, given.rows, given.window), frames=frames)
    output = Path(given.output)
    animation.save(output, writer=PillowWriter(fps=8), dpi=90)
    draw(axes, frames[-1], given.rows, given.window)
    figure.savefig(output.with_suffix(".png"), dpi=120)
    plt.close(figure)
    last = frames[-1]
    for name in ("all", "last"):
        rmse = float(np.sqrt(np.mean(last[f"{name} errors"][-given.rows // 4 :] ** 2)))
        held = float(np.mean(last[f"{name} inside"][-given.rows // 4 :]))
        print(f"{name} rows: RMSE {rmse:.3f} over the last quarter, 95 % intervals hold {held:.0%}")
    return output


if __name__ == "__main__":
    main()
