"""Columns of tables as values of a kind, whichever library holds the table: pandas, polars or Arrow.

None of them is imported here: a table is known by what it can do.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spngp._support.checks import shown
from spngp._support.types import Array

_MISSING = ("NoneType", "NAType", "NaTType")  # class names, as pandas, which has the last two, may not be installed
_SECONDS_A_DAY = 86400.0


@dataclass(frozen=True, eq=False)
class Values:
    """The values of one column.

    Attributes
    ----------
    kind : {"number", "boolean", "duration", "date", "text"}
    numbers : ndarray
        NaN where missing. Durations and times of day in seconds, dates in days since 1970, truths as 0 and 1; empty for
        texts.
    texts : list of str or None
        None where missing; empty for all but texts.
    order : tuple of str
        All levels in their order, where the column itself declares one.
    are_levels : bool
        Whether the type of the column itself says that its texts are levels.
    """

    kind: str
    numbers: Array
    texts: Sequence[str | None] = ()
    order: tuple[str, ...] = ()
    are_levels: bool = False

    @property
    def missing(self) -> Any:
        """Which values are missing."""
        return np.array([text is None for text in self.texts]) if self.kind == "text" else np.isnan(self.numbers)


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, the number of rows, and how to get a column's values by its position."""

    names: list[str]
    n_rows: int
    column: Callable[[int], Values]

    def values(self, name: str) -> Values | None:
        """The values of a column by its name; None if there is no such column."""
        return self.column(self.names.index(name)) if name in self.names else None


def as_table(X: Any) -> Table | None:
    """The table that X is; None if it is none (an array, a list)."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        return Table(names, len(X), lambda j: _of_pandas(X.iloc[:, j], _place(names[j])))
    if hasattr(X, "get_columns"):
        series = X.get_columns()
        return Table([s.name for s in series], X.height, lambda j: _of_polars(series[j], _place(series[j].name)))
    if hasattr(X, "schema") and hasattr(X, "num_rows") and hasattr(X, "column"):
        names = list(X.schema.names)
        return Table(names, X.num_rows, lambda j: _of_arrow(X.column(j), _place(names[j])))
    return None


def _place(name: Any) -> str:
    return f"column {name!r}"


def _of_pandas(column: Any, where: str) -> Values:
    dtype = column.dtype
    if str(dtype) == "category":
        order = tuple(str(level) for level in dtype.categories) if dtype.ordered else ()
        return _as_levels(column.astype(object).tolist(), order)
    kind = getattr(dtype, "kind", "O")
    if kind in "iufb":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return _finite(Values("boolean" if kind == "b" else "number", values), where)
    if kind == "M" and hasattr(column, "dt"):
        moments = column.dt.tz_localize(None) if getattr(column.dt, "tz", None) is not None else column
        return Values("date", _days(moments.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT"))))
    return _of_objects(column.astype(object).tolist(), where)


def _of_polars(column: Any, where: str) -> Values:
    dtype = str(column.dtype)
    if dtype.startswith(("Int", "UInt", "Float")):
        return _finite(Values("number", np.array(column.to_numpy(), dtype=np.float64)), where)
    if dtype.startswith(("Categorical", "Enum")):
        return _as_levels(column.to_list())
    return _of_objects(column.to_list(), where)


def _of_arrow(column: Any, where: str) -> Values:
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "halffloat")):
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return _finite(Values("number", np.array(whole.to_numpy(zero_copy_only=False), dtype=np.float64)), where)
    if kind.startswith(("timestamp", "date")) and "tz=" not in kind:
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return Values("date", _days(whole.to_numpy(zero_copy_only=False).astype("datetime64[us]")))
    if kind.startswith("dictionary"):
        chunks = column.chunks if hasattr(column, "chunks") else [column]
        ordered = column.type.ordered and chunks
        return _as_levels(column.to_pylist(), tuple(map(str, chunks[0].dictionary.to_pylist())) if ordered else ())
    return _of_objects(column.to_pylist(), where)


def _as_texts(values: Sequence[Any]) -> Values:
    """Whatever the values are, their texts."""
    return Values("text", np.empty(0), [None if is_missing(value) else str(value) for value in values])


def _as_levels(values: Sequence[Any], order: tuple[str, ...] = ()) -> Values:
    """The same of a column whose type says that they are levels."""
    return replace(_as_texts(values), order=order, are_levels=True)


def is_missing(value: Any) -> bool:
    """Whether a value is a NaN or stands for nothing."""
    return type(value).__name__ in _MISSING or (isinstance(value, float | np.floating) and math.isnan(value))


def _of_objects(values: Sequence[Any], where: str) -> Values:
    """Values of a column of Python objects, which must be of one kind."""
    kinds: dict[str, int] = {}  # each kind with the first row that holds it
    for row, value in enumerate(values):
        if not is_missing(value):
            kinds.setdefault(_kind(value, where, row), row)
    if {"number", "boolean"} == set(kinds):
        kinds.pop("boolean")
    if len(kinds) > 1:
        held = " and ".join(f"{_PLURALS[kind]} (row {row}: {shown(values[row])})" for kind, row in kinds.items())
        raise ValueError(f"{where} mixes {held}; make all its values of one kind, such as text")
    kind = next(iter(kinds), "number")
    if kind == "text":
        return _as_texts(values)
    if kind == "date":
        return Values(kind, _days(np.array([_moment(value) for value in values], dtype="datetime64[us]")))
    return _finite(Values(kind, np.array([_number(value, where) for value in values])), where)


_PLURALS = {"text": "text", "number": "numbers", "boolean": "truths", "date": "dates", "duration": "durations"}


def _kind(value: Any, where: str, row: int) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, datetime.date | np.datetime64):
        return "date"
    if isinstance(value, datetime.timedelta | np.timedelta64 | datetime.time):
        return "duration"
    if isinstance(value, numbers.Real | decimal.Decimal) and not isinstance(value, complex):
        return "number"
    if isinstance(value, complex):
        raise ValueError(f"Complex data not supported: X must be real, got complex numbers in {where}")
    raise TypeError(f"X must hold numbers, text or dates, got a {type(value).__name__} in {where}, row {row}")


def _moment(value: Any) -> Any:
    if is_missing(value):
        return np.datetime64("NaT", "us")
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)  # the clock on the wall: it tells the time of day
    return np.datetime64(value, "us")


def _number(value: Any, where: str) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, datetime.time):
        return 3600.0 * value.hour + 60.0 * value.minute + value.second + 1e-6 * value.microsecond
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "us")) * 1e-6
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    try:
        return float(value)
    except OverflowError:
        size = f"an integer of {len(str(abs(value)))} digits" if isinstance(value, int) else shown(value)
        raise ValueError(f"X must fit into double precision, got {size} in {where}") from None


def _days(moments: Any) -> Array:
    """Days since 1970 with fractions; NaN for no date."""
    microseconds = moments.astype("datetime64[us]").astype(np.int64).astype(np.float64)
    return np.where(np.isnat(moments), np.nan, microseconds / (_SECONDS_A_DAY * 1e6))


def _finite(values: Values, where: str) -> Values:
    infinite = np.isinf(values.numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise ValueError(f"X must not contain infinity, got {values.numbers[row]} in {where}, row {row}")
    return values
