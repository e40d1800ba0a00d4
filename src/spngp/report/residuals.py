"""Where the model is wrong: errors along time and along every column, and the segments where they are largest."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from spngp._support.types import Array, Indices, Mask
from spngp.report.columns import Column, with_unit
from spngp.report.judged import Judged
from spngp.report.text import Cell, figure, number, packed, percent, table
from spngp.report.windows import changes, sample, windows

_SHOWN = 12  # columns, at most
_POINTS = 600
_SEGMENTS = 8
_LEAST_ROWS = 10  # of a segment
_CLEARLY = 3.0  # standard errors by which a segment must be worse to be marked
_ORDER = Column("order of the rows", "number", (0,))


def residual_charts(judged: Judged, output: int, columns: list[Column], order: list[int]) -> dict[str, Any]:
    """Errors, observed minus predicted, along time or the order of the rows, and along each column.

    Columns come in the given order; dates come first.
    """
    rows, mixture, y = judged.observed(output)
    error = y - mixture.mean
    span = _span(error)
    points = sample(rows.size, _POINTS)
    shown = [columns[i] for i in order]
    shown = [column for column in shown if column.kind == "date"] + [c for c in shown if c.kind != "date"]
    along = [(column, column.values(judged.X[rows])) for column in shown]
    along = [(column, values) for column, values in along if changes(values)][:_SHOWN]
    if rows.size > 1 and not any(column.kind == "date" for column, _ in along):
        along.insert(0, (_ORDER, judged.positions[rows].astype(np.float64) + 1.0))
    return {
        "error": packed(error[points], "f8"),
        "span": list(span),
        "items": [_chart(column, values, np.clip(error, span[0], span[1]), points) for column, values in along],
    }


def _span(error: Array) -> tuple[float, float]:
    """Limits that hold all but the wildest errors, which would hide the rest."""
    if not error.size:
        return -1.0, 1.0
    width = 1.15 * max(float(np.quantile(np.abs(error), 0.995)), 1e-300)
    return -width, width


def _chart(column: Column, values: Array, error: Array, points: Indices) -> dict[str, Any]:
    found = windows(column, values)
    mean = found.weights @ error
    deviation = np.sqrt(np.maximum(found.weights @ error**2 - mean**2, 0.0))
    band = 2.0 * deviation / np.sqrt(np.maximum(found.spread() - 1.0, 1.0))
    return {
        "title": column.title,
        "name": column.name,
        "kind": "levels" if column.has_levels else column.kind,
        "levels": list(column.levels),
        "points": column.axis(values[points]),
        "x": column.axis(found.at),
        "mean": packed(mean),
        "low": packed(mean - band),
        "high": packed(mean + band),
        "breaks": found.breaks,
        "distinct": found.distinct,
    }


@dataclass(frozen=True)
class Segment:
    """Some of the judged rows, by a level or a range of one column.

    ``error`` is their mean absolute error, ``ratio`` what it is to that of all rows, and ``worse`` says by how many
    standard errors it is above that of the rest.
    """

    name: str
    rows: int
    error: float
    ratio: float
    bias: float
    bias_error: float
    coverage: float
    worse: float


def segments(judged: Judged, output: int, columns: list[Column]) -> list[Segment]:
    """The segments where errors are largest, compared with what rows that many would show, worst first."""
    rows, mixture, y = judged.observed(output)
    if rows.size < 2 * _LEAST_ROWS:
        return []
    error = y - mixture.mean
    lowest, highest = _span(error)
    error = np.clip(error, lowest, highest)
    low, high = mixture.interval(0.95)
    inside = (low <= y) & (y <= high)
    found = []
    for column in columns:
        for name, chosen in _parts(column, column.values(judged.X[rows])):
            n = int(chosen.sum())
            if _LEAST_ROWS <= n <= 0.9 * rows.size:
                found.append(_segment(name, chosen, error, inside))
    found = [segment for segment in found if segment.ratio > 1.0]
    found.sort(key=lambda segment: (-segment.worse, segment.name))
    return found[:_SEGMENTS]


def _parts(column: Column, values: Array) -> list[tuple[str, Mask]]:
    distinct = np.unique(values[~np.isnan(values)])
    if column.has_levels or distinct.size <= 8:
        return [(f"{column.name}: {column.quantity(value)}", values == value) for value in distinct]
    edges = np.unique(np.nanquantile(values, [0.0, 0.25, 0.5, 0.75, 1.0], method="nearest"))
    parts = []
    for i, (start, stop) in enumerate(itertools.pairwise(edges.tolist())):
        chosen = (values >= start if i == 0 else values > start) & (values <= stop)
        parts.append((f"{column.name}: {column.text(start, 3)} to {column.quantity(stop, 3)}", chosen))
    return parts


def _segment(name: str, chosen: Mask, error: Array, inside: Mask) -> Segment:
    sizes = np.abs(error)
    n = int(chosen.sum())
    part = error[chosen]
    rest = sizes[~chosen].mean()
    standard_error = np.sqrt(sizes[chosen].var() / n + sizes[~chosen].var() / (error.size - n))
    worse = (sizes[chosen].mean() - rest) / standard_error if standard_error > 0 else 0.0
    return Segment(
        name,
        n,
        float(sizes[chosen].mean()),
        float(sizes[chosen].mean() / sizes.mean()) if sizes.any() else 1.0,
        float(part.mean()),
        float(part.std() / np.sqrt(n)),
        float(inside[chosen].mean()),
        float(worse),
    )


def segments_table(found: list[Segment], unit: str) -> str:
    """A row per segment; marked where it is clearly worse than the rest."""
    head = ["segment", "rows", "off by", "compared with all", "errors lean", "inside 95 % intervals"]
    lines: list[list[str | Cell]] = []
    marked = False
    for segment in found:
        ratio = segment.ratio - 1.0
        clearly = "clearly more than chance would give" if segment.worse > _CLEARLY else ""
        leans = abs(segment.bias) > 2.5 * segment.bias_error
        side = "too low" if segment.bias > 0 else "too high"
        bias = f"predicted {with_unit(number(abs(segment.bias), 3), unit)} {side}" if leans else "to neither side"
        few = binom.cdf(round(segment.coverage * segment.rows), segment.rows, 0.95) < 0.005
        marked = marked or bool(clearly or few)
        lines.append(
            [
                segment.name,
                Cell(f"{segment.rows:,}", raw=str(segment.rows)),
                figure(segment.error, unit, digits=3),
                Cell(f"{ratio:+.0%}".replace("-", "−").replace("%", "\u00a0%"), clearly, raw=f"{ratio:.4f}"),
                Cell(bias, raw=f"{segment.bias:.6g}"),
                Cell(
                    percent(segment.coverage), "fewer than chance allows" if few else "", raw=f"{segment.coverage:.4f}"
                ),
            ]
        )
    note = (
        "" if marked or not found else "<p>No cell is marked: none of these parts is worse than chance would give.</p>"
    )
    return note + table(head, lines, "Where errors are largest", download="segments.csv")
