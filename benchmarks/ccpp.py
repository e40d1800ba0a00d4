"""What an RMSE on ccpp says: how much splits differ, and how much of it a few rows make.

    SPNGP_DATA=../shared/data python benchmarks/ccpp.py splits [--gpboost 12] --csv splits.csv
    SPNGP_DATA=../shared/data python benchmarks/ccpp.py rows

``splits`` compares, over many random 90/10 splits, the defaults with a plain setting: one Matérn-3/2 kernel, tied
parameters, overlap 1, Gaussian noise and no doubt about outliers. With ``--gpboost N`` the N splits that are
easiest for the plain setting are also given to GPBoost (over a minute each). ``rows`` predicts every row once, by ten
folds, and tells how the squared error is spread over rows. Nothing is chosen by either.
"""

from __future__ import annotations

import sys
import warnings
from typing import TextIO

import numpy as np

import reporting
from accuracy import Rows, gpboost, spngp_2_threads, standardised
from defaults import kernel
from spngp import SPNGPRegressor, datasets, metrics
from spngp.predictive import GaussianMixture

FAR = 1.0  # standard deviations of the output


def with_defaults(rows: Rows, seed: int) -> GaussianMixture:
    return spngp_2_threads(rows[0], rows[1], seed)(rows[2])


def plain(rows: Rows, seed: int) -> GaussianMixture:
    model = SPNGPRegressor(
        kernels=kernel("M32", rows[0].shape[1]),
        hyperparameters="tied",
        overlap=1.0,
        outliers="trust",
        noise_shape="gaussian",
        random_state=seed,
        n_jobs=2,
    )
    return model.fit(*rows[:2]).predict_dist(rows[2])


def scores(mixture: GaussianMixture, y: np.ndarray) -> str:
    return f"{metrics.rmse(mixture, y):.4f},{metrics.nlpd(mixture, y):.4f}"


def splits(data: datasets.Dataset, count: int, given_to_gpboost: int, file: TextIO) -> None:
    """A line a split, the easiest for the plain setting first."""
    lines = []
    for seed in range(count):
        rows = standardised(*data.random_split(0.1, seed))
        base = plain(rows, seed)
        line = f"{seed},{scores(base, rows[3])},{scores(with_defaults(rows, seed), rows[3])}"
        lines.append((metrics.rmse(base, rows[3]), seed, line))
        print(f"{len(lines)} of {count} splits", file=sys.stderr)
    print("seed,plain RMSE,plain NLPD,default RMSE,default NLPD,GPBoost RMSE,GPBoost NLPD", file=file)
    for place, (_, seed, line) in enumerate(sorted(lines)):
        peer = ","
        if place < given_to_gpboost:
            rows = standardised(*data.random_split(0.1, seed))
            peer = scores(gpboost(rows[0], rows[1], seed)(rows[2]), rows[3])
        print(f"{line},{peer}", file=file, flush=True)


def rows_apart(data: datasets.Dataset, folds: int = 10) -> None:
    """How much of the squared error the rows make that lie far off what all others say."""
    order = np.random.default_rng(0).permutation(len(data))
    residuals = np.empty(len(data))
    for fold in range(folds):
        test, train = order[fold::folds], np.delete(order, np.s_[fold::folds])
        rows = standardised(data.take(train), data.take(test))
        residuals[test] = rows[3] - with_defaults(rows, fold).mean
    squares = residuals**2
    far = np.abs(residuals) > FAR
    print(f"RMSE of all {squares.size} rows {np.sqrt(squares.mean()):.4f}")
    print(
        f"{far.sum()} rows ({100 * far.mean():.2f} %) lie more than {FAR:g} standard deviation off and make "
        f"{100 * squares[far].sum() / squares.sum():.0f} % of the squared error; RMSE of the others "
        f"{np.sqrt(squares[~far].mean()):.4f}"
    )
    vacuum = data.X[far, data.inputs.index("vacuum")]
    print(f"of these, {vacuum.size - np.unique(vacuum).size} share their value of vacuum with another one")
    rng = np.random.default_rng(1)
    tenths = [rng.choice(squares, squares.size // 10, replace=False).mean() for _ in range(10_000)]
    low, high = np.sqrt(np.quantile(tenths, [0.05, 0.95]))
    print(f"RMSE of a tenth of the rows, by chance: 5 % below {low:.3f}, 5 % above {high:.3f}")


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("what", choices=("splits", "rows"))
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--gpboost", type=int, default=0, help="splits that GPBoost is given as well")
    parser.add_argument("--csv", default="ccpp.csv", help="file for the splits, a line each (ccpp.csv)")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    data = datasets.load("ccpp")
    if arguments.what == "rows":
        rows_apart(data)
    else:
        with open(arguments.csv, "w", encoding="utf-8") as file:
            splits(data, arguments.splits, arguments.gpboost, file)
    return 0


if __name__ == "__main__":
    reporting.run(main)
