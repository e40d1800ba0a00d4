"""Columns as the reader of a page knows them: dates as dates, categories as such, one for all inputs they became."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.columns import Column as Described
from spngp.columns import InputColumns
from spngp.columns.dates import CIRCLES
from spngp.plotting.lines import input_names
from spngp.report import text

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEVELS_OF_PARTS = {"weekday": (_WEEKDAYS, 0), "month": (_MONTHS, 1)}  # names, and the number of the first
# Of each circle: the name of its part, steps on it, names of the steps, and where the first of them stands.
_CIRCLES: dict[str, tuple[str, int, tuple[str, ...], int]] = {
    "week": ("weekday", 7, _WEEKDAYS, 3),  # 1970 began on a Thursday
    "season": ("month", 12, _MONTHS, 0),
    "time": ("hour", 24, (), 0),
}
_UNSEEN = "(not seen)"
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
    circle : str
        Of a part of a date that two inputs tell, the cosine and the sine: which.
    missing : int or None
        The input that is one where the value is missing.
    described : spngp.columns.Column or None
        Of a category: what knows its codes. The last of ``levels`` stands for all that were not seen in the fit.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    levels: tuple[str, ...] = ()
    first: int = 0
    unit: str = ""
    part: bool = False
    whole: bool = False
    circle: str = ""
    missing: int | None = None
    described: Described | None = None

    @property
    def title(self) -> str:
        """The name, with the unit if there is one."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def has_levels(self) -> bool:
        """Whether its values have names."""
        return bool(self.levels)

    def values(self, X: Array) -> Array:
        """One number for each row: the value, the place of its level, or days since 1970; NaN where it is missing."""
        values = self._values(X)
        return values if self.missing is None else np.where(X[:, self.missing] > 0.5, np.nan, values)

    def _values(self, X: Array) -> Array:
        if self.circle:
            _, steps, _, first = _CIRCLES[self.circle]
            turn = np.arctan2(X[:, self.inputs[1]], X[:, self.inputs[0]]) / (2.0 * np.pi) % 1.0
            return (np.floor(steps * turn + 1e-9) + first) % steps
        values = X[:, self.inputs[0]]
        if self.described is None:
            return values - (self.first if self.levels else 0)
        codes, of_row = np.unique(values, return_inverse=True)
        found = [None if np.isnan(code) else self.described.level_of(float(code)) for code in codes]
        place = {level: float(i) for i, level in enumerate(self.described.levels)}
        places = [np.nan if np.isnan(c) else place.get(f or "", len(place)) for c, f in zip(codes, found, strict=True)]
        return np.array(places)[of_row]

    def text(self, value: float, digits: int = 4) -> str:
        """A value in words: a level, a date, or a number without its unit; a dash for a missing one."""
        if np.isnan(value):
            return "–"
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
        if np.isnan(value):
            return ""
        return None if self.levels or self.kind == "date" else f"{value:.10g}"

    def axis(self, values: Array) -> Any:
        """Values for a chart: packed numbers, or texts of dates; levels by their places."""
        if self.kind != "date":
            return text.packed(values, "f8")
        return [None if np.isnan(value) else date(value, exact=True) for value in values]


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
    described, units = getattr(model, "columns_", None), dict(units or {})
    if isinstance(described, InputColumns) and not described.is_plain:
        found, first = [], 0
        for column in described.columns:
            count = len(column.input_names)
            found += _of_table(column, tuple(range(first, first + count)))
            first += count
    else:
        found = [Column(text.name(name), "number", (i,)) for i, name in enumerate(input_names(model))]
    whole = [column.kind == "date" and not (column.values(X) % 1 > 0).any() for column in found]
    return [
        replace(column, unit=units.get(column.name, column.unit), whole=daily)
        for column, daily in zip(found, whole, strict=True)
    ]


def _of_table(column: Described, inputs: tuple[int, ...]) -> list[Column]:
    """The reader's columns for one of a table's."""
    name, missing = text.name(column.name), []
    levels = tuple(text.name(level) for level in column.levels)
    if column.gaps and column.kind != "category":
        *others, last = inputs
        inputs, missing = tuple(others), [Column(f"{name}: missing", "ordered", (last,), ("no", "yes"), part=True)]
    if column.kind == "category":
        return [Column(name, "category", inputs, (*levels, _UNSEEN), described=column)]
    if column.kind == "date":
        found = _of_date(name, column.parts, inputs)
    elif column.kind == "ordinal":
        found = [Column(name, "ordered", inputs, levels)]
    elif column.kind == "boolean":
        found = [Column(name, "ordered", inputs, ("no", "yes"))]
    else:
        found = [Column(name, "number", inputs, unit="s" if column.kind == "duration" else "")]
    if missing:  # changes places together with the values
        last = missing[0].inputs[0]
        found = [replace(each, missing=last) for each in found]
        found[0] = replace(found[0], inputs=(*found[0].inputs, last))
    return found + missing


def _of_date(name: str, parts: Sequence[str], inputs: tuple[int, ...]) -> list[Column]:
    places, at = {}, 0
    for part in parts:
        count = 2 if part in CIRCLES else 1
        places[part] = inputs[at : at + count]
        at += count
    days = places.pop("days", None)
    found = [_part(name, part, place, days is not None) for part, place in places.items()]
    return found if days is None else [Column(name, "date", inputs), *found]


def _part(name: str, part: str, places: tuple[int, ...], of_another: bool) -> Column:
    if part in CIRCLES:
        title, _, levels, _ = _CIRCLES[part]
        kind = "ordered" if levels else "number"
        return Column(f"{name}: {title}", kind, places, levels, part=of_another, circle=part)
    title = "day of the year" if part == "dayofyear" else part
    levels, first = _LEVELS_OF_PARTS.get(part, ((), 0))
    return Column(f"{name}: {title}", "ordered" if levels else "number", places, levels, first, part=of_another)


def box_text(low: Sequence[float], high: Sequence[float], columns: Sequence[Column]) -> list[str]:
    """The sides of a box in words, a level or a date as such; open sides are left out."""
    return [
        side
        for column in columns
        if not column.part
        for side in _side(column, float(low[column.inputs[0]]), float(high[column.inputs[0]]))
    ]


def _side(column: Column, low: float, high: float) -> list[str]:
    below, above = np.isfinite(low), np.isfinite(high)
    if not below and not above:
        return []
    if column.levels:
        inside = [level for place, level in enumerate(column.levels, column.first) if low < place <= high]
        if column.described is not None:
            inside = [text.name(level) for level in column.described.levels_between(low, high)]
        more = f" and {len(inside) - 8} more" if len(inside) > 8 else ""
        return [f"{column.name}: {', '.join(inside[:8])}{more}"] if inside else []
    if below and above:
        return [f"{column.text(low)} < {column.name} ≤ {column.quantity(high)}"]
    return [f"{column.name} ≤ {column.quantity(high)}" if above else f"{column.name} > {column.quantity(low)}"]
