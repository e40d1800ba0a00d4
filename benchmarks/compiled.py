"""What the compiled library is worth: one evaluation, one fill and one fit, with it and with NumPy in its place.

    python benchmarks/compiled.py

For sums of two squared exponentials and of two Matérn-3/2: evidence with gradient in units of LAPACK's own
``potrf + potri`` on one thread, and a covariance matrix written once in units of its ``potrf``. Then a fit of 20,000
rows on two threads. Both ways take turns, and medians are printed, because the machine may be shared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import reporting
from leaf import seconds
from spngp import SPNGPRegressor
from spngp._linalg import compiled as _compiled
from spngp._linalg.square import Square
from spngp.datasets import regional
from spngp.gp.evidence import evidence_of
from spngp.kernels import KernelSum, Matern, SquaredExponential

LIBRARY = _compiled.library
NOISE = 0.1
COLUMNS = (
    *("kernel", "rows", "inputs", "potrf + potri, ms", "NumPy", "compiled"),
    *("potrf, ms", "fill, NumPy", "fill, compiled"),
)


def kernel_of(name: str, d: int) -> KernelSum:
    """A slow and a fast part, each with a length-scale per input."""
    scales = np.sqrt(d) * np.linspace(0.5, 1.0, d)
    if name == "SE + SE":
        return KernelSum([SquaredExponential(scales), SquaredExponential(0.3 * scales, 0.1)])
    return KernelSum([Matern(1.5, scales), Matern(1.5, 0.3 * scales, 0.1)])


@contextmanager
def library(present: bool) -> Iterator[None]:
    """As if spngp had been installed with, or without, a compiler."""
    _compiled.library = LIBRARY if present else None
    try:
        yield
    finally:
        _compiled.library = LIBRARY


def evaluation(name: str, n: int, d: int, rounds: int) -> list[object]:
    kernel, rng = kernel_of(name, d), np.random.default_rng(n)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    calls: dict[str, Callable[[], object]] = {}
    for way in ("NumPy", "compiled"):
        with library(way == "compiled"):
            calls[way] = partial(evidence_of(kernel, X, y), kernel.parameters.values, NOISE)
    C, work = np.asfortranarray(kernel.gram(X) + NOISE * np.eye(n)), Square.zeros(n)

    def factor() -> None:
        work.array[:] = C
        work.cholesky()

    dpotri = work.bound_invert(n)  # LAPACK's own, as the matrix is not cut

    def floor() -> None:
        factor()
        dpotri()

    def filled(present: bool) -> None:
        with library(present):
            kernel.fill(X, work)

    calls |= {
        "floor": floor,
        "factor": factor,
        "fill, NumPy": lambda: filled(False),
        "fill, compiled": lambda: filled(True),
    }
    repeats = max(1, int(2e7 / n**2.5))
    spent = np.array([[seconds(call, repeats) for call in calls.values()] for _ in range(rounds)])
    took = dict(zip(calls, np.median(spent, axis=0), strict=True))
    by_floor = [f"{took[way] / took['floor']:.2f}" for way in ("NumPy", "compiled")]
    by_factor = [f"{took[way] / took['factor']:.2f}" for way in ("fill, NumPy", "fill, compiled")]
    return [name, n, d, f"{1e3 * took['floor']:.3f}", *by_floor, f"{1e3 * took['factor']:.3f}", *by_factor]


def fit(rounds: int) -> None:
    rows = regional(20_000, random_state=0)
    spent: dict[str, list[tuple[float, float]]] = {"NumPy": [], "compiled": []}
    for _ in range(rounds):
        for way, found in spent.items():
            with library(way == "compiled"):
                start = time.perf_counter(), time.process_time()
                SPNGPRegressor(n_jobs=2, random_state=0).fit(rows.X, rows.Y[:, 0])
                found.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    print()
    reporting.print_head(["fit of 20,000 rows", "s", "CPU s"])
    for way, found in spent.items():
        clock, cpu = np.median(found, axis=0)
        reporting.print_row([way, f"{clock:.1f}", f"{cpu:.1f}"])


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="timing rounds (default 15; a fifth as many fits)")
    rounds = parser.parse_args(argv).rounds
    if LIBRARY is None:
        print("spngp was installed without a C compiler: there is nothing to compare")
        return 1
    _compiled.MOST_INPUTS = 10**6  # to see where the line should be
    reporting.print_head(COLUMNS)
    with threadpool_limits(1, user_api="blas"):
        for name in ("SE + SE", "Matern + Matern"):
            for n in (50, 100, 250, 400, 500, 1000):
                reporting.print_row(evaluation(name, n, 8, rounds))
            for d in (24, 48, 64, 96):
                reporting.print_row(evaluation(name, 400, d, rounds))
        fit(max(1, rounds // 5))
    return 0


if __name__ == "__main__":
    reporting.run(main)
