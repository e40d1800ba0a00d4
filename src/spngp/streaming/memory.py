"""Which cells keep their factors: all, while there is room; else some, chosen at random, are emptied."""

from __future__ import annotations

import random
import threading
from typing import Any
from weakref import WeakKeyDictionary

from spngp._support.memory import GIGABYTE, Budget
from spngp.streaming.regions import Cell

_LEFT_AFTER = 0.9  # of the limit, when cells were emptied


class FactorMemory:
    """Counts the factors that cells hold, and empties some cells where they are too many.

    Cells are emptied at random. Emptying the one used longest ago would be worst for rows that come in no order: each
    region would lose its factor just before its turn. With a random choice, a share of the factors that fits in memory
    is there when it is needed.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit  # bytes
        self._noted: WeakKeyDictionary[Cell, int] = WeakKeyDictionary()  # bytes, in the order in which cells came
        self._held = 0.0  # bytes, at most: cells that are gone are forgotten when there is no more room
        self._lock = threading.Lock()
        self._random = random.Random(0)

    @staticmethod
    def of(budget: Budget, n_rows: int, n_inputs: int) -> FactorMemory:
        """What the budget leaves for factors."""
        rest = budget.limit * GIGABYTE - 8.0 * n_rows * (n_inputs + 2)
        return FactorMemory(min(max(rest, 0.0), budget.factors * GIGABYTE))

    def __reduce__(self) -> tuple[Any, ...]:
        return FactorMemory, (self._limit,)

    def keep(self, cell: Cell) -> None:
        """Note what a cell holds now."""
        with self._lock:
            nbytes = cell.nbytes
            before = self._noted.get(cell, 0)
            if nbytes != before:
                self._held += nbytes - before
                self._noted[cell] = nbytes
            if self._held <= self._limit:
                return
            cells = [other for other in self._noted if other.nbytes]
            self._held = float(sum(other.nbytes for other in cells))
            if self._held <= self._limit:
                return
            self._random.shuffle(cells)
            for other in cells:
                if self._held <= _LEFT_AFTER * self._limit:
                    break
                if other is not cell or self._held > self._limit:
                    self._held -= other.nbytes
                    other.content = None
                    self._noted[other] = 0
