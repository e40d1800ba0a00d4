"""Many small cases, on several processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")


def each(case: Callable[[int], Found], n: int, n_jobs: int, at_once: int = 20) -> list[Found]:
    """The cases of numbers 0 to n - 1, in order. One process is this one."""
    if n_jobs == 1:
        return [case(number) for number in range(n)]
    with ProcessPoolExecutor(n_jobs) as pool:
        return list(pool.map(case, range(n), chunksize=at_once))
