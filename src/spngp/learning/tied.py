"""Tied parameters: one set per kernel and output, learnt in turns with the regions.

Length-scales decide where to cut, and regions are what length-scales are learnt from. So parameters are first learnt
from a random subset of the rows, then from some regions, whose dense rows show finer structure than a subset does.
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

# Where all rows are one region, length-scales × 0.2 are also tried, scored on 250 rows after 25 evaluations.
_SHORTER = 0.2  # factor of the length-scales
_TRIED_ROWS = 250  # rows
_TRIED_EVALUATIONS = 25  # evaluations of the evidence
_EVALUATIONS_AGAIN = 20  # when parameters are learnt again without outputs in doubt, from where they were

# Given the root region: groups of rows to learn from.
Sample: TypeAlias = Callable[[Region, np.random.Generator], list[Indices]]


@dataclass(frozen=True)
class Tied:
    """Tied parameters and the regions that they lead to.

    Attributes
    ----------
    gps : list of list of ExactGP
        For each output, one prior per kernel: experts start from it.
    regions : Region
        The root of the region graph, cut in the metric of these kernels.
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
    """Cut the space, then in each stage learn the parameters and cut it anew."""
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
    """The same regions, with parameters learnt again where they were learnt from outputs in doubt.

    ``in_doubt``, in the shape of Y, marks these outputs; in Y they are NaN.
    """
    gps = list(tied.gps)
    for k in range(len(gps)):
        if any(in_doubt[rows, k].any() for rows in tied.sampled):
            gps[k] = _fit_output(
                gps[k], k, blocks_of(tied.sampled, X, Y[:, k]), _EVALUATIONS_AGAIN, plan, Convergence(), False
            )
    return replace(tied, gps=gps)


def _stages(plan: Plan, regions: Region) -> list[tuple[Sample, int]]:
    """For each stage, the rows that tied parameters are learnt from, and the most evaluations of the evidence.

    If the root is a leaf region, there is one stage with all its rows. Otherwise the first stage has a random subset,
    and ``n_rounds`` further ones have random regions.
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
    """Length-scales of the metric in which regions are cut: from slope variances averaged over kernels and outputs.

    ``spreads`` are the standard deviations of the inputs. A length-scale is at most a million times its input's.
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
    """Each expert's parameters, tied over all blocks; threads share the blocks, or the experts if there is one block.

    Experts of different kernels share no parameters, and each maximises its own evidence. In their joint evidence, one
    that starts worse has a responsibility near zero, so its gradient is near zero too, and it would not move.
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
        return _evidence(fit_tied([start], some, _TRIED_EVALUATIONS, priors=[prior])[0], some)

    starts = list(experts)
    if alone and len(blocks) == 1:
        # the evidence has several maxima, and the one near long length-scales may explain all variation as noise
        some = [_evenly(blocks[0], _TRIED_ROWS)]
        tasks = [(gp, prior) for gp, prior in zip(experts, priors, strict=True)]
        tasks += [(_with_shorter_scales(gp), prior) for gp, prior in tasks]
        found = map_leaves(tried, tasks, over_templates)
        shorter = np.reshape(found, (2, -1)).argmax(axis=0) == 1
        starts = [tasks[j + len(experts) * bool(better)][0] for j, better in enumerate(shorter)]
    return map_leaves(fit, list(zip(starts, priors, strict=True)), over_templates)


def _evenly(block: Block, count: int) -> Block:
    """At most ``count`` rows of the block, evenly spaced."""
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
