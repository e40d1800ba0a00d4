"""Dates as numbers: the days that pass, and where a date stands on the circles of the day, the week and the year."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._support.types import Array

# Circles, with their length in days: each becomes two inputs, the cosine and the sine of the angle.
CIRCLES = {"time": 1.0, "week": 7.0, "season": 365.2425}
# What else a date may be turned into: one input each.
NUMBERS = ("days", "year", "month", "day", "weekday", "dayofyear", "hour")
DATE_PARTS = (*NUMBERS, *CIRCLES)

_LEAST_TURNS = {"time": 2.0, "week": 3.0, "season": 1.5}  # that dates must span for a circle to be told from a trend
_LEAST_PLACES = {"time": 4, "week": 4, "season": 12}  # different places on a circle that must occur


def parts_for(days: Array) -> tuple[str, ...]:
    """The parts that the span of these dates allows: the days, and every circle gone round often enough.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.columns.dates import parts_for
    >>> parts_for(np.arange(30.0))
    ('days', 'week')
    """
    span = float(np.ptp(days)) if days.size else 0.0
    found = ["days"]
    for name, length in CIRCLES.items():
        places = np.unique(np.floor(np.mod(days, length) / length * 24.0)).size
        if span >= _LEAST_TURNS[name] * length and places >= _LEAST_PLACES[name]:
            found.append(name)
    return tuple(found)


def input_names(name: str, parts: Sequence[str]) -> list[str]:
    """Names of the inputs that a date becomes."""
    names = []
    for part in parts:
        if part in CIRCLES:
            names += [f"{name}.{part}.cos", f"{name}.{part}.sin"]
        else:
            names.append(name if part == "days" else f"{name}.{part}")
    return names


def encode(days: Array, parts: Sequence[str]) -> Array:
    """Inputs (n, …) of dates in days since 1970; NaN where missing."""
    columns: list[Array] = []
    for part in parts:
        if part in CIRCLES:
            angle = 2.0 * np.pi * np.mod(days, CIRCLES[part]) / CIRCLES[part]
            columns += [np.cos(angle), np.sin(angle)]
        else:
            columns.append(_number(days, part))
    return np.column_stack(columns)


def _number(days: Array, part: str) -> Array:
    if part == "days":
        return days
    known = ~np.isnan(days)
    moments = np.round(np.where(known, days, 0.0) * 86400e6).astype("datetime64[us]")
    whole, years = moments.astype("datetime64[D]"), moments.astype("datetime64[Y]")
    months = moments.astype("datetime64[M]")
    found = {
        "year": years.astype(np.int64) + 1970,
        "month": months.astype(np.int64) % 12 + 1,
        "day": (whole - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": (whole.astype(np.int64) + 3) % 7,  # 1970 began on a Thursday; Monday is 0
        "dayofyear": (whole - years.astype("datetime64[D]")).astype(np.int64) + 1,
        "hour": (moments - whole.astype("datetime64[us]")).astype(np.int64) // 3_600_000_000,
    }[part]
    return np.where(known, found.astype(np.float64), np.nan)
