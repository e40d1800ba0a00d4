"""The measurements behind the defaults: one setting changed at a time, on validation splits.

    SPNGP_DATA=../shared/data python benchmarks/defaults.py > table.md

Each set is split 90/10 by seeds that no other benchmark uses; of Kin40K only the training file is touched. RMSE and
NLPD on standardised outputs, the latter with the share of 95 % intervals that hold in brackets.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
import warnings
from typing import Any

import numpy as np

from accuracy import standardised
from spngp import SPNGPRegressor, datasets, defaults, metrics
from spngp.kernels import Kernel, Matern, Parameter, SquaredExponential
from spngp.learning import Plan

SMALL = ("yacht", "energy", "concrete", "airfoil", "wine")
LARGE = ("ccpp", "kin40k", "naval", "pumadyn32nm")


def kernel(name: str, d: int) -> Kernel:
    """``SE``, ``M32+M12``, …: a single kernel, or a slow one plus a fast one."""
    parts = name.split("+")
    starts = [(1.0, 1.0)] if len(parts) == 1 else [(2.0, 1.0), (0.7, 0.3)]
    built: list[Kernel] = []
    for part, (factor, variance) in zip(parts, starts, strict=True):
        scale = defaults._length_scale(d, factor)
        size = Parameter(variance, defaults.VARIANCE_BOUNDS)
        built.append(SquaredExponential(scale, size) if part == "SE" else Matern(float(part[1]) / 2, scale, size))
    return built[0] if len(built) == 1 else built[0] + built[1]


class Variant(SPNGPRegressor):
    """The estimator with fields of its plan replaced."""

    def __init__(self, plan: dict[str, Any] | None = None, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.plan = plan

    def _plan(self, *arguments: Any) -> Plan:
        return dataclasses.replace(super()._plan(*arguments), **(self.plan or {}))


# What every row but those of kernels starts from. The row with both Matérn-3/2 came out ahead and is the default.
BASE_KERNELS = ["SE+SE", "M32+M12"]

VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "tied": {"hyperparameters": "tied"},
    "prior std 0.3": {"plan": {"prior_std": 0.3}},
    "prior std 1, length-scales 0.2": {"plan": {"prior_std": 1.0, "length_scale_prior_std": 0.2}},
    "no prior on variances": {"plan": {"variance_prior_std": 1e6}},
    "overlap 0": {"overlap": 0.0},
    "overlap 1": {"overlap": 1.0},
    "250 rows, overlap 7": {"max_leaf_size": 250, "overlap": 7.0},
    "noise floor 0.02": {"floor": 0.02},
    "noise floor 0.005": {"floor": 0.005},
    "kernel SE": {"names": ["SE"]},
    "kernel M32": {"names": ["M32"]},
    "kernel SE+SE": {"names": ["SE+SE"]},
    "kernel M32+M12": {"names": ["M32+M12"]},
    "kernels SE+SE, M32+M32": {"names": ["SE+SE", "M32+M32"]},
    "the defaults, outliers trusted": {"names": ["SE+SE", "M32+M32"], "outliers": "trust"},
    "the defaults, Gaussian noise": {"names": ["SE+SE", "M32+M32"], "noise_shape": "gaussian"},
}


def measure(name: str, seed: int, settings: dict[str, Any]) -> list[float]:
    data = datasets.load(name)
    if data.n_train is not None:
        data, _ = data.classic_split()
    X, y, X_test, y_test = standardised(*data.random_split(0.1, 1000 + seed))
    settings = dict(settings)
    floor, names = settings.pop("floor", None), settings.pop("names", BASE_KERNELS)
    before = defaults.NOISE_STD_FLOOR
    defaults.NOISE_STD_FLOOR = floor or before
    settings["kernels"] = [kernel(part, X.shape[1]) for part in names]
    start = time.perf_counter()
    try:
        mixture = Variant(**settings, random_state=seed, n_jobs=2).fit(X, y).predict_dist(X_test)
    finally:
        defaults.NOISE_STD_FLOOR = before
    seconds = time.perf_counter() - start
    return [metrics.rmse(mixture, y_test), metrics.nlpd(mixture, y_test), metrics.coverage(mixture, y_test), seconds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SMALL + LARGE))
    parser.add_argument("--variants", default=",".join(f"{i}" for i in range(len(VARIANTS))), help="by number")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--large-splits", type=int, default=2, help=f"for {', '.join(LARGE)}")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = arguments.sets.split(",")
    print(f"| setting | {' | '.join(sets)} | seconds |\n|{'---|' * (len(sets) + 2)}", flush=True)
    for number in arguments.variants.split(","):
        label, settings = list(VARIANTS.items())[int(number)]
        cells, total = [], 0.0
        for name in sets:
            count = arguments.large_splits if name in LARGE else arguments.splits
            rmse, nlpd, coverage, seconds = np.mean([measure(name, i, settings) for i in range(count)], axis=0)
            cells.append(f"{rmse:.3g} / {nlpd:.3f} ({100 * coverage:.0f})")
            total += seconds
        print(f"| {label} | {' | '.join(cells)} | {total:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
