"""Values of a table's columns as numbers, texts or dates, with errors that name row and column.

A null is missing. In a column of numbers or dates so are blanks and the spellings in ``MISSING``; in a column of
categories ``NA`` is a category like any other (it may be Namibia).
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.tables.decimals import DecimalCommas, has_comma

# How programs write a number or a date that is not there; not what people write for zero or unknown, such as - or ?.
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "None", "NaN", "nan", "-NaN", "-nan"),
    *("NaT", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)


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
        self._commas = DecimalCommas()

    def error(self, row: int, name: str, problem: str) -> ValueError:
        """An error at a row of the batch."""
        return ValueError(f"{self.source}, row {self.first_row + row}, column {name!r}: {problem}")

    def numbers(self, batch: Any, name: str) -> Array:
        """A column as numbers; NaN where missing."""
        import pyarrow as pa

        column = batch.column(name)
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values = self._parsed(batch, name, without_missing(column))
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            values = _numpy(column.cast(pa.float64(), safe=False))
        elif pa.types.is_boolean(kind):
            values = _numpy(column.cast(pa.uint8()).cast(pa.float64()))
        elif pa.types.is_null(kind):
            values = np.full(len(column), np.nan)
        elif pa.types.is_duration(kind) or pa.types.is_time(kind):
            values = _seconds(column)
        elif pa.types.is_temporal(kind):
            raise ValueError(f"{self.source}: column {name!r} holds dates ({kind}); declare it as a date")
        else:
            raise ValueError(f"{self.source}: column {name!r} holds {kind}, not numbers")
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise self.error(row, name, f"{values[row]} is not a finite number")
        return values

    def _parsed(self, batch: Any, name: str, texts: Any) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        plain = texts
        if self.decimal == ",":
            contradiction = self._commas.check(batch, name, texts)
            if contradiction is not None:
                raise self.error(contradiction.row, name, contradiction.problem)
            plain = pc.replace_substring(texts, ",", ".")
        try:
            return _numpy(plain.cast(pa.float64()))
        except pa.ArrowInvalid:
            row = next(row for row, text in enumerate(plain.to_pylist()) if not is_number(text))
            text = texts[row].as_py()
            remedy = "a column of categories or dates must be declared in the fit, by --category or --date"
            if has_comma(text):
                remedy = "write decimals with a point, thousands without a mark"
            raise self.error(row, name, f"{quoted(text)} is not a number ({remedy})") from None

    def texts(self, batch: Any, name: str) -> list[str | None]:
        """A column as text, without spaces around it; None where missing."""
        import pyarrow as pa

        column = batch.column(name)
        if pa.types.is_nested(column.type):
            raise ValueError(f"{self.source}: column {name!r} holds {column.type}, not categories")
        return [None if value is None else str(value).strip() for value in column.to_pylist()]

    def moments(self, batch: Any, name: str, date_format: str | None) -> Any:
        """A column of dates as an Arrow array of moments; null where missing."""
        import pyarrow as pa

        values = batch.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            texts = without_missing(values)
            values = self._iso(texts, name) if date_format is None else self._strptime(texts, name, date_format)
        elif pa.types.is_time(values.type) or pa.types.is_duration(values.type):
            raise ValueError(
                f"{self.source}: column {name!r} holds {values.type}, not dates; it is a number of seconds"
            )
        elif not pa.types.is_temporal(values.type) and not pa.types.is_null(values.type):
            raise ValueError(f"{self.source}: column {name!r} holds {values.type}, not dates")
        return values

    def _strptime(self, texts: Any, name: str, date_format: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            moments = pc.strptime(texts, format=date_format, unit="us", error_is_null=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"date format {date_format!r} cannot be used: {error}") from None
        for row, (text, moment) in enumerate(zip(texts.to_pylist(), moments.to_pylist(), strict=True)):
            if text is not None and (moment is None or (moment.day <= 3 and _is_impossible(text, date_format))):
                raise self.error(row, name, f"{quoted(text)} is not a date of the form {date_format!r}")
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
                told = "is not a date like 2024-05-31 or 2024-05-31 14:30; --date-format says how dates are written"
                raise self.error(row, name, f"{quoted(text)} {told}")
        raise ValueError(f"{self.source}: column {name!r} mixes dates with and without an offset from UTC")


def is_number(text: str | None) -> bool:
    """Whether a text is a number with a decimal point, or None."""
    import pyarrow as pa

    try:
        pa.scalar(text, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def without_missing(texts: Any) -> Any:
    """Texts without spaces around them; null where they spell that nothing is there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(texts, pa.array(MISSING, texts.type)), pa.scalar(None, texts.type), texts)


def _seconds(column: Any) -> Array:
    """Durations, and times of day since midnight, in seconds."""
    import pyarrow as pa

    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
    return _numpy(column.cast(width).cast(pa.float64(), safe=False)) / per_second


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


def quoted(text: Any) -> str:
    """A value for a message, cut if it is long."""
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _is_impossible(text: str, date_format: str) -> bool:
    """Whether a month has no such day; Arrow counts on into the next one."""
    try:
        datetime.datetime.strptime(text, date_format)
    except ValueError as error:
        return str(error).startswith("day ")  # other errors are about the format, which Arrow may understand
    return False
