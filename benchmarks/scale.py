"""Time, memory and accuracy of ``SPNGPRegressor`` from ten thousand rows to a million, against LAPACK and peers.

    python benchmarks/scale.py                                 # 10k to 1M rows, adaptive and tied, two threads
    python benchmarks/scale.py --rows 100000 --threads 1,2     # what the second thread brings
    python benchmarks/scale.py --rows 100000 --peers           # GPBoost and GPyTorch on the same rows

Rows come from ``spngp.datasets.regional``: eight inputs, length-scales and noise that differ by region. Every
measurement has a process of its own, so its peak memory is its own. ``floor`` is what LAPACK alone needs for the
factorisations (potrf) and inverses (potri) of that fit: they are counted by size while it runs, and the same number
is timed afterwards, on as many threads. Seconds of CPU are given as well: on a shared machine they say more than the
clock. RMSE and NLPD are in units of the standard deviation of y; ``truth`` is the RMSE against the function without
noise.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from spngp import SPNGPRegressor
from spngp._linalg.square import Square, _dpotri
from spngp._support.types import Array
from spngp.datasets import regional
from spngp.gp.evidence import CompiledEvidence

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
N_TEST = 100_000
PEER_LIMIT = 1_800  # seconds
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
        """Seconds that LAPACK needs for them on so many threads; sizes within 3 % of each other are timed as one."""
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
        for _ in range(repeats):
            square.array[:] = covariance
            if name == "invert":
                _CHOLESKY(square)
            start = time.perf_counter()
            _CHOLESKY(square) if name == "cholesky" else _dpotri(*square._whole)
            spent.append(time.perf_counter() - start)
        return float(np.mean(spent))

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return float(np.mean(list(pool.map(work, range(threads))))) / threads


_CHOLESKY = Square.cholesky


def measure(model: str, n: int, threads: int) -> dict[str, float | str | int]:
    train, test = regional(n, random_state=0), regional(N_TEST, random_state=1)
    X, y, X_test, y_test = train.X, train.Y[:, 0], test.X, test.Y[:, 0]
    scale = float(y.std())
    calls = Calls()
    start, cpu = time.perf_counter(), time.process_time()
    if model in ("adaptive", "tied"):
        fitted = SPNGPRegressor(hyperparameters=model, n_jobs=threads, random_state=0).fit(X, y)
        predict = fitted.predict_dist
    else:
        import accuracy

        predict_scaled = accuracy.MODELS[model](X, y / scale, 0)

        def predict(X: np.ndarray) -> accuracy.GaussianMixture:
            return predict_scaled(X).scaled(scale, 0.0)

    fit_seconds, fit_cpu = time.perf_counter() - start, time.process_time() - cpu
    counted = Counter(calls.counts)
    start, cpu = time.perf_counter(), time.process_time()
    mixture = predict(X_test)
    mean = mixture.mean
    predict_seconds, predict_cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    calls.counts = counted
    floor = calls.floor(threads) if counted else math.nan
    return {
        "model": model,
        "rows": n,
        "threads": threads,
        "fit s": fit_seconds,
        "fit cpu s": fit_cpu,
        "floor s": floor,
        "fit/floor": fit_seconds / floor,
        "predict s": predict_seconds,
        "predict cpu s": predict_cpu,
        "peak GB": peak,
        "RMSE": float(np.sqrt(np.mean((mean - y_test) ** 2))) / scale,
        "truth": float(np.sqrt(np.mean((mean - test.function[:, 0]) ** 2))) / scale,
        "NLPD": -float(np.mean(mixture.logpdf(y_test))) - math.log(scale),
    }


def in_process(model: str, n: int, threads: int) -> dict[str, float | str | int] | None:
    command = [sys.executable, __file__, "--one", model, str(n), str(threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PEER_LIMIT + 300, check=False)
    except subprocess.TimeoutExpired:
        print(f"| {model} | {n} | not done within {PEER_LIMIT} seconds |", flush=True)
        return None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1]
        print(f"| {model} | {n} | failed: {reason} |", flush=True)
        return None
    result: dict[str, float | str | int] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def shown(value: float | str | int) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--models", default="adaptive,tied")
    parser.add_argument("--threads", default="2", help="one number, or several to compare")
    parser.add_argument("--peers", action="store_true", help="GPBoost (Vecchia) and GPyTorch (SVGP) as well")
    parser.add_argument("--csv", type=Path, help="append the figures to this file")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        model, n, threads = arguments.one
        print(json.dumps(measure(model, int(n), int(threads))))
        return 0
    models = arguments.models.split(",") + (["gpboost", "svgp"] if arguments.peers else [])
    results = []
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for n in map(int, arguments.rows.split(",")):
        for model in models:
            for threads in map(int, arguments.threads.split(",")):
                result = in_process(model, n, threads)
                if result is None:
                    continue
                results.append(result)
                print(f"| {' | '.join(shown(result[column]) for column in COLUMNS)} |", flush=True)
                if arguments.csv:
                    new = not arguments.csv.exists()
                    with arguments.csv.open("a", newline="") as file:
                        writer = csv.DictWriter(file, COLUMNS)
                        if new:
                            writer.writeheader()
                        writer.writerow(result)
    for model in ("adaptive", "tied"):
        own = {int(r["rows"]): r for r in results if r["model"] == model}
        if {30_000, 1_000_000} <= own.keys():
            for column in ("fit s", "fit cpu s"):
                ratio = float(own[1_000_000][column]) / float(own[30_000][column])
                print(f"{model}: {column} grows with exponent {math.log(ratio) / math.log(1e6 / 3e4):.2f}, 30k to 1M")
    return 0


if __name__ == "__main__":
    sys.exit(main())
