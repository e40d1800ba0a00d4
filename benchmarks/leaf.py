"""Evidence with gradient of one leaf, against the LAPACK floor and against scikit-learn, in one run.

    python benchmarks/leaf.py

For n = 100, 250, 500, 1000 rows and 8 ARD length-scales it times, on one BLAS thread,

* the floor: ``dpotrf`` and ``dpotri`` alone, on a matrix of the same size,
* ours: new parameters in, log evidence and gradient out, as an optimiser calls it,
* scikit-learn's ``log_marginal_likelihood(theta, eval_gradient=True)``,

and then 16 leaves of 500 rows on one thread and on two. Every round times all of them in turn and the medians of the
ratios within a round are printed, because the machine may be shared. It ends with an error if a gradient differs
from scikit-learn's, and with exit code 1 if a target is missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from threadpoolctl import threadpool_limits

import reporting
from spngp._linalg.square import Square
from spngp.gp.evidence import CompiledEvidence, Evidence, evidence_of
from spngp.kernels import Kernel, Matern, SquaredExponential

TARGETS = {100: 2.5, 250: 1.8, 500: 1.5, 1000: 1.5}
LENGTH_SCALES = np.array([2.5, 2.3, 1.3, 1.5, 1.6, 1.1, 1.2, 1.7])
NOISE = 0.01


def seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def ours(evidence: Evidence | CompiledEvidence, theta: np.ndarray) -> tuple[float, np.ndarray, float]:
    return evidence(np.exp(theta), NOISE)


def compare(kernel: Kernel, theirs: sk.Kernel, n: int, rounds: int) -> tuple[float, float, float]:
    """Median floor in seconds, ours / floor, scikit-learn / ours."""
    X, y = rows(n, seed=n)
    evidence, start = evidence_of(kernel, X, y), kernel.theta
    gpr = GaussianProcessRegressor(sk.ConstantKernel(1.0) * theirs + sk.WhiteKernel(NOISE), optimizer=None, alpha=0.0)
    gpr.fit(X, y)
    theta = gpr.kernel_.theta

    value, by_kernel, by_noise = ours(evidence, start)
    gradient = np.append(by_kernel, by_noise)
    sk_value, sk_gradient = gpr.log_marginal_likelihood(theta, eval_gradient=True)
    expected = np.concatenate([sk_gradient[1:9], sk_gradient[:1], sk_gradient[9:]])  # theirs puts the variance first
    np.testing.assert_allclose(value, sk_value, rtol=1e-9, err_msg="log evidence differs from scikit-learn's")
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max(), err_msg="gradient")

    C = np.asfortranarray(kernel.gram(X) + NOISE * np.eye(n))
    work = Square(np.empty_like(C, order="F"))
    dpotri = work.bound_invert(n)  # LAPACK's own, as the matrix is not cut

    def copy() -> None:
        work.array[:] = C

    def floor() -> None:
        work.array[:] = C
        if not work.cholesky():
            raise AssertionError("the benchmark's matrix must be positive definite")
        dpotri()

    repeats = max(2, int(4e7 / n**2.5))
    times = []
    for _ in range(rounds):
        t_floor = seconds(floor, repeats) - seconds(copy, repeats)
        t_ours = seconds(lambda: ours(evidence, start), repeats)
        t_theirs = seconds(lambda: gpr.log_marginal_likelihood(theta, eval_gradient=True), 1)
        times.append((t_floor, t_ours / t_floor, t_theirs / t_ours))
    medians = np.median(times, axis=0)
    return float(medians[0]), float(medians[1]), float(medians[2])


def threads(kernel: Kernel, rounds: int) -> float:
    """Speed-up of two threads over one, on 16 leaves of 500 rows."""
    leaves = [evidence_of(kernel, *rows(500, seed)) for seed in range(16)]
    start = kernel.theta

    def run(n_threads: int) -> float:
        def work(leaf: Evidence | CompiledEvidence) -> None:
            ours(leaf, start)

        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, leaves))
            return seconds(lambda: list(pool.map(work, leaves)), 2)

    return float(np.median([run(1) / run(2) for _ in range(rounds)]))


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="timing rounds per row (default 15)")
    rounds = parser.parse_args(argv).rounds
    missed = []
    cases = {
        "SE": (SquaredExponential(LENGTH_SCALES), sk.RBF(LENGTH_SCALES)),
        "Matern-3/2": (Matern(1.5, LENGTH_SCALES), sk.Matern(LENGTH_SCALES, nu=1.5)),
    }
    print(f"{'kernel':<11}{'n':>6}{'floor ms':>10}{'ours/floor':>12}{'target':>8}{'sklearn/ours':>14}")
    with threadpool_limits(1, user_api="blas"):
        for name, (kernel, theirs) in cases.items():
            for n, target in TARGETS.items():
                floor, ratio, speedup = compare(kernel, theirs, n, rounds)
                print(
                    f"{name:<11}{n:>6}{1e3 * floor:>10.3f}{ratio:>12.2f}{target:>8.1f}{speedup:>13.1f}x",
                    flush=True,
                )
                if ratio > target:
                    missed.append(f"{name}, n = {n}: {ratio:.2f} times the floor, target {target}")
                if n == 500 and speedup < 6:
                    missed.append(f"{name}, n = 500: {speedup:.1f} times faster than scikit-learn, target 6")
        for name, (kernel, _) in cases.items():
            speedup = threads(kernel, rounds)
            print(
                f"{name}: two threads over 16 leaves of 500 rows: {speedup:.2f}x one thread (target 1.6)",
                flush=True,
            )
            if speedup < 1.6:
                missed.append(f"{name}: two threads {speedup:.2f}x, target 1.6")
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


if __name__ == "__main__":
    reporting.run(main)
