"""One region cut, learnt again, or made to see less far, while all others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Indices
from spngp.box import Box
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, Convergence, mean_curvature
from spngp.gp.row_weights import KnownVariances
from spngp.learning import Plan
from spngp.learning.blocks import blocks_of, observed
from spngp.learning.experts import Experts, learn_experts
from spngp.learning.tied import Tied
from spngp.learning.upkeep import Event
from spngp.network import Leaf
from spngp.network.row_noise import noise_of_region
from spngp.streaming.conditioned import known_to_be_seen
from spngp.streaming.index import Index
from spngp.streaming.living import Living, announced
from spngp.streaming.regions import Cell, LivingExpert, LivingRegion, Margin, Sight, no_surprises
from spngp.streaming.updating import conditioned_again
from spngp.structure import Compact, Partition, Region, build_network
from spngp.structure.context import Reach, nearby, nearest, squared_distances

# Experts that are learnt from recent rows alone: standard deviations of the prior around the tied parameters, of
# variances, the noise and length-scales.
_LOOSE = (1.0, 2.0, 0.2)
_CLEARLY = 2.0  # nats by which these must be better
_FARTHER = 4.0  # times the squared reach of a region: where rows for a part of it are looked for next
_TYPICAL = 3  # regions that the curvature of the log evidence is averaged over, at most


def cut(living: Living, i: int, plan: Plan) -> Living:
    """The region cut as in a fit, its parts learnt; learnt again if it cannot be cut."""
    region = living.regions[i]
    W = living.log.W.values[living.log.positions(region.numbers)]
    strategy = plan.strategy(living.base.scales)
    if isinstance(strategy, Compact):
        strategy = replace(strategy, whole_size=0)
    root = strategy.regions(np.ascontiguousarray(W), np.random.default_rng(region.numbers.size))
    if not root.partitions:
        return learn_region_again(living, i, plan, f"{region.numbers.size} rows cannot be cut")
    reason = f"{region.numbers.size} rows are more than {living.base.block_size}"
    return _replaced(living, i, root, plan, announced(living, "cut", reason, region.box))


def learn_region_again(living: Living, i: int, plan: Plan, reason: str, recent: int = 0) -> Living:
    """The region with experts learnt from the rows that it now has.

    With ``recent``, experts are also learnt from so many rows that came last, and held less near the tied parameters.
    They are taken if, given all rows before, they predict the last ones better.
    """
    region = living.regions[i]
    if plan.hyperparameters in ("fixed", "tied"):  # nothing of its own to learn
        region = replace(region, n_learnt=region.numbers.size, arrived=0)
        return see_less(_with_region(living, i, region), i)
    whole = Region(Box.EVERYWHERE, np.arange(region.numbers.size))
    return _replaced(living, i, whole, plan, announced(living, "region", reason, region.box), recent)


def see_less(living: Living, i: int) -> Living:
    """The region with a reach that gives it as many context rows as a fit would."""
    region = living.regions[i]
    if isinstance(region.reach, Margin):
        return living
    reach, n_context, sight = _reach(living, region.box, region.numbers, region)
    if reach == region.reach:
        return living
    region = replace(
        region,
        reach=reach,
        n_wanted=n_context,
        sight=sight,
        experts=tuple(replace(expert, seen=Cell()) for expert in region.experts),
    )
    return replace(_with_region(living, i, region), events=announced(living, "reach", "it saw too much", region.box))


def _with_region(living: Living, i: int, region: LivingRegion) -> Living:
    return replace(living, regions=living.regions.with_items({i: region}))


def _replaced(living: Living, i: int, root: Region, plan: Plan, events: tuple[Event, ...], recent: int = 0) -> Living:
    """With the region's leaves replaced by a network over ``root``, whose rows are positions among its own rows."""
    old = living.regions[i]
    living = _with_curvatures(living, plan)
    experts = _learnt(living, old, root, plan)
    if 0 < recent < old.numbers.size and plan.hyperparameters == "adaptive":
        experts = _better_of_recent(living, old, root, plan, experts, recent)

    def labelled(region: Region, k: int) -> list[tuple[str, ExactGP]]:
        return [(expert.label, expert.gp) for expert in experts[id(region), k]]

    index, leaves = living.index, [expert.leaf for expert in old.experts]
    fresh = None if root.partitions else _leaves_in_place(old, experts, root)
    if fresh is not None:
        index = index.with_leaves(fresh)
    else:
        network = build_network(root, labelled, living.n_outputs)
        for top in index.tops(old.box, leaves):
            outputs = index.entries[top].node.outputs
            index = index.replaced(top, network if outputs == network.outputs else network.children[outputs[0]])
        new = range(len(living.index.entries), len(index.entries))
        leaves = [leaf for leaf in new if not index.entries[leaf].children]
    first, *others = _parts(living, old, index, leaves)
    # the first part takes the place of the region, others follow at the end: all other regions stay where they are
    regions = living.regions.with_items({i: first}).followed_by(others)
    changed = [i, *range(len(living.regions), len(regions))]
    where = dict(living.where)
    for expert in old.experts:
        del where[expert.leaf]
    for j in changed:
        where |= {expert.leaf: (j, at) for at, expert in enumerate(regions[j].experts)}
    values = np.concatenate([living.values, np.zeros(len(index.entries) - living.values.size)])
    living = replace(living, index=index, values=values, regions=regions, where=where, events=events)
    living = conditioned_again(living, {j: regions[j] for j in changed}, plan.n_jobs)
    return _with_noise(living, changed)


def _leaves_in_place(old: LivingRegion, experts: Experts, root: Region) -> dict[int, Leaf] | None:
    """New leaves in the places of the old ones; none if they are not as many."""
    found: dict[int, Leaf] = {}
    for k in {expert.output for expert in old.experts}:
        before, now = old.of_output(k), experts[id(root), k]
        if len(before) != len(now):
            return None
        found |= {b.leaf: Leaf.of(n.gp, k, n.label) for b, n in zip(before, now, strict=True)}
    return found


def _learnt(living: Living, old: LivingRegion, root: Region, plan: Plan) -> Experts:
    """Experts for the leaf regions of ``root``, learnt from the own rows of a region, without outputs in doubt."""
    places = living.log.positions(old.numbers)
    W, Z = np.ascontiguousarray(living.log.W.values[places]), living.log.Z.values[places]
    Z = np.where(np.isnan(living.own_noise(old.numbers)), Z, np.nan)
    plan = replace(plan, variances=living.log.known_variances_at(old.numbers))
    # learning takes a root that is a leaf region for all rows that there are
    above = root if root.partitions else Region(root.box, root.rows, (Partition(0, (), (root,)),))
    tied = Tied(living.base.tied, living.base.tied, living.base.labels, above, living.base.scales, [])
    curvatures = {(k, j): c for k, gps in enumerate(living.curvatures) for j, c in enumerate(gps)}
    rng = np.random.default_rng(0)
    return learn_experts(tied, W, Z, curvatures, plan, rng, Convergence(), Progress(False))


def _better_of_recent(
    living: Living, old: LivingRegion, root: Region, plan: Plan, experts: Experts, recent: int
) -> Experts:
    """Experts of all rows, or where they predict the last ``recent`` rows better, experts learnt from these alone."""
    last = replace(old, numbers=old.numbers[-recent:])
    loose = replace(plan, prior_std=_LOOSE[0], noise_prior_std=_LOOSE[1], length_scale_prior_std=_LOOSE[2])
    others = _learnt(living, last, replace(root, rows=np.arange(recent)), loose)
    places = living.log.positions(old.numbers)
    W, Z = np.ascontiguousarray(living.log.W.values[places]), living.log.Z.values[places]
    Z = np.where(np.isnan(living.own_noise(old.numbers)), Z, np.nan)

    known = living.log.known_variances_at(old.numbers)

    def score(gp: ExactGP, k: int) -> float:
        """Log density of the last outputs given the ones before."""
        rows, variances = np.arange(Z.shape[0]), None if known is None else known[:, k]
        every, before = (observed(some, W, Z[:, k], variances) for some in (rows, rows[:-recent]))
        of_before = before.given_to(gp, keep_factor=False).log_evidence if before.y.size else 0.0
        return every.given_to(gp, keep_factor=False).log_evidence - of_before

    chosen: Experts = {}
    for (_, k), of_all in experts.items():
        of_last = next(iter(found for (_, j), found in others.items() if j == k))
        pairs = zip(of_all, of_last, strict=True)
        chosen[id(root), k] = [a if score(a.gp, k) + _CLEARLY > score(b.gp, k) else b for a, b in pairs]
    return chosen


def _with_curvatures(living: Living, plan: Plan) -> Living:
    """With the curvature of the log evidence at the tied parameters, from some regions."""
    if living.curvatures or plan.hyperparameters != "adaptive":
        return living
    large = sorted(living.regions, key=lambda region: -region.numbers.size)
    chosen = [living.log.positions(region.numbers)[: living.base.block_size] for region in large[:_TYPICAL]]
    W, Z, known = living.log.W.values, living.log.Z.values, living.log.known

    def blocks(k: int) -> list[Block]:
        return blocks_of(chosen, W, Z[:, k], None if known is None else KnownVariances(known.values[:, k]))

    curvatures = tuple(
        tuple(mean_curvature(gp, blocks(k), plan.n_jobs) for gp in gps) for k, gps in enumerate(living.base.tied)
    )
    return replace(living, curvatures=curvatures)


def _parts(living: Living, old: LivingRegion, index: Index, leaves: list[int]) -> tuple[LivingRegion, ...]:
    """The regions of new leaves, with the own rows of the region that was cut."""
    entries = index.entries
    boxes: dict[Box, list[int]] = {}
    for leaf in leaves:
        boxes.setdefault(entries[leaf].box, []).append(leaf)
    W = living.log.W.values[living.log.positions(old.numbers)]
    parts = []
    for box, inside in boxes.items():
        numbers = old.numbers[box.contains(W)]
        experts = []
        for leaf in inside:
            node = cast("Leaf", entries[leaf].node)
            tied = (node.output, node.noise_variance) in living.tied_noise and node.gp.noise_profile is None
            experts.append(LivingExpert(leaf, node.output, node.label, node.gp, tied))
        reach, n_context, sight = _reach(living, box, numbers, old)
        counts = (numbers.size, 0, n_context)
        surprises = old.surprises if len(boxes) == 1 else no_surprises(living.n_outputs)
        parts.append(LivingRegion(box, reach, numbers, tuple(experts), old.noise, *counts, surprises, sight))
    return tuple(parts)


def _with_noise(living: Living, changed: list[int]) -> Living:
    """With the noise of rows in changed regions, as other regions see it from now on."""
    for i in changed:
        region = living.regions[i]
        weights = living.index.log_path_weights([expert.leaf for expert in region.experts], living.values)
        experts = [
            (expert.output, expert.label, float(np.exp(weights[expert.leaf])), expert.prior.noise_variance)
            for expert in region.experts
        ]
        noise = noise_of_region(living.noise_kinds, experts)
        living = _with_region(living, i, replace(region, noise=noise))
    return living


def _reach(living: Living, box: Box, numbers: Indices, old: LivingRegion) -> tuple[Reach | Margin, int, Sight | None]:
    """How far a box must see for as many context rows as a fit would give it, their number, and all that it sees.

    ``old`` is a region that the box is in, or the same: what it sees has all rows within its reach of the box.
    """
    overlap, scales = living.base.overlap, living.base.scales
    if isinstance(overlap, np.ndarray) or isinstance(old.reach, Margin):
        return old.reach, 0, None
    wanted = min(round(overlap * numbers.size), int(overlap * living.base.block_size))
    if wanted == 0 or not box.sides:
        return Reach(-1.0), 0, None

    def among(candidates: Indices) -> tuple[Reach, int, Sight]:
        W = living.log.W.values[living.log.positions(candidates)]
        outside = ~box.contains(W)
        squared = squared_distances(box, W[outside], scales)
        chosen, reach = nearest(squared, W[outside], wanted)
        seen = np.sort(np.concatenate([numbers, candidates[outside][chosen]]))
        return reach, chosen.size, Sight(seen, living.log.n_ever)

    every = living.log.numbers.values
    if 0.0 < old.reach.squared < np.inf:
        reach, count, sight = among(known_to_be_seen(living, old))
        if reach.squared < old.reach.squared:
            whole = (living.log.n_observed == living.log.n).all()  # rows that lack an output are not known to its GPs
            return reach, count, sight if whole else None
        farther = _FARTHER * old.reach.squared
        reach, count, sight = among(every[nearby(box, living.log.W.values, scales, farther)])
        if reach.squared < farther:
            return reach, count, sight
    return among(every)
