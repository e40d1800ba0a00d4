"""Where a small set may be cut: positions that leave-one-out residuals suggest, for the evidence to choose between.

Residuals of the tied model tell where noise or roughness changes: on either side of a good cut they are of a different
size. For n squared residuals in units of their predicted variances, with the mean ē, the log likelihood of one size for
all is −n/2 (log ē + 1) at its maximum, so a cut gains ½ (n log ē − n₁ log ē₁ − n₂ log ē₂) nats. That is cheap and only
proposes; experts on either side are then learnt, and their evidence decides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out
from spngp.gp.row_weights import KnownVariances
from spngp.learning.blocks import observed
from spngp.learning.paired_cuts import first_of_two
from spngp.learning.parts import levels_of
from spngp.learning.plan import Plan
from spngp.learning.tied import Profiled, Tied
from spngp.network import Box
from spngp.structure.regions import Cut, Partition, Region
from spngp.structure.segments import segmentations

_FEWEST_ROWS = 8  # of a segment along a single input
_FEWEST_PER_PART = 20  # where there are several inputs
_LARGEST = 25.0  # squared residuals count no more than this: a single outlier is no change
_CUT_PROBABILITY = 0.1
_ROWS_PER_PLACE = 10.0  # that it takes to tell where noise or roughness change
_LEAST_FIRST_GAIN = 5.0  # of a cut whose two sides are then given each its noise
_LEAST_NOISE = 1.5  # times its lower bound, for a large set to be cut by its noise
_FEWEST_OF_LEVELS = 40  # rows of a part with levels of its own
_AROUND = 250  # rows on either side by which a cut of a large set is placed
# Of large sets: how much a cut must gain, in all and per row that was looked at, and how many may lie above each other.
_LEAST_GAIN, _LEAST_GAIN_PER_ROW, _DEEPEST = 10.0, 0.02, 3
_OF_TWO = 4.0  # times as much, of two cuts that gain only together: a kernel may fit differently by place
_MOST_SEGMENTS = 15
_OF_PROFILE = 2  # kernels that take as long as one whose noise changes, which is not compiled
_ALTERNATIVES, _POSITIONS = (3, 2), 9  # cuts of several inputs: of the whole, of either part; positions along an input
# Milliseconds that experts may take, that one evaluation takes at 100 rows, and how many of them an expert needs.
_TIME, _TIME_OF_100_ROWS, _EVALUATIONS = 1000.0, 0.08, 3.0


def candidate_regions(tied: Tied, X: Array, Y: Array, plan: Plan) -> Region | None:
    """The region graph of a small set: whole, or cut in the ways that residuals suggest; none if they suggest none."""
    if X.shape[1] == 1:
        n_segments = _affordable(X.shape[0], max(map(len, tied.gps)) + (_OF_PROFILE if tied.profiled else 0))
        cuts = cuts_along(X[:, 0], residual_sizes(tied, X, Y, known=plan.variances), n_segments - 1)
        # positions were chosen by the rows, among about as many as these can tell apart
        probability = _CUT_PROBABILITY * min(1.0, _ROWS_PER_PLACE * len(cuts) / X.shape[0])
        found = segmentations(X, 0, cuts, probability)
        if tied.profiled is not None and found.partitions:
            found = _also_smooth(found, segmentations(X, 0, cuts, probability, smooth=True), tied.profiled)
    else:
        found = _alternative_cuts(X, residual_sizes(tied, X, Y, known=plan.variances))
    return found if found.partitions else None


def _also_smooth(plain: Region, smooth: Region, profiled: Profiled) -> Region:
    """All cuts of a root region, and all once more for experts whose noise changes smoothly as well."""
    assert plain.weights is not None
    assert smooth.weights is not None
    whole, *cuts = plain.weights  # experts of the whole share its weight already
    weights = [math.exp(profiled.log_weight_without) * own for own in cuts]
    weights += [math.exp(profiled.log_weight) * own for own in smooth.weights[1:]]
    return replace(plain, partitions=plain.partitions + smooth.partitions, weights=(whole, *weights))


def _alternative_cuts(X: Array, sizes: Array) -> Region:
    """Whole, or cut along one of the inputs that promise most, and either part once more.

    Each cut has its share of the prior weight of all that could have been proposed: some positions along every input.
    """
    share = _CUT_PROBABILITY / (X.shape[1] * _POSITIONS)
    rows = np.arange(X.shape[0])

    def region(box: Box, rows: Indices, widths: Sequence[int]) -> Region:
        cuts = promising(X[rows], sizes[rows])[: widths[0]] if widths else []
        partitions = []
        for cut in cuts:
            below = X[rows, cut.axis] <= cut.at[0]
            parts = zip(box.cut(cut.axis, cut.at), (rows[below], rows[~below]), strict=True)
            partitions.append(Partition(cut.axis, cut.at, tuple(region(*part, widths[1:]) for part in parts)))
        weights = (1.0 - share * len(cuts), *[share] * len(cuts))
        return Region(box, rows, tuple(partitions), whole=bool(cuts), weights=weights)

    return region(Box(), rows, _ALTERNATIVES)


def promising(
    X: Array, sizes: Array, least_gain: float = _LEAST_FIRST_GAIN, fewest: int = _FEWEST_PER_PART
) -> list[Cut]:
    """The best cut along each input that gains enough, those that gain most first."""
    found = []
    for axis in range(X.shape[1]):
        order = np.argsort(X[:, axis], kind="stable")
        values = X[order, axis]
        cut = best_cut(values, sizes[order], fewest)
        if cut is not None and cut[0] >= least_gain:
            found.append((cut[0], Cut(axis, (_between(values[cut[1] - 1], values[cut[1]]),))))
    return [cut for _, cut in sorted(found, key=lambda item: -item[0])]


def noise_cuts(tied: Tied, X: Array, Y: Array, plan: Plan) -> dict[Box, Cut]:
    """Cuts of a large set, box by box from the whole on, where the size of residuals changes too much to be overlooked.

    Residuals are those of the regions that the tied parameters were learnt from. Of many rows they leave no doubt, so
    these cuts are made, and what lies between them is cut for size as always.
    """
    sampled = [own for own in tied.sampled if own.size >= 2 * _FEWEST_PER_PART]
    Y = noisy_outputs(tied, Y)
    if not sampled or np.isnan(Y).all():
        return {}
    rows = np.concatenate(sampled)

    def sizes_in(own: Indices) -> Array:
        known = None if plan.variances is None else plan.variances[own]
        return residual_sizes(tied, X[own], Y[own], known=known)

    sizes = np.concatenate(map_leaves(sizes_in, sampled, plan.n_jobs, [own.size for own in sampled]))
    coded = [j for j, count in enumerate(levels_of(tied.gps[0][0])) if count]
    first: dict[Box, Cut] = {}
    boxes = [(Box(), 0)]
    for box, depth in boxes:  # grows while it is walked
        inside = box.contains(X[rows])
        least = max(_LEAST_GAIN, _LEAST_GAIN_PER_ROW * inside.sum())
        found = promising(X[rows[inside]], sizes[inside], least)
        if not found and depth + 1 < _DEEPEST and box.contains(X).sum() >= 4 * plan.block_size:
            found = first_of_two(X[rows[inside]], sizes[inside], _OF_TWO * least, _FEWEST_PER_PART)
        if X.shape[1] == 1 and plan.variances is None and found:
            found = [_to_the_row(found[0], tied, X[box.contains(X)], Y[box.contains(X)])]
        # the best one; or else the best between levels, such as missing and present, which may be of few rows
        for cut in [*found[:1], *(cut for cut in found[1:] if cut.axis in coded)]:
            parts = box.cut(cut.axis, cut.at)
            fewest = _FEWEST_OF_LEVELS if cut.axis in coded else plan.block_size
            if min(int(part.contains(X).sum()) for part in parts) >= fewest:
                first[box] = cut
                boxes += [(part, depth + 1) for part in parts if depth + 1 < _DEEPEST]
                break
    return first


def noisy_outputs(tied: Tied, Y: Array) -> Array:
    """Outputs, NaN where hardly any noise is known of."""
    return np.where([any(_has_noise(gp) for gp in gps) for gps in tied.gps], Y, np.nan)


def _has_noise(gp: ExactGP) -> bool:
    """Whether residuals tell about noise; where there is hardly any, they tell where the kernel does not fit."""
    return gp.noise_is_fixed or gp.noise_variance > _LEAST_NOISE * float(np.exp(gp.bounds[-1, 0]))


def _to_the_row(cut: Cut, tied: Tied, X: Array, Y: Array) -> Cut:
    """The same cut along a single input, placed anew by the rows around it, on both sides."""
    below = X[:, 0] <= cut.at[0]
    near = np.concatenate(
        [np.flatnonzero(side)[np.argsort(np.abs(X[side, 0] - cut.at[0]))[:_AROUND]] for side in (below, ~below)]
    )
    again = cuts_twice(tied, X[near], Y[near], 1)
    return Cut(0, (again[0],)) if again else cut


def residual_sizes(
    tied: Tied, X: Array, Y: Array, scales: Array | None = None, known: KnownVariances | None = None
) -> Array:
    """Squared leave-one-out residuals in units of their variance, (n, outputs), under each output's best kernel.

    With ``scales``, in the shape of Y, the noise variance of every row is that multiple of the tied one, and so is the
    unit of its residual: sizes are still in units of the tied noise. ``known``, in the shape of Y, are known variances.
    """
    sizes = np.full(Y.shape, np.nan)
    for k, gps in enumerate(tied.gps):
        rows = np.flatnonzero(~np.isnan(Y[:, k]))
        if rows.size < 2:
            continue
        block = observed(rows, X, Y[:, k], None if known is None else known[:, k])
        best = max((block.given_to(gp) for gp in gps), key=lambda gp: gp.log_evidence)
        factors = np.ones(rows.size)
        if scales is not None and not best.noise_is_fixed:
            least = float(np.exp(best.bounds[-1, 0])) / best.noise_variance
            factors = np.maximum(scales[rows, k], least)
            # the quietest rows have weight one, others less: rows of a larger weight would stand for several
            theta = best.theta + np.append(np.zeros(best.theta.size - 1), np.log(factors.min()))
            best = best.with_theta(theta).condition(X[rows], Y[rows, k], weights=factors.min() / factors)
        alone = best.rows_seen_once
        if alone.size == rows.size:  # else some were taken together
            residuals, variances = leave_one_out(best, alone)
            noise = best.noise_variance * factors / factors.min()
            sizes[rows, k] = factors * np.minimum(residuals**2 / (variances + noise), _LARGEST)
    return sizes


def cuts_twice(tied: Tied, X: Array, Y: Array, count: int) -> list[float]:
    """Cuts along a single input, sought again with the noise of every segment that was found at first.

    As long as all noise is taken for one, quiet rows next to noisy ones are as badly predicted as these.
    """
    sizes = residual_sizes(tied, X, Y)
    at = cuts_along(X[:, 0], sizes, count, _LEAST_FIRST_GAIN, fill=False)
    if at:
        segment = np.searchsorted(at, X[:, 0], side="left")
        scales = np.ones(Y.shape)
        for i in range(len(at) + 1):
            known = ~np.isnan(sizes[segment == i]).all(axis=0)
            scales[np.ix_(segment == i, known)] = np.nanmean(sizes[segment == i][:, known], axis=0)
        sizes = residual_sizes(tied, X, Y, scales)
    return cuts_along(X[:, 0], sizes, count)


def cuts_along(values: Array, sizes: Array, count: int, least_gain: float = 1.0, fill: bool = True) -> list[float]:
    """At most so many positions along one input: the best by their gain, then, to ``fill``, quantiles between them."""
    order = np.argsort(values, kind="stable")
    values, sizes = values[order], sizes[order]
    ends: list[int] = []  # rows below each cut
    segments = [(0, values.size)]
    while len(ends) < count:
        found = [best_cut(values[low:high], sizes[low:high], _FEWEST_ROWS) for low, high in segments]
        gains = [-np.inf if cut is None else cut[0] for cut in found]
        chosen = int(np.argmax(gains))
        cut = found[chosen]
        if cut is None or cut[0] < least_gain:
            break
        low, high = segments.pop(chosen)
        ends.append(low + cut[1])
        segments += [(low, ends[-1]), (ends[-1], high)]
    separable = np.flatnonzero(np.diff(values) > 0) + 1
    while fill and len(ends) < count:  # halve the longest segment that can be halved
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
