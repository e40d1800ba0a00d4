"""From a living model to networks with all their rows: to look at, to sample from, to save."""

from __future__ import annotations

from dataclasses import replace
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np

from spngp._support.threads import one_blas_thread
from spngp.box import Box
from spngp.gp.exact import ExactGP
from spngp.learning import Learnt
from spngp.learning.learnt import LEAST_WEIGHT
from spngp.learning.upkeep import Upkeep
from spngp.network import Leaf, Node
from spngp.network.rescaling import in_units
from spngp.streaming.conditioned import given_own, given_seen, growing, noise_apart
from spngp.streaming.living import Living
from spngp.streaming.regions import LivingExpert, LivingRegion
from spngp.streaming.shapes import current_shapes, shapes_of_leaves
from spngp.structure.context import Reach

_frozen: WeakKeyDictionary[Living, Learnt] = WeakKeyDictionary()


def frozen(living: Living, n_jobs: int | None = None) -> Learnt:
    """As :func:`freeze`, made once."""
    if living not in _frozen:
        with one_blas_thread():
            _frozen[living] = freeze(living, n_jobs)
    return _frozen[living]


def freeze(living: Living, n_jobs: int | None = None) -> Learnt:
    """What was learnt and the rows, as networks: in the units of learning, own rows alone and with context."""
    log = living.log
    own_leaves: dict[int, Leaf] = {}
    seeing_leaves: dict[int, Leaf] = {}
    weights = living.index.log_path_weights(living.where, living.values)
    for region in living.regions:
        for expert in region.experts:
            own = frozen_own(living, region, expert)
            own_leaves[expert.leaf] = Leaf.of(own, expert.output, expert.label)
            sees = weights[expert.leaf] >= np.log(LEAST_WEIGHT) and region.sees_beyond
            gp = frozen_seen(living, region, expert) if sees else own
            seeing_leaves[expert.leaf] = Leaf.of(gp, expert.output, expert.label)
    seeing = _with_evidence(living.index.network(seeing_leaves, living.values), living.log_prior)
    shapes, shape_of = list(current_shapes(living, n_jobs)), shapes_of_leaves(living, n_jobs)
    own_noise = living.own_noise(log.numbers.values)
    return replace(
        living.base,
        X=np.ascontiguousarray(log.X.values),
        Y=np.ascontiguousarray(log.Y.values),
        prior=bare_network(living),
        own=_with_evidence(living.index.network(own_leaves, living.values), living.log_prior),
        seeing=seeing,
        network=in_units(seeing, living.base.units, lambda leaf: shape_of(leaf.output, leaf.noise_variance)),
        tiles=[Box.EVERYWHERE],
        n_fitted=int(np.searchsorted(log.numbers.values, living.first_later)),
        noise_shapes=shapes,
        own_noise=own_noise if living.doubts else None,
        variances=None if log.known is None else log.known.values * living.base.units.outputs.scale**2,
        upkeep=_upkeep(living),
    )


def _with_evidence(root: Node, more: float) -> Node:
    return root.rebuilt(root.children, log_evidence=root.log_evidence + more) if more else root


def _upkeep(living: Living) -> Upkeep:
    log, regions, shaped = living.log, living.regions, living.shape.content
    reaches = [(r.reach.squared, r.reach.key) if isinstance(r.reach, Reach) else (0.0, 1.0) for r in regions]
    return Upkeep(
        numbers=np.array(log.numbers.values),
        n_ever=log.n_ever,
        n_learnt=living.n_learnt,
        since=living.since,
        log_prior=living.log_prior,
        seen_noise=np.array(log.noise.values),
        tied_noise=sorted(living.tied_noise),
        boxes=[region.box for region in regions],
        reaches=np.array(reaches),
        noise=np.stack([region.noise for region in regions]),
        counts=np.array([(region.n_learnt, region.arrived, region.n_wanted) for region in regions]),
        surprises=[list(region.surprises) for region in regions],
        curvatures=[list(gps) for gps in living.curvatures],
        shaped=(shaped.n_rows, shaped.n_doubted),
        events=list(living.events),
    )


def frozen_own(living: Living, region: LivingRegion, expert: LivingExpert) -> ExactGP:
    """The expert given its own rows, as an exact GP without a factor."""
    if not region.numbers.size:
        return expert.prior
    content = given_own(living, region, expert)
    order = np.argsort(content.numbers)
    apart = noise_apart(living, region, expert, content.numbers)
    return growing(content).frozen(order, order[:0], expert.log_evidence, apart)


def frozen_seen(living: Living, region: LivingRegion, expert: LivingExpert) -> ExactGP:
    """The expert given all rows that it sees, its own rows first, as an exact GP without a factor."""
    content = given_seen(living, region, expert)
    if not content.numbers.size:
        return expert.prior
    order = np.argsort(content.numbers)
    own = np.isin(content.numbers[order], region.numbers)
    apart = noise_apart(living, region, expert, content.numbers)
    return growing(content).frozen(order[own], order[~own], expert.log_evidence, apart)


def bare_network(living: Living) -> Node:
    """The prior network of a living model."""
    priors = {leaf: cast("Leaf", living.index.entries[leaf].node) for leaf in living.where}
    return living.index.network(priors, np.zeros(living.values.size))
