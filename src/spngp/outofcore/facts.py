"""Columns of a data set that say something about its rows: how often each counts, and the variance of its targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spngp._support.checks import as_variances
from spngp._support.row_counts import RowWeights, as_weights
from spngp._support.types import Array
from spngp.gp.row_weights import KnownVariances


@dataclass(frozen=True)
class Facts:
    """Which columns they are.

    Attributes
    ----------
    weight : str, optional
        As ``sample_weight`` of a fit: a row of weight w counts as w equal rows.
    variance : str, optional
        As ``y_variance``: known variance of the targets.
    has_fractions : bool
        Whether some weight is no whole number.
    """

    weight: str | None = None
    variance: str | None = None
    has_fractions: bool = False

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return [name for name in (self.weight, self.variance) if name is not None]

    def weights_of(self, table: Any, name: str) -> RowWeights:
        """How often the rows of a table count; ``name`` is that of the partition."""
        if self.weight is None:
            return RowWeights()
        weights = _numbers(table, self.weight, name)
        if not weights.any():  # which is an error only if it is so throughout
            return RowWeights(np.zeros(weights.size, dtype=np.intp))
        return as_weights(weights, weights.size, f"partition {name}: weights in column {self.weight!r}")

    def noted(self, table: Any, Y: Array, weights: RowWeights, name: str) -> Array:
        """What is known of the noise of rows, repeated by their weights, as columns: variances, then shares."""
        columns = [np.empty((int(np.sum(weights.counts)) if weights.counts is not None else Y.shape[0], 0))]
        if self.variance is not None:
            values = _numbers(table, self.variance, name)
            variances = as_variances(values, Y, f"partition {name}: variances in column {self.variance!r}")
            assert variances is not None
            columns.append(weights.of(variances))
        if self.has_fractions:
            shares = np.ones(columns[0].shape[0]) if weights.shares is None else weights.shares
            columns.append(shares[:, np.newaxis])
        return np.concatenate(columns, axis=1)

    def count(self, n_outputs: int) -> int:
        """Number of the columns that :meth:`noted` has."""
        return n_outputs * (self.variance is not None) + self.has_fractions

    def known(self, noted: Array, n_outputs: int) -> KnownVariances | None:
        """The same as an expert takes it, in the squared units of the user."""
        variances = noted[:, :n_outputs] if self.variance is not None else None
        return KnownVariances.of(variances, noted[:, -1] if self.has_fractions else None, n_outputs)


def _numbers(table: Any, column: str, name: str) -> Array:
    values = table.column(column)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise ValueError(f"partition {name}: column {column!r} must hold numbers, got {values.type}")
    found: Array = values.cast(pa.float64()).combine_chunks().to_numpy(zero_copy_only=False)
    return found
