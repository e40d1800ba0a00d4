"""The result in plain sentences: how far off predictions are, against what, and whether intervals hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.report.accuracy import Accuracy
from spngp.report.columns import with_unit
from spngp.report.text import number, percent

_TOLERATED = 0.02  # how far a share inside intervals may be off, however many rows show that it is
_FEW = 20  # observations that say nothing about intervals
_SAME = 0.02  # shares by which an error differs from another that is about as large


@dataclass(frozen=True)
class Verdict:
    """What the top of the page says of one output.

    Attributes
    ----------
    sentences : list of str
    alarm : bool
        Whether the model should not be used as it is.
    wide : bool
        Whether intervals are wider than they need be.
    gain : float
        Share by which errors are smaller than those of predicting the mean.
    baseline : float
        The mean absolute error of predicting the mean of the rows learnt from.
    """

    sentences: list[str]
    alarm: bool
    wide: bool
    gain: float
    baseline: float


def baseline(y: Array, learnt: Array) -> float:
    """The mean absolute error of predicting the mean of the outputs learnt from; NaN in either is left out."""
    return float(np.nanmean(np.abs(y - np.nanmean(learnt))))


def dominating(error: Array) -> tuple[int, float]:
    """How few rows, at most one in a hundred, have most of the squared error, and their share; 0 if they have not."""
    squares = np.sort(error**2)[::-1]
    total = squares.sum()
    most = max(1, error.size // 100)
    if error.size < _FEW or not total or squares[:most].sum() < 0.5 * total:
        return 0, 0.0
    count = int(np.searchsorted(np.cumsum(squares), 0.5 * total)) + 1
    return count, float(squares[:count].sum() / total)


def normal_range(n: int, level: float) -> tuple[float, float]:
    """Shares of n observations inside right intervals that occur in 99 of 100 cases."""
    low, high = binom.ppf([0.005, 0.995], n, level) / n
    return float(low), float(high)


def verdict(found: Accuracy, reference: float, error: Array, name: str, unit: str) -> Verdict:
    """What to make of the scores of one output, beside the ``reference``, the error of predicting the mean.

    ``error`` has what was observed minus predicted, row by row.
    """
    size = found.scores.mae
    gain = 1.0 - size / reference if reference > 0 else 0.0
    off, mean = with_unit(number(size, 3), unit), with_unit(number(reference, 3), unit)
    useless = gain < -_SAME or found.scores.r2 < 0
    if useless:
        more = f"{gain_text(-gain)} more than" if gain < -_SAME else "no less than"
        first = f"Predictions of {name} are off by {off} on average, {more} always predicting the mean ({mean})."
        accuracy = [first, "Do not use it as it is."]
    elif gain <= _SAME:
        accuracy = [
            f"Predictions of {name} are off by {off} on average, about as much as always predicting the mean ({mean}): "
            "the inputs say little about it."
        ]
    else:
        accuracy = [
            f"Predictions of {name} are off by {off} on average, {gain_text(gain)} less than always "
            f"predicting the mean ({mean})."
        ]
    intervals, failed = interval_verdict(found.scores.n, found.scores.coverage)
    few, share = dominating(error)
    if few:
        rows = "one row makes" if few == 1 else f"{few} rows make"
        accuracy.append(f"Of the squared error, {rows} {round(100 * share)}\u00a0%: see “Rows to look at”.")
    return Verdict([*accuracy, intervals], useless or failed == "narrow", failed == "wide", gain, reference)


def interval_verdict(n: int, shares: dict[float, float]) -> tuple[str, str]:
    r"""Whether intervals hold what they promise, in a sentence, and if they fail: "narrow" or "wide".

    ``shares`` has the share of n observations inside the central intervals of each probability.

    Examples
    --------
    >>> from spngp.report.verdict import interval_verdict
    >>> sentence, fails = interval_verdict(100, {0.5: 0.52, 0.95: 0.91})
    >>> print(sentence.replace("\u00a0", " "))
    Its intervals are honest: 91 % of 100 observations fell inside their 95 % intervals.
    """
    if n < _FEW:
        return f"{counted(n, 'observation')} cannot show whether its intervals hold.", ""
    for level in sorted(shares, reverse=True):
        low, high = normal_range(n, level)
        share = shares[level]
        if low <= share <= high or abs(share - level) <= _TOLERATED:
            continue
        normal = f"{math.floor(1000 * low) / 10:g} to {math.ceil(1000 * high) / 10:g}\u00a0%"  # rounded outwards
        held = f"{_percent(share)} of {counted(n, 'observation')} fell inside their {_percent(level)} intervals"
        if share < level:
            return (
                f"Its intervals are too narrow: only {held}; {normal} would be normal. Expect larger errors than they "
                "say.",
                "narrow",
            )
        return f"Its intervals are too wide: {held}; {normal} would be normal. It knows more than they say.", "wide"
    level = max(shares)
    held = f"{_percent(shares[level])} of {counted(n, 'observation')} fell inside their {_percent(level)} intervals"
    return f"Its intervals are honest: {held}.", ""


def gain_text(gain: float) -> str:
    """A share as per cent; with a decimal where all of it is nearly reached."""
    return f"{100 * gain:.1f}\u00a0%" if 0.985 < gain < 0.9995 else f"{round(100 * gain)}\u00a0%"


def _percent(share: float) -> str:
    return percent(share, 0 if abs(100 * share - round(100 * share)) < 0.05 else 1)
