"""From standardised rows to a posterior network: regions, hyper-parameters and leaves, in that order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spngp._parallel import one_blas_thread
from spngp._progress import Progress
from spngp._typing import Array, Mask
from spngp.defaults import CHOSEN_OVERLAP, OVERLAP
from spngp.defaults import overlap as default_overlap
from spngp.leaf import ExactGP
from spngp.learning.cuts import candidate_regions, noise_cuts
from spngp.learning.experts import Experts, curvatures_of, is_free, learn_experts
from spngp.learning.plan import Plan
from spngp.learning.posterior import Learnt, add_rows
from spngp.learning.tied import Tied, learn_again, learn_tied
from spngp.network import Node, conditioning
from spngp.noise import GAUSSIAN
from spngp.residuals import DOUBTED, leave_one_out_log_density, noise_shapes, outliers
from spngp.structure import Compact, Region, build_network, tiling
from spngp.training import Convergence

_NEGLIGIBLE = 1e-4  # probability of all alternatives together that a small set's network goes without
_BETTER = 10.0  # nats by which cuts of several inputs must predict better, all rows together
_SCREENINGS = 4  # for outputs in doubt, at most: a large one hides smaller ones


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
        tied = learn_tied(X, sound, plan, rng, convergence, progress)
        small, chosen = is_free(tied.regions, plan), plan
        plan = replace(plan, chooses_cuts=False)
        if chosen.chooses_cuts and not small:
            tied, plan = _cut_by_noise(tied, X, sound, plan, rng)
        curvatures = curvatures_of(tied, X, sound, plan, rng)
        experts = learn_experts(tied, X, sound, curvatures, plan, rng, convergence, progress)
        own, own_noise, in_doubt = None, None, None
        for _ in range(_SCREENINGS if doubts else 0):
            prior = _prior(tied.regions, experts, plan)
            own = conditioning.condition(
                prior, X, sound, own_noise=own_noise, known=own, n_jobs=plan.n_jobs, keep=conditioning.no_factors
            )
            found = outliers(own, X, sound, plan.n_jobs, near=in_doubt)
            if found is None:
                break
            # what was learnt from outputs in doubt is learnt again without, and may then show others
            own_noise = found if own_noise is None else np.where(np.isnan(found), own_noise, found)
            in_doubt = ~np.isnan(found)
            before, sound = (sound, experts), np.where(in_doubt, np.nan, sound)
            tied = learn_again(tied, X, sound, in_doubt, plan)
            experts = learn_experts(tied, X, sound, curvatures, plan, rng, convergence, progress, before)
        if small:
            cut = _cut_if_better(tied, experts, X, sound, chosen, rng, convergence, progress)
            if cut is not None:
                (tied, experts), plan, own = cut, chosen, None
                if own_noise is not None:
                    trusted = _explained(_prior(tied.regions, experts, plan), X, Y, sound, own_noise)
                    own_noise = np.where(trusted, np.nan, own_noise)
                    before, sound = (sound, experts), np.where(trusted, Y, sound)
                    experts = learn_experts(tied, X, sound, curvatures, plan, rng, convergence, progress, before)
        prior = _prior(tied.regions, experts, plan)
        progress.stage("leaves", 0)
        unseen = _unseen(prior, tied, X, Y, reach, plan)
        learnt = add_rows(unseen, X, Y, plan.n_jobs, own_noise, own)
        if own_noise is not None or (plan.learns_noise_shape and plan.hyperparameters != "fixed"):
            shapes = noise_shapes(
                learnt.network, Y.shape[1], own_noise, reach, plan.learns_noise_shape, rng, plan.n_jobs
            )
            learnt = replace(learnt, noise_shapes=shapes)
    convergence.warn()
    return learnt


def _cut_if_better(
    tied: Tied,
    experts: Experts,
    X: Array,
    Y: Array,
    plan: Plan,
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
) -> tuple[Tied, Experts] | None:
    """Regions of a small set with cuts to choose from, and their experts; none if nothing speaks for a cut.

    Evidence judges experts by what their own rows say, but they predict with the rows around them as well, and of
    several inputs that is much of what they know; nor does it know the shape of the noise. There, cuts have to predict
    better too, each row by all others.
    """

    def score(tied: Tied, experts: Experts, plan: Plan) -> float:
        reach, fixed_draws = np.full(Y.shape[1], np.inf), np.random.default_rng(0)
        unseen = _unseen(_prior(tied.regions, experts, plan), tied, X, Y, reach, plan)
        network = add_rows(unseen, X, Y, plan.n_jobs).network
        shapes = noise_shapes(network, Y.shape[1], None, reach, plan.learns_noise_shape, fixed_draws, plan.n_jobs)
        return leave_one_out_log_density(network, X, Y, shapes, plan.n_jobs)

    candidates = candidate_regions(tied, X, Y, plan)
    if candidates is None:
        return None
    cut = replace(tied, regions=candidates)
    others = learn_experts(cut, X, Y, {}, plan, rng, convergence, progress)
    if X.shape[1] == 1:
        return cut, others
    without = score(tied, experts, replace(plan, chooses_cuts=False))
    return (cut, others) if score(cut, others, plan) > without + _BETTER else None


def _explained(prior: Node, X: Array, Y: Array, sound: Array, own_noise: Array) -> Mask:
    """Which outputs in doubt are not far off once the set is cut, where experts may have each its noise."""
    doubted = ~np.isnan(own_noise)
    rows = np.flatnonzero(doubted.any(axis=1))
    predicted = conditioning.condition(prior, X, sound).predict_dist(X[rows])
    shape = (rows.size, Y.shape[1])
    off = np.abs(Y[rows] - predicted.mean.reshape(shape)) / predicted.std.reshape(shape)
    explained = np.zeros(Y.shape, dtype=bool)
    explained[rows] = doubted[rows] & (off < DOUBTED)
    return explained


def _unseen(prior: Node, tied: Tied, X: Array, Y: Array, reach: Array, plan: Plan) -> Learnt:
    """What was learnt but for the rows."""
    chooses_cuts = is_free(tied.regions, plan)
    # a small set is searched as one: alternatives that are pruned leave no gaps
    tiles = [tied.regions.box] if chooses_cuts else [region.box for region in tiling(tied.regions)]
    gaussian = [GAUSSIAN] * Y.shape[1]
    overlap = plan.overlap
    if overlap is None and chooses_cuts and X.shape[1] == 1:
        overlap = CHOSEN_OVERLAP
    elif overlap is None:
        overlap = default_overlap(X.shape[0], X.shape[0] / len(tiles), plan.block_size)
    return Learnt(
        prior,
        prior,
        tiles,
        tied.scales,
        overlap,
        plan.block_size,
        plan.budget,
        X[:0],
        Y[:0],
        gaussian,
        reach,
        negligible=_NEGLIGIBLE if chooses_cuts else 0.0,
    )


def _cut_by_noise(tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator) -> tuple[Tied, Plan]:
    """A large set cut first where its noise changes; there, the noise of experts may be far from the tied one."""
    strategy = plan.strategy(tied.scales)
    first = noise_cuts(tied, X, Y, plan)
    if not first or not isinstance(strategy, Compact):
        return tied, plan
    return replace(tied, regions=strategy.regions(X, rng, first)), replace(plan, noise_prior_std=plan.freedom[-1])


def _prior(regions: Region, experts: Experts, plan: Plan) -> Node:
    def labelled(region: Region, k: int) -> list[tuple[str, ExactGP]]:
        return [(label, expert.gp) for label, expert in zip(plan.labels, experts[id(region), k], strict=True)]

    def log_corrections(region: Region, k: int) -> list[float]:
        return [expert.log_correction for expert in experts[id(region), k]]

    return build_network(regions, labelled, len(plan.templates), log_factors=log_corrections)
