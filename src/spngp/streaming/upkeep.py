"""When rows have changed what should be learnt: regions cut or learnt again where they stand, or the whole model.

=========================  =====================================================================================
everything is learnt again  while the set is small (up to two regions' worth of rows): when half as many rows have
                            come as it was learnt from; up to sixteen regions' worth: when as many have come; later:
                            when units no longer fit the rows or a tenth of these have new levels, when regions are
                            four times as many as rows call for, when a quarter of them have drifted, or when all
                            rows learnt from are forgotten
a region is cut             when it has more rows than a region may have
earlier rows hardly count   when the outputs of a region drift and contradict them (:mod:`spngp.streaming.ageing`)
a region is learnt again    when half as many rows have come as it was learnt from, or when its predictions drift:
                            then from its last 32 rows alone, if these are better predicted so than from all
a region sees less far      when it sees twice as many context rows as when it was learnt
=========================  =====================================================================================

Drift: of each output, the last 16 probability integral transforms of a region, each given the own rows before it,
become normal scores. If the model is right they are independent and standard normal. An alarm is given if the sum or
the sum of squares of 16 scores, or their shortfall, has a probability below one in a thousand: one false alarm in
16,000 rows, however many regions there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.box import Box
from spngp.learning import Learnt, Plan
from spngp.learning.upkeep import Event
from spngp.streaming.ageing import without_the_past
from spngp.streaming.levels import code_limits, with_new_levels
from spngp.streaming.living import Living, announced
from spngp.streaming.local import cut, learn_region_again, see_less
from spngp.streaming.regions import LivingRegion
from spngp.streaming.starting import start
from spngp.streaming.updating import with_surprises

GROWTH = 0.5  # of the rows learnt from: a small model, or a region, is learnt again when so many have come
SMALL = 2  # regions' worth of rows of a set that is learnt again as a whole at such a growth
MEDIUM = 16  # regions' worth of rows of a set that is learnt again as a whole when it has doubled
WINDOW = 16  # outputs that drift is tested on
RECENT = 32  # rows that a region which drifts may be learnt from alone
FALSE_ALARMS = 1e-3  # probability of an alarm in a window, if nothing has changed
_HAVE_DRIFTED = "have drifted"
DRIFT = "the last"  # how the reason of an alarm begins
_MOST_DRIFTING, _FEWEST_DRIFTING = 0.25, 4  # share and number of regions that drift before everything is learnt again
_MOST_REGIONS = 8.0  # for each region's worth of rows: four times as many as rows call for
_MOST_CONTEXT = 2.0  # times as many as when the reach was set
_FEWEST_FOR_UNITS = 32  # rows that must have come before units are looked at
_FARTHEST_MIDDLE = 3.0  # median of later rows, in the units of learning, that still fits them
_WIDEST = 4.0  # their spread, likewise
_MOST_NEW = 0.1  # share of rows with levels that came later, before everything is learnt again


@dataclass(frozen=True)
class Learner:
    """How the model that is looked after is learnt.

    Attributes
    ----------
    learn_all : callable
        Everything from all rows and known variances of outputs, if any, in the units of the user.
    plan : callable
        The plan for learning, in the units of learning.
    """

    learn_all: Callable[[Array, Array, Array | None], Learnt]
    plan: Callable[[], Plan]


def look_after(living: Living, touched: Iterable[int], n_came: int, learner: Learner) -> Living:
    """The model after what is due has been done, and announced in its events."""
    reason = _reason_for_all(living, n_came, learner.plan)
    if reason:
        since = _since(living, reason)
        if reason.endswith(_HAVE_DRIFTED):
            living = _without_the_past(living, range(len(living.regions)), reason, learner.plan().n_jobs)
        events, log = announced(living, "model", reason), living.log
        known = None if log.known is None or not log.known.values.any() else log.known.values
        variances = None if known is None else known * living.base.units.outputs.scale**2
        learnt = learner.learn_all(np.array(log.X.values), np.array(log.Y.values), variances)
        return start(learnt, np.array(log.numbers.values), log.n_ever, events, since)
    if living.n_learnt <= SMALL * living.base.block_size:
        return living
    for i in touched:
        living = _look_after_region(living, i, learner)
    return living


def _reason_for_all(living: Living, n_came: int, plan: Callable[[], Plan]) -> str:
    n, n_learnt, block = living.log.n, living.n_learnt, living.base.block_size
    if n_learnt <= SMALL * block:
        if living.arrived >= GROWTH * n_learnt:
            return f"{living.arrived} rows have come since it was learnt from {n_learnt}"
        if n > SMALL * block:
            return f"{n} rows are too many for a small set"
    elif n_learnt < MEDIUM * block and living.arrived >= n_learnt and plan().hyperparameters != "fixed":
        return f"{living.arrived} rows have come since it was learnt from {n_learnt}"
    if living.arrived >= n:
        return f"all {n} rows have come since it was learnt"
    if len(living.regions) > _MOST_REGIONS * n / block and living.arrived >= n_learnt:
        return f"{len(living.regions)} regions are too many for {n} rows"
    drifted = {event.box for event in _alarms(living)} if _has_new_alarm(living, n_came) else set()
    if len(drifted) >= max(_FEWEST_DRIFTING, _MOST_DRIFTING * len(living.regions)):
        return f"{len(drifted)} of {len(living.regions)} regions {_HAVE_DRIFTED}"
    crossed = math.frexp(living.arrived)[1] > math.frexp(max(living.arrived - n_came, 0))[1]  # a power of two
    return _misfit(living) if crossed and living.arrived >= _FEWEST_FOR_UNITS else ""


def _has_new_alarm(living: Living, n_came: int) -> bool:
    """Whether a region drifted when the rows before the last ``n_came`` had come."""
    news = takewhile(lambda event: event.rows >= living.log.n_ever - n_came, reversed(living.events))
    return any(event.reason.startswith(DRIFT) for event in news)


def _alarms(living: Living) -> list[Event]:
    """The alarms since everything was learnt."""
    return [e for e in living.events if e.rows > living.first_later and e.reason.startswith(DRIFT)]


def _since(living: Living, reason: str) -> int:
    """The row at which drift began: at the first alarm, if everything is learnt again because of alarms.

    Once all earlier rows are forgotten, nothing has drifted.
    """
    began = min(event.rows for event in _alarms(living)) if reason.endswith(_HAVE_DRIFTED) else living.since
    return began if began > living.log.numbers.values[0] else 0


def _misfit(living: Living) -> str:
    """Why units and levels no longer fit the rows that came since they were chosen; empty if they do."""
    later = slice(int(np.searchsorted(living.log.numbers.values, living.first_later)), None)
    new = with_new_levels(living, living.log.numbers.values[later])
    if new is not None and new.sum() >= max(_FEWEST_FOR_UNITS, _MOST_NEW * living.log.n):
        return f"{counted(int(new.sum()), 'row')} have levels that came later"
    limits = code_limits(living)
    spreads = living.base.output_spreads
    columns = [("output", k, column / spreads[k]) for k, column in enumerate(living.log.Z.values[later].T)]
    if not living.base.units.inputs.keeps_scale:
        inputs = enumerate(living.log.W.values[later].T)
        columns += [("input", j, column) for j, column in inputs if limits is None or np.isinf(limits[j])]
    for what, j, column in columns:
        values = column[~np.isnan(column)]
        if values.size < _FEWEST_FOR_UNITS:
            continue
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        if abs(middle) > _FARTHEST_MIDDLE or high - low > 1.35 * _WIDEST:
            return f"{what} {j} has moved to {middle:.2g} ± {(high - low) / 1.35:.2g} standard deviations"
    return ""


def _without_the_past(living: Living, regions: Sequence[int], reason: str, n_jobs: int | None) -> Living:
    """With rows that later ones of drifting regions contradict made uncertain, and that announced."""
    living, n_aged = without_the_past(living, regions, n_jobs)
    if not n_aged:
        return living
    box = living.regions[regions[0]].box if len(regions) == 1 else Box.EVERYWHERE
    reason += f": {counted(n_aged, 'earlier row')} contradicted, which hardly count any more"
    return replace(living, events=announced(living, "past", reason, box))


def _look_after_region(living: Living, i: int, learner: Learner) -> Living:
    region, block = living.regions[i], living.base.block_size
    n = region.numbers.size
    if n > block and (region.n_learnt <= block or region.arrived > 0.1 * region.n_learnt):
        return cut(living, i, learner.plan())
    drift = ""
    for k, scores in enumerate(region.surprises):
        if scores.size >= WINDOW:
            drift = drift or _drift(scores, k)
            living = with_surprises(living, i, k, scores[:0])
    if drift:
        plan = learner.plan()
        without = _without_the_past(living, [i], drift, plan.n_jobs)
        # rows that hardly count need not be left out
        return learn_region_again(without, i, plan, drift, recent=RECENT if without is living else 0)
    if region.arrived >= GROWTH * max(region.n_learnt, 2):
        reason = f"{region.arrived} rows have come since it was learnt from {region.n_learnt}"
        return learn_region_again(living, i, learner.plan(), reason)
    return see_less(living, i) if _sees_too_much(region) else living


def _sees_too_much(region: LivingRegion) -> bool:
    content = max((e.seen.content.numbers.size for e in region.experts if e.seen.content is not None), default=0)
    return region.n_wanted > 0 and content - region.numbers.size > _MOST_CONTEXT * region.n_wanted


def _drift(transforms: Array, k: int) -> str:
    """What is wrong with the most recent transforms; empty if nothing is."""
    scores = ndtri(transforms[-WINDOW:])
    shift, squares = float(scores.sum()) / math.sqrt(WINDOW), float(scores @ scores)
    farthest, low, high = _limits()
    if abs(shift) > farthest:
        return f"{DRIFT} {WINDOW} values of output {k} lie {shift / math.sqrt(WINDOW):+.2g} standard deviations off"
    if not low <= squares <= high:
        ratio = math.sqrt(squares / WINDOW)
        return f"{DRIFT} {WINDOW} values of output {k} spread {ratio:.2g} times as far as predicted"
    return ""


@cache
def _limits() -> tuple[float, float, float]:
    """The largest shift without an alarm, and the smallest and largest sum of squares."""
    share = FALSE_ALARMS / 4.0  # two sides of two tests
    return float(-ndtri(share)), float(chi2.ppf(share, WINDOW)), float(chi2.ppf(1.0 - share, WINDOW))
