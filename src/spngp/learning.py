"""From standardised rows to a posterior network: regions, hyper-parameters and leaves, in that order.

Length-scales decide where to cut, and the regions decide what the length-scales are learnt from, so the two are found
in alternation: first on a random subset, then on sampled local regions, which show structure too fine for a subset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from spngp._memory import Budget
from spngp._parallel import map_leaves, one_blas_thread
from spngp._progress import Progress
from spngp._standardise import few_of
from spngp._typing import Array, Indices
from spngp.defaults import OVERLAP
from spngp.defaults import overlap as default_overlap
from spngp.leaf import ExactGP
from spngp.network import Box, Node, conditioning
from spngp.network.placement import place, route
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.residuals import noise_shapes, outliers
from spngp.structure import Region, Strategy, build_network, leaf_regions, tiling
from spngp.structure.context import NearestContext
from spngp.training import Block, Convergence, GaussianPrior, fit_adaptive, fit_tied, mean_curvature

# Experts less plausible than this get no context rows: much of the cost and hardly any of the prediction.
_LEAST_WEIGHT = 0.01
# Where all rows are one region, training starts from length-scales shorter by this factor if so many rows favour it
# after so many evaluations.
_SHORTER, _TRIED, _TRIES = 0.2, 250, 25
_AGAIN = 20  # evaluations when parameters are learnt again without outliers, from where they were

# For the identity of a leaf region and an output: its experts, one per kernel.
Experts: TypeAlias = dict[tuple[int, int], list[ExactGP]]
# Given length-scales: how to cut.
StrategyOf: TypeAlias = Callable[[Array], Strategy]


@dataclass(frozen=True)
class Plan:
    """What is to be learnt, and within which limits. Units are standardised; the figures are measured defaults.

    Attributes
    ----------
    labels : sequence of str
        Names of the alternative kernels.
    templates : sequence of sequence of ExactGP
        For each output, the kernels with their noise: where training starts.
    strategy : callable
        Given length-scales, how to cut.
    hyperparameters : {"fixed", "tied", "independent", "adaptive"}
    overlap : float or ndarray, optional
        Context rows per own row, or a distance per input; by default as many as leaves of their size need.
    reach : ndarray
        Outputs of a larger size are out of all proportion: in doubt before anything is learnt from them.
    block_size : int
        Rows that one region gives to training at most; more remain only where rows coincide.
    budget : Budget
        Memory that experts may fill with their factors.
    prior_std, length_scale_prior_std : float
        Of the Gaussian prior on an expert's log-parameters around the tied values.
    variance_prior_std : float
        Of the Gaussian prior on the log variances of tied kernels around their starts.
    learns_noise_shape : bool
        Whether the noise may have another shape than a Gaussian's.
    doubts_outliers : bool
        Whether outputs far from what all others say get a larger noise of their own.
    """

    labels: Sequence[str]
    templates: Sequence[Sequence[ExactGP]]
    strategy: StrategyOf
    hyperparameters: str
    overlap: float | Array | None
    reach: Array
    block_size: int
    learns_noise_shape: bool = False
    doubts_outliers: bool = False
    n_jobs: int | None = None
    budget: Budget = field(default_factory=Budget)
    subset_size: int = 500
    n_sampled_regions: int = 12
    n_rounds: int = 2
    prior_std: float = 0.5
    length_scale_prior_std: float = 0.1
    variance_prior_std: float = 2.0
    subset_evaluations: int = 80
    tied_evaluations: int = 40
    expert_evaluations: int = 15
    expert_tolerance: float = 5e-4  # nats per row


@dataclass
class Learnt:
    """What was learnt, and the rows it was learnt from, so that more can be added.

    Attributes
    ----------
    own : Node
        The posterior network, leaves on their own rows only.
    network : Node
        The same with context rows: what predicts.
    tiles : list of Box
        Boxes without overlap that cover the space: where context rows are looked for.
    scales : ndarray
        Length-scales of the metric.
    budget : Budget
        What decides which experts keep their factors.
    noise_shapes : list of NoiseShape
        One per output.
    reach : ndarray
        For each output, how large one may be not to be in doubt at once.
    own_noise : ndarray, optional
        In the shape of Y, the variance of the noise of outputs in doubt and NaN for all others; none if all are others.
    """

    own: Node
    network: Node
    tiles: list[Box]
    scales: Array
    overlap: float | Array
    block_size: int
    budget: Budget
    X: Array
    Y: Array
    noise_shapes: list[NoiseShape]
    reach: Array
    own_noise: Array | None = None


def learn(X: Array, Y: Array, plan: Plan, rng: np.random.Generator, progress: Progress) -> Learnt:
    """Learn a network from standardised rows; NaN in Y is missing."""
    convergence = Convergence()
    doubts = plan.doubts_outliers and plan.hyperparameters != "fixed"
    reach = plan.reach if doubts else np.full(Y.shape[1], np.inf)
    sound = np.where(np.abs(Y) > reach, np.nan, Y)
    largest = min(X.shape[0], plan.block_size)
    share = OVERLAP if plan.overlap is None else 0.0 if np.ndim(plan.overlap) else float(plan.overlap)
    plan.budget.check(int((1.0 + share) * largest), (1.0 + share) * X.shape[0], X.shape[1])
    with one_blas_thread():
        tied = [list(templates) for templates in plan.templates]
        scales = metric(tied, X.shape[1])
        regions = plan.strategy(scales).regions(X, rng)
        for sample, evaluations in _stages(plan, regions):
            progress.stage("tied parameters", len(tied))
            blocks = sample(regions, rng)
            for k in range(len(tied)):
                used = _blocks(blocks, X, sound[:, k])
                tied[k] = _fit_tied(tied[k], k, used, evaluations, plan, convergence, regions.is_leaf)
                progress.advance()
            scales = metric(tied, X.shape[1])
            regions = plan.strategy(scales).regions(X, rng)
        curvatures = _curvatures(regions, X, sound, tied, plan, rng)
        experts = _experts(regions, X, sound, tied, curvatures, plan, rng, convergence, progress)
        own, own_noise = None, None
        if doubts:
            prior = _prior(regions, experts, plan)
            own = conditioning.condition(prior, X, sound, n_jobs=plan.n_jobs, keep=conditioning.no_factors)
            own_noise = outliers(own, X, sound, plan.n_jobs)
        if own_noise is not None:  # what was learnt from outputs in doubt is learnt again without
            before, sound = sound, np.where(np.isnan(own_noise), sound, np.nan)
            for k in range(len(tied)):
                if any((~np.isnan(own_noise[rows, k])).any() for rows in blocks):
                    used = _blocks(blocks, X, sound[:, k])
                    tied[k] = _fit_tied(tied[k], k, used, _AGAIN, plan, Convergence(), False)
            experts = _experts(regions, X, sound, tied, curvatures, plan, rng, convergence, progress, (before, experts))
        prior = _prior(regions, experts, plan)
        progress.stage("leaves", 0)
        tiles = [region.box for region in tiling(regions)]
        gaussian = [GAUSSIAN] * Y.shape[1]
        overlap = plan.overlap
        if overlap is None:
            overlap = default_overlap(X.shape[0], X.shape[0] / len(tiles), plan.block_size)
        unseen = Learnt(
            prior, prior, tiles, scales, overlap, plan.block_size, plan.budget, X[:0], Y[:0], gaussian, reach
        )
        learnt = add_rows(unseen, X, Y, plan.n_jobs, own_noise, own)
        if own_noise is not None or (plan.learns_noise_shape and plan.hyperparameters != "fixed"):
            shapes = noise_shapes(
                learnt.network, Y.shape[1], own_noise, reach, plan.learns_noise_shape, rng, plan.n_jobs
            )
            learnt = replace(learnt, noise_shapes=shapes)
    convergence.warn()
    return learnt


def _prior(regions: Region, experts: Experts, plan: Plan) -> Node:
    def labelled(region: Region, k: int) -> list[tuple[str, ExactGP]]:
        return list(zip(plan.labels, experts[id(region), k], strict=True))

    return build_network(regions, labelled, len(plan.templates))


def add_rows(
    learnt: Learnt,
    X: Array,
    Y: Array,
    n_jobs: int | None = None,
    own_noise: Array | None = None,
    known: Node | None = None,
) -> Learnt:
    """The exact update: regions and parameters stay, everything else is as if all rows had come at once.

    ``known`` is the posterior of own rows before some got ``own_noise``, for leaves that are what they were (without
    factors, as context replaces them).
    """

    def within_budget(sizes: list[int]) -> list[bool]:
        return learnt.budget.keep(sizes, X.shape[1])

    with one_blas_thread():
        sees_context = np.ndim(learnt.overlap) > 0 or bool(learnt.overlap)
        # leaves with context are factored again: until then evidence is all that is wanted of them
        keep = conditioning.no_factors if sees_context else within_budget
        beyond = np.abs(Y) > learnt.reach
        # where many are, with those before, outputs have become others: all that are new are trusted
        many = beyond.sum(axis=0) + (np.abs(learnt.Y) > learnt.reach).sum(axis=0)
        beyond &= many <= few_of(learnt.Y.shape[0] + Y.shape[0])
        if beyond.any():
            own_noise = np.where(beyond, Y * Y, np.nan if own_noise is None else own_noise)
        known = known if sees_context else None
        own = conditioning.condition(learnt.own, X, Y, own_noise=own_noise, known=known, n_jobs=n_jobs, keep=keep)
        if learnt.own_noise is not None or own_noise is not None:
            parts = [(learnt.own_noise, learnt.Y), (own_noise, Y)]
            own_noise = np.concatenate([np.full(y.shape, np.nan) if part is None else part for part, y in parts])
        if learnt.Y.size:
            X, Y = np.concatenate([learnt.X, X]), np.concatenate([learnt.Y, Y])
        learnt = replace(learnt, own=own, network=own, X=X, Y=Y, own_noise=own_noise)
        return _with_context(learnt, n_jobs, within_budget) if sees_context else learnt


def _with_context(learnt: Learnt, n_jobs: int | None, keep: conditioning.Keep) -> Learnt:
    """The network with context rows for the experts that count."""
    overlap = learnt.overlap
    context: conditioning.Context
    if np.ndim(overlap):
        context = conditioning.within_distance(learnt.X, overlap)
    else:
        most = int(float(overlap) * learnt.block_size)
        placed = place(learnt.own)
        rows = {item.box: own for item, own in zip(placed, route(placed, learnt.X), strict=True)}
        context = NearestContext(learnt.X, rows, learnt.tiles, learnt.scales, float(overlap), most)
    network = conditioning.add_context(
        learnt.own,
        learnt.X,
        learnt.Y,
        context,
        least_weight=_LEAST_WEIGHT,
        own_noise=learnt.own_noise,
        n_jobs=n_jobs,
        keep=keep,
    )
    return replace(learnt, network=network)


Sample: TypeAlias = Callable[[Region, np.random.Generator], list[Indices]]


def _stages(plan: Plan, regions: Region) -> list[tuple[Sample, int]]:
    """Which rows tied parameters are learnt from, one stage after the other, and how long.

    One region takes all its rows at once. Else a random subset gives a first idea, and some local regions the rest.
    """
    if plan.hyperparameters == "fixed":
        return []
    if regions.is_leaf:
        return [(lambda root, rng: [_at_most(root.rows, 2 * plan.block_size, rng)], plan.subset_evaluations)]

    def subset(root: Region, rng: np.random.Generator) -> list[Indices]:
        return [_at_most(root.rows, plan.subset_size, rng)]

    def local(root: Region, rng: np.random.Generator) -> list[Indices]:
        leaves = leaf_regions(root)
        chosen = rng.choice(len(leaves), min(plan.n_sampled_regions, len(leaves)), replace=False)
        return [_at_most(leaves[i].rows, plan.block_size, rng) for i in np.sort(chosen)]

    return [(subset, plan.subset_evaluations), *[(local, plan.tied_evaluations)] * plan.n_rounds]


def metric(tied: Sequence[Sequence[ExactGP]], d: int) -> Array:
    """Length-scales of the metric to cut by: slopes averaged over kernels and outputs."""
    slopes = np.zeros(d)
    for experts in tied:
        own = np.mean([gp.kernel.slope_variances(d) / gp.kernel.diagonal(np.ones((1, d)))[0] for gp in experts], axis=0)
        slopes += own
    return 1.0 / np.sqrt(np.maximum(slopes / len(tied), 1e-12))


def _at_most(rows: Indices, count: int, rng: np.random.Generator) -> Indices:
    """All rows, or so many of them at random."""
    return rows if rows.size <= count else np.sort(rng.choice(rows, count, replace=False))


def _observed(rows: Indices, X: Array, y: Array) -> Block:
    rows = rows[~np.isnan(y[rows])]
    return np.ascontiguousarray(X[rows]), y[rows]


def _blocks(rows: Sequence[Indices], X: Array, y: Array) -> list[Block]:
    blocks = [_observed(own, X, y) for own in rows]
    return [block for block in blocks if block[1].size > 1]


def _fit_tied(
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
    # without a prior a part of a sum of kernels may die early, and it never comes back: its gradient is gone
    priors = [GaussianPrior.of(gp, lambda name: _tied_std(name, plan)) for gp in plan.templates[output]]
    over_blocks, over_templates = (None, plan.n_jobs) if len(blocks) == 1 else (plan.n_jobs, None)

    def fit(task: tuple[ExactGP, GaussianPrior]) -> ExactGP:
        start, prior = task
        return fit_tied([start], blocks, evaluations, priors=[prior], n_jobs=over_blocks, convergence=convergence)[0]

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
    shift = [np.log(_SHORTER) if name.split(".")[-1].startswith("length_scale") else 0.0 for name in gp.parameter_names]
    return gp.with_theta(np.clip(gp.theta + shift, *gp.bounds.T))


def _evidence(gp: ExactGP, blocks: Sequence[Block]) -> float:
    return sum(gp.condition(*block, keep_factor=False).log_evidence for block in blocks)


def _tied_std(name: str, plan: Plan) -> float:
    return plan.variance_prior_std if name.split(".")[-1] == "variance" else np.inf


def _spread_out(items: Sequence[Indices], count: int) -> list[Indices]:
    """So many of the items, evenly spaced."""
    return [items[(2 * i + 1) * len(items) // (2 * count)] for i in range(count)]


def _expert_std(name: str, plan: Plan) -> float:
    shape = ("length_scale", "period", "alpha")
    return plan.length_scale_prior_std if any(word in name for word in shape) else plan.prior_std


def _adapts(regions: Region, plan: Plan) -> bool:
    """Whether experts are trained one by one; of a small set all rows went into the tied stage, and nothing is left."""
    return plan.hyperparameters == "independent" or (plan.hyperparameters == "adaptive" and not regions.is_leaf)


def _curvatures(
    regions: Region, X: Array, Y: Array, tied: Sequence[Sequence[ExactGP]], plan: Plan, rng: np.random.Generator
) -> dict[tuple[int, int], Array]:
    """For an output and a kernel: how the evidence of its experts curves, from a few typical regions."""
    if plan.hyperparameters != "adaptive" or not _adapts(regions, plan):
        return {}
    distinct = list({region.rows.tobytes(): region.rows for region in leaf_regions(regions)}.values())
    typical = _spread_out(distinct, max(1, min(3, len(distinct) // 32)))
    rows = [_at_most(own, plan.block_size, rng) for own in typical]
    return {
        (k, j): mean_curvature(gp, _blocks(rows, X, Y[:, k]), plan.n_jobs)
        for k, kernels in enumerate(tied)
        for j, gp in enumerate(kernels)
    }


def _experts(
    regions: Region,
    X: Array,
    Y: Array,
    tied: Sequence[Sequence[ExactGP]],
    curvatures: dict[tuple[int, int], Array],
    plan: Plan,
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
    before: tuple[Array, Experts] | None = None,
) -> Experts:
    """The experts of every leaf region and output.

    ``before`` are the outputs and the experts of an earlier call: where outputs are the same, so are the experts.
    """
    leaves = leaf_regions(regions)
    adapts = _adapts(regions, plan)
    distinct = {region.rows.tobytes(): region for region in leaves}  # alternative cuts may find the same rows
    tasks = [(region, k, j) for region in distinct.values() for k in range(len(tied)) for j in range(len(tied[k]))]
    progress.stage("experts", len(tasks) if adapts else 0)
    used = {id(region): _at_most(region.rows, plan.block_size, rng) for region in distinct.values()}
    rows = [own.size for own in used.values()]

    def fit(task: tuple[Region, int, int]) -> ExactGP:
        region, k, j = task
        gp = tied[k][j]
        if (
            before is not None
            and adapts
            and np.array_equal(before[0][region.rows, k], Y[region.rows, k], equal_nan=True)
        ):
            return before[1][id(region), k][j]
        block = _observed(used[id(region)], X, Y[:, k])
        if not adapts or region is regions or block[1].size < 2:
            return gp
        if plan.hyperparameters == "independent":
            fitted = fit_tied([gp], [block], plan.subset_evaluations, convergence=convergence)[0]
        else:
            prior = GaussianPrior.of(gp, lambda name: _expert_std(name, plan))
            fitted = fit_adaptive(gp, block, prior, curvatures[k, j], plan.expert_evaluations, plan.expert_tolerance)
        progress.advance()
        return fitted

    fitted: dict[tuple[bytes, int], list[ExactGP]] = {}
    for (region, k, _), gp in zip(tasks, map_leaves(fit, tasks, plan.n_jobs, rows), strict=True):
        fitted.setdefault((region.rows.tobytes(), k), []).append(gp)
    return {(id(region), k): fitted[region.rows.tobytes(), k] for region in leaves for k in range(len(tied))}
