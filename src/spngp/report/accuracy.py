"""How well a model does on the rows it is judged by: scores and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from spngp import metrics
from spngp.plotting._style import widened
from spngp.plotting.calibration import coverage_curve
from spngp.report.judged import Judged
from spngp.report.text import Cell, figure, packed, percent, table

_POINTS = 1_500  # points of the scatter plot
_LEVELS = (0.5, 0.8, 0.95)  # probabilities of central intervals


@dataclass(frozen=True)
class Accuracy:
    """Scores of one output, and the mean width of its 95 % intervals."""

    scores: metrics.Scores
    width: float


def accuracy(judged: Judged, output: int) -> Accuracy:
    """Scores of the rows whose output is not missing."""
    _, mixture, y = judged.observed(output)
    width = metrics.sharpness(mixture, 0.95) if y.size else float("nan")
    return Accuracy(metrics.scores(mixture, y, _LEVELS), width)


def scores_table(found: list[Accuracy], baselines: list[float], outputs: list[str], units: list[str]) -> str:
    """A row per output."""
    head = [
        *("output", "rows", "off by", "predicting the mean", "RMSE", "R²", "NLPD", "CRPS"),
        *("50 % hold", "80 % hold", "95 % hold", "95 % width"),
    ]
    rows: list[list[str | Cell]] = [
        [
            output,
            Cell(f"{each.scores.n:,}", raw=str(each.scores.n)),
            figure(each.scores.mae, unit),
            figure(baseline, unit),
            figure(each.scores.rmse, unit),
            *(figure(value) for value in (each.scores.r2, each.scores.nlpd)),
            figure(each.scores.crps, unit),
            *(Cell(percent(share), raw=f"{share:.4f}") for share in each.scores.coverage.values()),
            figure(each.width, unit),
        ]
        for output, unit, each, baseline in zip(outputs, units, found, baselines, strict=True)
    ]
    return table(head, rows, "Scores", download="scores.csv")


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
    low, high = (float(value) for value in np.quantile(np.concatenate([y, mixture.mean]), [0.004, 0.996]))
    shown = np.sort(np.random.default_rng(0).permutation(n)[:_POINTS])
    return {
        "rows": n,
        "pit": (counts * n_bins / n).tolist(),
        "pitBand": (binom.ppf([0.025, 0.975], n, 1.0 / n_bins) * n_bins / n).tolist(),
        "coverage": packed(coverage_curve(pit, levels)),
        "band": [packed(binom.ppf(q, n, levels) / n) for q in (0.025, 0.975)],
        "observed": packed(y[shown], "f8"),
        "predicted": packed(mixture.mean[shown], "f8"),
        "span": list(widened(low, high, 0.12)),
    }
