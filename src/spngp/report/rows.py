"""Rows to look at: those farthest from what was predicted, and those of the fit that it holds for errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp import metrics
from spngp._support.types import Array
from spngp.plotting.lines import training_rows, without_names
from spngp.report.columns import Column
from spngp.report.judged import Judged, row_numbers
from spngp.report.text import Cell, figure, name, number, table

_AT_FIRST, _MOST = 12, 100  # rows of a table
_COLUMNS = 8  # shown with a row


def surprises_table(
    judged: Judged, output: int, columns: list[Column], seen: tuple[Array, Array], unit: str, caption: str
) -> str:
    """The rows farthest out in the tails of their predictions, with the first columns.

    ``seen`` has the lowest and highest training value of each input.
    """
    rows, mixture, y = judged.observed(output)
    tail = metrics.pit(mixture, y)
    chances = 2.0 * np.minimum(tail, 1.0 - tail)
    # by density only where chances round to zero: of wide predictions all densities are low
    worst = np.lexsort([mixture.logpdf(y), chances])[:_MOST]
    chosen = mixture[worst]
    mean, (low, high) = chosen.mean, chosen.interval(0.95)
    head = ["observed", "expected", "95 % interval from", "to", "chance this far off"]
    lines: list[list[str | Cell]] = []
    for j, i in enumerate(worst):
        x = judged.X[rows[i]]
        chance = float(chances[i])
        lines.append(
            [
                name(judged.labels[rows[i]]),
                figure(y[i], unit),
                *(figure(value[j], unit) for value in (mean, low, high)),
                Cell(_chance(chance), raw=f"{chance:.3g}"),
                *(_cell(column, x, seen) for column in columns[:_COLUMNS]),
            ]
        )
    head = [name(judged.called), *head, *(column.title for column in columns[:_COLUMNS])]
    return table(head, lines, caption, download="surprises.csv", at_first=_AT_FIRST)


def doubt_table(model: Any, output: int, columns: list[Column], unit: str, caption: str) -> str:
    """The rows learnt from whose output the model does not trust, the largest error first; empty if there are none."""
    outliers = getattr(model, "outliers_", None)
    if outliers is None or not (outliers[:, 1] == output).any():
        return ""
    X, Y = training_rows(model)
    place = {int(number_): i for i, number_ in enumerate(row_numbers(model))}
    numbers = outliers[outliers[:, 1] == output, 0]
    rows = np.array([place[int(number_)] for number_ in numbers])
    mean = without_names(model).predict(X[rows]).reshape(rows.size, -1)[:, output]
    y = Y[rows, output]
    lines: list[list[str | Cell]] = [
        [
            str(int(numbers[i]) + 1),
            *(figure(value, unit) for value in (float(y[i]), float(mean[i]), float(y[i] - mean[i]))),
            *(_cell(column, X[rows[i]], None) for column in columns[:_COLUMNS]),
        ]
        for i in np.argsort(-np.abs(y - mean), kind="stable")[:_MOST]
    ]
    head = ["row of the fit", "observed", "expected", "off by", *(column.title for column in columns[:_COLUMNS])]
    return table(head, lines, caption, download="in-doubt.csv", at_first=_AT_FIRST)


def _chance(probability: float) -> str:
    if probability < 1e-6:
        return "less than one in a million"
    if probability > 0.2:
        return f"{100 * probability:.0f}\u00a0%"
    return f"one in {number(float(f'{1 / probability:.2g}'))}"


def _cell(column: Column, x: Array, seen: tuple[Array, Array] | None) -> Cell:
    """A value, marked if it is outside what was seen in training."""
    value, i = float(column.values(x[np.newaxis])[0]), column.inputs[0]
    remark = ""
    if seen is not None and column.kind != "category" and not seen[0][i] <= x[i] <= seen[1][i]:
        shift = column.first if column.levels else 0
        low, high = (column.text(float(side[i]) - shift) for side in seen)
        remark = f"outside the training range {low} … {high}"
    return Cell(column.text(value), remark, column.raw(value))
