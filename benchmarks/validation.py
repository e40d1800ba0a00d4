"""How default arguments compare with other choices, on validation rows: no test row is looked at.

    SPNGP_DATA=../shared/data python benchmarks/validation.py --sets yacht,energy --choices default,SE --splits 3

Every split takes the training rows of a split of ``accuracy.py`` and holds out a fifth of them. Choices: default
arguments; one kernel alone (SE, Matérn-3/2, Matérn-1/2) or one of the default sums; leaves of 500 rows with overlap
3 and of 1,000 rows with overlap 1; if asked for, another floor of the noise, in standard deviations of y up to 1,000
rows. Cells: NLPD / RMSE / share of 95 % intervals that hold / CPU seconds to fit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import accuracy
import reporting
from spngp import SPNGPRegressor, datasets, metrics
from spngp.kernels import Kernel, Matern, Parameter, SquaredExponential
from spngp.learning import defaults

SETS = ("yacht", "energy", "concrete", "airfoil", "wine", "ccpp", "naval", "pumadyn32nm", "kin40k", "keggdirected")


def kernel(make: Callable[..., Kernel], d: int) -> Kernel:
    """A kernel for standardised inputs, as default kernels start."""
    lengths = Parameter([np.sqrt(d)] * d, defaults.LENGTH_SCALE_BOUNDS)
    return make(length_scale=lengths, variance=Parameter(1.0, defaults.VARIANCE_BOUNDS))


CHOICES: dict[str, Callable[[int], dict[str, Any]]] = {
    "default": lambda d: {},
    "SE": lambda d: {"kernels": kernel(SquaredExponential, d)},
    "Matérn-3/2": lambda d: {"kernels": kernel(lambda **given: Matern(1.5, **given), d)},
    "Matérn-1/2": lambda d: {"kernels": kernel(lambda **given: Matern(0.5, **given), d)},
    "SE + SE": lambda d: {"kernels": defaults.default_kernels(d)[0]},
    "Matérn + Matérn": lambda d: {"kernels": defaults.default_kernels(d)[1]},
    "500 × 3": lambda d: {"max_leaf_size": 500, "overlap": 3.0},
    "1000 × 1": lambda d: {"max_leaf_size": 1000, "overlap": 1.0},
    "floor .01": lambda d: {},
    "floor .001": lambda d: {},
}
FLOORS = {"floor .01": 0.01, "floor .001": 0.001}


def validation_rows(name: str, seed: int) -> accuracy.Rows:
    """Rows to learn from and rows to validate by, standardised by ``accuracy.py``."""
    rows = accuracy.splits(name, seed + 1)
    X, y, _, _ = rows[seed % len(rows)]
    order = np.random.default_rng([seed, 77]).permutation(len(y))
    held_out, learnt = order[: len(y) // 5], order[len(y) // 5 :]
    return X[learnt], y[learnt], X[held_out], y[held_out]


def judged(name: str, choice: str, seed: int) -> tuple[float, float, float, float]:
    X, y, X_new, y_new = validation_rows(name, seed)
    before = defaults.NOISE_STD_FLOOR
    defaults.NOISE_STD_FLOOR = FLOORS.get(choice, before)
    try:
        start = time.process_time()
        model = SPNGPRegressor(random_state=seed, **CHOICES[choice](X.shape[1])).fit(X, y)
        seconds = time.process_time() - start
    finally:
        defaults.NOISE_STD_FLOOR = before
    mixture = model.predict_dist(X_new)
    holds = metrics.coverage(mixture, y_new, 0.95)
    return metrics.nlpd(mixture, y_new), metrics.rmse(mixture, y_new), holds, seconds


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=list(SETS))
    parser.add_argument(
        "--choices",
        type=reporting.names,
        default=[name for name in CHOICES if name not in FLOORS],
        help=", ".join(CHOICES),
    )
    parser.add_argument("--splits", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    reporting.print_head(["set", "rows", *arguments.choices])
    for name in arguments.sets:
        cells = []
        for choice in arguments.choices:
            found = np.array([judged(name, choice, seed) for seed in range(arguments.splits)]).mean(axis=0)
            cells.append(f"{found[0]:.3f} / {found[1]:.4f} / {100 * found[2]:.1f} / {found[3]:.1f}")
        reporting.print_row([name, datasets.load(name).X.shape[0], *cells])


if __name__ == "__main__":
    reporting.run(main)
