"""Where a small set may be cut: positions that leave-one-out residuals suggest, for the evidence to choose between.

Residuals of the tied model tell where noise or roughness changes: on either side of a good cut they are of a different
size. For n squared residuals in units of their predicted variances, with the mean ē, the log likelihood of one size for
all is −n/2 (log ē + 1) at its maximum, so a cut gains ½ (n log ē − n₁ log ē₁ − n₂ log ē₂) nats. That is cheap and only
proposes; experts on either side are then learnt, and their evidence decides.
"""

from __future__ import annotations

import itertools

import numpy as np

from spngp._typing import Array, Indices
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied
from spngp.structure.regions import Region
from spngp.structure.segments import segmentations

_FEWEST_ROWS = 8  # of a segment along a single input
_FEWEST_PER_PART = 20  # where there are several inputs
_LARGEST = 25.0  # squared residuals count no more than this: a single outlier is no change
_CUT_PROBABILITY = 0.2
_MOST_SEGMENTS = 15
# Milliseconds that experts may take, that one evaluation takes at 100 rows, and how many of them an expert needs.
_TIME, _TIME_OF_100_ROWS, _EVALUATIONS = 1500.0, 0.08, 3.0


def candidate_regions(tied: Tied, X: Array, Y: Array, plan: Plan) -> Region:
    """The region graph of a small set: whole, and cut in the ways that residuals and a few quantiles suggest."""
    sizes = residual_sizes(tied, X, Y)
    if X.shape[1] == 1:
        n_segments = _affordable(X.shape[0], len(plan.labels))
        cuts = cuts_along(X[:, 0], sizes, n_segments - 1)
        return segmentations(X, 0, cuts, _CUT_PROBABILITY)
    return tied.regions


def residual_sizes(tied: Tied, X: Array, Y: Array) -> Array:
    """Squared leave-one-out residuals in units of their variance, (n, outputs), under each output's best kernel."""
    sizes = np.full(Y.shape, np.nan)
    for k, gps in enumerate(tied.gps):
        rows = np.flatnonzero(~np.isnan(Y[:, k]))
        if rows.size < 2:
            continue
        best = max((gp.condition(X[rows], Y[rows, k]) for gp in gps), key=lambda gp: gp.log_evidence)
        alone = best.rows_seen_once
        if alone.size == rows.size:  # else some were taken together
            residuals, variances = best.leave_one_out(alone)
            sizes[rows, k] = np.minimum(residuals**2 / (variances + best.noise_variance), _LARGEST)
    return sizes


def cuts_along(values: Array, sizes: Array, count: int) -> list[float]:
    """At most so many positions along one input: the best by their gain, then quantiles between them."""
    order = np.argsort(values, kind="stable")
    values, sizes = values[order], sizes[order]
    ends: list[int] = []  # rows below each cut
    segments = [(0, values.size)]
    while len(ends) < count:
        found = [best_cut(values[low:high], sizes[low:high], _FEWEST_ROWS) for low, high in segments]
        gains = [-np.inf if cut is None else cut[0] for cut in found]
        chosen = int(np.argmax(gains))
        cut = found[chosen]
        if cut is None or cut[0] < 1.0:
            break
        low, high = segments.pop(chosen)
        ends.append(low + cut[1])
        segments += [(low, ends[-1]), (ends[-1], high)]
    separable = np.flatnonzero(np.diff(values) > 0) + 1
    while len(ends) < count:  # halve the longest segment that can be halved
        edges = np.array(sorted([0, *ends, values.size]))
        options = []
        for low, high in itertools.pairwise(edges):
            inside = separable[(separable >= low + _FEWEST_ROWS) & (separable <= high - _FEWEST_ROWS)]
            if inside.size:
                options.append((high - low, int(inside[np.argmin(np.abs(inside - 0.5 * (low + high)))])))
        if not options:
            break
        ends.append(max(options)[1])
    return [_between(values[end - 1], values[end]) for end in sorted(ends)]


def best_cut(values: Array, sizes: Array, fewest: int) -> tuple[float, int] | None:
    """Gain in nats, and how many of the rows lie below, of the best cut of rows in ascending order; none if none can.

    Both parts have at least ``fewest`` rows, and equal values are not separated.
    """
    n = values.size
    ends = np.arange(fewest, n - fewest + 1)
    ends = ends[values[ends - 1] < values[ends]] if ends.size else ends
    if not ends.size:
        return None
    gains = np.zeros(ends.size)
    for column in sizes.T:
        known = ~np.isnan(column)
        counts = np.concatenate([[0], np.cumsum(known)])
        sums = np.concatenate([[0.0], np.cumsum(np.where(known, column, 0.0))])
        below = _log_likelihood(counts[ends], sums[ends])
        above = _log_likelihood(counts[-1] - counts[ends], sums[-1] - sums[ends])
        gains += below + above - _log_likelihood(counts[-1:], sums[-1:])
    best = int(np.argmax(gains))
    return float(gains[best]), int(ends[best])


def _log_likelihood(counts: Indices, sums: Array) -> Array:
    """−n/2 log ē; a thousandth keeps rows without any residual from being infinitely likely."""
    return np.asarray(-0.5 * counts * np.log((sums + 1e-3) / np.maximum(counts, 1)))


def _affordable(n_rows: int, n_kernels: int) -> int:
    """How many cells along an input can be combined into segments in the time there is."""
    whole = _EVALUATIONS * n_kernels * _TIME_OF_100_ROWS * (n_rows / 100.0) ** 3  # of experts on all rows
    for m in range(_MOST_SEGMENTS, 3, -1):
        lengths = np.arange(1, m + 1)
        if whole * float(((m + 1 - lengths) * (lengths / m) ** 3).sum()) <= _TIME:
            return m
    return 3


def _between(low: float, high: float) -> float:
    middle = float(low) + 0.5 * (float(high) - float(low))
    return middle if low <= middle < high else float(low)
