"""What is wrong with inputs that are refused: the column (by its name, if it has one), the row and the value."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import numpy as np

from spngp._support.checks import shown
from spngp._support.types import Array

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_MISSING = ("NoneType", "NAType", "NaTType")  # class names, as pandas, which has the last two, may not be installed


def holds_times(X: Any) -> bool:
    """Whether a column holds dates, times or durations, which NumPy would take for numbers.

    ``X`` is an array or a frame of pandas, polars or pyarrow.
    """
    types: Iterable[Any]
    if hasattr(X, "dtypes"):  # pandas, polars
        types = X.dtypes
    else:
        types = X.schema.types if hasattr(X, "schema") else [getattr(X, "dtype", None)]
    return any(
        getattr(kind, "kind", None) in ("M", "m") or str(kind).lower().startswith(("date", "time", "duration"))
        for kind in set(types)
    )


def fault_of(X: Any) -> Exception | None:
    """The error to raise for inputs that are not finite numbers; None if they are, or if X is not a table.

    A column that is not numeric is reported before a missing value.
    """
    missing = None
    for label, column in _columns(X):
        fault, is_missing = _fault(np.asarray(column), f"column {label}")
        if fault is not None and not is_missing:
            return fault
        missing = missing or fault
    return missing


def _columns(X: Any) -> list[tuple[str, Any]]:
    """The columns, with their names or else their positions."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        return [(repr(name), X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if hasattr(X, "get_columns"):  # polars
        return [(repr(column.name), column) for column in X.get_columns()]
    if hasattr(X, "column_names"):  # pyarrow
        return [(repr(name), X.column(j)) for j, name in enumerate(X.column_names)]
    try:
        array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    except ValueError:  # rows of several lengths
        return []
    return [(str(j), array[:, j]) for j in range(array.shape[1])] if array.ndim == 2 else []


def _fault(values: Array, where: str) -> tuple[Exception | None, bool]:
    """The error for a column, if any, and whether it is only about a missing or infinite value."""
    kind = values.dtype.kind
    if not values.size or kind in "biu":
        return None, False
    if kind == "c":
        # scikit-learn's wording, which its checks look for
        return ValueError(f"Complex data not supported: X must be real, got complex numbers in {where}"), False
    if kind in "mM":
        return _not_numeric("dates or times", where, 0, str(values[0])), False
    if kind == "f":
        bad = np.flatnonzero(~np.isfinite(values))
        return (None, False) if not bad.size else (_not_finite(values[bad[0]], where, int(bad[0])), True)
    return _fault_of_objects(values, where)


def _fault_of_objects(values: Any, where: str) -> tuple[Exception | None, bool]:
    missing = None
    for row, value in enumerate(values.tolist()):  # Python's numbers print as 1.0, NumPy's as np.float64(1.0)
        if isinstance(value, _TIMES):
            return _not_numeric("dates or times", where, row, str(value)), False
        if type(value).__name__ in _MISSING:
            missing = missing or _not_finite(value, where, row)
            continue
        try:
            number = float(value)  # also of text, because NumPy turns numerals into numbers
        except OverflowError:
            size = f"an integer of {len(str(abs(value)))} digits" if isinstance(value, int) else shown(value)
            return ValueError(f"X must fit into double precision, got {size} in {where}, row {row}"), False
        except (TypeError, ValueError) as error:
            if isinstance(value, str | bytes):
                return _not_numeric("text", where, row, shown(value)), False
            # scikit-learn's checks look for the words of float()
            return TypeError(f"X must be numeric, got a {type(value).__name__} in {where}, row {row}: {error}"), False
        if not np.isfinite(number):
            missing = missing or _not_finite(value, where, row)
    return missing, missing is not None


def _not_numeric(kind: str, where: str, row: int, value: str) -> ValueError:
    return ValueError(f"X must be numeric, got {kind} in {where} (row {row}: {value})")


def _not_finite(value: Any, where: str, row: int) -> ValueError:
    return ValueError(f"X must not contain NaN or infinity, got {value} in {where}, row {row}")
