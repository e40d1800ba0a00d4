"""Experts given their rows: brought up to date when needed, by appending what came and taking out what went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spngp._support.types import Array, Indices, Mask
from spngp._support.values import with_fields
from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP, given_together, known_variances_of
from spngp.gp.left_out import LeftOut
from spngp.network.row_noise import place_of
from spngp.streaming.living import Living
from spngp.streaming.regions import Cell, Conditioned, LivingExpert, LivingRegion
from spngp.streaming.rows import are_among


class Rows(NamedTuple):
    """Rows of some numbers, as an expert takes them; the noise includes known variances."""

    numbers: Indices
    X: Array
    y: Array
    noise: Array

    def at(self, kept: Mask | Indices) -> Rows:
        """Some of them."""
        return Rows(self.numbers[kept], self.X[kept], self.y[kept], self.noise[kept])


def given_own(living: Living, region: LivingRegion, expert: LivingExpert) -> Conditioned:
    """The expert given the own rows of its region."""
    return _current(living, region, expert, expert.own, context=False)


def given_seen(living: Living, region: LivingRegion, expert: LivingExpert) -> Conditioned:
    """The expert given all rows that it sees."""
    return _current(living, region, expert, expert.seen, context=True)


def given_own_together(living: Living, region: LivingRegion, experts: Sequence[LivingExpert]) -> list[Conditioned]:
    """As :func:`given_own`, for experts of one output: in one step if they have the same rows."""
    cells = [expert.own for expert in experts]
    contents = _in_step(living, cells)
    if contents is None:
        return [_current(living, region, expert, expert.own, context=False) for expert in experts]
    return _followed(living, region, experts, cells, contents, np.empty((0, living.log.W.values.shape[1])), False)[0]


def predicted(
    living: Living, region: LivingRegion, experts: Sequence[LivingExpert], at: Array, sees: bool
) -> tuple[Array, Array]:
    """Mean and variance of the latent functions of experts of one output at rows, each of shape (experts, rows).

    Given all rows that they see, or their own alone.
    """
    cells = [expert.seen if sees else expert.own for expert in experts]
    contents = _in_step(living, cells)
    if contents is not None:
        _, mean, variance = _followed(living, region, experts, cells, contents, at, sees)
        return mean, variance
    if len(experts) == 1:
        content = _current(living, region, experts[0], cells[0], context=sees)
        mean, variance = growing(content).predict(at)
        return mean[np.newaxis], variance[np.newaxis]
    parts = [predicted(living, region, [expert], at, sees) for expert in experts]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([variance for _, variance in parts])


def _in_step(living: Living, cells: Sequence[Cell]) -> list[Conditioned] | None:
    """What cells hold, if it is GPs of the same rows to which nothing has happened but that rows have come since."""
    found: list[Conditioned] = []
    for cell in cells:
        content = cell.content
        if content is None or content.revision != living.revision or not content.is_growing:
            return None
        first = found[0] if found else content
        if content.told != first.told or content.told > living.log.n_ever:
            return None
        if content.numbers is not first.numbers and not np.array_equal(content.numbers, first.numbers):
            return None
        found.append(content)
    return found


def _followed(
    living: Living,
    region: LivingRegion,
    experts: Sequence[LivingExpert],
    cells: Sequence[Cell],
    contents: Sequence[Conditioned],
    at: Array,
    context: bool,
) -> tuple[list[Conditioned], Array, Array]:
    """GPs in step with the rows that have come since; and mean and variance of each at others."""
    numbers, n_ever = contents[0].numbers, living.log.n_ever
    rows, noise = _rows(living, region, experts, _wanted(living, region, contents[0].told, context), context)
    gps, mean, variance = given_together([growing(one) for one in contents], rows.X, rows.y, noise, at)
    if rows.numbers.size:
        numbers = np.concatenate([numbers, rows.numbers])
    after = []
    for gp, cell, before in zip(gps, cells, contents, strict=True):
        cell.content = Conditioned(gp, numbers, n_ever, living.revision, before.left_out)
        after.append(cell.content)
    for cell in cells:
        living.memory.keep(cell)
    return after, mean, variance


def growing(content: Conditioned) -> GrowingGP:
    """The GP of what :func:`given_own` and :func:`given_seen` return."""
    assert isinstance(content.gp, GrowingGP)
    return content.gp


def left_out(living: Living, region: LivingRegion, expert: LivingExpert) -> tuple[Indices, LeftOut]:
    """The predictions of own rows from all others, from the first row on that came later; and their numbers."""
    content = given_own(living, region, expert)
    gp, known = growing(content), content.left_out
    if known is None:
        later = content.numbers >= living.first_later
        found = LeftOut.of(gp, int(np.argmax(later)) if later.any() else gp.n)
    else:
        found = known.followed_by(gp)
    if found is not known:
        expert.own.content = with_fields(content, left_out=found)
    return content.numbers[found.first :], found


def most_probable(living: Living, region: LivingRegion, k: int) -> LivingExpert | None:
    """The most probable expert of a region for one output; none if no alternative of this output has a region here."""
    experts = region.of_output(k)
    if not experts:
        return None
    weights = living.index.log_path_weights([expert.leaf for expert in experts], living.values)
    return max(experts, key=lambda expert: weights[expert.leaf])


def own_rows(living: Living, region: LivingRegion, expert: LivingExpert) -> Rows:
    """The own rows of a region whose output is known, in the order in which they came."""
    return _rows_of(living, region, expert, region.numbers, context=False)


def seen_numbers(living: Living, region: LivingRegion, told: int = 0) -> Indices:
    """Numbers of the rows that a region sees, from the number ``told`` on."""
    log, sight = living.log, region.sight
    if not told and sight is not None:
        known = sight.numbers[log.remembers(sight.numbers)]
        return np.concatenate([known, seen_numbers(living, region, sight.told)])
    numbers = log.numbers.values
    start = int(np.searchsorted(numbers, told)) if told else 0
    if start == numbers.size:
        return numbers[:0]
    key = (region.box, region.reach, told, log.n_ever, living.revision)
    last = living.lineage.looked  # experts of a region ask one after the other
    if last is not None and last[0] == key:
        return last[1]
    seen = region.reach.sees(region.box, log.W.values[start:], living.base.scales)
    found = numbers[start:][seen]
    living.lineage.looked = (key, found)
    return found


def known_to_be_seen(living: Living, region: LivingRegion) -> Indices:
    """Numbers of the rows that a region sees, from its GPs if possible: without looking at all rows."""
    for expert in region.experts:
        content = expert.seen.content
        if content is not None and content.told <= living.log.n_ever:
            known = content.numbers[living.log.remembers(content.numbers)]
            return np.concatenate([known, seen_numbers(living, region, content.told)])
    return seen_numbers(living, region)


def _current(living: Living, region: LivingRegion, expert: LivingExpert, cell: Cell, *, context: bool) -> Conditioned:
    content, n_ever = cell.content, living.log.n_ever
    if content is not None and content.told == n_ever and content.revision == living.revision and content.is_growing:
        return content

    thawed = None if content is None else _thawed(content, expert)
    if content is None and not context:
        content = _begun(living, region, expert)
        thawed = None if content is None else growing(content)
    if content is None or thawed is None:
        rows = _rows_of(living, region, expert, _wanted(living, region, 0, context), context)
        gp, numbers, remains = GrowingGP.of(expert.prior, rows.X, rows.y, rows.noise), rows.numbers, None
    else:
        gp, numbers, remains = thawed, content.numbers, content.left_out
        if content.revision != living.revision or content.told > n_ever:
            gp, numbers, changed = _revised(living, region, expert, gp, numbers, context=context)
            remains = None if changed else remains
        if content.told < n_ever:
            rows = _rows_of(living, region, expert, _wanted(living, region, content.told, context), context)
            gp = gp.given(rows.X, rows.y, rows.noise)
            numbers = np.concatenate([numbers, rows.numbers])
    content = Conditioned(gp, numbers, n_ever, living.revision, remains)
    cell.content = content
    living.memory.keep(cell)
    return content


def _begun(living: Living, region: LivingRegion, expert: LivingExpert) -> Conditioned | None:
    """The expert given some of its own rows: those that it was conditioned on first, among all that it sees.

    Their factor is the beginning of the factor of all. None if that is not at hand.
    """
    seen = expert.seen.content
    gp = None if seen is None or seen.revision != living.revision else _thawed(seen, expert)
    if gp is None or seen is None or gp.jitter:
        return None
    own = are_among(seen.numbers, region.numbers)
    n = int(np.argmin(own)) if not own.all() else own.size
    if n == 0 or not np.array_equal(np.sort(seen.numbers[:n]), region.numbers[:n]):
        return None
    told = int(region.numbers[n]) if n < region.numbers.size else living.log.n_ever
    return Conditioned(gp.leading(n), seen.numbers[:n], min(told, living.log.n_ever), living.revision)


def _thawed(content: Conditioned, expert: LivingExpert) -> GrowingGP | None:
    if isinstance(content.gp, GrowingGP):
        return content.gp
    gp = GrowingGP.thawed(content.gp)
    return None if gp is None else with_fields(gp, prior=expert.prior)


def _revised(
    living: Living, region: LivingRegion, expert: LivingExpert, gp: GrowingGP, numbers: Indices, *, context: bool
) -> tuple[GrowingGP, Indices, bool]:
    """Without rows that are forgotten, and with the noise of each as verdicts now say; and whether anything changed."""
    kept = living.log.remembers(numbers)
    gone = ~kept
    again: Rows | None = None
    if living.doubts or not np.array_equal(gp.noise, expert.prior.noise_at(gp.X)):
        present = _rows_of(living, region, expert, numbers[kept], context)
        differs = ~np.isclose(present.noise, gp.noise[kept], rtol=1e-12, atol=0.0)
        if differs.any():
            again = present.at(differs)
            gone[np.flatnonzero(kept)[differs]] = True
    if not gone.any():
        return gp, numbers, False
    gp, numbers = gp.without(np.flatnonzero(gone)), numbers[~gone]
    if again is not None:
        gp = gp.given(again.X, again.y, again.noise)
        numbers = np.concatenate([numbers, again.numbers])
    return gp, numbers, True


def _wanted(living: Living, region: LivingRegion, told: int, context: bool) -> Indices:
    """Numbers of the own rows of a region, or of all that it sees, from the number ``told`` on."""
    if context:
        return seen_numbers(living, region, told)
    return region.numbers[np.searchsorted(region.numbers, told) :] if told else region.numbers


def _rows_of(living: Living, region: LivingRegion, expert: LivingExpert, numbers: Indices, context: bool) -> Rows:
    """The rows of these numbers whose output is known, each with the noise that the expert takes it to have."""
    return _rows(living, region, [expert], numbers, context)[0]


def _rows(
    living: Living, region: LivingRegion, experts: Sequence[LivingExpert], numbers: Indices, context: bool
) -> tuple[Rows, Array]:
    """The rows of these numbers whose output is known; and the noise that each of some experts takes them to have.

    Without ``context`` all are their own. Own rows have an expert's noise, context rows that of their own region, and
    outputs in doubt their own.
    """
    log, k = living.log, experts[0].output
    places = log.positions(numbers)
    y = log.Z.values[places, k]
    observed = ~np.isnan(y)
    if not observed.all():
        numbers, places, y = numbers[observed], places[observed], y[observed]
    noise = _noise(living, region, experts, numbers, context)
    if log.known is not None:
        noise = noise + log.known.values[places, k]
    return Rows(numbers, log.W.values[places], y, noise[0]), noise


def noise_apart(
    living: Living, region: LivingRegion, expert: LivingExpert, numbers: Indices
) -> tuple[Array, Array] | None:
    """For rows of an expert: noise variances and, apart from these, known variances; None if none are known."""
    known = living.log.known_at(numbers)
    return None if known is None else (_noise(living, region, [expert], numbers, True)[0], known[:, expert.output])


def _noise(
    living: Living, region: LivingRegion, experts: Sequence[LivingExpert], numbers: Indices, context: bool
) -> Array:
    """The variance of the noise that experts of one output take rows to have, without known variances."""
    log, k = living.log, experts[0].output
    noise, outside = np.empty((len(experts), numbers.size)), None
    for of_expert, expert in zip(noise, experts, strict=True):
        of_expert[:] = expert.prior.noise_at(log.W.values[log.positions(numbers)])
        if expert.prior.noise_variance == 0.0 or not numbers.size:  # a leaf without noise has no multiples of it
            continue
        if context and not expert.tied_noise:
            if outside is None:
                outside = ~are_among(numbers, region.numbers)
                beyond = log.positions(numbers[outside])
            of_expert[outside] = log.noise.values[beyond, place_of(living.noise_kinds, k, expert.label)]
        if living.doubts:
            np.fmax(of_expert, living.own_noise(numbers)[:, k], out=of_expert)
    return noise


def numbers_of_rows(living: Living, gp: ExactGP, numbers: Indices, expert: LivingExpert) -> Indices | None:
    """The numbers in the order of the GP's rows, which a fit puts in order; None if its rows are others."""
    X, y = gp.rows_seen
    places = living.log.positions(numbers)
    if y.size != numbers.size:
        return None
    log, k = living.log, expert.output
    columns, known_columns = [X, y], [log.W.values[places], log.Z.values[places, k]]
    variances = known_variances_of(gp)
    if variances is not None and log.known is not None:  # equal rows may differ in these
        columns.append(variances)
        known_columns.append(log.known.values[places, k])
    known, rows = np.column_stack(known_columns), np.column_stack(columns)
    order, known_order = np.lexsort(rows.T), np.lexsort(known.T)
    if not np.array_equal(rows[order], known[known_order]):
        return None
    found = np.empty_like(numbers)
    found[order] = numbers[known_order]
    return found
