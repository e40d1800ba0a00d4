"""The measurements behind the defaults: one setting changed at a time, on validation splits.

    SPNGP_DATA=../shared/data python benchmarks/defaults.py > table.md

Each set is split 90/10 by seeds that no other benchmark uses; of Kin40K only the training file is touched. RMSE and
NLPD on standardised outputs, the latter with the share of 95 % intervals that hold in brackets.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import time
import warnings
from typing import Any

import numpy as np

import reporting
from accuracy import standardised
from spngp import SPNGPRegressor, datasets, metrics
from spngp.kernels import Kernel, Linear, Matern, Parameter, SquaredExponential
from spngp.learning import Plan, defaults

SETS = ("yacht", "energy", "concrete", "airfoil", "wine", "ccpp", "kin40k", "naval", "pumadyn32nm", "keggdirected")
SLOW = ("pumadyn32nm", "keggdirected")

# Where the parts of a sum start: length-scales as a multiple of √d, and variances.
STARTS = {1: [(1.0, 1.0)], 2: [(2.0, 1.0), (0.7, 0.3)], 3: [(2.0, 1.0), (0.7, 0.3), (0.7, 0.1)]}


def kernel(name: str, d: int) -> Kernel:
    """``SE``, ``M32+M12``, ``M32+L``, …: a single kernel, or a sum of a slow and faster ones; ``L`` is linear."""
    parts = name.split("+")
    built: list[Kernel] = []
    for part, (factor, variance) in zip(parts, STARTS[len(parts)], strict=True):
        scale = defaults._length_scale(d, factor)
        size = Parameter(variance, defaults.VARIANCE_BOUNDS)
        if part == "L":
            built.append(Linear(size, size))
        else:
            built.append(SquaredExponential(scale, size) if part == "SE" else Matern(float(part[1]) / 2, scale, size))
    return functools.reduce(operator.add, built)


class Variant(SPNGPRegressor):
    """The estimator with fields of its plan replaced."""

    def __init__(self, plan: dict[str, Any] | None = None, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.plan = plan

    def _plan(self, *arguments: Any) -> Plan:
        return dataclasses.replace(super()._plan(*arguments), **(self.plan or {}))


VARIANTS: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "tied": {"hyperparameters": "tied"},
    "prior std 1, length-scales 0.2": {"plan": {"prior_std": 1.0, "length_scale_prior_std": 0.2}},
    "prior std 0.25, length-scales 0.05": {"plan": {"prior_std": 0.25, "length_scale_prior_std": 0.05}},
    "no prior on variances": {"plan": {"variance_prior_std": 1e6}},
    "overlap 1": {"overlap": 1.0},
    "250 rows, overlap 7": {"max_leaf_size": 250, "overlap": 7.0},
    "1,000 rows, overlap 1": {"max_leaf_size": 1000, "overlap": 1.0},
    "noise floor 0.02": {"floor": 0.02},
    "noise floor 0.005": {"floor": 0.005},
    "outliers trusted": {"outliers": "trust"},
    "Gaussian noise": {"noise_shape": "gaussian"},
    "SE": {"names": ["SE"]},
    "M32": {"names": ["M32"]},
    "L, SE, M32": {"names": ["L", "SE", "M32"]},
    "SE+L, M32+L": {"names": ["SE+L", "M32+L"]},
    "SE+SE": {"names": ["SE+SE"]},
    "SE+SE, M32+M12": {"names": ["SE+SE", "M32+M12"]},
    "SE+SE, M32+M32+M12": {"names": ["SE+SE", "M32+M32+M12"]},
}


def measure(name: str, seed: int, settings: dict[str, Any]) -> list[float]:
    data = datasets.load(name)
    if data.n_train is not None:
        data, _ = data.classic_split()
    X, y, X_test, y_test = standardised(*data.random_split(0.1, 1000 + seed))
    settings = dict(settings)
    floor, names = settings.pop("floor", None), settings.pop("names", None)
    before = defaults.NOISE_STD_FLOOR
    defaults.NOISE_STD_FLOOR = floor or before
    if names:
        settings["kernels"] = [kernel(name, X.shape[1]) for name in names]
    start = time.perf_counter()
    try:
        mixture = Variant(**settings, random_state=seed, n_jobs=2).fit(X, y).predict_dist(X_test)
    finally:
        defaults.NOISE_STD_FLOOR = before
    seconds = time.perf_counter() - start
    scores = metrics.scores(mixture, y_test)
    return [scores.rmse, scores.nlpd, scores.coverage[0.95], seconds]


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=list(SETS))
    parser.add_argument("--variants", type=reporting.counts, default=list(range(len(VARIANTS))), help="by number")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--slow-splits", type=int, default=2, help=f"for {' and '.join(SLOW)}")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    reporting.print_head(["setting", *arguments.sets, "seconds"])
    for number in arguments.variants:
        label, settings = list(VARIANTS.items())[number]
        cells, total = [], 0.0
        for name in arguments.sets:
            count = arguments.slow_splits if name in SLOW else arguments.splits
            rmse, nlpd, coverage, seconds = np.mean([measure(name, i, settings) for i in range(count)], axis=0)
            cells.append(f"{rmse:.4f} / {nlpd:.3f} ({100 * coverage:.0f})")
            total += seconds
        reporting.print_row([label, *cells, f"{total:.0f}"])
    return 0


if __name__ == "__main__":
    reporting.run(main)
