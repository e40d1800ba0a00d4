"""Is there a faster exponential than NumPy's? What an entry of a Gram matrix costs most is one or two of them.

    python benchmarks/exponential.py

Nanoseconds a value and largest relative error of exp(−t) for t from 0 to 30, in blocks that fit the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import reporting
from spngp._linalg import compiled as _compiled
from spngp._linalg.lapack import pointer

SIZE, STEPS = 40_960, 512  # values a block; entries of the table per unit of t
TABLE = np.exp(-np.arange(64 * STEPS) / STEPS)

t = np.random.default_rng(0).uniform(0.0, 30.0, SIZE)
roots, origin = np.sqrt(t), np.zeros(1)
out, whole, part, polynomial = (np.empty(SIZE) for _ in range(4))
index = np.empty(SIZE, dtype=np.intp)
single, single_out = np.empty(SIZE, dtype=np.float32), np.empty(SIZE, dtype=np.float32)


def numpy_exp() -> None:
    np.exp(np.negative(t, out=out), out=out)


def table_and_cubic() -> None:
    np.multiply(t, STEPS, out=part)
    np.rint(part, out=whole)
    np.copyto(index, whole, casting="unsafe")
    np.subtract(whole, part, out=part)
    np.take(TABLE, index, out=whole, mode="clip")
    np.multiply(part, 1.0 / (6.0 * STEPS**3), out=polynomial)
    for coefficient in (0.5 / STEPS**2, 1.0 / STEPS, 1.0):
        np.add(polynomial, coefficient, out=polynomial)
        if coefficient != 1.0:
            np.multiply(polynomial, part, out=polynomial)
    np.multiply(polynomial, whole, out=out)


def hyperbolic_tangent() -> None:
    np.tanh(np.multiply(t, 0.5, out=out), out=out)  # exp(−t) = 2/(1 + tanh(t/2)) − 1
    np.subtract(np.divide(2.0, np.add(out, 1.0, out=out), out=out), 1.0, out=out)


def single_precision() -> None:
    np.exp(np.negative(t, out=single, casting="same_kind"), out=single_out)
    out[:] = single_out


def compiled() -> None:
    """That of the compiled library, with the distance it is taken of."""
    assert _compiled.library is not None
    sizes = (SIZE, pointer(origin), 1, 1)
    where = (pointer(out), SIZE, False, False, 0.0, None)
    _compiled.library.gram(_compiled.SQUARED_EXPONENTIAL, pointer(roots), *sizes, *where)


def nanoseconds(function: Callable[[], None]) -> float:
    spent = []
    for _ in range(300):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return float(np.percentile(spent, 20)) / SIZE * 1e9


def main() -> None:
    expected = np.exp(-t)
    ways = [numpy_exp, table_and_cubic, hyperbolic_tangent, single_precision]
    if _compiled.library is not None:
        ways.append(compiled)
    for function in ways:
        taken = nanoseconds(function)
        error = np.abs(out / expected - 1.0).max()
        print(f"{function.__name__:20s} {taken:5.1f} ns   relative error {error:.1e}")


if __name__ == "__main__":
    reporting.run(main)
