"""A budget for Cholesky factors: by far the largest thing a model holds, and the only one it can do without."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GIGABYTE = 1e9
_SHARE_OF_RAM = 0.2
_RAM_IF_UNKNOWN = 8e9
# Gigabytes of factors if nobody asks for more: fresh memory for a factor of a large model costs about as much time as
# making it again for the next rows to be predicted, and all of it would go into the saved model.
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
    """What a model may hold: its rows, work space for each thread, and as many factors as then fit.

    Parameters
    ----------
    limit : float
        In gigabytes.
    threads : int
        Each needs work space for one leaf.
    factors : float
        Gigabytes of the limit that factors may take.
    """

    limit: float = math.inf
    threads: int = 1
    factors: float = math.inf

    @staticmethod
    def of(memory_limit: float | None, threads: int) -> Budget:
        """What a user allows, all of it, or the default."""
        if memory_limit is None:
            return Budget(default_limit(), threads, _FACTORS)
        return Budget(float(memory_limit), threads)

    def keep(self, sizes: Sequence[int], n_inputs: int) -> list[bool]:
        """For leaves of so many rows each, whether they may keep their factors: the first may, while there is room."""
        n = np.asarray(sizes, dtype=np.float64)
        possible = n[8.0 * n * n <= self.limit * GIGABYTE]  # the others are rows repeated many times, and merged
        rest = self.limit * GIGABYTE - self.needed(int(possible.max(initial=0.0)), float(n.sum()), n_inputs)
        return (np.cumsum(8.0 * n * n) <= min(rest, self.factors * GIGABYTE)).tolist()

    def check(self, largest: int, n_rows: float, n_inputs: int) -> None:
        """Say so at once if not even one leaf at a time can be worked on."""
        needed = self.needed(largest, n_rows, n_inputs) / GIGABYTE
        if needed > self.limit:
            raise ValueError(
                f"memory_limit must be at least {needed:.2g} (gigabytes) for {n_rows:.0f} rows in leaves of up to "
                f"{largest} rows on {self.threads} thread{'s' if self.threads > 1 else ''}, got {self.limit:g}; "
                "smaller leaves (max_leaf_size, overlap) need less"
            )

    def needed(self, largest: int, n_rows: float, n_inputs: int) -> float:
        """Bytes for work space and for rows (inputs, output, weight of each), with no factor kept."""
        # a matrix and a half: the factor, or what training works in
        return 8.0 * (1.5 * self.threads * float(largest) ** 2 + n_rows * (n_inputs + 2))
