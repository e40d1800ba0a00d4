"""How good a model is as its rows come one at a time: each is predicted, then added.

    python benchmarks/progressive.py                 # all parts; about half an hour on one core
    python benchmarks/progressive.py --parts drift

- trump: TrumpApproval of river, 1,001 rows, as they come. MAE of the predictions, and of river's own models.
- kin40k: 10,000 training rows of Kin40K from nothing; at powers of two, RMSE and NLPD on its test rows of the model
  that has come about, and of a batch fit of the same rows.
- drift: noise that triples, or a function that changes, halfway through a stream; coverage of 95 % intervals, RMSE and
  NLPD over the last quarter, with and without a sliding window, and of a model that forgets nothing, a batch fit of all
  rows before it (without a window rows count less where later ones contradict them); leaves of 100 rows. Functions:
  one that changes everywhere and differently, two that are shifted (in two inputs and in three), one with a new bump in
  a corner, one with a new step in a quarter of the space, one with a new step in half of the space of four inputs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import reporting
from reporting import names, parser, print_head, print_row
from spngp import SPNGPRegressor, datasets, metrics
from spngp._support.types import Array

_PARTS = ["trump", "drift", "kin40k"]


def trump(n: int) -> None:
    from river import datasets as river_datasets
    from river import linear_model, neighbors, preprocessing

    from spngp.adapters.river import SPNGPOnline

    rows = list(river_datasets.TrumpApproval())[:n]
    models = {
        "SPNGPOnline()": SPNGPOnline(seed=0),
        "BayesianLinearRegression()": linear_model.BayesianLinearRegression(),
        "StandardScaler() | BayesianLinearRegression()": preprocessing.StandardScaler()
        | linear_model.BayesianLinearRegression(),
        "StandardScaler() | KNNRegressor()": preprocessing.StandardScaler() | neighbors.KNNRegressor(),
    }
    print(f"\nTrumpApproval, {len(rows)} rows\n")
    print_head(["model", "MAE", "RMSE", "CPU s"])
    for name, model in models.items():
        start, errors = time.process_time(), []
        for x, y in rows:
            errors.append(model.predict_one(x) - y)
            model.learn_one(x, y)
        found = np.array(errors)
        print_row([name, float(np.abs(found).mean()), float(np.sqrt((found**2).mean())), time.process_time() - start])


def scores(model: SPNGPRegressor, X: Array, y: Array) -> tuple[float, float]:
    """RMSE and NLPD."""
    mixture = model.predict_dist(X)
    return metrics.rmse(mixture, y), metrics.nlpd(mixture, y)


def kin40k(n: int, seed: int) -> None:
    train, test = datasets.load("kin40k").classic_split()
    X, y = train.X[:n], train.Y[:n, 0]
    X_test, y_test = test.X[:5000], test.Y[:5000, 0]
    spread = float(y.std())
    what = f"Kin40K, {n} rows from nothing, {y_test.size} test rows, seed {seed}"
    print(f"\n{what}; RMSE and NLPD of outputs over their spread\n")
    print_head(
        ["rows", "RMSE stream", "RMSE batch", "ratio", "NLPD stream", "NLPD batch", "difference", "CPU s so far"]
    )
    model, took = SPNGPRegressor(random_state=seed), 0.0
    for i in range(n):
        start = time.process_time()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        took += time.process_time() - start
        if i + 1 >= 16 and ((i + 1) & i == 0 or i + 1 == n):
            batch = SPNGPRegressor(random_state=seed).fit(X[: i + 1], y[: i + 1])
            (rmse, nlpd), (rmse_batch, nlpd_batch) = scores(model, X_test, y_test), scores(batch, X_test, y_test)
            cells = [rmse / spread, rmse_batch / spread, rmse / rmse_batch, nlpd - np.log(spread)]
            cells += [nlpd_batch - np.log(spread), nlpd - nlpd_batch, took]
            print_row([i + 1, *map(float, cells)])


def waves(x: Array, late: bool) -> float:
    phase = 1.5 if late else 0.0
    return float(np.sin(2.0 * x[0] + phase) + 0.5 * x[1] * np.cos(phase))


def shift(x: Array, late: bool) -> float:
    return float(0.25 * x[0] * x[1] + np.cos(1.5 * x[0]) + (0.6 if late else 0.0))


def corner(x: Array, late: bool) -> float:
    bump = 1.2 * np.exp(-((x - 1.0) ** 2).sum()) if late else 0.0
    return float(np.sin(2.0 * x[0]) * np.cos(x[1]) + bump)


def three(x: Array, late: bool) -> float:
    return float(0.25 * x[0] * x[1] + np.cos(1.5 * x[2]) + (0.6 if late else 0.0))


def quarter(x: Array, late: bool) -> float:
    return float(np.sin(2.0 * x[0]) * np.cos(x[1]) + (1.0 if late and x.min() > 0 else 0.0))


def half(x: Array, late: bool) -> float:
    return float(np.sin(x[0]) + 0.3 * x[1] * x[2] + (0.8 if late and x[3] > 0 else 0.0))


# with the number of inputs
FUNCTIONS: dict[str, tuple[int, Callable[[Array, bool], float]]] = {
    "waves": (2, waves),
    "shift": (2, shift),
    "corner": (2, corner),
    "three": (3, three),
    "quarter": (2, quarter),
    "half": (4, half),
}


DRIFTING: dict[str, Any] = {"max_leaf_size": 100, "overlap": 1, "random_state": 0}


def drifting(n: int, name: str, kind: str, seed: int) -> Iterator[tuple[Array, float]]:
    """Rows whose noise triples halfway, or whose function becomes another one, or that stay as they are."""
    rng = np.random.default_rng(seed)
    n_inputs, function = FUNCTIONS[name]
    for i in range(n):
        x, late = rng.uniform(-2.0, 2.0, n_inputs), i >= n // 2
        noise = 0.3 if late and kind == "noise" else 0.1
        yield x, function(x, late and kind == "function") + noise * float(rng.standard_normal())


def streamed(n: int, name: str, kind: str, kept: int | None, seed: int) -> list[float | int]:
    """Coverage, RMSE and NLPD over the last quarter, events and CPU milliseconds a row of one stream."""
    model = SPNGPRegressor(**DRIFTING)
    inside, squares, losses = [], [], []
    start = time.process_time()
    for i, (x, y) in enumerate(drifting(n, name, kind, seed)):
        if i >= 3 * n // 4:
            mixture = model.predict_dist(x[np.newaxis])
            low, high = mixture.interval(0.95)
            inside.append(bool(low[0] <= y <= high[0]))
            squares.append((float(mixture.mean[0]) - y) ** 2)
            losses.append(-float(mixture.logpdf(np.array([y]))[0]))
        model.partial_fit(x[np.newaxis], np.array([y]))
        if kept is not None and i >= kept:
            model.forget(keep_last=kept)
    took = 1e3 * (time.process_time() - start) / n
    found = [float(np.mean(inside)), float(np.sqrt(np.mean(squares))), float(np.mean(losses))]
    return [*found, len(model.events_), took]


def at_once(n: int, name: str, kind: str, seed: int) -> list[float | int | str]:
    """The same of a model that forgets nothing: fitted to the first three quarters at once, and never updated."""
    X, y = (np.array(part) for part in zip(*drifting(n, name, kind, seed), strict=True))
    start, first = time.process_time(), 3 * n // 4
    model = SPNGPRegressor(**DRIFTING).fit(X[:first], y[:first])
    took, mixture = 1e3 * (time.process_time() - start) / n, model.predict_dist(X[first:])
    low, high = mixture.interval(0.95)
    held = float(np.mean((low <= y[first:]) & (y[first:] <= high)))
    return [held, metrics.rmse(mixture, y[first:]), metrics.nlpd(mixture, y[first:]), "", took]


def drift(n: int, n_seeds: int, functions: list[str], kinds: list[str]) -> None:
    window = min(2000, n // 4)
    print(f"\nDrift halfway, {n} rows; the last quarter\n")
    measured = ["95 % interval holds", "RMSE", "NLPD", "events", "CPU ms a row"]
    print_head(["function", "what changes", "window", "seed", *measured])
    for name in functions:
        for kind in kinds:
            for kept in (None, window):
                for seed in range(n_seeds):
                    print_row([name, kind, kept or "none", seed, *streamed(n, name, kind, kept, seed)])
            for seed in range(n_seeds):
                print_row([name, kind, "at once", seed, *at_once(n, name, kind, seed)])


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--parts", type=names, default=_PARTS)
    arguments.add_argument("--rows", type=int, default=None, help="fewer rows than each part has by default")
    arguments.add_argument("--seed", type=int, default=0, help="of the models of Kin40K")
    arguments.add_argument("--seeds", type=int, default=2, help="of the drifting series")
    arguments.add_argument("--functions", type=names, default=list(FUNCTIONS), help="of the drifting series")
    arguments.add_argument("--changes", type=names, default=["noise", "function"], help="or nothing")
    given = arguments.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # optimisations that stop early, with a handful of rows
        if "trump" in given.parts:
            trump(min(given.rows or 1001, 1001))
        if "drift" in given.parts:
            drift(given.rows or 8000, given.seeds, given.functions, given.changes)
        if "kin40k" in given.parts:
            kin40k(min(given.rows or 10_000, 10_000), given.seed)


if __name__ == "__main__":
    reporting.run(main)
