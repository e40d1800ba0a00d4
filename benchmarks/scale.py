"""Time, memory and accuracy of ``SPNGPRegressor`` from ten thousand rows to a million, against LAPACK and peers.

    python benchmarks/scale.py                                 # 10k to 1M rows, adaptive and tied, two threads
    python benchmarks/scale.py --rows 100000 --threads 1,2     # what the second thread brings
    python benchmarks/scale.py --rows 100000 --peers           # GPBoost and GPyTorch on the same rows

Rows come from ``spngp.datasets.regional``: eight inputs, length-scales and noise that differ by region. Every
measurement has a process of its own, so its peak memory is its own; it is the one of ``spngp reproduce scaling``, whose
page has the figures of the default settings. ``floor`` is what LAPACK alone needs for the
factorisations (potrf) and inverses (potri) of that fit: they are counted by size while it runs, and the same number
is timed afterwards, on as many threads. Seconds of CPU are given as well: on a shared machine they say more than the
clock. RMSE and NLPD are in units of the standard deviation of y; ``truth`` is the RMSE against the function without
noise.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import accuracy
import reporting
from spngp import SPNGPRegressor
from spngp._linalg.square import Square
from spngp._support.types import Array
from spngp.experiments.cells import Row
from spngp.experiments.files import csv_text, write_text
from spngp.experiments.measuring import exponent, in_own_process, measure
from spngp.gp.evidence import CompiledEvidence
from spngp.predictive import GaussianMixture

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
N_TEST = 100_000
LIMIT = 2_100  # seconds that one measurement may take
GROWTH_FROM = 30_000  # rows from which on the growth of the time is told
COLUMNS = (
    "model", "rows", "threads", "fit s", "fit cpu s", "floor s", "fit/floor", "predict s", "predict cpu s",
    "peak GB", "RMSE", "truth", "NLPD",
)  # fmt: skip


class Calls:
    """Counts the factorisations and inverses of a fit, by number of rows."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        cholesky, bound_invert, evaluate = Square.cholesky, Square.bound_invert, CompiledEvidence.__call__

        def counted_cholesky(square: Square) -> bool:
            self.counts["cholesky", square.n] += 1
            return cholesky(square)

        def counted_bound_invert(square: Square) -> Callable[[], None]:
            invert = bound_invert(square)

            def call() -> None:
                self.counts["invert", square.n] += 1
                invert()

            return call

        def counted_evaluation(evidence: CompiledEvidence, *arguments: Any) -> tuple[float, Array, float]:
            for name in ("cholesky", "invert"):  # done inside, by the same routines
                self.counts[name, evidence._y.size] += 1
            return evaluate(evidence, *arguments)

        Square.cholesky, Square.bound_invert = counted_cholesky, counted_bound_invert  # type: ignore[method-assign]
        CompiledEvidence.__call__ = counted_evaluation  # type: ignore[method-assign]

    def floor(self, threads: int) -> float:
        """Seconds that LAPACK needs on ``threads`` threads; sizes within 3 % of each other are timed as one."""
        counts = Counter(self.counts)
        groups: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for (name, n), count in counts.items():
            groups.setdefault((name, round(math.log(max(n, 1)) / 0.03)), []).append((n, count))
        total = 0.0
        for (name, _), members in groups.items():
            count = sum(c for _, c in members)
            n = round(sum(n * c for n, c in members) / count)
            total += count * _seconds_per_call(name, n, threads)
        return total


def _seconds_per_call(name: str, n: int, threads: int) -> float:
    covariance = np.asfortranarray(np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / 3.0) + np.eye(n))
    repeats = max(3, min(100, int(2e9 / max(n, 10) ** 3)))

    def work(_: int) -> float:
        square, spent = Square(np.empty((n, n), order="F")), []
        invert = _BOUND_INVERT(square, n)  # LAPACK's own, as the matrix is not cut
        for _ in range(repeats):
            square.array[:] = covariance
            if name == "invert":
                _CHOLESKY(square)
            start = time.perf_counter()
            _CHOLESKY(square) if name == "cholesky" else invert()
            spent.append(time.perf_counter() - start)
        return float(np.mean(spent))

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return float(np.mean(list(pool.map(work, range(threads))))) / threads


_CHOLESKY, _BOUND_INVERT = Square.cholesky, Square.bound_invert  # as they are when nothing is counted


class Peer:
    """A peer of ``accuracy.py`` as an estimator: it is given y in units of its standard deviation."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fit(self, X: Array, y: Array) -> None:
        """Learn."""
        self._unit = float(y.std())
        self._predict = accuracy.MODELS[self._name](X, y / self._unit, 0)

    def predict_dist(self, X: Array) -> GaussianMixture:
        """The prediction, in the units of y."""
        return self._predict(X).scaled(self._unit, 0.0)


def measured(name: str, n: int, n_test: int, threads: int) -> Row:
    """One row of the table."""
    own = name in ("adaptive", "tied")
    model = SPNGPRegressor(hyperparameters=name, n_jobs=threads, random_state=0) if own else Peer(name)
    calls, counted = Calls(), Counter[tuple[str, int]]()
    row = measure(model, n, n_test, lambda: counted.update(calls.counts))
    calls.counts = counted
    floor = calls.floor(threads) if counted else math.nan
    return {"model": name, "threads": threads, "floor s": floor, "fit/floor": row["fit s"] / floor, **row}


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=reporting.counts, default=list(ROWS))
    parser.add_argument("--test-rows", type=int, default=N_TEST, help="predicted with variances (100,000)")
    parser.add_argument("--models", type=reporting.names, default=["adaptive", "tied"])
    parser.add_argument("--threads", type=reporting.counts, default=[2], help="one number, or several to compare")
    parser.add_argument("--peers", action="store_true", help="GPBoost (Vecchia) and GPyTorch (SVGP) as well")
    parser.add_argument("--csv", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args(argv)
    models = [*arguments.models, *(["gpboost", "svgp"] if arguments.peers else [])]
    results: list[Row] = []
    reporting.print_head(COLUMNS)
    for n, model, threads in product(arguments.rows, models, arguments.threads):
        try:
            row = in_own_process(measured, model, n, arguments.test_rows, threads, timeout=LIMIT)
        except (ImportError, MemoryError, RuntimeError, TimeoutError) as reason:
            reporting.print_row([model, n, f"failed: {reason}"])
            continue
        results.append(row)
        reporting.print_row([row[column] for column in COLUMNS])
        if arguments.csv:
            write_text(arguments.csv, csv_text([{column: row[column] for column in COLUMNS} for row in results]))
    for model, threads in product(models, arguments.threads):
        own = [row for row in results if (row["model"], row["threads"]) == (model, threads)]
        if sum(row["rows"] >= GROWTH_FROM for row in own) > 1:
            clock, cpu = (exponent(own, column, GROWTH_FROM) for column in ("fit s", "fit cpu s"))
            print(f"{model}, {threads} threads: fit time grows with exponent {clock:.2f}, CPU time with {cpu:.2f}")
    return 0


if __name__ == "__main__":
    reporting.run(main)
