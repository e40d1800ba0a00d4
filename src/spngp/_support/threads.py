"""Threads share the leaves among them, while BLAS is held at one thread."""

from __future__ import annotations

import numbers
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

# Rows. Work on smaller matrices is so short that threads would wait for the interpreter longer than they gain; measured
# with benchmarks/stages.py.
_FEWEST_ROWS = 120

T = TypeVar("T")
R = TypeVar("R")


@cache
def blas_libraries() -> list[Any]:
    """The BLAS libraries of the process. Finding them takes up to 40 ms, so it is done once, when first needed."""
    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


def _set_blas_threads(numbers: Sequence[int | None]) -> None:
    """Set the number of threads of each BLAS library, whichever thread calls."""
    for library, number in zip(blas_libraries(), numbers, strict=True):
        # From threadpoolctl 3.8 on, the first thread to set the number of OpenBLAS is the only one that can, until it
        # lets go. Ours is set by one thread and restored by another, and a user's thread may have been first.
        let_go = getattr(library, "clear_controlling_thread", None)
        if let_go is not None:
            let_go(force=True)
        if number is not None:  # None where a library does not tell
            library.set_num_threads(number)
        if let_go is not None:
            let_go(force=True)


class _Hold:
    """Counts the holders of BLAS at one thread: the first notes the number of threads, the last one sets it again.

    The number of BLAS threads belongs to the process, and calls from several threads may overlap in any order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before: list[int | None] = []

    def take(self) -> None:
        """One more holder."""
        with self._lock:
            if self._holders == 0:
                self._before = [library.get_num_threads() for library in blas_libraries()]
                _set_blas_threads([1] * len(self._before))
            self._holders += 1

    def leave(self) -> None:
        """One holder less."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _set_blas_threads(self._before)


_hold = _Hold()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread: threads share leaves instead, and results do not depend on the number of BLAS threads.

    For a ``with`` block, or with ``@`` for a whole function. May be nested, and held by several threads at once.
    """
    _hold.take()
    try:
        yield
    finally:
        _hold.leave()


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` stands for: None is one, negative counts from the number of cores."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    n_jobs = int(n_jobs)
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def _typical(rows: Sequence[int]) -> float:
    """Mean number of rows, each weighted by the size of its matrix."""
    squares = sum(n * n for n in rows)
    return sum(n * n * n for n in rows) / squares if squares else 0.0


def map_leaves(
    function: Callable[[T], R], items: Sequence[T], n_jobs: int | None, rows: Sequence[int] | None = None
) -> list[R]:
    """``[function(item) for item in items]`` on several threads; results in order, the first error raised.

    BLAS is held at one thread even if only one thread is used, so that results do not depend on ``n_jobs`` in any bit.

    ``rows`` are the numbers of rows of each item's matrices, if known: where most are small, one thread does all.
    """
    threads = min(n_threads(n_jobs), len(items))
    with one_blas_thread():
        if threads <= 1 or (rows is not None and _typical(rows) < _FEWEST_ROWS):
            return [function(item) for item in items]
        pool = ThreadPoolExecutor(threads)
        try:
            return list(pool.map(function, items))
        finally:  # after an error or Ctrl-C, items that were not begun are cancelled
            pool.shutdown(wait=True, cancel_futures=True)
