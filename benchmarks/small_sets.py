"""Default arguments on sets of a few hundred rows: subsets of the evaluation sets, and generated ones.

    SPNGP_DATA=../shared/data python benchmarks/small_sets.py --sets concrete,natures --rows 300,800 --seeds 3

Subsets are drawn from the rows that ``accuracy.py`` trains on in its first split, and judged on up to 1,000 others of
these; no test row is looked at. Generated sets: ``natures``, a function and a noise of another nature on either side of
a border; ``along``, noise that depends on one of eight inputs; ``friedman``, ten inputs, five of no use; ``exact`` and
``grid``, without noise, the second on whole numbers; ``sparse``, 25 inputs, three of any use; ``lowrank``, 24 inputs
that are mixtures of three, and hardly any noise. Figures are means over seeds, each with other rows; outputs are
standardised.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import accuracy
import reporting
from spngp import SPNGPRegressor, metrics

SETS = ("yacht", "energy", "concrete", "airfoil", "wine", "ccpp", "kin40k", "pumadyn32nm", "keggdirected", "naval")
GENERATED = ("natures", "along", "friedman", "exact", "grid", "sparse", "lowrank")
N_NEW = 1000

Generator = np.random.Generator


def generated(name: str, n: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows and outputs."""
    noise = rng.standard_normal(n)
    if name == "natures":
        X = rng.uniform(0, 1, (n, 4))
        rough = X[:, 0] > 0.5
        y = np.where(rough, np.sin(12 * X[:, 1]), 2 * X[:, 1]) + np.where(rough, 0.3, 0.03) * noise
    elif name == "along":
        X = rng.uniform(-1, 1, (n, 8))
        y = np.sin(4 * X[:, 0]) * np.cos(2 * X[:, 1]) + X[:, 2] ** 2 + np.exp(-1.5 + X[:, 4]) * noise
    elif name == "grid":
        X = rng.integers(0, 10, (n, 4)).astype(float)
        y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 1.5
    elif name == "sparse":
        X = rng.uniform(-1, 1, (n, 25))
        y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * noise
    elif name == "lowrank":
        Z = rng.standard_normal((n, 3))
        X = Z @ np.random.default_rng(5).standard_normal((3, 24)) + 0.05 * rng.standard_normal((n, 24))
        y = np.sin(Z[:, 0]) + 0.5 * Z[:, 1] ** 2 + 0.02 * noise
    else:
        X = rng.uniform(0, 1, (n, 10))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        y += noise if name == "friedman" else 0.0
    return X, (y - y.mean()) / y.std()


def judged(name: str, n: int, seed: int) -> tuple[float, float, float, float]:
    """NLPD, RMSE, share of 90 % intervals that hold, CPU seconds to fit."""
    rng = np.random.default_rng([5, seed])
    if name in GENERATED:
        X, y = generated(name, n + N_NEW, rng)
    else:
        X, y, _, _ = accuracy.splits(name, 1)[0]
        some = rng.permutation(len(y))[: n + N_NEW]
        X, y = X[some], y[some]
    n = min(n, len(y) * 4 // 5)
    start = time.process_time()
    model = SPNGPRegressor(random_state=seed).fit(X[:n], y[:n])
    seconds = time.process_time() - start
    mixture = model.predict_dist(X[n:])
    return metrics.nlpd(mixture, y[n:]), metrics.rmse(mixture, y[n:]), metrics.coverage(mixture, y[n:], 0.9), seconds


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=[*SETS, *GENERATED])
    parser.add_argument("--rows", type=reporting.counts, default=[300, 800])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    reporting.print_head(["set", "rows", "NLPD", "RMSE", "90 % holds", "CPU s"])
    for name in arguments.sets:
        for n in arguments.rows:
            found = np.array([judged(name, n, seed) for seed in range(arguments.seeds)])
            nlpd, rmse, holds, seconds = found.mean(axis=0)
            reporting.print_row([name, n, f"{nlpd:.3f}", f"{rmse:.4f}", f"{100 * holds:.1f}", f"{seconds:.1f}"])


if __name__ == "__main__":
    reporting.run(main)
