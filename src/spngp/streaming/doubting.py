"""Outputs in doubt among rows that come later: judged as in a fit, whenever their region has changed.

The verdicts depend on the rows that a region has, not on the order in which they came: all outputs that came after the
fit are judged anew (:func:`spngp.learning.doubt.judge`). That takes O(n³), so it is done only where some output is in
doubt already, or could be: the leave-one-out residuals that tell are kept up in O(n²) for each row that comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from spngp._support.types import Array, Indices
from spngp.learning.doubt import judge, noise_beyond_reach
from spngp.learning.screening import DOUBTED
from spngp.network import Leaf, Node, Product, Sum
from spngp.streaming.conditioned import left_out, most_probable
from spngp.streaming.freezing import bare_network
from spngp.streaming.living import Living, next_revision
from spngp.streaming.regions import LivingRegion
from spngp.streaming.updating import conditioned_again, regions_of_rows


def judged(living: Living, touched: Iterable[int], n_jobs: int | None = None, n_came: int | None = None) -> Living:
    """With verdicts on all later outputs of the regions that were touched, and exact given these.

    ``n_came`` is the number of rows that have just come, if that is all that has happened.
    """
    if not living.base.doubts_outliers:
        return living
    doubts = dict(living.doubts)
    nothing = (
        n_came is not None and not doubts and not (np.abs(living.log.Z.values[-n_came:]) > living.base.reach).any()
    )
    beyond = {} if nothing else _beyond_reach(living)
    regions = set(touched)
    for number, _ in beyond.keys() ^ {key for key in doubts if _is_beyond(living, key)}:
        if number >= living.first_later:
            regions |= regions_of_rows(living, np.array([number]))
    if living.tiling:
        for i in regions:
            region = living.regions[i]
            if _may_hold_doubts(living, region, beyond):
                prior = _prior(living, region)
                doubts = _verdicts(living, region.numbers, prior, doubts, beyond, n_jobs)
    elif any(_may_hold_doubts(living, living.regions[i], beyond) for i in regions):
        doubts = _verdicts(living, living.log.numbers.values, bare_network(living), doubts, beyond, n_jobs)
    differing = {key for key in doubts.keys() | living.doubts.keys() if doubts.get(key) != living.doubts.get(key)}
    if not differing:
        return living
    numbers = np.array(sorted({number for number, _ in differing}))
    changed = {i: living.regions[i] for i in regions_of_rows(living, numbers)}
    living = replace(living, doubts=doubts, revision=next_revision())
    return conditioned_again(living, changed, n_jobs)


def _beyond_reach(living: Living) -> dict[tuple[int, int], float]:
    """Noise variances of later outputs that are out of all proportion."""
    Z = living.log.Z.values
    noise = noise_beyond_reach(Z, living.base.reach) if np.isfinite(living.base.reach).any() else None
    if noise is None:
        return {}
    numbers = living.log.numbers.values
    found = ((int(numbers[i]), int(k), float(noise[i, k])) for i, k in np.argwhere(~np.isnan(noise)))
    return {(number, k): variance for number, k, variance in found if number >= living.first_later}


def _is_beyond(living: Living, key: tuple[int, int]) -> bool:
    """Whether an output in doubt was out of all proportion: its variance is then its square."""
    number, k = key
    value = float(living.log.Z.values[living.log.positions(np.array([number]))[0], k])
    return living.doubts[key] == value * value and abs(value) > living.base.reach[k]


def _may_hold_doubts(living: Living, region: LivingRegion, beyond: dict[tuple[int, int], float]) -> bool:
    """Whether a later output of the region is in doubt, or so far from what the rest predicts that it may be."""
    later = region.numbers[np.searchsorted(region.numbers, living.first_later) :]
    if not later.size:
        return False
    if living.doubts or beyond:
        numbers = set(later.tolist())
        if any(number in numbers for number, _ in (*living.doubts, *beyond)):
            return True
    for k in range(living.n_outputs):
        expert = most_probable(living, region, k)
        if expert is None:
            continue
        of_rows, left = left_out(living, region, expert)
        suspect = (of_rows >= living.first_later) & (left.deviations() > DOUBTED)
        if suspect.any():
            return True
    return False


def _prior(living: Living, region: LivingRegion) -> Node:
    """The experts of a region as a network of its own."""
    parts: list[Node] = []
    for k in range(living.n_outputs):
        experts = region.of_output(k)
        leaves: list[Node] = [Leaf.of(expert.prior, k, expert.label) for expert in experts]
        if len(leaves) > 1:
            parent = living.index.entries[living.index.entries[experts[0].leaf].parents[0]]
            weight = dict(zip(parent.children, parent.log_weights, strict=True))
            leaves = [Sum.of(leaves, np.array([weight[expert.leaf] for expert in experts]))]
        parts += leaves
    return parts[0] if len(parts) == 1 else Product(parts)


def _verdicts(
    living: Living,
    numbers: Indices,
    prior: Node,
    doubts: dict[tuple[int, int], float],
    beyond: dict[tuple[int, int], float],
    n_jobs: int | None,
) -> dict[tuple[int, int], float]:
    """The doubts with those among later rows of these numbers judged anew."""
    places = living.log.positions(numbers)
    W, Z = living.log.W.values[places], living.log.Z.values[places]
    own_noise = np.full(Z.shape, np.nan)
    row = {int(number): i for i, number in enumerate(numbers.tolist())}
    for (number, k), variance in (*doubts.items(), *beyond.items()):
        if number in row and (number < living.first_later or (number, k) in beyond):
            own_noise[row[number], k] = variance
    later = ~np.isnan(Z) & (numbers >= living.first_later)[:, np.newaxis]
    known: Array | None = None if np.isnan(own_noise).all() else own_noise
    variances = living.log.known_variances_at(numbers)
    found = judge(prior, W, Z, known, n_jobs, variances=variances, among=later).own_noise
    kept = {key: variance for key, variance in doubts.items() if key[0] < living.first_later or key[0] not in row}
    if found is None:
        return kept
    new = ((int(numbers[i]), int(k), float(found[i, k])) for i, k in np.argwhere(~np.isnan(found)))
    return kept | {(number, k): variance for number, k, variance in new}
