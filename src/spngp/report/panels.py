"""What the model predicts along each column: averages over rows that occur, for all rows or for some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array, Indices
from spngp.plotting._style import widened
from spngp.predictive import GaussianMixture
from spngp.report.columns import Column, with_unit
from spngp.report.text import number, packed
from spngp.report.windows import changes, sample, windows

_SHOWN = 24  # columns shown, at most
_ROWS = 1_500  # rows predicted
_POINTS = 400  # observed values shown in a panel
_NUMBERS = 200_000  # rows times components of the mixtures
_LEVELS = 200  # values of the output at which probabilities are computed
_DAYS_WITHOUT_TIME = 14.0  # span of dates from which averages are said to be of a day
_QUANTILES = (0.025, 0.25, 0.75, 0.975)
_BY = 3  # columns by which rows can be chosen
_MOST_CHOICES = 4  # levels of a category that rows can be chosen by
_LEAST_ROWS = 25  # of a choice


@dataclass(frozen=True)
class Choice:
    """Some of the rows: all of them, or those in a part of one column."""

    label: str
    by: str
    rows: Indices


@dataclass(frozen=True)
class Sampled:
    """Rows with what was observed and predicted there.

    ``cdf`` has the probability that a new observation is at most each of ``levels``, (n, levels).
    """

    X: Array
    y: Array
    mean: Array
    levels: Array
    cdf: Array


def sampled_rows(X: Array, Y: Array, mixtures: list[GaussianMixture]) -> list[Sampled]:
    """For each output the rows and their predictions."""
    return [_sampled(X, Y[:, k], mixture) for k, mixture in enumerate(mixtures)]


def sample_for(X: Array, n_components: int) -> Indices:
    """Which rows to predict."""
    return sample(X.shape[0], int(np.clip(_NUMBERS // max(n_components, 1), 200, _ROWS)))


def _sampled(X: Array, y: Array, mixture: GaussianMixture) -> Sampled:
    # a quantile of rows together lies between theirs
    mean, (low, high) = mixture.mean, mixture.interval(_QUANTILES[-1] - _QUANTILES[0])
    dense = np.quantile(np.concatenate([low, mean, high]), np.linspace(0.0, 1.0, _LEVELS // 2))
    levels = np.unique(np.concatenate([np.linspace(low.min(), high.max(), _LEVELS // 2), dense]))
    cdf = np.stack([mixture.cdf(np.full(X.shape[0], level)) for level in levels], axis=1)
    return Sampled(X, y, mean, levels, cdf)


def panels(rows: Sampled, columns: list[Column], order: list[int], unit: str) -> dict[str, Any]:
    """A panel for each column that changes, in the given order, with a step for each choice of rows."""
    shown = [columns[i] for i in order if changes(columns[i].values(rows.X))]
    choices = _choices(rows.X, [column for column in shown if not column.part][:_BY])
    items = [_panel(rows, column, choices, unit) for column in shown[:_SHOWN]]
    spans = [step["span"] for item in items for step in item["steps"] if step]
    common = widened(min(span[0] for span in spans), max(span[1] for span in spans)) if spans else (0.0, 1.0)
    points = sample(rows.X.shape[0], _POINTS)
    return {
        "choices": [{"label": choice.label, "by": choice.by, "rows": choice.rows.size} for choice in choices],
        "items": items,
        "left": len(shown[_SHOWN:]),
        "range": list(common),
        "y": packed(rows.y[points], "f8"),
        "inChoice": [packed(np.isin(points, choice.rows).astype(np.uint8), "u1") for choice in choices],
    }


def _choices(X: Array, columns: list[Column]) -> list[Choice]:
    choices = [Choice("all rows", "", np.arange(X.shape[0]))]
    if len(columns) == 1:
        return choices
    for column in columns:
        values = column.values(X)
        distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        if column.has_levels or distinct.size <= _MOST_CHOICES:
            usual = np.sort(distinct[np.argsort(-counts, kind="stable")[:_MOST_CHOICES]])
            parts = [(f"{column.name}: {column.quantity(value)}", values == value) for value in usual]
        else:
            low, high = np.nanquantile(values, [1 / 3, 2 / 3])
            parts = [
                (f"{column.name} up to {column.quantity(low, 3)}", values <= low),
                (
                    f"{column.name} {column.text(low, 3)} to {column.quantity(high, 3)}",
                    (values > low) & (values <= high),
                ),
                (f"{column.name} above {column.quantity(high, 3)}", values > high),
            ]
        choices += [
            Choice(label, column.name, np.flatnonzero(chosen)) for label, chosen in parts if chosen.sum() >= _LEAST_ROWS
        ]
    return choices


def _panel(rows: Sampled, column: Column, choices: list[Choice], unit: str) -> dict[str, Any]:
    values = column.values(rows.X)
    points = sample(rows.X.shape[0], _POINTS)
    return {
        "name": column.name,
        "title": column.title,
        "kind": "levels" if column.has_levels else column.kind,
        "levels": list(column.levels),
        "points": column.axis(values[points]),
        "steps": [_step(rows, column, values, choice, unit) for choice in choices],
    }


def _step(rows: Sampled, column: Column, values: Array, choice: Choice, unit: str) -> dict[str, Any] | None:
    """Averages along the column over the rows of a choice; None if the column does not change there."""
    chosen = values[choice.rows]
    if not changes(chosen):
        return None
    found = windows(column, chosen)
    mean = found.weights @ rows.mean[choice.rows]
    cdf = found.weights @ rows.cdf[choice.rows]
    low, lower, upper, high = (
        np.array([np.interp(q, probabilities, rows.levels) for probabilities in cdf]) for q in _QUANTILES
    )
    least, most = int(np.argmin(mean)), int(np.argmax(mean))
    # a window of many days has no time of the day
    in_days = column.kind == "date" and float(np.ptp(chosen)) > _DAYS_WITHOUT_TIME
    at = np.round(found.at) if in_days else found.at
    moves = [
        f"{with_unit(number(float(mean[i]), 3), unit)} at {column.quantity(float(at[i]), 2)}" for i in (least, most)
    ]
    return {
        "x": column.axis(found.at),
        "mean": packed(mean),
        "low": packed(low),
        "lower": packed(lower),
        "upper": packed(upper),
        "high": packed(high),
        "breaks": found.breaks,
        "distinct": found.distinct,
        "left": found.left,
        "moves": moves,
        "span": [float(min(low.min(), mean.min())), float(max(high.max(), mean.max()))],
    }
