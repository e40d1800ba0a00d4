"""What regions learn from their own rows: their experts, and which of their outputs are in doubt.

Given the ground, regions are independent of each other: any group of them can be learnt alone, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Array, Indices, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Convergence
from spngp.learning.doubt import judge, without_doubted
from spngp.learning.experts import Curvatures, Experts, learn_experts
from spngp.learning.leaf_cuts import cut_leaves
from spngp.learning.plan import Plan
from spngp.learning.setting_aside import trusted_outputs
from spngp.learning.tied import Tied, learn_again
from spngp.network import Node
from spngp.structure import Region, build_network, leaf_regions


@dataclass(frozen=True, eq=False)
class Regional:
    """Experts of regions, and their verdict on outputs.

    Attributes
    ----------
    tied : Tied
        Tied parameters, learnt again if they were learnt from outputs in doubt.
    experts : dict
    sound : ndarray
        Outputs, NaN where they are in doubt.
    own : Node, optional
        The posterior given own rows, if outputs were judged; see :class:`spngp.learning.doubt.Judged`.
    own_noise : ndarray, optional
        In the shape of Y, noise variances of outputs in doubt, NaN elsewhere.
    again : tuple of Tied
        Tied parameters as they were learnt again after each search that brought outputs into doubt.
    """

    tied: Tied
    experts: Experts
    sound: Array
    own: Node | None
    own_noise: Array | None
    again: tuple[Tied, ...] = ()


def learn_regions(
    tied: Tied,
    W: Array,
    Z: Array,
    own_noise: Array | None,
    curvatures: Curvatures,
    plan: Plan,
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
    *,
    doubts: bool,
    trusted: Array | None = None,
    part: bool = False,
    again: Sequence[Tied] = (),
) -> Regional:
    """Learn the experts of the regions of ``tied``, and with ``doubts`` judge all outputs by them.

    Parameters
    ----------
    tied : Tied
    W, Z : ndarray
        Rows and outputs in the units of learning.
    own_noise : ndarray or None
        In the shape of Z, noise variances of outputs that are in doubt already.
    curvatures, plan, rng, convergence, progress
    doubts : bool
    trusted : ndarray, optional
        Outputs that experts are first learnt from, if it is known already which look like gross errors.
    part : bool
        Whether these regions are a part of all there are. Otherwise tied parameters are learnt again where outputs that
        they were learnt from come into doubt.
    again : sequence of Tied
        For a part, what tied parameters become in this way (:func:`tied_again`); the last stand for all that follow.
    """
    sound = without_doubted(Z, own_noise)
    if trusted is None and doubts and tied.found_errors:
        leaves = [region.rows for region in leaf_regions(tied.regions)]
        trusted = trusted_outputs(tied.gps, leaves, W, sound, plan)
    aside = None if trusted is None else np.isnan(trusted) & ~np.isnan(sound)
    learnt_from = sound if trusted is None else trusted
    if plan.cuts_leaves:
        tied = cut_leaves(tied, W, learnt_from, plan)
    experts = learn_experts(tied, W, learnt_from, curvatures, plan, rng, convergence, progress, part=part)
    if not doubts:
        return Regional(tied, experts, sound, None, own_noise)

    rounds: list[Tied] = []

    def without(outputs: Array, in_doubt: Mask) -> Node:
        nonlocal tied, experts, learnt_from
        before, learnt_from = (learnt_from, experts), outputs if aside is None else np.where(aside, np.nan, outputs)
        if not part:
            tied = learn_again(tied, W, learnt_from, in_doubt, plan)
        elif again:
            tied = replace(tied, gps=again[min(len(rounds), len(again) - 1)].gps)
        rounds.append(tied)
        experts = learn_experts(tied, W, learnt_from, curvatures, plan, rng, convergence, progress, before, part)
        return prior_of(tied.regions, experts, plan)

    prior = prior_of(tied.regions, experts, plan)
    judged = judge(prior, W, Z, own_noise, plan.n_jobs, learn_again=without, variances=plan.variances, suspects=aside)
    sound = without_doubted(Z, judged.own_noise)
    if aside is not None:  # what is not in doubt after all is learnt from like any other output
        before = (learnt_from, experts)
        experts = learn_experts(tied, W, sound, curvatures, plan, rng, convergence, progress, before, part)
    if again and plan.hyperparameters == "tied":  # which all regions share, those without outputs in doubt as well
        tied = replace(tied, gps=again[-1].gps)
        experts = learn_experts(tied, W, sound, curvatures, plan, rng, convergence, progress, part=part)
    return Regional(tied, experts, sound, judged.own, judged.own_noise, tuple(rounds))


def tied_again(
    tied: Tied,
    W: Array,
    Z: Array,
    own_noise: Array | None,
    curvatures: Curvatures,
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[Tied, ...]:
    """Tied parameters after each search for outputs in doubt, from the regions alone that hold what they rest on.

    A region is judged by its own rows, so the others need not be learnt for it. Nothing if none comes into doubt.
    """
    chosen = np.zeros(W.shape[0], dtype=bool)
    for rows in tied.sampled:
        chosen[rows] = True
    for region in leaf_regions(tied.regions):
        chosen[region.rows] = chosen[region.rows].any()
    kept = np.flatnonzero(chosen)
    place = np.cumsum(chosen) - 1
    part = replace(tied, regions=_restricted(tied.regions, chosen, place), sampled=[place[own] for own in tied.sampled])
    given = replace(plan, variances=None if plan.variances is None else plan.variances[kept])
    noise = None if own_noise is None else own_noise[kept]
    working = (rng, Convergence(), Progress(False))
    found = learn_regions(part, W[kept], Z[kept], noise, curvatures, given, *working, doubts=True)
    return tuple(replace(one, regions=Region(tied.regions.box, kept[:0]), sampled=[]) for one in found.again)


def _restricted(region: Region, chosen: Mask, place: Indices) -> Region:
    """A region with the chosen rows alone, which have other places; parts without any are not cut further."""
    rows = place[region.rows[chosen[region.rows]]]
    if not rows.size:
        return Region(region.box, rows)
    partitions = [
        replace(one, parts=tuple(_restricted(part, chosen, place) for part in one.parts)) for one in region.partitions
    ]
    return replace(region, rows=rows, partitions=tuple(partitions))


def prior_of(regions: Region, experts: Experts, plan: Plan) -> Node:
    """The prior network of these experts."""

    def labelled(region: Region, k: int) -> list[tuple[str, ExactGP]]:
        return [(expert.label, expert.gp) for expert in experts[id(region), k]]

    def log_corrections(region: Region, k: int) -> list[float]:
        return [expert.log_correction for expert in experts[id(region), k]]

    return build_network(regions, labelled, len(plan.templates), log_factors=log_corrections)
