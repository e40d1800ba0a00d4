"""Threads of this process that do the steps of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from spngp._support.threads import n_threads, one_blas_thread
from spngp.outofcore.work import Summary


class Threads:
    """Steps shared by threads, each doing one at a time.

    Parameters
    ----------
    n_jobs : int, optional
        As in an estimator.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._threads = n_threads(n_jobs)

    def map(self, step: Callable[[Any], Summary], items: Sequence[Any], advance: Callable[[], None]) -> list[Summary]:
        """All steps; after an error, steps that were not begun are not."""
        pool = ThreadPoolExecutor(self._threads)
        try:
            with one_blas_thread():
                tasks = [pool.submit(step, item) for item in items]
                for task in as_completed(tasks):
                    task.result()
                    advance()
                return [task.result() for task in tasks]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
