"""Time, memory and error of the CRPS of mixtures with many components.

    python benchmarks/crps.py [--rows 20000] [--components 336]

Scores random mixtures of three kinds, each in a process of its own: of any means and widths; as the shape of the noise
makes them, seven widths about each mean and most weight on a few means; and with widths that differ by a factor of a
million. Prints seconds of CPU, the memory of the mixture alone and the peak of the process, and the largest error of
100 rows against the closed form, relative to the score. Then, for few components, microseconds a row by the closed form
and by the table.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import reporting
from spngp import metrics
from spngp import mixture_spread as _spread
from spngp._support.types import Array
from spngp.mixture_spread import mean_absolute
from spngp.predictive import GaussianMixture

KINDS = ("any", "noise of a shape", "widths of all sizes")
_NOISE = np.array([0.1, 0.2, 0.4, 0.2, 0.09, 0.009, 0.001])


def mixture_of(kind: str, n: int, size: int, rng: np.random.Generator) -> GaussianMixture:
    weights, means = rng.dirichlet(np.ones(size), n), rng.standard_normal((n, size))
    variances = rng.uniform(0.1, 2.0, (n, size)) ** 2
    if kind == "noise of a shape":
        copies = np.arange(size) // 7
        means, variances = means[:, copies], variances[:, copies] / 9 + 0.3 * 4.0 ** (np.arange(size) % 7 - 2)
        weights = rng.dirichlet(np.full(copies[-1] + 1, 0.05), n)[:, copies] * _NOISE[np.arange(size) % 7]
        weights /= weights.sum(axis=1, keepdims=True)
    elif kind == "widths of all sizes":
        variances = 10.0 ** rng.uniform(-12, 0, (n, size))
    with np.errstate(divide="ignore"):
        return GaussianMixture(np.log(weights), means, variances)


def closed_form(mixture: GaussianMixture, y: Array, row: int) -> float:
    weights, means, variances = mixture.weights[row], mixture.means[row], mixture.variances[row]
    differences = mean_absolute(means[:, np.newaxis] - means, variances[:, np.newaxis] + variances)
    return float(weights @ mean_absolute(y[row] - means, variances) - 0.5 * weights @ differences @ weights)


def measure(kind: str, n: int, size: int) -> None:
    rng = np.random.default_rng(0)
    mixture = mixture_of(kind, n, size, rng)
    y = mixture.mean + mixture.std * rng.standard_normal(n)
    start = time.process_time()
    scores = metrics.crps_of_rows(mixture, y)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    alone = 3 * mixture.means.nbytes / 1e6
    few = GaussianMixture(mixture.log_weights[:100], mixture.means[:100], mixture.variances[:100])
    expected = np.array([closed_form(few, y, row) for row in range(len(few))])
    error = float(np.max(np.abs(scores[: len(few)] / expected - 1.0)))
    memory = f"{alone:>8.0f} to {peak:.0f} MB"
    print(f"{kind:<22}{n:>8,} x {size:<5}{seconds:>8.1f} s{memory}   error {error:.0e}", flush=True)


def fastest(call: Callable[[], object]) -> float:
    times = []
    for _ in range(7):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def compare_few(size: int, n: int = 2000) -> None:
    mixture = mixture_of("any", n, size, np.random.default_rng(size))
    parts = mixture.weights, mixture.means, mixture.variances
    chosen, times = _spread.FEW, []
    for _spread.FEW in (size, 0):
        times.append(fastest(lambda: _spread.mean_difference(*parts)))
    _spread.FEW = chosen
    print(f"{size:>4} components: {times[0] / n * 1e6:7.1f} and {times[1] / n * 1e6:6.1f} us a row")


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--components", type=int, default=336)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        for kind in KINDS:
            process = multiprocessing.get_context("spawn").Process(
                target=measure, args=(kind, arguments.rows, arguments.components)
            )
            process.start()
            process.join()
        for size in (2, 4, 8, 16, 32):
            compare_few(size)


if __name__ == "__main__":
    reporting.run(main)
