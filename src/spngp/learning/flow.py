"""From rows to a posterior network: ``learn`` is a fit, ``add_rows`` the update with more rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spngp._support.progress import Progress
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Convergence
from spngp.learning.doubt import beyond_reach, judge, noise_beyond_reach, without_doubted
from spngp.learning.experts import Experts, curvatures_of, learn_experts
from spngp.learning.learnt import Learnt, given_rows
from spngp.learning.noise_shapes import noise_shapes
from spngp.learning.plan import Plan
from spngp.learning.tied import learn_again, learn_tied
from spngp.network import Node
from spngp.network.rescaling import in_units
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.structure import Region, build_network, tiling


def learn(X: Array, Y: Array, plan: Plan, rng: np.random.Generator, progress: Progress) -> Learnt:
    """Learn from rows in the units of the user; NaN in Y is a missing output.

    The steps: tied parameters and regions, experts, outputs in doubt, leaves with context, the shape of the noise.
    """
    convergence = Convergence()
    learns = plan.hyperparameters != "fixed"
    doubts = plan.doubts_outliers and learns
    reach = plan.reach if doubts else np.full(Y.shape[1], np.inf)
    _check_memory(plan, *X.shape)
    W, Z = plan.units.inputs.apply(X), plan.units.outputs.apply(Y)
    with one_blas_thread():
        own, own_noise = None, noise_beyond_reach(Z, reach)
        sound = without_doubted(Z, own_noise)
        tied = learn_tied(W, sound, plan, rng, convergence, progress)
        curvatures = curvatures_of(tied, W, sound, plan, rng)
        experts = learn_experts(tied, W, sound, curvatures, plan, rng, convergence, progress)
        prior = _prior(tied.regions, experts, plan)

        def without(outputs: Array, in_doubt: Mask) -> Node:
            nonlocal tied, experts, sound
            before, sound = (sound, experts), outputs
            tied = learn_again(tied, W, sound, in_doubt, plan)
            experts = learn_experts(tied, W, sound, curvatures, plan, rng, convergence, progress, before)
            return _prior(tied.regions, experts, plan)

        if doubts:
            judged = judge(prior, W, Z, own_noise, plan.n_jobs, learn_again=without)
            prior, own, own_noise = judged.prior, judged.own, judged.own_noise
        progress.stage("leaves", 0)
        tiles = [region.box for region in tiling(tied.regions)]
        unseen = Learnt(
            X=X[:0],
            Y=Y[:0],
            units=plan.units,
            prior=prior,
            own=prior,
            seeing=prior,
            network=prior,
            tiles=tiles,
            scales=tied.scales,
            overlap=plan.overlap_of(X.shape[0], X.shape[0] / len(tiles)),
            block_size=plan.block_size,
            budget=plan.budget,
            n_fitted=X.shape[0],
            output_spreads=plan.output_spreads,
            reach=reach,
            doubts_outliers=doubts,
            learns_noise_shape=plan.learns_noise_shape and learns,
            noise_shapes=[GAUSSIAN] * Y.shape[1],
        )
        learnt = _in_units_of_the_user(given_rows(unseen, X, Y, own_noise, own, plan.n_jobs), rng, plan.n_jobs)
    convergence.warn()
    return learnt


def add_rows(learnt: Learnt, X: Array, Y: Array, rng: np.random.Generator, n_jobs: int | None = None) -> Learnt:
    """The exact update: regions and parameters stay, everything else is as if all rows had come at once.

    All outputs added after the fit are judged anew, so the result does not depend on the batches in which they came.
    Outputs of the fit keep their verdicts, because the parameters were learnt by them.
    """
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
            judged = judge(learnt.prior, W, Z, own_noise, n_jobs, among=later, known=learnt.own)
            own, own_noise = judged.own, judged.own_noise
        return _in_units_of_the_user(given_rows(learnt, X, Y, own_noise, own, n_jobs), rng, n_jobs)


def _check_memory(plan: Plan, n_rows: int, n_inputs: int) -> None:
    """Raise ValueError if the memory limit cannot hold the rows and the work space of the largest leaf."""
    overlap = plan.overlap_of(n_rows, own_rows=1.0)
    rows_seen = 1.0 if np.ndim(overlap) else 1.0 + float(overlap)  # per own row; of a margin nothing is known yet
    largest = min(n_rows, plan.block_size)
    plan.budget.check(int(rows_seen * largest), rows_seen * n_rows, n_inputs)


def _in_units_of_the_user(learnt: Learnt, rng: np.random.Generator, n_jobs: int | None) -> Learnt:
    """``learnt`` with the network that predicts: in the units of the user, with the shape of each output's noise."""
    shapes = _noise_shapes(learnt, rng, n_jobs)
    return replace(learnt, noise_shapes=shapes, network=in_units(learnt.seeing, learnt.units, shapes))


def _noise_shapes(learnt: Learnt, rng: np.random.Generator, n_jobs: int | None) -> list[NoiseShape]:
    """The shape of each output's noise, learnt from all rows."""
    doubted = learnt.own_noise
    if doubted is not None:
        # outputs out of all proportion are errors, not noise: they must not widen its shape
        doubted = np.where(beyond_reach(learnt.units.outputs.apply(learnt.Y), learnt.reach), np.nan, doubted)
    if not learnt.learns_noise_shape and (doubted is None or np.isnan(doubted).all()):
        return learnt.noise_shapes
    return noise_shapes(learnt.seeing, learnt.Y.shape[1], doubted, learnt.reach, learnt.learns_noise_shape, rng, n_jobs)


def _prior(regions: Region, experts: Experts, plan: Plan) -> Node:
    def labelled(region: Region, k: int) -> list[tuple[str, ExactGP]]:
        return list(zip(plan.labels, experts[id(region), k], strict=True))

    return build_network(regions, labelled, len(plan.templates))
