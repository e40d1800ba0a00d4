"""From rows to a posterior network: the sequence of a fit."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from spngp._support.progress import Progress
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array
from spngp.gp.optimisation import Convergence
from spngp.gp.row_weights import KnownVariances
from spngp.learning.cutting import cut_if_better, explained
from spngp.learning.defaults import CHOSEN_OVERLAP
from spngp.learning.doubt import beyond_reach, judge, noise_beyond_reach, without_doubted
from spngp.learning.experts import Experts, is_free, learn_experts
from spngp.learning.ground import Ground, lay_ground
from spngp.learning.held_out import Score, leave_one_out_score
from spngp.learning.learnt import Learnt, given_rows
from spngp.learning.noise_shapes import ShapeFound, noise_shapes
from spngp.learning.part_settings import spread_parts
from spngp.learning.plan import Plan
from spngp.learning.regional import learn_regions, prior_of
from spngp.learning.stacking import CUT, leading, only, stacked
from spngp.learning.surprises import surprise_variances
from spngp.learning.tied import Tied
from spngp.learning.uncut import Uncut, without_doubt_explained
from spngp.network import Leaf
from spngp.network.rescaling import in_units
from spngp.network.row_noise import noise_kinds
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.structure import tiling

_NEGLIGIBLE = 1e-4  # probability of all alternatives together that the network of a small set goes without


def learn(X: Array, Y: Array, plan: Plan, rng: np.random.Generator, progress: Progress) -> Learnt:
    """Learn from rows in the units of the user; NaN in Y is a missing output.

    The steps: tied parameters and regions, experts, outputs in doubt, cuts of a small set, leaves with context, the
    shape of the noise.
    """
    convergence = Convergence()
    doubts = plan.doubts_outliers and plan.hyperparameters != "fixed"
    reach = plan.reach if doubts else np.full(Y.shape[1], np.inf)
    _check_memory(plan, *X.shape)
    W, Z = plan.units.inputs.apply(X), plan.units.outputs.apply(Y)
    with one_blas_thread():
        own_noise = noise_beyond_reach(Z, reach)
        sound = without_doubted(Z, own_noise)
        ground = lay_ground(W, sound, plan, rng, convergence, progress)
        small, cutting = is_free(ground.tied.regions, plan), plan
        plan, working = ground.plan if small else _with_overlap(ground, X.shape[0]), (rng, convergence, progress)
        learnt_from = ground.tied, W, Z, own_noise, ground.curvatures, plan
        regional = learn_regions(*learnt_from, *working, doubts=doubts, trusted=ground.trusted)
        tied, experts, sound = regional.tied, regional.experts, regional.sound
        own, own_noise = regional.own, regional.own_noise

        if small:
            progress.stage("settings", 0)
        score = partial(_score, X, sound)
        uncut, scores = Uncut.of(tied, W, sound, plan, rng).if_better(experts, tied, W, sound, plan, score)
        if own_noise is not None and uncut.knows_more:
            whole = leading(scores, uncut.put_in(experts, tied, W, sound, plan), tied)
            before, own_noise = own_noise, without_doubt_explained(whole, tied, W, Z, own_noise, plan)
            if not np.array_equal(own_noise, before, equal_nan=True):
                own, sound = None, without_doubted(Z, own_noise)
                score = partial(_score, X, sound)
                uncut, scores = Uncut.of(tied, W, sound, plan, rng).if_better(experts, tied, W, sound, plan, score)
        if any(uncut):
            own, experts = None, uncut.put_in(experts, tied, W, sound, plan)
        if Z.shape[1] == 1 and uncut.smooth:
            tied = replace(tied, profiled=uncut.smooth[0].profiled)
        found = cut_if_better(tied, experts, W, sound, cutting, score, scores, *working) if small else None
        if found is not None:
            (tied, experts, scores), plan, own = found, cutting, None
            if own_noise is not None:
                known = leading(scores, experts, tied)
                trusted = explained(prior_of(tied.regions, known, plan), W, Z, sound, own_noise, plan.variances)
                own_noise = np.where(trusted, np.nan, own_noise)
                earlier, sound = (sound, experts), np.where(trusted, Z, sound)
                experts = learn_experts(tied, W, sound, ground.curvatures, plan, *working, earlier)
                uncut = uncut.averaged_again(tied, W, sound, plan, rng)
            cuts = prior_of(tied.regions, only(CUT, experts, tied) if scores else experts, plan)
            experts = spread_parts(cuts, tied, experts, W, sound, plan, rng)
            experts = uncut.put_in(experts, tied, W, sound, plan)
        progress.stage("leaves", 0)
        unseen = before_rows(tied, leading(scores, experts, tied), X, Y, reach, plan)
        learnt = given_rows(unseen, X, Y, own_noise, own, plan.n_jobs, partial(stacked, scores))
        learnt = in_units_of_the_user(learnt, rng, plan.n_jobs)
    convergence.warn()
    return learnt


def _with_overlap(ground: Ground, n_rows: int) -> Plan:
    """The plan with the overlap of regions cut for size: those cut once more, for noise, see no more for it."""
    overlap = ground.plan.overlap_of(n_rows, n_rows / len(tiling(ground.tied.regions)))
    return replace(ground.plan, overlap=overlap)


def _score(X: Array, sound: Array, tied: Tied, experts: Experts, plan: Plan) -> Score:
    """Leave-one-out score of the sound outputs, in the units of learning, with context.

    Noise that is learnt has its shape here, whether or not predictions will have it: means do not hang on that.
    """
    outputs, no_reach = plan.units.outputs.invert(sound), np.full(sound.shape[1], np.inf)
    unseen = before_rows(tied, experts, X, outputs, no_reach, plan)
    network = given_rows(unseen, X, outputs, None, None, plan.n_jobs).seeing
    noise_is_learnt = not any(gp.noise_is_fixed for gps in plan.templates for gp in gps)
    working = noise_is_learnt, np.random.default_rng(0), plan.n_jobs
    found = noise_shapes(network, sound.shape[1], None, no_reach, *working, keeps_variance=True)
    shapes = [one.shape for one in found]
    return leave_one_out_score(network, plan.units.inputs.apply(X), sound, shapes, plan.n_jobs)


def before_rows(tied: Tied, experts: Experts, X: Array, Y: Array, reach: Array, plan: Plan) -> Learnt:
    """What was learnt, before it is given any row."""
    free = is_free(tied.regions, plan)
    # context of a small set is looked for everywhere: alternatives that are pruned leave no gaps
    tiles = [tied.regions.box] if free else [region.box for region in tiling(tied.regions)]
    overlap = plan.overlap_of(X.shape[0], X.shape[0] / len(tiles))
    if plan.overlap is None and free and X.shape[1] == 1:
        overlap = CHOSEN_OVERLAP
    learns = plan.hyperparameters != "fixed"
    prior = prior_of(tied.regions, experts, plan)
    known = (plan.variances or KnownVariances()).divided_by(1.0 / plan.units.outputs.scale)
    return Learnt(
        X=X[:0],
        Y=Y[:0],
        units=plan.units,
        prior=prior,
        own=prior,
        seeing=prior,
        network=prior,
        tiles=tiles,
        scales=tied.scales,
        overlap=overlap,
        block_size=plan.block_size,
        budget=plan.budget,
        n_fitted=X.shape[0],
        output_spreads=plan.output_spreads,
        reach=reach,
        doubts_outliers=plan.doubts_outliers and learns,
        learns_noise_shape=plan.learns_noise_shape and learns,
        noise_shapes=[GAUSSIAN] * Y.shape[1],
        negligible=_NEGLIGIBLE if free else 0.0,
        variances=known.variances,
        shares=None if known.shares is None else known.shares[:, 0],
        tied=tied.gps,
        labels=tied.labels,
        noise_kinds=noise_kinds(prior),
        noise_prior_std=plan.noise_prior_std,
    )


def add_rows(
    learnt: Learnt,
    X: Array,
    Y: Array,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    known: KnownVariances | None = None,
) -> Learnt:
    """The exact update: regions and parameters stay, everything else is as if all rows had come at once.

    All outputs added after the fit are judged anew, so the result does not depend on the batches in which they came.
    Outputs of the fit keep their verdicts, because the parameters were learnt by them. ``known`` is what is known of
    the noise of Y, in the squared units of the user.
    """
    learnt = learnt.knowing(known, Y)
    X, Y = np.concatenate([learnt.X, X]), np.concatenate([learnt.Y, Y])
    W, Z = learnt.units.inputs.apply(X), learnt.units.outputs.apply(Y)
    own, own_noise = None, None
    with one_blas_thread():
        if learnt.doubts_outliers:
            later = ~np.isnan(Z)
            later[: learnt.n_fitted] = False
            own_noise = noise_beyond_reach(Z, learnt.reach)
            if learnt.own_noise is not None or own_noise is not None:
                own_noise = np.full(Z.shape, np.nan) if own_noise is None else own_noise
                fitted = slice(0, learnt.n_fitted)
                own_noise[fitted] = np.nan if learnt.own_noise is None else learnt.own_noise[fitted]
            variances = learnt.known_variances(X.shape[0])
            judged = judge(learnt.prior, W, Z, own_noise, n_jobs, variances=variances, among=later, known=learnt.own)
            own, own_noise = judged.own, judged.own_noise
        return in_units_of_the_user(given_rows(learnt, X, Y, own_noise, own, n_jobs), rng, n_jobs)


def _check_memory(plan: Plan, n_rows: int, n_inputs: int) -> None:
    """Raise ValueError if the memory limit cannot hold the rows and the work space of the largest leaf."""
    overlap = plan.overlap_of(n_rows, own_rows=1.0)
    rows_seen = 1.0 if np.ndim(overlap) else 1.0 + float(overlap)  # per own row; of a margin nothing is known yet
    largest = min(n_rows, plan.block_size)
    most_leaves = math.ceil(2 * n_rows / plan.block_size)  # a leaf sees no more rows than there are
    plan.budget.check(min(int(rows_seen * largest), n_rows), min(rows_seen, most_leaves) * n_rows, n_inputs)


def in_units_of_the_user(learnt: Learnt, rng: np.random.Generator, n_jobs: int | None) -> Learnt:
    """``learnt`` with the network that predicts: in the units of the user, with the shape of each output's noise."""
    found = _noise_shapes(learnt, rng, n_jobs)
    shapes, variances = [one.shape for one in found], None
    if learnt.learns_noise_shape:
        variances = surprise_variances(learnt.seeing, learnt.output_spreads, [one.variance for one in found])
    learnt = replace(learnt, noise_shapes=shapes, surprise_variances=variances)
    surprises = learnt.surprises((~np.isnan(learnt.Y)).sum(axis=0))

    def shape_of(leaf: Leaf) -> NoiseShape:
        return surprises.added_to(shapes[leaf.output], leaf.output, leaf.noise_variance)

    return replace(learnt, network=in_units(learnt.seeing, learnt.units, shape_of))


def _noise_shapes(learnt: Learnt, rng: np.random.Generator, n_jobs: int | None) -> list[ShapeFound]:
    """The shape of each output's noise, learnt from all rows."""
    doubted = learnt.own_noise
    if doubted is not None:
        # outputs out of all proportion are errors, not noise: they must not widen its shape
        doubted = np.where(beyond_reach(learnt.units.outputs.apply(learnt.Y), learnt.reach), np.nan, doubted)
    if not learnt.learns_noise_shape and (doubted is None or np.isnan(doubted).all()):
        return [ShapeFound(shape) for shape in learnt.noise_shapes]
    return noise_shapes(learnt.seeing, learnt.Y.shape[1], doubted, learnt.reach, learnt.learns_noise_shape, rng, n_jobs)
