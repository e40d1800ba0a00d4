"""How often rows count: weights as a user gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spngp._support.checks import as_floats
from spngp._support.types import Array, Indices

Rows = TypeVar("Rows", bound=NDArray[Any] | None)

_MOST_ROWS = 1e8  # rows that weights may add up to
_ROUNDING = 1e-9  # of a weight that is meant to be a whole number


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Rows that weights stand for: of weight 2.5 three, each of which counts as 2.5/3 of a row.

    Attributes
    ----------
    counts : ndarray of int, optional
        For each row given, how many rows stand for it. None if all have weight one.
    shares : ndarray, optional
        For each row that stands for one given, the share of a row that it counts as. None if all count as whole ones.
    """

    counts: Indices | None = None
    shares: Array | None = None

    def of(self, values: Rows) -> Rows:
        """Values of the rows given, for each row that stands for one."""
        return values if values is None or self.counts is None else np.repeat(values, self.counts, axis=0)  # type: ignore[return-value]


def as_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> RowWeights:
    """How rows count, from weights as a user gives them.

    A row of weight w counts as w equal rows, and one of weight 0 is as if it were not there.
    """
    if sample_weight is None:
        return RowWeights()
    weights = as_floats(sample_weight, name)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        # scikit-learn's wording for the first half, which its checks look for
        raise ValueError(f"Sample weights must be 1D: {name} has shape {weights.shape}, expected ({n_rows},)")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        row = int(bad[0])
        raise ValueError(f"{name} must be finite and >= 0, got {weights[row]:g} in row {row}; 0 leaves a row out")
    counts = np.ceil(weights * (1.0 - _ROUNDING))
    total = float(counts.sum())
    if total == 0:
        raise ValueError(f"{name} must leave at least one row, got a weight of zero for all {n_rows}")
    if total > _MOST_ROWS:
        raise ValueError(
            f"{name} must add up to at most {_MOST_ROWS:g} rows, got {total:g}; divide all by a common factor"
        )
    used = counts > 0
    shares = weights[used] / counts[used]
    is_whole = bool((np.abs(shares - 1.0) <= 2.0 * _ROUNDING).all())
    whole = counts.astype(np.intp)
    return RowWeights(whole, None if is_whole else np.repeat(np.minimum(shares, 1.0), whole[used]))
