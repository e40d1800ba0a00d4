"""How well a model does on the rows it is judged by: scores, calibration and the largest surprises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from spngp import metrics
from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.plotting.calibration import coverage_curve
from spngp.report.judged import Judged
from spngp.report.text import Cell, number, packed, percent, table

_POINTS = 1_500  # points of the scatter plot
_LEVELS = (0.5, 0.8, 0.95)  # probabilities of central intervals
_SURPRISES = 12
_INPUTS = 8  # inputs shown with a surprise


@dataclass(frozen=True)
class Accuracy:
    """Scores of one output, the mean width of its 95 % intervals, and what to make of them."""

    scores: metrics.Scores
    width: float

    @property
    def verdict(self) -> str:
        """Whether the share of observations inside the 95 % intervals is normal."""
        return verdict(self.scores.n, self.scores.coverage[0.95])


def verdict(n: int, share: float) -> str:
    """Whether a ``share`` of n observations inside the 95 % intervals is normal: in 99 of 100 cases if they are right.

    Examples
    --------
    >>> from spngp.report.accuracy import verdict
    >>> verdict(33, 0.879)
    'with 33 observations, 81.8–100 % is normal'
    """
    if n == 0:
        return "there were no observations"
    low, high = binom.ppf([0.005, 0.995], n, 0.95) / n
    shown = f"{math.floor(1000 * low) / 10:g}–{math.ceil(1000 * high) / 10:g}"  # rounded outwards
    normal = f"with {counted(n, 'observation')}, {shown} % is normal"
    if low <= share <= high:
        return normal
    if abs(share - 0.95) <= 0.02:
        return f"slightly too {'few' if share < 0.95 else 'many'}: {normal}"
    return f"too few, as they are too narrow: {normal}" if share < low else f"too many, as they are too wide: {normal}"


def accuracy(judged: Judged, output: int) -> Accuracy:
    """Scores of the rows whose output is not missing."""
    _, mixture, y = judged.observed(output)
    width = metrics.sharpness(mixture, 0.95) if y.size else float("nan")
    return Accuracy(metrics.scores(mixture, y, _LEVELS), width)


def scores_table(found: list[Accuracy], outputs: list[str]) -> str:
    """A row per output."""
    head = ["output", "rows", "RMSE", "R²", "NLPD", "CRPS", "50 % holds", "80 % holds", "95 % holds", "95 % width"]
    rows = [
        [
            output,
            f"{each.scores.n:,}",
            *(number(value) for value in (each.scores.rmse, each.scores.r2, each.scores.nlpd, each.scores.crps)),
            *(percent(share) for share in each.scores.coverage.values()),
            number(each.width),
        ]
        for output, each in zip(outputs, found, strict=True)
    ]
    return table(head, rows, "Scores")


def calibration(judged: Judged, output: int) -> dict[str, Any] | None:
    """What the charts of calibration show; None without anything observed."""
    _, mixture, y = judged.observed(output)
    if y.size == 0:
        return None
    pit = np.clip(metrics.pit(mixture, y), 0.0, 1.0)
    n = pit.size
    n_bins = int(np.clip(n // 15, 5, 20))
    counts = np.histogram(pit, np.linspace(0, 1, n_bins + 1))[0]
    levels = np.linspace(0, 1, 51)
    shown = np.sort(np.random.default_rng(0).permutation(n)[:_POINTS])
    return {
        "rows": n,
        "pit": (counts * n_bins / n).tolist(),
        "pitBand": (binom.ppf([0.025, 0.975], n, 1.0 / n_bins) * n_bins / n).tolist(),
        "coverage": packed(coverage_curve(pit, levels)),
        "band": [packed(binom.ppf(q, n, levels) / n) for q in (0.025, 0.975)],
        "observed": packed(y[shown], "f8"),
        "predicted": packed(mixture.mean[shown], "f8"),
    }


def surprises_table(judged: Judged, output: int, inputs: list[str], order: list[int], seen: tuple[Array, Array]) -> str:
    """The rows of lowest predictive density, with the inputs of largest effect.

    ``order`` lists inputs by effect, ``seen`` has the lowest and highest training value of each.
    """
    shown = order[:_INPUTS]
    rows, mixture, y = judged.observed(output)
    density = mixture.logpdf(y)
    worst = np.argsort(density, kind="stable")[:_SURPRISES]
    mean = mixture.mean
    low, high = mixture.interval(0.95)
    tail = metrics.pit(mixture, y)
    head = [
        "row",
        "observed",
        "expected",
        "95 % interval",
        "chance of a value this far off",
        "log density",
        *(inputs[i] for i in shown),
    ]
    lines = []
    for i in worst:
        X, (lowest, highest) = judged.X[rows[i]], seen
        lines.append(
            [
                judged.labels[rows[i]],
                number(y[i]),
                number(mean[i]),
                f"{number(low[i])} … {number(high[i])}",
                _chance(2.0 * min(tail[i], 1.0 - tail[i])),
                number(density[i]),
                *(_input(X[j], lowest[j], highest[j]) for j in shown),
            ]
        )
    return table(head, lines, "Largest surprises")


def _chance(probability: float) -> str:
    return "< 1e−6" if probability < 1e-6 else number(float(f"{probability:.2g}"))


def _input(value: float, low: float, high: float) -> Cell:
    if value < low or value > high:
        return Cell(number(value), f"outside the training range {number(low)} … {number(high)}")
    return Cell(number(value))
