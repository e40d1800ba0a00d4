"""Rows that come and rows that go: the regions they touch are conditioned again, and the sums above them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp._support.values import with_fields
from spngp._support.versions import VersionedSequence
from spngp.noise import NoiseShape
from spngp.streaming.conditioned import given_own, given_own_together, growing
from spngp.streaming.levels import with_new_levels
from spngp.streaming.living import Lineage, Living, located, next_revision
from spngp.streaming.regions import Cell, Conditioned, LivingExpert, LivingRegion

SURPRISES = 64  # most recent probability integral transforms that a region remembers, for each output


def add(
    living: Living, X: Array, Y: Array, n_jobs: int | None = None, variances: Array | None = None
) -> tuple[Living, set[int]]:
    """The exact posterior given further rows, in the units of the user; verdicts on outputs stay as they are.

    ``variances`` are known ones of Y. Also the regions that these rows lie in.
    """
    n_new, log = X.shape[0], living.log
    if not living.lineage.claim(log.n_ever, n_new):
        living = _on_its_own(living)
        living.lineage.claim(log.n_ever, n_new)
    W, Z = living.base.units.inputs.apply(X), living.base.units.outputs.apply(Y)
    fresh = np.arange(log.n_ever, log.n_ever + n_new)
    reached: dict[int, Indices] = {}
    for leaf, rows in living.index.route(W).items():
        reached[living.where[leaf][0]] = rows
    noise = np.zeros((n_new, len(living.noise_kinds)))
    for i, rows in reached.items():
        noise[rows] += living.regions[i].noise
    changed = {
        i: with_fields(
            living.regions[i],
            numbers=np.concatenate([living.regions[i].numbers, fresh[rows]]),
            arrived=living.regions[i].arrived + rows.size,
        )
        for i, rows in reached.items()
    }
    known = None if variances is None else variances / living.base.units.outputs.scale**2
    grown = with_fields(living, log=log.followed_by(X, Y, W, Z, noise, known))
    return conditioned_again(grown, changed, n_jobs, came=log.n_ever), set(changed)


def forget(living: Living, numbers: Indices, n_jobs: int | None = None) -> Living:
    """The exact posterior without the rows of these numbers, ascending, all of which are remembered."""
    if not numbers.size:
        return living
    W = living.log.W.values[living.log.positions(numbers)]
    changed: dict[int, LivingRegion] = {}
    for leaf, rows in living.index.route(W).items():
        i = living.where[leaf][0]
        if i not in changed:
            region = living.regions[i]
            left = np.setdiff1d(region.numbers, numbers[rows], assume_unique=True)
            changed[i] = with_fields(region, numbers=left)
    gone = set(numbers.tolist())
    doubts = {key: variance for key, variance in living.doubts.items() if key[0] not in gone}
    living = with_fields(living, log=living.log.without(numbers), doubts=doubts, revision=next_revision())
    return conditioned_again(living, changed, n_jobs)


def conditioned_again(
    living: Living, changed: dict[int, LivingRegion], n_jobs: int | None = None, came: int | None = None
) -> Living:
    """With some regions changed, and the evidences of their experts and of all nodes above computed again.

    ``came`` is the number of the first row that has just come, if any: how surprising it and later ones are is noted.
    """
    order = list(changed)

    def again(i: int) -> LivingRegion:
        region = changed[i]
        experts = _with_evidences(living, region)
        if came is None:
            return with_fields(region, experts=experts)
        return with_fields(region, experts=experts, surprises=_surprises(living, region, came))

    sizes = [changed[i].numbers.size for i in order]
    regions = dict(zip(order, map_leaves(again, order, n_jobs, sizes), strict=True))
    evidences = {expert.leaf: expert.log_evidence for region in regions.values() for expert in region.experts}
    values = living.index.updated(living.values, evidences)
    return with_fields(living, regions=living.regions.with_items(regions), values=values)


def _with_evidences(living: Living, region: LivingRegion) -> tuple[LivingExpert, ...]:
    """The experts of a region, each with the evidence of its own rows."""
    if not region.numbers.size:
        return tuple(with_fields(expert, log_evidence=0.0) for expert in region.experts)
    found: dict[int, Conditioned] = {}
    for k in range(living.n_outputs):
        if experts := region.of_output(k):
            found |= zip([expert.leaf for expert in experts], given_own_together(living, region, experts), strict=True)
    return tuple(
        with_fields(expert, log_evidence=growing(found[expert.leaf]).log_evidence) for expert in region.experts
    )


def regions_of_rows(living: Living, numbers: Indices) -> set[int]:
    """The regions that hold rows of these numbers."""
    W = living.log.W.values[living.log.positions(numbers)]
    return {living.where[leaf][0] for leaf in living.index.route(W)}


def with_surprises(living: Living, i: int, k: int, transforms: Array) -> Living:
    """With other recent transforms of an output in a region."""
    region = living.regions[i]
    surprises = (*region.surprises[:k], transforms, *region.surprises[k + 1 :])
    return with_fields(living, regions=living.regions.with_items({i: with_fields(region, surprises=surprises)}))


def _surprises(living: Living, region: LivingRegion, came: int) -> tuple[Array, ...]:
    """The transforms of the outputs that came last in a region, each given the own rows before it."""
    found = []
    n_new = region.numbers.size - int(np.searchsorted(region.numbers, came))
    for k, before in enumerate(region.surprises):
        experts = region.of_output(k)
        transforms = _transforms(living, experts, region, came, k, n_new) if experts else []
        found.append(np.concatenate([before, transforms])[-SURPRISES:])
    return tuple(found)


def _transforms(
    living: Living, experts: Sequence[LivingExpert], region: LivingRegion, came: int, k: int, n_new: int
) -> list[float]:
    """P(y ≤ the output that came), by the mixture of experts and the shape of the noise, for the last rows in turn.

    ``n_new`` is the most rows that can have come.
    """
    log_path_weights = living.index.log_path_weights([expert.leaf for expert in experts], living.values)
    innovations: list[list[_Innovation]] = []
    for expert in experts:
        content = given_own(living, region, expert)
        gp, last = growing(content), content.numbers[-n_new:].tolist()
        m = sum(number >= came for number in last)
        if gp.jitter or m == 0 or min(last[-m:]) < came:  # rows are not in the order they came
            return []
        known = living.log.known_at(content.numbers[-m:])
        variances = [0.0] * m if known is None else known[:, k].tolist()
        usual = expert.prior.noise_at(gp.X[-m:]).tolist()
        parts = (gp.z[-m:].tolist(), gp.factor.last_diagonal(m).tolist(), gp.noise[-m:].tolist(), variances, usual)
        innovations.append([_Innovation(*values) for values in zip(*parts, strict=True)])
    shape, found = living.shape.content.shapes[k], []
    log_weights = [max(log_path_weights[expert.leaf], -700.0) for expert in experts]
    for at_row in zip(*innovations, strict=True):
        top = max(log_weights)
        if not math.isfinite(top):
            break
        weights = [math.exp(log_weight - top) for log_weight in log_weights]
        weighted = [weight * one.probability(shape) for weight, one in zip(weights, at_row, strict=True)]
        total = math.fsum(weighted) / math.fsum(weights)
        found.append(min(max(total, 1e-12), 1.0 - 1e-12))
        log_weights = [weight + one.log_density for weight, one in zip(log_weights, at_row, strict=True)]
    new = with_new_levels(living, content.numbers[-m:][: len(found)])
    return found if new is None else [one for one, is_new in zip(found, new, strict=True) if not is_new]


class _Innovation(NamedTuple):
    """How far an output is from what an expert says given the rows before it."""

    z: float  # in standard deviations
    spread: float  # the standard deviation
    noise: float  # variance of its noise, the known one included
    known: float  # known variance of its noise
    usual: float  # variance of the noise that the expert has learnt

    @property
    def log_density(self) -> float:
        """But for the constant."""
        return -0.5 * self.z * self.z - math.log(self.spread)

    def probability(self, shape: NoiseShape) -> float:
        """P(y ≤ the output), with noise of this shape."""
        latent = max(self.spread * self.spread - self.noise, 0.0) + self.known
        parts = zip(shape.weights, shape.factors, strict=True)
        distance = self.z * self.spread * math.sqrt(0.5)
        variances = ((share, max(latent + factor * self.usual, 1e-300)) for share, factor in parts)
        return math.fsum(0.5 * share * math.erfc(-distance / math.sqrt(variance)) for share, variance in variances)


def _on_its_own(living: Living) -> Living:
    """The same model with cells of its own: another version has given the next numbers to other rows."""
    regions = VersionedSequence(
        with_fields(region, experts=tuple(with_fields(expert, own=Cell(), seen=Cell()) for expert in region.experts))
        for region in living.regions
    )
    return with_fields(living, regions=regions, where=located(regions), lineage=Lineage(living.log.n_ever))
