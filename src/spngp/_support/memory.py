"""A memory budget: Cholesky factors are by far the largest part of a model, and can be computed again when needed."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GIGABYTE = 1e9  # bytes
_SHARE_OF_RAM = 0.2  # of the machine's memory
_RAM_IF_UNKNOWN = 8e9  # bytes
# Gigabytes of factors by default. In a large model, fresh memory for a factor takes about as long as computing the
# factor again for the next prediction, and all factors would be part of the saved model.
_FACTORS = 1.0


def default_limit() -> float:
    """A fifth of the machine's memory, in gigabytes."""
    try:
        ram = float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        ram = _RAM_IF_UNKNOWN
    return _SHARE_OF_RAM * ram / GIGABYTE


@dataclass(frozen=True)
class Budget:
    """Memory that a model may take: for its rows, for the work space of each thread, and the rest for factors.

    Parameters
    ----------
    limit : float
        Gigabytes in all.
    threads : int
        Number of threads; each needs work space for one leaf.
    factors : float
        Gigabytes of the limit that factors may take.
    """

    limit: float = math.inf
    threads: int = 1
    factors: float = math.inf

    @staticmethod
    def of(memory_limit: float | None, threads: int) -> Budget:
        """The limit that a user gave, all of which factors may take; or the default, with one gigabyte for factors."""
        if memory_limit is None:
            return Budget(default_limit(), threads, _FACTORS)
        return Budget(float(memory_limit), threads)

    def keep(self, sizes: Sequence[int], n_inputs: int) -> list[bool]:
        """Which leaves keep their factors: the first ones, while there is room. ``sizes`` are their numbers of rows."""
        n = np.asarray(sizes, dtype=np.float64)
        possible = n[8.0 * n * n <= self.limit * GIGABYTE]  # larger leaves have equal rows, which are merged
        rest = self.limit * GIGABYTE - self.needed(int(possible.max(initial=0.0)), float(n.sum()), n_inputs)
        return (np.cumsum(8.0 * n * n) <= min(rest, self.factors * GIGABYTE)).tolist()

    def check(self, largest: int, n_rows: float, n_inputs: int) -> None:
        """Raise ValueError if the limit cannot hold all rows and one leaf's work space per thread."""
        needed = self.needed(largest, n_rows, n_inputs) / GIGABYTE
        if needed > self.limit:
            raise ValueError(
                f"memory_limit must be at least {needed:.2g} (gigabytes) for {n_rows:.0f} rows in leaves of up to "
                f"{largest} rows on {self.threads} thread{'s' if self.threads > 1 else ''}, got {self.limit:g}; "
                "smaller leaves (max_leaf_size, overlap) need less"
            )

    def needed(self, largest: int, n_rows: float, n_inputs: int) -> float:
        """Bytes for work space and rows (inputs, output and mean weight of each), without any factors."""
        # work space is a matrix and a half: for a factor, or for training
        return 8.0 * (1.5 * self.threads * float(largest) ** 2 + n_rows * (n_inputs + 2))
