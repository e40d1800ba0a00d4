"""Values of a table's columns as numbers, texts or dates, with errors that name row and column."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spngp._support.types import Array


class Reader:
    """Values of a batch, with errors that name row and column.

    Parameters
    ----------
    source : str
        The table's name, for errors.
    decimal : str
        Decimal mark of numbers in text.
    """

    def __init__(self, source: str, decimal: str = ".") -> None:
        self.source, self.decimal = source, decimal
        self.first_row = 1  # number of the batch's first row, counted from 1 below the header

    def error(self, row: int, name: str, problem: str) -> ValueError:
        """An error at a row of the batch."""
        return ValueError(f"{self.source}, row {self.first_row + row}, column {name!r}: {problem}")

    def numbers(self, batch: Any, name: str) -> Array:
        """A column as numbers; NaN where missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = batch.column(name)
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = pc.utf8_trim_whitespace(column)
            if self.decimal == ",":
                column = pc.replace_substring(column, ",", ".")
            values = self._cast(column, name)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            values = _numpy(column.cast(pa.float64(), safe=False))
        elif pa.types.is_boolean(kind):
            values = _numpy(column.cast(pa.uint8()).cast(pa.float64()))
        elif pa.types.is_null(kind):
            values = np.full(len(column), np.nan)
        elif pa.types.is_temporal(kind):
            raise ValueError(f"{self.source}: column {name!r} holds dates ({kind}); declare it as a date")
        else:
            raise ValueError(f"{self.source}: column {name!r} holds {kind}, not numbers")
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise self.error(row, name, f"{values[row]} is not a finite number")
        return values

    def _cast(self, column: Any, name: str) -> Array:
        import pyarrow as pa

        try:
            return _numpy(column.cast(pa.float64()))
        except pa.ArrowInvalid:
            for row, text in enumerate(column.to_pylist()):
                try:
                    pa.array([text], pa.string()).cast(pa.float64())
                except pa.ArrowInvalid:
                    raise self.error(
                        row, name, f"{_short(text)} is not a number (a column of categories or dates must be declared)"
                    ) from None
            raise  # pragma: no cover - one of them does not parse

    def texts(self, batch: Any, name: str) -> list[str | None]:
        """A column as text, without spaces around it; None where missing."""
        import pyarrow as pa

        column = batch.column(name)
        if pa.types.is_nested(column.type):
            raise ValueError(f"{self.source}: column {name!r} holds {column.type}, not categories")
        return [None if value is None else str(value).strip() for value in column.to_pylist()]

    def dates(self, batch: Any, name: str, parts: Sequence[str], date_format: str | None) -> Array:
        """A column of dates as the parts asked for, (n, parts); NaN where missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = batch.column(name)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            texts = pc.utf8_trim_whitespace(values)
            values = self._iso(texts, name) if date_format is None else self._strptime(texts, name, date_format)
        elif pa.types.is_temporal(values.type) and not pa.types.is_time(values.type):
            zone = getattr(values.type, "tz", None)
            values = values.cast(pa.timestamp("us", zone))
        else:
            raise ValueError(f"{self.source}: column {name!r} holds {values.type}, not dates")
        functions: dict[str, Callable[[Any], Any]] = {
            "days": lambda moments: pc.divide(moments.cast(pa.int64()).cast(pa.float64()), 86400e6),
            "year": pc.year,
            "month": pc.month,
            "day": pc.day,
            "weekday": pc.day_of_week,
            "dayofyear": pc.day_of_year,
            "hour": pc.hour,
        }
        return np.column_stack([_numpy(functions[part](values).cast(pa.float64())) for part in parts])

    def _strptime(self, texts: Any, name: str, date_format: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            moments = pc.strptime(texts, format=date_format, unit="us", error_is_null=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"date format {date_format!r} cannot be used: {error}") from None
        for row, (text, moment) in enumerate(zip(texts.to_pylist(), moments.to_pylist(), strict=True)):
            if text is not None and (moment is None or (moment.day <= 3 and _is_impossible(text, date_format))):
                raise self.error(row, name, f"{_short(text)} is not a date of the form {date_format!r}")
        return moments

    def _iso(self, texts: Any, name: str) -> Any:
        import pyarrow as pa

        for zone in (None, "UTC"):  # with or without an offset from UTC, the same way in the whole column
            try:
                return texts.cast(pa.timestamp("us", zone))
            except pa.ArrowInvalid:
                continue
        for row, text in enumerate(texts.to_pylist()):
            if _is_no_date(text):
                raise self.error(row, name, f"{_short(text)} is not a date like 2024-05-31 or 2024-05-31 14:30")
        raise ValueError(f"{self.source}: column {name!r} mixes dates with and without an offset from UTC")


def _is_no_date(text: str | None) -> bool:
    import pyarrow as pa

    for zone in (None, "UTC"):
        try:
            pa.array([text], pa.string()).cast(pa.timestamp("us", zone))
            return False
        except pa.ArrowInvalid:
            continue
    return True


def _numpy(column: Any) -> Array:
    """A writable float array, NaN where null."""
    import pyarrow as pa

    return np.array(column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False))


def _short(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _is_impossible(text: str, date_format: str) -> bool:
    """Whether a month has no such day; Arrow counts on into the next one."""
    try:
        datetime.datetime.strptime(text, date_format)
    except ValueError as error:
        return str(error).startswith("day ")  # other errors are about the format, which Arrow may understand
    return False
