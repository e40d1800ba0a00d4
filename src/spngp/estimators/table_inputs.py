"""Tables as inputs of an estimator: described when it is fitted, turned into numbers ever after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from spngp._support.checks import as_floats
from spngp._support.types import Array
from spngp.columns import InputColumns, learn_columns
from spngp.columns.frames import as_table
from spngp.columns.learning import MOST_COLUMNS, too_many_columns

_MOST_SPARSE = 10_000_000  # cells of a sparse matrix that is made dense: 80 MB


def dense(X: Any) -> Any:
    """X, or a small sparse matrix as an array; an error if there are too many cells or columns to compute with."""
    shape = getattr(X, "shape", None)
    if not (isinstance(shape, tuple) and len(shape) == 2):
        return X
    if shape[1] > MOST_COLUMNS:
        raise too_many_columns("X", shape[1])
    if not (hasattr(X, "toarray") and hasattr(X, "nnz")):
        return X
    if shape[0] * shape[1] > _MOST_SPARSE:
        raise ValueError(
            f"X is a sparse matrix of {shape[0]:,} x {shape[1]:,} cells, made dense up to {_MOST_SPARSE:,} only; "
            "choose columns, or reduce them (TruncatedSVD)"
        )
    return X.toarray()


def described(X: Any, y: Any, declared: Mapping[str, Any] | None, unknown: str) -> InputColumns | None:
    """The description of a table; None if X is no table."""
    table = as_table(X)
    if table is None:
        if declared:
            raise ValueError(f"columns describes a table, but X is a {type(X).__name__}")
        return None
    if not table.n_rows:
        raise ValueError("X must have at least one row, got a table without rows (0 sample(s))")
    Y = _outputs(y, table.n_rows)
    columns = learn_columns(X, Y, declared, unknown)
    for column in columns.columns:
        if column.kind == "number" and table.n_rows > 1:
            values = table.values(column.name)
            if values is not None and any(_is_target(values.numbers, output) for output in Y.T):
                raise ValueError(f"column {column.name!r} of X is the target itself; leave it out of X")
    return columns


def has_all(columns: InputColumns, X: Any) -> bool:
    """Whether the columns are all those of a table: none is ignored."""
    table = as_table(X)
    return table is not None and len(table.names) == len(columns.columns)


def takes_numbers(model: Any) -> bool:
    """Whether all columns that a model was given are numbers that enter as they are."""
    columns: InputColumns = model.columns_
    return columns.is_plain and len(columns.columns) == model.n_features_in_


def has_checked_names(model: BaseEstimator, X: Any) -> bool:
    """Whether X is a table for a model that was fitted with names of columns, which are checked then."""
    table = as_table(X) if hasattr(model, "feature_names_in_") else None
    if table is None:
        return False
    # to look at an Arrow table, scikit-learn loads a library, for longer than a row takes to be predicted
    if hasattr(X, "iloc") or table.names != list(model.feature_names_in_):
        validate_data(model, X, reset=False, skip_check_array=True)
    return True


def encoded(X: Any, columns: InputColumns, complete: bool) -> Array:
    """Rows of inputs for a table, or an array of them as it is; NaN for what was never missing in the fit.

    If rows must be ``complete``, such a NaN is an error.
    """
    rows = columns.encode(X) if as_table(X) is not None else _as_inputs(X, columns)
    if complete:
        _refuse_lacking(rows, columns)
    return rows


def _as_inputs(X: Any, columns: InputColumns) -> Array:
    names, shape = columns.input_names, np.shape(X)
    wanted = f"X must be a table with the columns {', '.join(columns.names)}, or an array of the {len(names)} inputs"
    if len(shape) == 2 and (shape[1] != len(names) or np.asarray(X).dtype == object):
        kind = "objects" if np.asarray(X).dtype == object else "numbers"
        raise ValueError(f"{wanted} that they become, got an array of {kind} with {shape[1]} columns")
    rows = as_floats(X, "X")
    if rows.ndim != 2 or np.isinf(rows).any():
        raise ValueError(f"X must be a table, or rows of finite numbers, got an array of shape {rows.shape}")
    return rows


def _refuse_lacking(rows: Array, columns: InputColumns) -> None:
    """Raise an error if an input is NaN."""
    lacking = np.isnan(rows)
    if lacking.any():
        row, j = np.argwhere(lacking)[0]
        raise ValueError(
            f"input {columns.input_names[j]!r}, row {row} has no value, and none was missing in the fit; leave the row "
            "out, or fit again with rows where it is missing"
        )


def _outputs(y: Any, n_rows: int) -> Array:
    """Outputs (n, p); one of NaN if they are no numbers, which is checked later."""
    try:
        Y = np.asarray(y, dtype=np.float64)
        return Y.reshape(n_rows, -1)
    except (TypeError, ValueError):
        return np.full((n_rows, 1), np.nan)


def _is_target(values: Array, output: Array) -> bool:
    known = ~np.isnan(output)
    return bool(known.any() and np.ptp(output[known]) > 0 and np.array_equal(values[known], output[known]))
