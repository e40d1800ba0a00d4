"""Tied parameters, one set per kernel and output, found in alternation with the regions they are learnt from.

Length-scales decide where to cut, and the regions decide what the length-scales are learnt from: first a random subset,
then sampled local regions, which show structure too fine for a subset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from spngp._support.progress import Progress
from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, Convergence, GaussianPrior
from spngp.kernels.parameter import Identity
from spngp.learning.blocks import at_most, blocks_of
from spngp.learning.plan import Effort, Plan
from spngp.learning.tied_evidence import fit_tied
from spngp.structure import Region, leaf_regions

# Where all rows are one region, training starts from length-scales shorter by this factor if so many rows favour it
# after so many evaluations.
_SHORTER, _TRIED, _TRIES = 0.2, 250, 25
_AGAIN = 20  # evaluations when parameters are learnt again without outliers, from where they were

Sample: TypeAlias = Callable[[Region, np.random.Generator], list[Indices]]


@dataclass(frozen=True)
class Tied:
    """Regions, and what their experts start from.

    Attributes
    ----------
    gps : list of list of ExactGP
        For each output, one prior per kernel.
    regions : Region
        Cut by the metric that these kernels have.
    scales : ndarray
        Length-scales of that metric.
    sampled : list of ndarray
        Rows that the parameters were last learnt from, region by region.
    """

    gps: list[list[ExactGP]]
    regions: Region
    scales: Array
    sampled: list[Indices]


def learn_tied(
    X: Array, Y: Array, plan: Plan, rng: np.random.Generator, convergence: Convergence, progress: Progress
) -> Tied:
    """Cut, learn, and cut again, stage by stage."""
    tied = [list(templates) for templates in plan.templates]
    scales = metric(tied, plan.input_spreads)
    regions = plan.strategy(scales).regions(X, rng)
    sampled: list[Indices] = []
    for sample, evaluations in _stages(plan, regions):
        progress.stage("tied parameters", len(tied))
        sampled = sample(regions, rng)
        for k in range(len(tied)):
            blocks = blocks_of(sampled, X, Y[:, k])
            tied[k] = _fit_output(tied[k], k, blocks, evaluations, plan, convergence, regions.is_leaf)
            progress.advance()
        scales = metric(tied, plan.input_spreads)
        regions = plan.strategy(scales).regions(X, rng)
    return Tied(tied, regions, scales, sampled)


def learn_again(tied: Tied, X: Array, Y: Array, in_doubt: Mask, plan: Plan) -> Tied:
    """The same regions, parameters learnt again where they came from outputs in doubt (here missing in Y)."""
    gps = list(tied.gps)
    for k in range(len(gps)):
        if any(in_doubt[rows, k].any() for rows in tied.sampled):
            gps[k] = _fit_output(gps[k], k, blocks_of(tied.sampled, X, Y[:, k]), _AGAIN, plan, Convergence(), False)
    return replace(tied, gps=gps)


def _stages(plan: Plan, regions: Region) -> list[tuple[Sample, int]]:
    """Which rows tied parameters are learnt from, one stage after the other, and how long.

    One region takes all its rows at once. Else a random subset gives a first idea, and some local regions the rest.
    """
    if plan.hyperparameters == "fixed":
        return []
    if regions.is_leaf:
        return [(lambda root, rng: [at_most(root.rows, 2 * plan.block_size, rng)], plan.subset_evaluations)]

    def subset(root: Region, rng: np.random.Generator) -> list[Indices]:
        return [at_most(root.rows, plan.subset_size, rng)]

    def local(root: Region, rng: np.random.Generator) -> list[Indices]:
        leaves = leaf_regions(root)
        chosen = rng.choice(len(leaves), min(plan.n_sampled_regions, len(leaves)), replace=False)
        return [at_most(leaves[i].rows, plan.block_size, rng) for i in np.sort(chosen)]

    return [(subset, plan.subset_evaluations), *[(local, plan.tied_evaluations)] * plan.n_rounds]


def metric(tied: Sequence[Sequence[ExactGP]], spreads: Array) -> Array:
    """Length-scales of the metric to cut by: slopes averaged over kernels and outputs.

    ``spreads`` are the standard deviations of the inputs: a length-scale is at most a million of them.
    """
    d, at = spreads.size, spreads[np.newaxis]
    slopes = np.zeros(d)
    for experts in tied:
        slopes += np.mean([gp.kernel.slope_variances(d) / gp.kernel.diagonal(at)[0] for gp in experts], axis=0)
    return 1.0 / np.sqrt(np.maximum(slopes / len(tied), 1e-12 / spreads**2))


def _fit_output(
    experts: Sequence[ExactGP],
    output: int,
    blocks: Sequence[Block],
    evaluations: int,
    plan: Plan,
    convergence: Convergence,
    alone: bool,
) -> list[ExactGP]:
    """Each template tied over all blocks: in parallel over blocks, or over templates if there is one block.

    Templates share no parameters, and each climbs its own evidence: in their joint evidence one that starts behind has
    no responsibility, hence no gradient, and would be left where it is.
    """
    if not blocks:
        return list(experts)
    priors = [tied_prior(gp, plan) for gp in plan.templates[output]]
    over_blocks, over_templates = (None, plan.n_jobs) if len(blocks) == 1 else (plan.n_jobs, None)

    def fit(task: tuple[ExactGP, GaussianPrior]) -> ExactGP:
        start, prior = task
        return fit_tied(
            [start],
            blocks,
            evaluations,
            priors=[prior],
            tolerance=plan.tolerance,
            n_jobs=over_blocks,
            convergence=convergence,
        )[0]

    def tried(task: tuple[ExactGP, GaussianPrior]) -> float:
        start, prior = task
        return _evidence(fit_tied([start], some, _TRIES, priors=[prior])[0], some)

    starts = list(experts)
    if alone and len(blocks) == 1:
        # evidence has several peaks, and the one found from long length-scales may call everything noise
        some = [_evenly(blocks[0], _TRIED)]
        tasks = [(gp, prior) for gp, prior in zip(experts, priors, strict=True)]
        tasks += [(_with_shorter_scales(gp), prior) for gp, prior in tasks]
        found = map_leaves(tried, tasks, over_templates)
        shorter = np.reshape(found, (2, -1)).argmax(axis=0) == 1
        starts = [tasks[j + len(experts) * bool(better)][0] for j, better in enumerate(shorter)]
    return map_leaves(fit, list(zip(starts, priors, strict=True)), over_templates)


def _evenly(block: Block, count: int) -> Block:
    """At most so many rows, evenly spaced."""
    step = -(-block[1].size // count)
    return np.ascontiguousarray(block[0][::step]), block[1][::step].copy()


def _with_shorter_scales(gp: ExactGP) -> ExactGP:
    shift = [np.log(_SHORTER) if which.role == "length_scale" else 0.0 for which in gp.free_parameters]
    return gp.with_theta(np.clip(gp.theta + shift, *gp.bounds.T))


def _evidence(gp: ExactGP, blocks: Sequence[Block]) -> float:
    return sum(gp.condition(*block, keep_factor=False).log_evidence for block in blocks)


def tied_prior(start: ExactGP, effort: Effort) -> GaussianPrior:
    """What holds tied variances near their start.

    Without it a part of a sum of kernels may die early, and it never comes back: its gradient is gone.
    """

    def std(which: Identity) -> float:
        return effort.variance_prior_std if which.role == "variance" else np.inf

    return GaussianPrior.of(start, std)
