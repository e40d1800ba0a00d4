"""Jumps along one input: where they are, and kernels that have levels between them.

A Matérn-1/2 follows a square wave, but it expects a kink at every row, so that it smooths the jumps and keeps noise in
between. Levels between cuts say what is there. For residuals r that are one level per cell plus white noise, the best
cells among all are found by dynamic programming: with noise s² and levels N(0, v), a cell of n rows has the evidence

    ½ v (Σr)² / (s² (s² + n v)) − ½ log(1 + n v/s²)

up to what all cuts have in common, and each cut costs the log of the number of gaps it may be in. Of many rows, known
cuts are moved one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out, mean_of_part
from spngp.gp.optimisation import Block
from spngp.kernels import Parameter, PiecewiseConstant
from spngp.kernels.stationary import Stationary
from spngp.learning.defaults import VARIANCE_BOUNDS
from spngp.learning.parts import levels_of, of_parts, parts_of, rougher, with_noise
from spngp.learning.structure_left import Finding
from spngp.learning.tied_evidence import evidence

_MOST_ROWS = 6000  # for dynamic programming, whose time grows with their square
_FINE, _FINER = 0.25, 4.0  # length-scale of a part that may follow jumps, and how many times shorter than all others
_LONG = 3.0  # length-scale along an input that levels follow
_MOST_CUTS = 64  # more are no jumps, but a function that is rough everywhere
_FEWEST = 5  # rows of a cell: a few gross errors side by side are no level
_LARGEST_RESIDUAL = 3.0  # typical residuals beyond all levels; what is farther off counts no more than this
_WITHIN = 1.0 - 1e-6  # of the distance between two rows: a gap between them, without either


def with_jumps(learnt: ExactGP, findings: Sequence[Finding], blocks: Sequence[Block]) -> ExactGP | None:
    """A GP with levels instead of its last parts, one for each finding; None if none of them jumps.

    Cuts are where residuals show them if these last parts are noise to it. A part for two inputs, for levels of a
    category, or without jumps becomes a rough one.
    """
    parts, coded = parts_of(learnt), levels_of(learnt)
    fine = parts[len(parts) - len(findings) :]
    unexplained = learnt.noise_variance + sum(part.variance for part in fine)
    found = of_parts(learnt, parts[: -len(findings)])
    for finding, part in zip(findings, fine, strict=True):
        axis = finding.inputs[0]
        alone = len(finding.inputs) == 1 and not (coded and coded[axis])
        cuts = best_cuts(*levels_along(with_noise(found, unexplained), blocks, axis)) if alone else ()
        size = Parameter(part.variance, VARIANCE_BOUNDS)
        other = PiecewiseConstant(axis, cuts, size) if cuts else rougher(part, coded)
        found, unexplained = of_parts(found, [*parts_of(found), other]), unexplained - part.variance
    return found if levels_between_cuts(found) else None


def fine_parts(gp: ExactGP) -> list[tuple[int, int]]:
    """Parts of a kernel that are fine along a single input, a number: the place of each and the input."""
    coded, found = levels_of(gp), []
    for index, part in enumerate(parts_of(gp)):
        if isinstance(part, Stationary) and np.ndim(part.length_scale):
            order = np.argsort(part.length_scale, kind="stable")
            finest, next_finest = [*np.sort(part.length_scale), math.inf][:2]
            if finest < min(_FINE, next_finest / _FINER) and not (coded and coded[order[0]]):
                found.append((index, int(order[0])))
    return found


def with_levels_instead(gp: ExactGP, index: int, axis: int, blocks: Sequence[Block]) -> ExactGP | None:
    """A GP with levels, as its last part, for what the part ``index`` follows along an input; None if it has no jumps.

    That part becomes long along this input.
    """
    parts = parts_of(gp)
    longer = [which.role == "length_scale" and which.input == axis for which in parts[index].free_parameters]
    theta = np.where(longer, math.log(_LONG), parts[index].theta)
    size, parts[index] = parts[index].variance, parts[index].with_theta(theta)
    found = of_parts(gp, parts)
    cuts = best_cuts(*levels_along(with_noise(found, gp.noise_variance + size), blocks, axis))
    return of_parts(gp, [*parts, PiecewiseConstant(axis, cuts, Parameter(size, VARIANCE_BOUNDS))]) if cuts else None


def placed_anew(gp: ExactGP, blocks: Sequence[Block]) -> ExactGP:
    """The cuts of levels where these rows show them, one input after the other; as they are where they show none.

    More than 6,000 rows move the cuts that are known.
    """
    for i, part in enumerate(parts_of(gp)):
        if isinstance(part, PiecewiseConstant):
            values, residuals = levels_along(gp, blocks, part.axis)
            many = values.size > _MOST_ROWS
            found = moved_cuts(values, residuals, part.at) if many else best_cuts(values, residuals)
            if found:
                parts = parts_of(gp)
                parts[i] = part.moved(found)
                gp = of_parts(gp, parts)
    return gp


def with_gaps(gp: ExactGP, blocks: Sequence[Block]) -> ExactGP:
    """The cuts of levels in the middle between the rows beside them, with the gap between these rows.

    Rows say nothing about where in it the jump is.
    """
    parts = parts_of(gp)
    for i, part in enumerate(parts):
        if isinstance(part, PiecewiseConstant):
            values = np.unique(np.concatenate([block.X[:, part.axis] for block in blocks]))
            ends = np.unique(np.searchsorted(values, part.at, side="right"))
            ends = ends[(ends > 0) & (ends < values.size)]
            if ends.size:
                widths = _WITHIN * (values[ends] - values[ends - 1])
                parts[i] = part.moved([_between(values, end) for end in ends], widths)
    return of_parts(gp, parts)


def worth(gp: ExactGP, blocks: Sequence[Block]) -> float:
    """Log evidence less what cuts cost, since rows chose them: each the log of the number of rows it may be between."""
    n_cuts = sum(len(part.at) for part in levels_between_cuts(gp))
    return evidence(gp, blocks) - n_cuts * math.log(max(sum(block.y.size for block in blocks), 1))


def levels_between_cuts(gp: ExactGP) -> list[PiecewiseConstant]:
    """The parts that are constant between cuts."""
    return [part for part in parts_of(gp) if isinstance(part, PiecewiseConstant)]


def levels_along(gp: ExactGP, blocks: Sequence[Block], axis: int) -> tuple[Array, Array]:
    """Along an input, what levels should explain: leave-one-out residuals and, where there are levels, their means.

    Its value in each row, and these outputs.
    """
    own = [part for part in levels_between_cuts(gp) if part.axis == axis]
    values, residuals = [], []
    for block in blocks:
        try:
            given = block.given_to(gp)
        except NotPositiveDefiniteError:  # on rows that the GP was not learnt from
            continue
        rows = given.rows_seen_once
        if not rows.size:
            continue
        left, _ = leave_one_out(given, rows)
        levels = sum((mean_of_part(given, part, rows) for part in own), np.zeros(rows.size))
        # without levels residuals hold the jumps; with them, a row on the wrong side of a cut is off by one of them
        typical = 1.4826 * np.median(np.abs(left)) if own else np.sqrt(np.mean(left**2))
        beyond = _LARGEST_RESIDUAL * float(typical)
        values.append(given.rows_seen[0][rows, axis])
        residuals.append(np.clip(left + levels, levels.min() - beyond, levels.max() + beyond))
    return np.concatenate([*values, np.empty(0)]), np.concatenate([*residuals, np.empty(0)])


def best_cuts(values: Array, residuals: Array) -> tuple[float, ...]:
    """The likeliest cuts of rows along one input; none if there are none, or too many for jumps.

    Equal values are not separated.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.learning.jumps import best_cuts
    >>> x = np.arange(60.0)
    >>> best_cuts(x, np.where(x > 20, 1.0, -1.0) + 0.1 * np.cos(9 * x**2))
    (20.5,)
    """
    order = np.argsort(values, kind="stable")
    values, residuals = values[order], residuals[order]
    ends = np.append(np.flatnonzero(np.diff(values) > 0) + 1, values.size)
    if ends.size < 3:
        return ()
    noise = max(0.5 * float(np.mean(np.square(np.diff(residuals)))), 1e-300)
    spread = max(float(residuals.var()) - noise, 0.01 * noise)
    counts = np.append(0.0, ends)
    sums = np.append(0.0, np.cumsum(residuals)[ends - 1])
    cost = math.log(ends.size)
    best, before = np.zeros(ends.size + 1), np.zeros(ends.size + 1, dtype=np.intp)
    for end in range(1, ends.size + 1):
        n, total = counts[end] - counts[:end], sums[end] - sums[:end]
        stretched = noise + n * spread
        gained = 0.5 * (spread / noise * total * total / stretched - np.log(stretched / noise))
        gained += np.where(n >= _FEWEST, best[:end] - cost, -np.inf)
        before[end] = int(np.argmax(gained))
        best[end] = gained[before[end]]
    found: list[float] = []
    end = int(before[ends.size])
    while end:
        found.append(_between(values, ends[end - 1]))
        end = int(before[end])
    return tuple(reversed(found)) if len(found) <= _MOST_CUTS else ()


def moved_cuts(values: Array, residuals: Array, at: Sequence[float]) -> tuple[float, ...]:
    """Each cut moved, between the middles of the cells beside it, to where the squares about their levels are least.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.learning.jumps import moved_cuts
    >>> moved_cuts(np.arange(60.0), np.where(np.arange(60) > 20, 1.0, -1.0), [25.0])
    (20.5,)
    """
    order = np.argsort(values, kind="stable")
    values, residuals = values[order], residuals[order]
    starts = [0, *np.searchsorted(values, at, side="right").tolist(), values.size]
    found: list[float] = []
    for cut, first, here, last in zip(at, starts, starts[1:], starts[2:], strict=False):
        ends = np.arange(max((first + here) // 2, first + 1), min((here + last) // 2 + 1, last))
        ends = ends[values[ends - 1] < values[ends]]
        if ends.size and first < here < last:
            costs = (residuals - residuals[first:here].mean()) ** 2 - (residuals - residuals[here:last].mean()) ** 2
            cut = _between(values, ends[np.argmin(np.cumsum(costs)[ends - 1])])
        if not found or cut > found[-1]:
            found.append(cut)
    return tuple(found)


def _between(values: Array, end: int) -> float:
    """The middle of the gap before the row ``end``, or its lower side where no float is between."""
    low, high = float(values[end - 1]), float(values[end])
    middle = low + 0.5 * (high - low)
    return middle if low <= middle < high else low
