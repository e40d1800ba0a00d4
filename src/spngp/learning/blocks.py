"""Blocks: the rows and outputs (X, y) that hyper-parameters are learnt from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._support.types import Array, Indices
from spngp.gp.optimisation import Block
from spngp.gp.row_weights import KnownVariances


def at_most(rows: Indices, count: int, rng: np.random.Generator) -> Indices:
    """The rows, or ``count`` random ones of them if there are more."""
    return rows if rows.size <= count else np.sort(rng.choice(rows, count, replace=False))


def spread_out(n: int, count: int) -> list[int]:
    """Up to ``count`` of the numbers below n, evenly spaced."""
    count = min(n, count)
    return [(2 * i + 1) * n // (2 * count) for i in range(count)]


def observed(rows: Indices, X: Array, y: Array, variances: KnownVariances | None = None) -> Block:
    """The block of those rows whose output is known."""
    rows = rows[~np.isnan(y[rows])]
    return Block(np.ascontiguousarray(X[rows]), y[rows], None if variances is None else variances[rows])


def blocks_of(groups: Sequence[Indices], X: Array, y: Array, variances: KnownVariances | None = None) -> list[Block]:
    """A block for each group of rows that has more than one output to learn from."""
    blocks = [observed(group, X, y, variances) for group in groups]
    return [block for block in blocks if block.y.size > 1]
