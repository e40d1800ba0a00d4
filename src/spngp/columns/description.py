"""All input columns of a table: the description that a model keeps of what it was fitted on."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.box import sides_text
from spngp.columns.column import Column
from spngp.columns.frames import Table, Values, as_table

_KIND_OF_VALUES = {"ordinal": "text", "category": "text"}
_ALIKE = {frozenset(("number", "boolean"))}


@dataclass(frozen=True)
class InputColumns:
    """How a table becomes rows of numbers: settled when a model was fitted; only levels may come later.

    Attributes
    ----------
    columns : tuple of Column
    unknown : {"prior", "error"}
        What a level of a category that no row had so far is: predicted as a further level, of which nothing but
        the prior is known, or refused.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from spngp.columns import learn_columns
    >>> table = pd.DataFrame({"km": [1.0, 2.0, None, 4.0], "size": ["S", "L", "S", "L"]})
    >>> columns = learn_columns(table, np.array([[1.0], [5.0], [2.0], [6.0]]))
    >>> columns.input_names
    ['km', 'km missing', 'size']
    >>> columns.encode(table)
    array([[1., 0., 0.],
           [2., 0., 2.],
           [2., 1., 0.],
           [4., 0., 2.]])
    """

    columns: tuple[Column, ...]
    unknown: str = "prior"

    @staticmethod
    def of_numbers(names: Sequence[str]) -> InputColumns:
        """Columns of numbers that are never missing."""
        return InputColumns(tuple(Column(str(name)) for name in names))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def input_names(self) -> list[str]:
        """Names of the model's inputs, in the order of the columns of ``encode``'s result."""
        return [name for column in self.columns for name in column.input_names]

    @property
    def level_counts(self) -> tuple[int, ...]:
        """For each input the number of its codes, 0 for numbers; empty if all inputs are numbers."""
        counts = tuple(count for column in self.columns for count in column.level_counts)
        return counts if any(counts) else ()

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers that enter as they are."""
        return all(column.is_plain for column in self.columns)

    def inputs_of(self, name: str) -> slice:
        """Which inputs come from a column."""
        first = 0
        for column in self.columns:
            count = len(column.input_names)
            if column.name == name:
                return slice(first, first + count)
            first += count
        raise KeyError(f"no column {name!r}; there are {', '.join(self.names)}")

    def encode(self, X: Any) -> Array:
        """The model's inputs (n, d) for the rows of a table, whose columns are found by name.

        A value that is missing now but never was in the fit is NaN, except for a category, where it counts as a level
        not seen before. A column that is not there counts as missing in every row if it may be missing; else it is an
        error.
        """
        table = as_table(X)
        if table is None:
            raise TypeError(f"X must be a table with the columns {', '.join(self.names)}, got a {type(X).__name__}")
        for column in self.columns:
            if column.name not in table.names and not column.may_be_missing:
                raise never_missing(column, table)
        parts = [column.encode(self.values(column, table), self.unknown == "error") for column in self.columns]
        return np.column_stack(parts)

    def values(self, column: Column, table: Table) -> Values:
        """The values of a column in a table, of the kind that it was in the fit; all missing if it is not there."""
        values = table.values(column.name)
        wanted = _KIND_OF_VALUES.get(column.kind, column.kind)
        if values is None:
            nothing = np.full(table.n_rows, np.nan)
            return Values("text", np.empty(0), [None] * table.n_rows) if wanted == "text" else Values(wanted, nothing)
        if values.kind == wanted or frozenset((values.kind, wanted)) in _ALIKE:
            return values
        if wanted == "text":  # numbers that were declared to be levels
            return as_levels(values)
        if values.missing.all():
            return Values(wanted, np.full(table.n_rows, np.nan))
        raise ValueError(f"column {column.name!r} must hold a {column.kind} as in the fit, got {values.kind} values")

    def decode(self, X: Array) -> dict[str, list[Any]]:
        """The columns' values for rows of inputs: levels as texts, dates as ``datetime64``; None where missing."""
        X, found = np.asarray(X), {}
        for column in self.columns:
            own = X[:, self.inputs_of(column.name)]
            found[column.name] = [_decoded(column, row) for row in own]
        return found

    def sides_text(self, low: Array, high: Array) -> list[str]:
        """The sides of a region in words; open sides are left out. Levels are listed, dates written as such."""
        sides = []
        names, at = self.input_names, 0
        for column in self.columns:
            for count, name in zip(column.level_counts, column.input_names, strict=True):
                start, stop = float(low[at]), float(high[at])
                if count and (math.isfinite(start) or math.isfinite(stop)):
                    sides.append(_levels_text(column, start, stop))
                elif column.kind == "date" and name == column.name:
                    sides += sides_text(low[at : at + 1], high[at : at + 1], [name], lambda days: str(_date(days)))
                else:
                    sides += sides_text(low[at : at + 1], high[at : at + 1], [names[at]])
                at += 1
        return sides


def as_levels(values: Values) -> Values:
    """Values of another kind as texts, integers without a decimal point."""
    if values.kind == "text":
        return values
    numbers = values.numbers.tolist()
    texts = [None if math.isnan(x) else str(int(x)) if float(x).is_integer() else str(x) for x in numbers]
    return Values("text", np.empty(0), texts)


def _levels_text(column: Column, low: float, high: float) -> str:
    if column.kind != "category":
        return f"{column.name} missing" if low > -math.inf else f"{column.name} present"
    inside = column.levels_between(low, high)
    shown = ", ".join(inside[:6]) + (f" and {len(inside) - 6} more" if len(inside) > 6 else "")
    return f"{column.name} in {{{shown}}}"


def _decoded(column: Column, inputs: Array) -> Any:
    if column.kind == "category":
        return column.level_of(inputs[0])
    if column.gaps and inputs[-1] > 0.5:
        return None
    if column.kind == "ordinal":
        return column.level_of(inputs[0])
    if column.kind == "date" and column.parts[0] == "days":
        return _date(inputs[0])
    return bool(inputs[0]) if column.kind == "boolean" else float(inputs[0])


def _date(days: float) -> np.datetime64:
    seconds = np.datetime64(round(days * 86400.0), "s")
    return seconds.astype("datetime64[D]") if seconds == seconds.astype("datetime64[D]") else seconds


def never_missing(column: Column, table: Table) -> ValueError:
    """The error for a column that is not there."""
    close = difflib.get_close_matches(column.name, table.names, 1)
    hint = f"did you mean {close[0]!r}?" if close else "to predict without it, add it with all values missing"
    return ValueError(f"X has no column {column.name!r}, which was never missing in the fit; {hint}")
