"""The inverse of a matrix from its Cholesky factor: LAPACK's ``dpotri`` against ours, by the size left to LAPACK.

    python benchmarks/inverse.py

``Square.bound_invert`` cuts the factor in halves down to triangles of at most ``INVERTED_WHOLE`` rows. For several
sizes of the matrix this prints the time of ``dpotri`` and, for each candidate, the ratio of our time to it: of the
fastest of many rounds on one BLAS thread, all taken in turn, because the machine may be shared. It ends with an error
if an inverse differs from that of ``dpotri``.
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

import reporting
from spngp._linalg.square import INVERTED_WHOLE, Square

SIZES = (30, 50, 75, 100, 150, 200, 250, 350, 500, 1000)
CANDIDATES = (16, 32, 48, 64, 128)


def compare(n: int, rounds: int) -> list[float]:
    """Fastest times in seconds: of ``dpotri``, then of each candidate."""
    A = np.random.default_rng(n).standard_normal((n, n))
    square = Square(np.asfortranarray(A @ A.T + n * np.eye(n)))
    if not square.cholesky():
        raise AssertionError("the benchmark's matrix must be positive definite")
    factor = square.array.copy(order="F")
    calls = [square.bound_invert(size) for size in (n, *CANDIDATES)]  # the first is LAPACK's own, of the whole
    fastest, inverses = np.full(len(calls), np.inf), []
    for number in range(rounds):
        for which, call in enumerate(calls):
            square.array[:] = factor
            start = time.perf_counter()
            call()
            fastest[which] = min(fastest[which], time.perf_counter() - start)
            if number == 0:
                inverses.append(np.tril(square.array))
    for inverse in inverses[1:]:
        np.testing.assert_allclose(inverse, inverses[0], rtol=1e-9, atol=1e-13 * np.abs(inverses[0]).max())
    return fastest.tolist()


def main(argv: list[str] | None = None) -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="rounds at 250 rows, more below it (default 200)")
    rounds = parser.parse_args(argv).rounds
    heads = [f"{size}{'*' if size == INVERTED_WHOLE else ''}" for size in CANDIDATES]
    print(f"{'n':>6}{'dpotri us':>11}   ours / dpotri, by the largest number of rows left to LAPACK (* the choice)")
    print(" " * 17 + "".join(f"{head:>7}" for head in heads))
    with threadpool_limits(1, user_api="blas"):
        for n in SIZES:
            dpotri, *ours = compare(n, max(60, int(rounds * (250 / n) ** 2)))
            print(f"{n:>6}{1e6 * dpotri:>11.1f}" + "".join(f"{t / dpotri:>7.2f}" for t in ours), flush=True)


if __name__ == "__main__":
    reporting.run(main)
