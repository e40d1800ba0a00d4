"""Experts: one GP per kernel in every leaf region, moved from the tied parameters towards what its own rows say."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from spngp._support.progress import Progress
from spngp._support.threads import map_leaves
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Convergence, GaussianPrior, fit_adaptive, mean_curvature
from spngp.kernels.parameter import Identity
from spngp.learning.blocks import at_most, blocks_of, observed, spread_out
from spngp.learning.laplace import Freedom, FreeExpert, fit_free
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied
from spngp.learning.tied_evidence import fit_tied
from spngp.structure import Region, leaf_regions

_NOISE_STD_OF_PROFILE = 0.2  # prior standard deviation of the log noise of a part, relative to the profile

# experts[id(region), k]: the experts of a leaf region for output k, one per kernel.
Experts: TypeAlias = dict[tuple[int, int], list[FreeExpert]]
# curvatures[k, j]: for output k and kernel j, minus the Hessian of the log evidence, per row.
Curvatures: TypeAlias = dict[tuple[int, int], Array]


def curvatures_of(tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator) -> Curvatures:
    """The curvature of the log evidence, averaged over one to three regions; empty unless experts are adaptive."""
    if plan.hyperparameters != "adaptive" or tied.regions.is_leaf:
        return {}
    distinct = list({region.rows.tobytes(): region.rows for region in leaf_regions(tied.regions)}.values())
    typical = [distinct[i] for i in spread_out(len(distinct), max(1, min(3, len(distinct) // 32)))]
    sampled = [at_most(rows, plan.block_size, rng) for rows in typical]
    return {
        (k, j): mean_curvature(gp, blocks_of(sampled, X, Y[:, k], plan.variances_of(k)), plan.n_jobs)
        for k, kernels in enumerate(tied.gps)
        for j, gp in enumerate(kernels)
    }


def learn_experts(
    tied: Tied,
    X: Array,
    Y: Array,
    curvatures: Curvatures,
    plan: Plan,
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
    before: tuple[Array, Experts] | None = None,
    part: bool = False,
) -> Experts:
    """The experts of every leaf region and output.

    ``before`` holds the outputs and the experts of an earlier call. Regions whose outputs have not changed since keep
    their experts. ``part``: these regions are a part of all there are, of which tied parameters were learnt.
    """
    leaves = leaf_regions(tied.regions)
    free, adapts = is_free(tied.regions, plan), _adapts(tied.regions, plan, part)
    distinct = {_key(region): region for region in leaves}  # alternative cuts may find the same rows
    n_outputs = len(tied.gps)
    tasks = [
        (region, k, j)
        for region in distinct.values()
        for k in range(n_outputs)
        for j in range(len(tied.gps_of(region, k)))
    ]
    progress.stage("experts", len(tasks) if adapts else 0)
    used = {id(region): at_most(region.rows, plan.block_size, rng) for region in distinct.values()}
    rows = [own.size for own in used.values()]

    def fit(task: tuple[Region, int, int]) -> FreeExpert:
        region, k, j = task
        _, gp = tied.gps_of(region, k)[j]
        if (
            before is not None
            and adapts
            and np.array_equal(before[0][region.rows, k], Y[region.rows, k], equal_nan=True)
        ):
            return before[1][id(region), k][j]
        block = observed(used[id(region)], X, Y[:, k], plan.variances_of(k))
        if not adapts or block[1].size < 2:
            return FreeExpert(gp, 0.0)
        if free:
            # of all rows together, the tied parameters are the maximum
            expert = fit_free(gp, block, freedom_of(gp, plan), moves=region is not tied.regions)
            progress.advance()
            return expert
        if region is tied.regions and not part:
            return FreeExpert(gp, 0.0)
        if plan.hyperparameters == "independent":
            evaluations, tolerance = plan.subset_evaluations, plan.tolerance
            fitted = fit_tied([gp], [block], evaluations, tolerance=tolerance, convergence=convergence)[0]
        else:
            prior = GaussianPrior.of(gp, lambda which: _expert_std(which, plan))
            fitted = fit_adaptive(gp, block, prior, curvatures[k, j], plan.expert_evaluations, plan.expert_tolerance)
        progress.advance()
        return FreeExpert(fitted, 0.0)

    fitted: dict[tuple[tuple[bytes, bool], int], list[FreeExpert]] = {}
    for (region, k, j), expert in zip(tasks, map_leaves(fit, tasks, plan.n_jobs, rows), strict=True):
        label, _ = tied.gps_of(region, k)[j]
        fitted.setdefault((_key(region), k), []).append(replace(expert, label=label))
    return {(id(region), k): fitted[_key(region), k] for region in leaves for k in range(n_outputs)}


def _key(region: Region) -> tuple[bytes, bool]:
    """Regions of equal keys have equal experts."""
    return region.rows.tobytes(), region.smooth


def _expert_std(which: Identity, plan: Plan) -> float:
    if which.role == "noise_variance":
        return plan.noise_prior_std
    return plan.length_scale_prior_std if which.role in ("length_scale", "period", "alpha") else plan.prior_std


def freedom_of(gp: ExactGP, plan: Plan) -> Freedom:
    """How far experts of a small set may go; a noise profile says already how the noise changes."""
    length_scale, amplitude, noise = plan.freedom
    return Freedom.of(gp, length_scale, amplitude, noise if gp.noise_profile is None else _NOISE_STD_OF_PROFILE)


def is_free(regions: Region, plan: Plan) -> bool:
    """Whether experts are those of a small set, which may go far from the tied parameters and pay for it."""
    return plan.chooses_cuts and regions.is_leaf


def _adapts(regions: Region, plan: Plan, part: bool) -> bool:
    """Whether experts are trained one by one.

    Adaptive experts of a root that is a leaf region are not, unless they are free: the tied stage has used all rows.
    """
    if plan.hyperparameters == "adaptive":
        return part or not regions.is_leaf or is_free(regions, plan)
    return plan.hyperparameters == "independent"
