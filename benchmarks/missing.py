"""Missing inputs: what they are taken for, and whether rows that lack them may have a region of their own.

    python benchmarks/missing.py
    python benchmarks/missing.py --rows 600 --seeds 1

A table of four inputs and a category. ``far`` is missing in a tenth of the rows at random, ``near`` where it is large,
in one row of eight. ``median``: gaps are filled by the median before the fit. ``indicator``: by the median, and an
input tells that they were (a category of two levels). ``region``: the default, where rows that lack an input may also
be cut off, if the noise is another there. Scores are of test rows with gaps alone, and of all of them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import reporting
from spngp import SPNGPRegressor, metrics
from spngp.learning import cut_candidates

TESTED = 3000  # rows


def table(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    level = rng.integers(0, 6, n_rows)
    effect = rng.standard_normal(6)
    y = 1.5 * np.sin(X[:, 0]) + X[:, 1] + 0.5 * X[:, 2] * X[:, 3] + effect[level] + 0.2 * rng.standard_normal(n_rows)
    columns = pd.DataFrame(X, columns=["far", "near", "c", "d"]).assign(level=[f"level {i}" for i in level])
    columns.loc[rng.random(n_rows) < 0.1, "far"] = np.nan
    columns.loc[X[:, 1] > 1.15, "near"] = np.nan
    return columns, y


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="training rows")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args(argv)
    reporting.print_head(["seed", "gaps", "RMSE with gaps", "NLPD", "90 % holds", "RMSE of all", "NLPD", "90 % holds"])
    for seed in range(arguments.seeds):
        X, y = table(arguments.rows + TESTED, seed)
        for way in ("median", "indicator", "region"):
            reporting.print_row([seed, way, *scores(X, y, way, seed)])
    return 0


def scores(X: pd.DataFrame, y: np.ndarray, way: str, seed: int) -> list[str]:
    lacking = X[:TESTED].isna().any(axis=1).to_numpy()
    filled = X.fillna(X[TESTED:].median(numeric_only=True)) if way == "median" else X
    fewest = cut_candidates._FEWEST_OF_LEVELS
    cut_candidates._FEWEST_OF_LEVELS = fewest if way == "region" else y.size
    try:
        model = SPNGPRegressor(random_state=seed).fit(filled[TESTED:], y[TESTED:])
    finally:
        cut_candidates._FEWEST_OF_LEVELS = fewest
    mixture = model.predict_dist(filled[:TESTED])
    found = [metrics.scores(mixture[rows], y[:TESTED][rows]) for rows in (lacking, slice(None))]
    return [text for s in found for text in (f"{s.rmse:.3f}", f"{s.nlpd:.3f}", f"{s.coverage[0.9]:.3f}")]


if __name__ == "__main__":
    reporting.run(main)
