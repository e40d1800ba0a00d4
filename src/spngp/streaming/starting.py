"""From what was learnt to a living model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from spngp._support.types import Array, Indices
from spngp._support.versions import VersionedSequence
from spngp.box import Box
from spngp.learning import Learnt
from spngp.learning.learnt import noise_of_rows
from spngp.learning.upkeep import Event, Upkeep
from spngp.network import Leaf
from spngp.network.placement import Placed, log_path_weights, place, route
from spngp.network.pruning import prune, prune_prior
from spngp.network.row_noise import noise_of_region
from spngp.streaming.conditioned import numbers_of_rows
from spngp.streaming.index import Index
from spngp.streaming.living import Lineage, Living, ShapeCell, Shaped, located, next_revision, tiles
from spngp.streaming.memory import FactorMemory
from spngp.streaming.regions import (
    NOTHING_BEYOND,
    Cell,
    Conditioned,
    LivingExpert,
    LivingRegion,
    Margin,
    no_surprises,
)
from spngp.streaming.rows import RowLog
from spngp.structure.context import NearestContext, Reach

_IMPROBABLE = 0.01  # probability of all alternatives together that are left out when rows begin to come


def start(
    learnt: Learnt,
    numbers: Indices | None = None,
    n_ever: int | None = None,
    events: tuple[Event, ...] = (),
    since: int = 0,
) -> Living:
    """A living model from what a fit has learnt, or from what :func:`freeze` has made.

    ``numbers``, ``n_ever``, ``events`` and ``since`` are those of a model that was learnt again; by default rows have
    the numbers 0, 1, 2, …
    """
    n = learnt.Y.shape[0]
    if learnt.upkeep is not None:
        return _resumed(learnt, learnt.upkeep)
    learnt, log_prior = _without_improbable(learnt)
    numbers = np.arange(n) if numbers is None else numbers
    n_ever = n if n_ever is None else n_ever
    W = learnt.units.inputs.apply(learnt.X)
    noise = noise_of_rows(learnt, W, None)
    index = Index.of(learnt.prior)
    boxes = _leaf_boxes(index)
    rows = _rows_of(place(learnt.own), W)
    context = _context(learnt, W, rows)
    weights = _noise_of_regions(learnt, boxes)
    regions = []
    revision = next_revision()
    for box, leaves in boxes.items():
        around, reach = _around(context, learnt, box)
        experts = tuple(_expert(index, leaf, frozenset(noise.tied)) for leaf in leaves)
        own = rows[box]
        counts = (own.size, 0, around.size)
        surprises = no_surprises(learnt.Y.shape[1])
        regions.append(LivingRegion(box, reach, numbers[own], experts, weights[box], *counts, surprises))
    doubted = 0 if learnt.own_noise is None else int((~np.isnan(learnt.own_noise)).sum())
    living = Living(
        base=_without_rows(learnt),
        log=RowLog.of(numbers, learnt.X, learnt.Y, noise.local, n_ever, learnt.units, _known(learnt)),
        index=index,
        values=np.empty(0),
        regions=VersionedSequence(regions),
        where=located(regions),
        doubts=_doubts(learnt.own_noise, numbers),
        revision=revision,
        tied_noise=frozenset(noise.tied),
        noise_kinds=learnt.kinds,
        first_later=n_ever,
        n_learnt=n,
        curvatures=(),
        events=events,
        since=since,
        log_prior=log_prior,
        tiling=tiles(index),
        shape=ShapeCell(Shaped(tuple(learnt.noise_shapes), n, doubted)),
        memory=FactorMemory.of(learnt.budget, n, learnt.X.shape[1]),
        lineage=Lineage(n_ever),
    )
    return _with_gps_of(living, learnt, context)


def _without_improbable(learnt: Learnt) -> tuple[Learnt, float]:
    """Without alternative cuts that hardly matter, and the log of the prior probability of those that are left.

    A row changes every region that it lies in. Of a small set that may be cut in many ways these are dozens, and most
    are improbable. They come back, if at all, when everything is learnt again, which for a small set is soon.
    """
    if tiles(Index.of(learnt.prior)):
        return learnt, 0.0
    prior, log_prior = prune_prior(learnt.prior, learnt.own, _IMPROBABLE)
    own = prune(learnt.own, _IMPROBABLE)
    # tiles may have been left out; the whole space, searched for context, finds the same rows
    return replace(learnt, prior=prior, own=own, seeing=own, tiles=[Box.EVERYWHERE]), log_prior


def _resumed(learnt: Learnt, upkeep: Upkeep) -> Living:
    index = Index.of(learnt.prior)
    boxes = _leaf_boxes(index)
    W = learnt.units.inputs.apply(learnt.X)
    rows = _rows_of(place(learnt.own), W)
    tied = frozenset(upkeep.tied_noise)
    regions = []
    for i, box in enumerate(upkeep.boxes):
        reach: Reach | Margin = Reach(*upkeep.reaches[i].tolist())
        if isinstance(learnt.overlap, np.ndarray):
            reach = Margin(learnt.overlap)
        experts = tuple(_expert(index, leaf, tied) for leaf in boxes[box])
        surprises = tuple(upkeep.surprises[i])
        n_learnt, arrived, n_wanted = upkeep.counts[i].tolist()
        numbers, noise = upkeep.numbers[rows[box]], upkeep.noise[i]
        regions.append(LivingRegion(box, reach, numbers, experts, noise, n_learnt, arrived, n_wanted, surprises))
    n_later = upkeep.numbers.size - learnt.n_fitted
    first_later = int(upkeep.numbers[-n_later]) if n_later else upkeep.n_ever
    living = Living(
        base=_without_rows(learnt),
        log=_log_of(learnt, upkeep),
        index=index,
        values=np.empty(0),
        regions=VersionedSequence(regions),
        where=located(regions),
        doubts=_doubts(learnt.own_noise, upkeep.numbers),
        revision=next_revision(),
        tied_noise=tied,
        noise_kinds=learnt.kinds,
        first_later=first_later,
        n_learnt=upkeep.n_learnt,
        curvatures=tuple(tuple(gps) for gps in upkeep.curvatures),
        events=tuple(upkeep.events),
        since=upkeep.since,
        log_prior=upkeep.log_prior,
        tiling=tiles(index),
        shape=ShapeCell(Shaped(tuple(learnt.noise_shapes), *upkeep.shaped)),
        memory=FactorMemory.of(learnt.budget, learnt.X.shape[0], learnt.X.shape[1]),
        lineage=Lineage(upkeep.n_ever),
    )
    return _with_gps_of(living, learnt, None)


def _log_of(learnt: Learnt, upkeep: Upkeep) -> RowLog:
    numbers, n_ever = upkeep.numbers, upkeep.n_ever
    return RowLog.of(numbers, learnt.X, learnt.Y, upkeep.seen_noise, n_ever, learnt.units, _known(learnt))


def _known(learnt: Learnt) -> Array | None:
    """Known variances of all rows, in the units of learning; rows of fractional weights do not get here."""
    known = learnt.known_variances(learnt.X.shape[0])
    return None if known is None else known.variances


def _leaf_boxes(index: Index) -> dict[Box, list[int]]:
    """The leaves on each box."""
    boxes: dict[Box, list[int]] = {}
    for leaf in sorted(index.leaves()):
        boxes.setdefault(index.entries[leaf].box, []).append(leaf)
    return boxes


def _rows_of(placed: list[Placed], W: Array) -> dict[Box, Indices]:
    return {item.box: rows for item, rows in zip(placed, route(placed, W), strict=True)}


def _context(learnt: Learnt, W: Array, rows: Mapping[Box, Indices]) -> NearestContext | None:
    """The search for context rows as in the fit; none for a margin or without context."""
    if isinstance(learnt.overlap, np.ndarray) or not learnt.overlap:
        return None
    most = int(learnt.overlap * learnt.block_size)
    return NearestContext(W, rows, learnt.tiles, learnt.scales, learnt.overlap, most)


def _around(context: NearestContext | None, learnt: Learnt, box: Box) -> tuple[Indices, Reach | Margin]:
    nothing = np.empty(0, dtype=np.intp)
    if context is not None:
        return context(box), context.reach(box)
    return nothing, Margin(learnt.overlap) if isinstance(learnt.overlap, np.ndarray) else NOTHING_BEYOND


def _noise_of_regions(learnt: Learnt, boxes: Iterable[Box]) -> dict[Box, Array]:
    """For each region, the noise variance of its experts, on average by their probability in the whole network."""
    placed = place(learnt.own)
    experts: dict[Box, list[tuple[int, str, float, float]]] = {box: [] for box in boxes}
    for item, log_weight in zip(placed, log_path_weights(placed), strict=True):
        if not item.children:
            leaf = cast("Leaf", item.node)
            experts[item.box].append((leaf.output, leaf.label, float(np.exp(log_weight)), leaf.noise_variance))
    return {box: noise_of_region(learnt.kinds, own) for box, own in experts.items()}


def _expert(index: Index, leaf: int, tied: frozenset[tuple[int, float]]) -> LivingExpert:
    node = cast("Leaf", index.entries[leaf].node)
    has_tied_noise = (node.output, node.noise_variance) in tied and node.gp.noise_profile is None
    return LivingExpert(leaf, node.output, node.label, node.gp, has_tied_noise)


def _doubts(own_noise: Array | None, numbers: Indices) -> dict[tuple[int, int], float]:
    if own_noise is None:
        return {}
    places = np.argwhere(~np.isnan(own_noise))
    return {(int(numbers[i]), int(k)): float(own_noise[i, k]) for i, k in places}


def _without_rows(learnt: Learnt) -> Learnt:
    """What does not change as rows come."""
    prior = learnt.prior
    learnt = replace(learnt, X=learnt.X[:0], Y=learnt.Y[:0], own_noise=None, variances=None, upkeep=None)
    return replace(learnt, own=prior, seeing=prior, network=prior)


def _with_gps_of(living: Living, learnt: Learnt, context: NearestContext | None) -> Living:
    """With the evidences of a frozen model, and with its GPs in the cells; they are thawed when they are needed."""
    own = [cast("Leaf", item.node) for item in place(learnt.own) if not item.children]
    seeing = [cast("Leaf", item.node) for item in place(learnt.seeing) if not item.children]
    leaves = sorted(living.index.leaves())  # places in the order of the prior's
    places = {leaf: j for j, leaf in enumerate(leaves)}
    evidences = {leaf: node.gp.log_evidence for leaf, node in zip(leaves, own, strict=True)}
    pruned = len(seeing) != len(own)
    Z = living.log.Z.values
    regions = []
    for region in living.regions:
        experts = []
        for expert in region.experts:
            seen = None if pruned else seeing[places[expert.leaf]].gp
            known: Conditioned | None = None
            if seen is not None and seen.has_factor and seen.n_context and seen.n_own:
                beyond = _context_numbers(living, region, context)
                at = np.concatenate([region.numbers, beyond])
                numbers = numbers_of_rows(
                    living, seen, at[~np.isnan(Z[living.log.positions(at), expert.output])], expert
                )
                if numbers is not None:
                    known = Conditioned(seen, numbers, living.log.n_ever, living.revision)
            cell = Cell(known)
            living.memory.keep(cell)
            experts.append(replace(expert, log_evidence=evidences[expert.leaf], seen=cell))
        regions.append(replace(region, experts=tuple(experts)))
    values = living.index.log_evidences(evidences)
    return replace(living, regions=VersionedSequence(regions), values=values, where=located(regions))


def _context_numbers(living: Living, region: LivingRegion, context: NearestContext | None) -> Indices:
    """Numbers of a region's context rows, in the order in which its GPs have them."""
    numbers = living.log.numbers.values
    if context is not None:
        return numbers[context(region.box)]
    W = living.log.W.values
    seen = region.reach.sees(region.box, W, living.base.scales)
    return numbers[seen[~region.box.contains(W[seen])]]
