"""How long one row takes: predicted with its variance, then added, on large models and from nothing.

    python benchmarks/stream.py                   # all parts; about an hour on two cores
    python benchmarks/stream.py --parts small     # leaves of 100 rows alone
    python benchmarks/stream.py --rows 2000 --pairs 200 --from-nothing 1000 --window 1000   # a first look

Rows come one at a time and in no order, in 8 inputs. Figures are CPU milliseconds for the pair of predicting and
adding, with BLAS on one thread. Cuts and re-learning are included; their share of the time is stated. Beside them
stands what learning and conditioning the touched region anew takes, as without updates, and what was published of
LoG-GP.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import reporting
from reporting import counts, names, parser, print_head, print_row
from spngp import SPNGPRegressor
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array
from spngp.kernels import SquaredExponential

# Lederer et al., "Gaussian Process-Based Real-Time Learning for Safety Critical Applications" (ICML 2021): what the
# implementation in Python takes for an update, without a prediction and with parameters that stay as they are.
LOG_GP = "LoG-GP, leaves of 100 rows, published, the update alone: median 0.17 ms, 0.70 ms at 99 %."

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"memory_limit": 12.0},
    "default-1GB": {"memory_limit": 1.0},
    "default-0.2GB": {"memory_limit": 0.2},
    "small": {"max_leaf_size": 100, "overlap": 1, "memory_limit": 4.0},
}


def rows(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eight inputs, five of which matter; noise of a tenth of the spread."""
    X = rng.uniform(-1.0, 1.0, (n, 8))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(3.0 * X[:, 3]) * X[:, 4]
    return X, y + 0.1 * rng.standard_normal(n)


def pairs(model: SPNGPRegressor, X: Array, y: Array) -> tuple[Array, Array, Array]:
    """CPU milliseconds of predicting, of adding, and whether the structure changed, for each row."""
    predicting, adding, changed = np.zeros(y.size), np.zeros(y.size), np.zeros(y.size, dtype=bool)
    n_events = len(model.events_)
    for i in range(y.size):
        start = time.process_time()
        model.predict(X[i : i + 1], return_std=True)
        middle = time.process_time()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        predicting[i], adding[i] = 1e3 * (middle - start), 1e3 * (time.process_time() - middle)
        now = len(model.events_)
        changed[i], n_events = now != n_events, now
    return predicting, adding, changed


def refit_milliseconds(model: SPNGPRegressor, count: int) -> float:
    """What learning and conditioning a region anew takes, on average over some."""
    X, y = np.array(model.X_train_), np.array(model.y_train_)
    records = [record for record in model.regions_ if record["rows"]]
    took = []
    for record in records[:: max(1, len(records) // count)][:count]:
        inside = ((record["low"] < X) & (record["high"] >= X)).all(axis=1)
        start = time.process_time()
        SPNGPRegressor(overlap=0, random_state=0, outliers="trust", max_leaf_size=10**6).fit(X[inside], y[inside])
        took.append(1e3 * (time.process_time() - start))
    return float(np.mean(took))


def on_a_model(name: str, n: int, n_pairs: int, n_refits: int) -> dict[str, Any]:
    """One line of the table."""
    rng = np.random.default_rng(0)
    X, y = rows(n, rng)
    start = time.process_time()
    model = SPNGPRegressor(random_state=0, **SETTINGS[name]).fit(X, y)
    fit_seconds = time.process_time() - start
    start = time.process_time()
    model.partial_fit(*rows(1, rng))
    first = time.process_time() - start
    pairs(model, *rows(n_pairs // 4, rng))  # factors of the fit are taken over when a region is first asked
    predicting, adding, changed = pairs(model, *rows(n_pairs, rng))
    pair = predicting + adding
    return {
        "model": name,
        "rows": n,
        "median": np.median(pair),
        "99 %": np.quantile(pair, 0.99),
        "predict": np.median(predicting),
        "add": np.median(adding),
        "mean": pair.mean(),
        "share of cuts and re-learning": f"{adding[changed].sum() / pair.sum():.0%}",
        "first row s": first,
        "fit s": fit_seconds,
        "refit of a region": refit_milliseconds(model, n_refits),
    }


def from_nothing(n: int) -> dict[str, Any]:
    """Small leaves, from an empty model."""
    X, y = rows(n, np.random.default_rng(1))
    model = SPNGPRegressor(random_state=0, **SETTINGS["small"]).partial_fit(X[:1], y[:1])
    start, halfway = time.process_time(), 0.0
    memory: list[float] = []
    for i in range(1, n):
        model.predict(X[i : i + 1], return_std=True)
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        if i == n // 2:
            halfway = time.process_time() - start
        if i + 1 in (n // 4, n // 2, n):
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    total = time.process_time() - start
    test_X, test_y = rows(2000, np.random.default_rng(2))
    error = float(np.sqrt(np.mean((model.predict(test_X) - test_y) ** 2)))
    kinds = [event["kind"] for event in model.events_]
    return {
        "rows": n,
        "mean ms a row": 1e3 * total / n,
        "mean ms, second half": 1e3 * (total - halfway) / (n - n // 2),
        "MB at a quarter, half, end": " / ".join(f"{value:.0f}" for value in memory),
        "RMSE at the end (noise .1)": error,
        "last 1,000 events": ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)),
    }


def leak(n: int) -> dict[str, Any]:
    """What the process holds for a window of 500 rows, after a fifth of the updates and at the end."""
    rng = np.random.default_rng(3)
    kernel = SquaredExponential([0.7] * 8)
    model = SPNGPRegressor(kernel, hyperparameters="fixed", noise_variance=0.01, max_leaf_size=100, overlap=1)
    model.fit(*rows(500, rng))
    peaks, objects = [], []
    start = time.process_time()
    for i in range(n):
        x, y = rows(1, rng)
        model.predict(x, return_std=True)
        model.partial_fit(x, y).forget(keep_last=500)
        if i in (n // 5, n - 1):
            gc.collect()
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
            objects.append(len(gc.get_objects()))
    return {
        "updates": n,
        "ms a row": 1e3 * (time.process_time() - start) / n,
        "peak MB after a fifth": peaks[0],
        "peak MB at the end": peaks[1],
        "objects after a fifth": objects[0],
        "objects at the end": objects[1],
        "events": len(model.events_),
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--parts", type=names, default=["small", "default", "default-1GB", "nothing", "leak"])
    arguments.add_argument("--rows", type=counts, default=[10_000, 100_000])
    arguments.add_argument("--pairs", type=int, default=2000, help="rows that are timed")
    arguments.add_argument("--from-nothing", type=int, default=100_000)
    arguments.add_argument("--window", type=int, default=100_000, help="updates of a sliding window, to find leaks")
    arguments.add_argument("--refits", type=int, default=5, help="regions learnt anew, for comparison")
    given = arguments.parse_args()
    others: dict[str, Callable[[], dict[str, Any]]] = {
        "nothing": lambda: from_nothing(given.from_nothing),
        "leak": lambda: leak(given.window),
    }
    with one_blas_thread():
        for part in given.parts:
            sizes = [0] if part in others else given.rows
            for i, n in enumerate(sizes):
                line = others[part]() if part in others else on_a_model(part, n, given.pairs, given.refits)
                if i == 0:
                    print()
                    print_head(list(line))
                print_row([float(value) if isinstance(value, np.floating) else value for value in line.values()])
    print(f"\n{LOG_GP}")


if __name__ == "__main__":
    reporting.run(main)
