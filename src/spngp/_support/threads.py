"""Threads over leaves: the natural unit of parallelism, with BLAS held at one thread."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

# Matrices of fewer rows than this take so little time that threads would spend more of it waiting for the interpreter;
# measured with benchmarks/stages.py.
_FEWEST_ROWS = 120

T = TypeVar("T")
R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    """Finding the BLAS libraries of the process takes milliseconds, so it is done once, when first needed."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS at one thread: leaves are the unit of parallelism, and bits do not depend on the machine."""
    return _controller().limit(limits=1, user_api="blas")


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` stands for: None is one, negative counts from the number of cores."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    n_jobs = int(n_jobs)
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def _typical(rows: Sequence[int]) -> float:
    """Their mean, each weighted by the size of its matrix."""
    squares = sum(n * n for n in rows)
    return sum(n * n * n for n in rows) / squares if squares else 0.0


def map_leaves(
    function: Callable[[T], R], items: Sequence[T], n_jobs: int | None, rows: Sequence[int] | None = None
) -> list[R]:
    """``[function(item) for item in items]`` on several threads; results in order, the first error raised.

    ``rows`` are those of each item's matrices, if known: where most of the work is on few, one thread does it all.
    """
    threads = min(n_threads(n_jobs), len(items))
    if threads <= 1 or (rows is not None and _typical(rows) < _FEWEST_ROWS):
        return [function(item) for item in items]
    with one_blas_thread():
        pool = ThreadPoolExecutor(threads)
        try:
            return list(pool.map(function, items))
        finally:  # after an error or Ctrl-C, wherever it came: items not begun are not begun any more
            pool.shutdown(wait=True, cancel_futures=True)
