"""Columns as the reader of a page knows them: dates as dates, categories as such, one for all inputs they became."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.plotting.lines import input_names
from spngp.report import text
from spngp.tables.schema import Column as TableColumn
from spngp.tables.schema import TableSchema

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEVELS_OF_PARTS = {"weekday": (_WEEKDAYS, 0), "month": (_MONTHS, 1)}  # names, and the number of the first
_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # years 1 to 9999


@dataclass(frozen=True)
class Column:
    """A column of the table that a model was fitted on, or a part of one, such as the weekday of a date.

    Attributes
    ----------
    name : str
        As the page calls it.
    kind : {"number", "category", "ordered", "date"}
    inputs : tuple of int
        The model's inputs that come from it.
    levels : tuple of str
        Of a category, or of an ordered one in its order.
    first : int
        The number of the first level of an ordered one.
    unit : str
        Of a number.
    part : bool
        Whether the inputs are also those of another column.
    whole : bool
        Of dates: whether they have no time of day.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    levels: tuple[str, ...] = ()
    first: int = 0
    unit: str = ""
    part: bool = False
    whole: bool = False

    @property
    def title(self) -> str:
        """The name, with the unit if there is one."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def has_levels(self) -> bool:
        """Whether its values have names."""
        return bool(self.levels)

    def values(self, X: Array) -> Array:
        """One number for each row: the value, the place of its level, or days since 1970."""
        if self.kind == "category":
            return np.argmax(X[:, self.inputs], axis=1).astype(np.float64)
        return X[:, self.inputs[0]] - (self.first if self.levels else 0)

    def text(self, value: float, digits: int = 4) -> str:
        """A value in words: a level, a date, or a number without its unit."""
        if self.levels:
            place = round(value)
            return self.levels[place] if 0 <= place < len(self.levels) else text.number(value + self.first, digits)
        if self.kind == "date":
            return date(round(value) if self.whole else value)
        return text.number(value, digits)

    def quantity(self, value: float, digits: int = 4) -> str:
        """A value in words, with its unit."""
        return with_unit(self.text(value, digits), self.unit)

    def raw(self, value: float) -> str | None:
        """What a CSV file has for a value, if not its text."""
        return None if self.levels or self.kind == "date" else f"{value:.10g}"

    def axis(self, values: Array) -> Any:
        """Values for a chart: packed numbers, or texts of dates; levels by their places."""
        return [date(value, exact=True) for value in values] if self.kind == "date" else text.packed(values, "f8")


def with_unit(shown: str, unit: str) -> str:
    """A number with its unit, which no line break parts."""
    return f"{shown}\u00a0{unit}" if unit else shown


def date(days: float, exact: bool = False) -> str:
    """Days since 1970 as a date, with the time of day if there is one.

    Examples
    --------
    >>> from spngp.report.columns import date
    >>> date(0.0), date(19_723.5)
    ('1970-01-01', '2024-01-01 12:00')
    """
    if not _FIRST_DAY <= days <= _LAST_DAY:
        return text.number(days)
    seconds = round(86_400 * days)
    moment = _EPOCH + datetime.timedelta(seconds=seconds)
    if exact or seconds % 60:
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    return moment.strftime("%Y-%m-%d %H:%M" if seconds % 86_400 else "%Y-%m-%d")


def columns_of(model: Any, X: Array, units: Mapping[str, str] | None = None) -> list[Column]:
    """The columns of a fitted model in their order: from its table if it was fitted on one, else one per input.

    X are rows, which tell whether dates have a time of day.
    Dates that became several inputs are followed by their parts (``Column.part``).
    """
    schema, units = getattr(model, "table_", None), dict(units or {})
    if isinstance(schema, TableSchema) and len(schema.input_names) == model.n_features_in_:
        found, first = [], 0
        for column in schema.columns:
            count = len(column.input_names)
            found += _of_table(column, tuple(range(first, first + count)))
            first += count
    else:
        found = [Column(text.name(name), "number", (i,)) for i, name in enumerate(input_names(model))]
    whole = [column.kind == "date" and not (X[:, column.inputs[0]] % 1).any() for column in found]
    return [
        replace(column, unit=units.get(column.name, ""), whole=daily)
        for column, daily in zip(found, whole, strict=True)
    ]


def _of_table(column: TableColumn, inputs: tuple[int, ...]) -> list[Column]:
    name = text.name(column.name)
    if column.kind == "one-hot":
        return [Column(name, "category", inputs, tuple(text.name(level) for level in column.categories))]
    if column.kind == "ordinal":
        return [Column(name, "ordered", inputs, tuple(text.name(level) for level in column.categories))]
    if column.kind == "date":
        by_part = dict(zip(column.parts, inputs, strict=True))
        days = by_part.pop("days", None)
        parts = [_part(name, part, place, days is not None) for part, place in by_part.items()]
        if days is None:
            return parts
        return [Column(name, "date", (days, *by_part.values())), *parts]
    return [Column(name, "number", inputs)]


def _part(name: str, part: str, place: int, of_another: bool) -> Column:
    title = f"{name}: {'day of the year' if part == 'dayofyear' else part}"
    levels, first = _LEVELS_OF_PARTS.get(part, ((), 0))
    return Column(title, "ordered" if levels else "number", (place,), levels, first, part=of_another)


def box_text(low: Sequence[float], high: Sequence[float], columns: Sequence[Column]) -> list[str]:
    """The sides of a box in words, a level or a date as such; open sides are left out."""
    texts = []
    for column in columns:
        if column.part:
            continue
        if column.kind == "category":
            sides = [(level, low[i], high[i]) for level, i in zip(column.levels, column.inputs, strict=True)]
            only = [level for level, start, stop in sides if 0.0 <= start < 1.0 <= stop]
            barred = [level for level, start, stop in sides if start < 0.0 <= stop < 1.0]
            if only:
                texts.append(f"{column.name} is {only[0]}")
            elif barred:
                texts.append(f"{column.name} is not {', '.join(barred[:4])}{', …' if len(barred) > 4 else ''}")
            continue
        i = column.inputs[0]
        texts += _side(column, float(low[i]), float(high[i]))
    return texts


def _side(column: Column, low: float, high: float) -> list[str]:
    below, above = np.isfinite(low), np.isfinite(high)
    if not below and not above:
        return []
    if column.levels:
        inside = [level for place, level in enumerate(column.levels, column.first) if (low < place) and (place <= high)]
        return [f"{column.name}: {', '.join(inside)}"] if inside else []
    if below and above:
        return [f"{column.text(low)} < {column.name} ≤ {column.quantity(high)}"]
    return [f"{column.name} ≤ {column.quantity(high)}" if above else f"{column.name} > {column.quantity(low)}"]
