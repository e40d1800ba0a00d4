"""Tied parameters: one set per kernel and output, learnt in turns with the regions.

Length-scales decide where to cut, and regions are what length-scales are learnt from. So parameters are first learnt
from a random subset of the rows, then from some regions, whose dense rows show finer structure than a subset does.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Array, Indices, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, Convergence
from spngp.learning.blocks import at_most, blocks_of
from spngp.learning.jumps import levels_between_cuts
from spngp.learning.plan import Plan
from spngp.learning.search import (
    Alternatives,
    SearchEffort,
    beliefs,
    evenly,
    evidences_of,
    fit,
    in_sight,
    search,
    with_jumps_placed,
    without_far_behind,
    without_unneeded,
)
from spngp.learning.setting_aside import without_errors
from spngp.learning.structure_left import Finding, warn_of_structure
from spngp.structure import Region, leaf_regions, tiling

_AT_FIRST = SearchEffort(searches=3, evaluations=40, least_share=0.02)  # after the first stage
_AT_LAST = SearchEffort(searches=1, evaluations=15, least_share=0.05)  # after the last
_EVALUATIONS_AGAIN = 20  # when parameters are learnt again from where they were, without outputs in doubt
_EVALUATIONS_FURTHER = 10  # from all rows of a small set, after further parts were learnt from some
_ROUGHLY = 10.0  # times the tolerance, where other regions or experts follow
_AVERAGED = 500  # rows, at most, that are averaged over settings
_LARGE_REGION = 1000  # rows, at most, of a region of the last stage that is larger than leaf regions
_LARGER = 1.5  # times the rows of leaf regions that these have on average, at least
_MOST_PLACED = 50_000  # rows by which jumps are placed at last
_SHORT = 4.0  # over the root of the number of inputs: standard deviation of log length-scales below their starts

# Given the root region: groups of rows to learn from.
Sample: TypeAlias = Callable[[Region, np.random.Generator], list[Indices]]


@dataclass(frozen=True, eq=False)
class Profiled:
    """Tied parameters of one output whose noise changes smoothly.

    Attributes
    ----------
    gps : list of ExactGP
        One prior per kernel, with the same noise profile.
    log_weight, log_weight_without : float
        Logs of the prior weights of noise that changes smoothly, with the price of the profile's freedom, and of noise
        that does not.
    """

    gps: list[ExactGP]
    log_weight: float
    log_weight_without: float


@dataclass(frozen=True, eq=False)
class Tied:
    """Tied parameters and the regions that they lead to.

    Attributes
    ----------
    starts : list of list of ExactGP
        For each output, one prior per kernel: where training began.
    gps : list of list of ExactGP
        The same with the parameters learnt: experts start from it.
    labels : list of list of str
        What these kernels are called.
    regions : Region
        The root of the region graph, cut in the metric of these kernels.
    scales : ndarray
        Length-scales of that metric.
    sampled : list of ndarray
        Rows that the parameters were last learnt from, region by region.
    found_errors : bool
        Whether some outputs looked like gross errors, and parameters were learnt without them.
    profiled : Profiled, optional
        Of one output: noise that changes smoothly, as an alternative.
    curvatures : list of tuple of ndarray
        For each output, how the evidences of its kernels curve per row, where it is known.
    """

    starts: list[list[ExactGP]]
    gps: list[list[ExactGP]]
    labels: list[list[str]]
    regions: Region
    scales: Array
    sampled: list[Indices]
    found_errors: bool = False
    profiled: Profiled | None = None
    curvatures: list[tuple[Array, ...]] = field(default_factory=list)

    @property
    def n_parameters(self) -> list[int]:
        """Free parameters of the kernel of each output that has most."""
        return [max(gp.theta.size for gp in own) for own in self.gps]

    def gps_of(self, region: Region, k: int) -> list[tuple[str, ExactGP]]:
        """What the experts of a region for one output start from, with labels."""
        if region.smooth and self.profiled is not None:
            return list(zip(self.labels[k], self.profiled.gps, strict=True))
        return list(zip(self.labels[k], self.gps[k], strict=True))


def learn_tied(
    X: Array,
    Y: Array,
    plan: Plan,
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
    noise_differs: Callable[[Tied], bool],
) -> Tied:
    """Cut the space, then in each stage learn the parameters and cut it anew.

    The last stage has larger regions, unless ``noise_differs`` says of what is known by then that residuals are of
    another size from region to region.
    """
    known = [Alternatives(list(starts), list(starts), list(plan.labels)) for starts in plan.templates]
    scales = metric([own.gps for own in known], plan.input_spreads)
    regions = plan.strategy(scales).regions(X, rng)
    plan = _against_short(plan, regions, X.shape[1])
    sampled: list[Indices] = []
    found_errors = False
    left: dict[int, list[Finding]] = {}
    weights = [np.ones(len(own.gps)) for own in known]
    stages = _stages(plan, regions)
    for i, stage in enumerate(stages):
        progress.stage("tied parameters", len(known))
        larger = _larger_regions(regions, plan) if 1 < i == len(stages) - 1 else []
        goes_on = bool(larger) and not noise_differs(_tied(known, regions, scales, sampled, found_errors))
        sample, evaluations, tolerance = _from_larger(larger, stage, plan) if goes_on else stage
        sampled = sample(regions, rng)
        for k in range(len(known)):
            all_blocks = blocks_of(sampled, X, Y[:, k], plan.variances_of(k))
            blocks = _sound(k, all_blocks, plan, regions)
            found_errors |= any(one is not other for one, other in zip(blocks, all_blocks, strict=True))
            if plan.searches and i == 1:
                known[k] = in_sight(known[k])
            if not goes_on:  # far from where they were learnt, curvatures are worse than none
                known[k] = replace(known[k], curvatures=())
            rough = replace(plan, tolerance=tolerance)
            known[k] = fit(known[k], blocks, evaluations, rough, convergence, regions.is_leaf)
            if plan.searches and i > 0:
                known[k] = with_jumps_placed(known[k], blocks, plan.n_jobs)
            if plan.searches and blocks and i in (0, len(stages) - 1):
                effort = _AT_FIRST if i == 0 else _AT_LAST
                judges = _judges(X, Y, k, all_blocks, plan, copy.deepcopy(rng))
                judges = blocks if judges is all_blocks else _sound(k, judges, plan, regions)
                known[k], left[k] = _searched(known[k], blocks, judges, effort, plan, copy.deepcopy(rng))
            if blocks:
                evidences, n_rows = evidences_of(known[k].gps, blocks, plan.n_jobs), sum(one.y.size for one in blocks)
                weights[k] = beliefs(evidences)
                if plan.searches and i > 0 and not goes_on:  # larger regions are surer than leaf regions will be
                    known[k], weights[k] = without_unneeded(known[k], weights[k], evidences, n_rows)
                elif plan.searches and i == 0 and len(stages) > 1:
                    known[k], weights[k] = without_far_behind(known[k], weights[k], evidences, n_rows)
            progress.advance()
        scales = metric([own.gps for own in known], plan.input_spreads, weights)
        regions = plan.strategy(scales).regions(X, rng)
    if plan.searches and plan.hyperparameters != "fixed":
        known = _placed_by_most(known, X, Y, plan, regions)
    warn_of_structure([finding for k in sorted(left) for finding in left[k]], plan.input_names)
    return _tied(known, regions, scales, sampled, found_errors)


def _placed_by_most(
    known: Sequence[Alternatives], X: Array, Y: Array, plan: Plan, regions: Region
) -> list[Alternatives]:
    """The same with the cuts of jumps where all rows show them, or those of evenly spaced leaf regions."""
    leaves = leaf_regions(regions)
    some = [region.rows for region in leaves[:: -(-regions.rows.size // _MOST_PLACED)]]
    placed = []
    for k, own in enumerate(known):
        if any(map(levels_between_cuts, own.gps)):
            blocks = _sound(k, blocks_of(some, X, Y[:, k], plan.variances_of(k)), plan, regions)
            own = with_jumps_placed(own, blocks, plan.n_jobs, at_last=True)
        placed.append(own)
    return placed


def _tied(
    known: Sequence[Alternatives], regions: Region, scales: Array, sampled: list[Indices], found_errors: bool
) -> Tied:
    """What is known of all outputs."""
    starts, gps, labels = zip(*((own.starts, own.gps, own.labels) for own in known), strict=True)
    curvatures = [own.curvatures for own in known]
    return Tied(list(starts), list(gps), list(labels), regions, scales, sampled, found_errors, curvatures=curvatures)


def _sound(k: int, blocks: Sequence[Block], plan: Plan, regions: Region) -> Sequence[Block]:
    """The blocks without gross errors, which are judged later; few rows are averaged over settings, which bear them."""
    sets_aside = plan.searches and plan.doubts_outliers and regions.rows.size > _AVERAGED
    return without_errors(plan.templates[k][0], blocks) if sets_aside else blocks


def learn_again(tied: Tied, X: Array, Y: Array, in_doubt: Mask, plan: Plan) -> Tied:
    """The same regions, with parameters learnt again where they were learnt from outputs in doubt.

    ``in_doubt``, in the shape of Y, marks these outputs; in Y they are NaN.
    """
    gps, plan = list(tied.gps), _against_short(plan, tied.regions, X.shape[1])
    if plan.hyperparameters == "adaptive" and not tied.regions.is_leaf:  # experts follow
        plan = replace(plan, tolerance=_ROUGHLY * plan.tolerance)
    for k in range(len(gps)):
        if any(in_doubt[rows, k].any() for rows in tied.sampled):
            blocks = blocks_of(tied.sampled, X, Y[:, k], plan.variances_of(k))
            known = Alternatives(tied.starts[k], gps[k], tied.labels[k], *tied.curvatures[k : k + 1])
            gps[k] = fit(known, blocks, _EVALUATIONS_AGAIN, plan, Convergence(), False).gps
    return replace(tied, gps=gps)


def _against_short(plan: Plan, regions: Region, d: int) -> Plan:
    """The plan with a prior against short length-scales where default kernels are learnt from many regions.

    The more inputs there are, the more easily a few thousand rows find some along which a part of a kernel explains
    nothing but its own rows. Sets of one region have settings and their priors instead.
    """
    if not plan.searches or regions.is_leaf:
        return plan
    return replace(plan, short_prior_std=_SHORT / math.sqrt(d))


def _searched(
    known: Alternatives,
    blocks: Sequence[Block],
    judges: Sequence[Block],
    effort: SearchEffort,
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[Alternatives, list[Finding]]:
    """The search after a stage: judged on one larger block where the stage had but a subset, learnt from a subset."""
    if len(blocks) > 1 or judges is not blocks:
        return search(known, blocks, judges, effort, plan, rng)
    found, left = search(known, [evenly(blocks[0], plan.subset_size)], blocks, effort, plan, rng)
    if any(gp is not before for gp, before in zip(found.gps, known.gps, strict=True)):
        found = fit(found, blocks, _EVALUATIONS_FURTHER, plan, Convergence(), False)
    return found, left


def _judges(
    X: Array, Y: Array, k: int, blocks: Sequence[Block], plan: Plan, rng: np.random.Generator
) -> Sequence[Block]:
    """Rows on which kernels are compared: those that they were learnt from, or more where that was but a subset."""
    observed = np.flatnonzero(~np.isnan(Y[:, k]))
    if len(blocks) > 1 or blocks[0].y.size == observed.size:
        return blocks
    return blocks_of([at_most(observed, plan.judged_size, rng)], X, Y[:, k], plan.variances_of(k))


class _Stage(NamedTuple):
    """The rows that tied parameters are learnt from, the most evaluations, and the tolerance."""

    sample: Sample
    evaluations: int
    tolerance: float


def _stages(plan: Plan, regions: Region) -> list[_Stage]:
    """One after the other.

    If the root is a leaf region, there is one stage with all its rows. Otherwise the first stage has a random subset,
    and ``n_rounds`` further ones have random regions.
    """
    if plan.hyperparameters == "fixed":
        return []
    if regions.is_leaf:
        rows = partial(_rows_of, count=2 * plan.block_size)
        return [_Stage(rows, plan.subset_evaluations, plan.tolerance)]

    def local(root: Region, rng: np.random.Generator) -> list[Indices]:
        leaves = leaf_regions(root)
        chosen = rng.choice(len(leaves), min(plan.n_sampled_regions, len(leaves)), replace=False)
        return [at_most(leaves[i].rows, plan.block_size, rng) for i in np.sort(chosen)]

    subset = partial(_rows_of, count=plan.subset_size)
    last = _Stage(local, plan.tied_evaluations, plan.tolerance)
    others = [_Stage(local, plan.tied_evaluations, _ROUGHLY * plan.tolerance)] * (plan.n_rounds - 1)
    return [_Stage(subset, plan.subset_evaluations, plan.tolerance), *others, last]


def _larger_regions(root: Region, plan: Plan) -> list[Indices]:
    """Rows of regions that are larger than leaf regions; none if these are large already, or if there is but one."""
    size = min(2 * plan.block_size, _LARGE_REGION)
    larger = tiling(root, size)
    if len(larger) < 2 or len(tiling(root)) < _LARGER * len(larger):
        return []
    return [region.rows for region in larger]


def _from_larger(larger: Sequence[Indices], stage: _Stage, plan: Plan) -> _Stage:
    """The same from larger regions, as many as have the rows that sampled leaf regions may have, and fewer evaluations.

    Parameters are nearly known.
    """

    def sample(root: Region, rng: np.random.Generator) -> list[Indices]:
        share = plan.n_sampled_regions * plan.block_size / root.rows.size
        count = min(len(larger), max(2, round(share * len(larger))))
        chosen = rng.choice(len(larger), count, replace=False)
        return [at_most(larger[i], 2 * plan.block_size, rng) for i in np.sort(chosen)]

    return _Stage(sample, plan.larger_evaluations, stage.tolerance)


def _rows_of(root: Region, rng: np.random.Generator, count: int) -> list[Indices]:
    """One group of at most so many rows."""
    return [at_most(root.rows, count, rng)]


def metric(tied: Sequence[Sequence[ExactGP]], spreads: Array, weights: Sequence[Array] | None = None) -> Array:
    """Length-scales of the metric in which regions are cut: from slope variances averaged over kernels and outputs.

    ``spreads`` are the standard deviations of the inputs. A length-scale is at most a million times its input's, and at
    least 1e-12 of it; where a kernel's slopes overflow, it is its input's. ``weights`` says for each output how much
    its kernels count, by default equally: a kernel without belief should not decide where to cut.
    """
    d, at = spreads.size, spreads[np.newaxis]
    slopes = np.zeros(d)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for k, experts in enumerate(tied):
            relative = [gp.kernel.slope_variances(d) / gp.kernel.diagonal(at)[0] for gp in experts]
            slopes += np.average(relative, axis=0, weights=None if weights is None else weights[k])
        slopes = np.where(np.isnan(slopes), 1.0 / spreads**2, slopes / len(tied))
    return 1.0 / np.sqrt(np.clip(slopes, 1e-12 / spreads**2, 1e24 / spreads**2))
