"""Rows from before a drift: where later rows contradict them, they hardly count any more.

A region that drifts may have another noise, or another function, or its kernel may not fit. Four stories are told about
the outputs that came last, given all rows before: as before; with a larger noise since some row; farther from what
earlier rows predict than these say, noise or not, since some row; or with a function that is new since some row, about
which earlier rows say nothing. If the last makes them far more probable than the others, earlier rows get a variance so
large that they hardly count. It is known from then on, as a ``y_variance`` is
(:class:`~spngp.streaming.rows.RowLog`): predictions, evidences and what is learnt later follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spngp._support.types import Array, Indices
from spngp.gp.evidence import LOG_2PI
from spngp.gp.growing import GrowingGP
from spngp.streaming.conditioned import Rows, most_probable, own_rows
from spngp.streaming.living import Living, next_revision
from spngp.streaming.regions import LivingExpert
from spngp.streaming.rows import GrowingArray
from spngp.streaming.updating import conditioned_again, regions_of_rows

_JUDGES = 32  # outputs that decide, the last ones of a region; the drift began at one of them
_FACTORS = (1.0, 4.0, 16.0)  # variances of the noise, or of predictions, since then, in units of what they were
_OTHERWISE_SINCE = (4, 8, 16, 32)  # rows ago that these may have changed, if the function has not
_CLEARLY = 4.0  # nats by which a new function must explain the last outputs better than all that leaves the function
_AGED = 1e3  # variance of earlier rows then, in units of the function's prior variance


class _Change(NamedTuple):
    """A new function of one output in a region: rows with a smaller number are about another one."""

    output: int
    since: int
    variance: float


def without_the_past(living: Living, regions: Sequence[int], n_jobs: int | None = None) -> tuple[Living, int]:
    """With those rows of some regions made uncertain that later ones contradict; and the number of these."""
    found = [(i, changes) for i in regions if (changes := _changes(living, i))]
    if not found:
        return living, 0
    touched = np.unique(np.concatenate([_before(living, i, changes) for i, changes in found]))
    living = _aged(living, found)
    changed = {j: living.regions[j] for j in regions_of_rows(living, touched)}
    return conditioned_again(living, changed, n_jobs), touched.size


def _changes(living: Living, i: int) -> list[_Change]:
    """The outputs of a region that have a new function, and since when."""
    region, found = living.regions[i], []
    for k in range(living.n_outputs):
        expert = most_probable(living, region, k)
        if expert is None:
            continue
        rows = own_rows(living, region, expert)
        since = _new_since(expert, rows)
        if since is not None:
            variance = _AGED * float(expert.prior.kernel.variances(rows.X[-1:])[0])
            found.append(_Change(k, int(rows.numbers[-since]), variance))
    return found


def _new_since(expert: LivingExpert, rows: Rows) -> int | None:
    """Since how many rows the function is a new one; None if it need not be."""
    n = rows.y.size
    judges = min(_JUDGES, n // 2)
    if judges < 1:
        return None
    told = GrowingGP.of(expert.prior, rows.X, rows.y, rows.noise)
    as_before = _densities(told)[-judges:]
    best, since, otherwise = -np.inf, 0, float(as_before.sum())
    backwards = rows.at(np.arange(n)[: -judges - 1 : -1])
    for factor in _FACTORS:
        # the evidence of the last s rows alone, for every s: the newest row comes first
        alone = np.cumsum(_densities(GrowingGP.of(expert.prior, backwards.X, backwards.y, factor * backwards.noise)))
        known = as_before.sum() - np.cumsum(as_before[::-1])  # the judges before these
        s = int(np.argmax(alone + known))
        if alone[s] + known[s] > best:
            best, since = float(alone[s] + known[s]), s + 1
        for ago in _OTHERWISE_SINCE if factor > 1.0 else ():
            late = np.arange(n) >= n - ago
            noisy = GrowingGP.of(expert.prior, rows.X, rows.y, np.where(late, factor * rows.noise, rows.noise))
            for story in (_densities(noisy), _densities(told, np.where(late, factor, 1.0))):
                otherwise = max(otherwise, float(story[-judges:].sum()))
    return since if best > otherwise + _CLEARLY else None


def _densities(gp: GrowingGP, factors: Array | float = 1.0) -> Array:
    """Log density of each output given those before it, if its variance is so many times what the GP predicts."""
    return np.asarray(-0.5 * gp.z**2 / factors - np.log(gp.factor.diagonal) - 0.5 * np.log(factors) - 0.5 * LOG_2PI)


def _before(living: Living, i: int, changes: Sequence[_Change]) -> Indices:
    """Numbers of the rows of a region from before the last of its changes."""
    numbers = living.regions[i].numbers
    return numbers[numbers < max(change.since for change in changes)]


def _aged(living: Living, found: Sequence[tuple[int, Sequence[_Change]]]) -> Living:
    """With the variances of rows from before the changes of some regions; nothing is computed again."""
    log = living.log
    before = np.zeros(log.Y.values.shape) if log.known is None else log.known.values
    known = before.copy()
    for i, changes in found:
        for change in changes:  # a row may lie in several regions, where cuts are alternatives
            at = (log.positions(_before(living, i, [change])), change.output)
            known[at] = np.maximum(known[at], before[at] + change.variance)
    return replace(living, log=replace(log, known=GrowingArray.of(known)), revision=next_revision())
