"""How often rows count: weights as a user gives them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spngp._support.checks import as_floats
from spngp._support.types import Indices

Rows = TypeVar("Rows", bound=NDArray[Any])

_MOST_ROWS = 1e8  # rows that weights may add up to


def as_counts(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Indices | None:
    """How often each row counts, from weights as a user gives them; None if there are none.

    A row of weight w counts as w equal rows, so weights are whole numbers. One of weight 0 is as if it were not there.
    """
    if sample_weight is None:
        return None
    weights = as_floats(sample_weight, name)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        # scikit-learn's wording for the first half, which its checks look for
        raise ValueError(f"Sample weights must be 1D: {name} has shape {weights.shape}, expected ({n_rows},)")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        row = int(bad[0])
        raise ValueError(f"{name} must be whole numbers >= 0, got {weights[row]:g} in row {row}; 0 leaves a row out")
    bad = np.flatnonzero(weights != np.floor(weights))
    if bad.size:
        row = int(bad[0])
        raise ValueError(
            f"{name} must be whole numbers, as a row of weight w counts as w equal rows, got {weights[row]:g} in row "
            f"{row}; multiply and round, or give y_variance if rows differ in precision"
        )
    total = float(weights.sum())
    if total == 0:
        raise ValueError(f"{name} must leave at least one row, got a weight of zero for all {n_rows}")
    if total > _MOST_ROWS:
        raise ValueError(
            f"{name} must add up to at most {_MOST_ROWS:g} rows, got {total:g}; divide all by a common factor"
        )
    return weights.astype(np.intp)


def repeated(values: Rows, counts: Indices | None) -> Rows:
    """Each row as often as it counts."""
    return values if counts is None else np.repeat(values, counts, axis=0)  # type: ignore[return-value]
