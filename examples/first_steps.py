"""First steps: fit, predict, measure, save and report on data that ship with spngp. ``make demo`` runs it.

It needs spngp with the extra ``report``, and writes into a folder ``demo``, or the one that is given.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from spngp import SPNGPRegressor, datasets, load, metrics
from spngp.report import write_report


def main(folder: Path) -> None:
    """Do the whole job, telling each step."""
    folder.mkdir(parents=True, exist_ok=True)
    data = datasets.load("motorcycle")
    held_out = np.random.default_rng(0).permutation(len(data)) < 33
    X, y, X_new, y_new = data.X[~held_out], data.Y[~held_out, 0], data.X[held_out], data.Y[held_out, 0]
    print(
        f"Head acceleration (g) in a motorcycle crash over time (ms): {len(X)} rows to learn from, {len(X_new)} new.\n"
    )

    print("model = SPNGPRegressor(random_state=0).fit(X, y)")
    model = SPNGPRegressor(random_state=0, verbose=1).fit(X, y)

    print("mean, low, high of the first new rows, with 90 % intervals:")
    mixture = model.predict_dist(X_new)
    low, high = mixture.interval(0.9)
    for i in range(3):
        print(f"  at {X_new[i, 0]:4.1f} ms: {mixture.mean[i]:6.1f} g, {low[i]:6.1f} to {high[i]:6.1f}")

    error, usual = np.abs(y_new - mixture.mean).mean(), np.abs(y_new - y.mean()).mean()
    inside = metrics.coverage(mixture, y_new, 0.9)
    print(
        f"off by {error:.1f} g on average, predicting the mean by {usual:.1f}; {inside:.0%} inside the 90 % intervals\n"
    )

    model.save(folder / "crash.spngp")
    assert np.array_equal(load(folder / "crash.spngp").predict(X_new), model.predict(X_new))
    with (folder / "predicted.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["times", "accel", "mean", "low", "high"])
        writer.writerows(np.column_stack([X_new, y_new, mixture.mean, low, high]).tolist())
    units = {"acceleration": "g", "x0": "ms"}
    write_report(
        model, folder / "report.html", X_new, y_new, title="A crash", output_names=["acceleration"], units=units
    )
    print("Look at")
    for name, what in {
        "report.html": "open it in a browser",
        "predicted.csv": "predictions with 90 % intervals",
        "crash.spngp": "the model: spngp.load opens it",
    }.items():
        print(f"  {folder / name}  {what}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
