"""The search for tied parameters: maxima of the evidence, and what none of them has seen.

From where a kernel over all inputs starts, the gradient shows no way to structure that is fine along one of them: the
evidence then has a maximum that calls it noise. So residuals of what was found are screened
(:mod:`spngp.learning.structure_left`), and kernels get a further part, short along the inputs found and long along all
others, if the evidence is for it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, Convergence, GaussianPrior
from spngp.learning.extending import extended, with_jumps_instead
from spngp.learning.jumps import fine_parts, levels_between_cuts, placed_anew, with_gaps, worth
from spngp.learning.plan import Plan
from spngp.learning.structure_left import Finding, structure_left
from spngp.learning.tied_evidence import climb_tied, evidence, fit_tied, tied_prior

# Where all rows are one region, length-scales × 0.2 are also tried, scored on 250 rows after 25 evaluations.
_SHORTER = 0.2  # factor of the length-scales
_TRIED_ROWS = 250  # rows
_TRIED_EVALUATIONS = 25  # evaluations of the evidence
_NEEDED = 0.0002  # nats of evidence per row that are lost without a kernel, from which on it is kept
_FAR_BEHIND = 0.3  # nats per row on the first subset, beyond which it is not
_IN_SIGHT = 2.0  # times its start: the longest length-scale that regions begin with
_MOST_FINDINGS = 2  # that become further parts at once
_LEAST_GAIN = 10.0  # nats that further parts must gain, since they have parameters of their own
_LEAST_GAIN_PER_ROW = 0.01  # nats per row that they must gain
_LEAST_NOISE = 1.5  # times its lower bound, for residuals to be screened
_MOST_ROWS = 2000  # that are screened
_NONE = 1e300  # nats that a covariance that is not positive definite is behind


@dataclass(frozen=True)
class Alternatives:
    """Kernels of one output under tied parameters.

    Attributes
    ----------
    starts : list of ExactGP
        Where training began, which is where priors are centred.
    gps : list of ExactGP
        Where it stands.
    labels : list of str
        What they are called.
    curvatures : tuple of ndarray
        How their evidences curve per row, if that is known from earlier regions; empty otherwise.
    """

    starts: list[ExactGP]
    gps: list[ExactGP]
    labels: list[str]
    curvatures: tuple[Array, ...] = ()


@dataclass(frozen=True)
class SearchEffort:
    """How hard to search.

    Attributes
    ----------
    searches : int
        One after the other, at most, while something is found.
    evaluations : int
        Of the evidence, at most, to learn a further part.
    least_share : float
        Of the residuals' variance, for which a further part is tried.
    """

    searches: int
    evaluations: int
    least_share: float


def fit(
    known: Alternatives, blocks: Sequence[Block], evaluations: int, plan: Plan, convergence: Convergence, alone: bool
) -> Alternatives:
    """Each kernel tied over all blocks: in parallel over blocks, or over kernels if there is one block.

    Over several blocks by Newton steps, with the curvature of earlier ones if it is known.

    Kernels share no parameters, and each climbs its own evidence: in their joint evidence one that starts behind has
    no responsibility, hence no gradient, and would be left where it is.
    """
    if not blocks:
        return known
    priors = [tied_prior(gp, plan) for gp in known.starts]
    if len(blocks) > 1:
        given = zip(known.gps, priors, known.curvatures or [None] * len(priors), strict=True)
        found = [
            climb_tied(
                gp,
                blocks,
                evaluations,
                prior,
                curvature,
                tolerance=plan.tolerance,
                n_jobs=plan.n_jobs,
                convergence=convergence,
            )
            for gp, prior, curvature in given
        ]
        return replace(known, gps=[gp for gp, _ in found], curvatures=tuple(own for _, own in found))

    def climb(task: tuple[ExactGP, GaussianPrior]) -> ExactGP:
        gp, prior = task
        return fit_tied([gp], blocks, evaluations, priors=[prior], tolerance=plan.tolerance, convergence=convergence)[0]

    def tried(task: tuple[ExactGP, GaussianPrior]) -> float:
        gp, prior = task
        return evidence(fit_tied([gp], some, _TRIED_EVALUATIONS, priors=[prior])[0], some)

    begin = list(known.gps)
    if alone:
        # evidence has several peaks, and the one found from long length-scales may call everything noise
        some = [evenly(blocks[0], _TRIED_ROWS)]
        tasks = [(gp, prior) for gp, prior in zip(known.gps, priors, strict=True)]
        tasks += [(_with_shorter_scales(gp), prior) for gp, prior in tasks]
        values = map_leaves(tried, tasks, plan.n_jobs)
        shorter = np.reshape(values, (2, -1)).argmax(axis=0) == 1
        begin = [tasks[j + len(begin) * bool(better)][0] for j, better in enumerate(shorter)]
    return replace(known, gps=map_leaves(climb, list(zip(begin, priors, strict=True)), plan.n_jobs))


def without_unneeded(known: Alternatives, weights: Array, evidences: Array, n_rows: int) -> tuple[Alternatives, Array]:
    """Only the kernels without which evidence would be lost, and their weights; others take time and have no say.

    ``evidences``, (kernels, regions), are their logs, of so many rows together. A sum over equally likely kernels is
    worth log Σ exp in each region. The kernel without which that loses least goes, as long as it is hardly anything.
    """
    kept = np.arange(len(known.gps))
    while kept.size > 1:
        all_kept = np.logaddexp.reduce(evidences[kept], axis=0)
        others = [np.logaddexp.reduce(np.delete(evidences[kept], i, 0), axis=0) for i in range(kept.size)]
        lost = [float((all_kept - without).sum()) for without in others]  # region by region: some may be of no use
        if min(lost) >= _NEEDED * n_rows:
            break
        kept = np.delete(kept, int(np.argmin(lost)))
    return _only(kept, known, weights)


def without_far_behind(
    known: Alternatives, weights: Array, evidences: Array, n_rows: int
) -> tuple[Alternatives, Array]:
    """Only the kernels that are not far behind on these rows, a random subset: dense regions may change the order."""
    values = evidences.sum(axis=1)
    return _only(np.flatnonzero(values >= values.max() - _FAR_BEHIND * n_rows), known, weights)


def _only(kept: Indices, known: Alternatives, weights: Array) -> tuple[Alternatives, Array]:
    starts, gps = [known.starts[j] for j in kept], [known.gps[j] for j in kept]
    curvatures = tuple(known.curvatures[j] for j in kept) if known.curvatures else ()
    return Alternatives(starts, gps, [known.labels[j] for j in kept], curvatures), weights[kept]


def in_sight(known: Alternatives) -> Alternatives:
    """The same, with length-scales no longer than twice their starts.

    The evidence hardly depends on a long length-scale, so no gradient makes it shorter again. A subset of few rows lets
    go of inputs that dense regions need; those that nothing depends on grow again.
    """

    def shortened(start: ExactGP, gp: ExactGP) -> ExactGP:
        longest = [np.log(_IN_SIGHT) if which.role == "length_scale" else np.inf for which in gp.free_parameters]
        return gp.with_theta(np.minimum(gp.theta, start.theta + longest))

    return replace(known, gps=[shortened(start, gp) for start, gp in zip(known.starts, known.gps, strict=True)])


def with_jumps_placed(
    known: Alternatives, blocks: Sequence[Block], n_jobs: int | None, at_last: bool = False
) -> Alternatives:
    """The same, with the cuts of levels where these rows show them, if they then are likelier; at last with gaps."""

    def with_cuts(gp: ExactGP) -> ExactGP:
        if not levels_between_cuts(gp):
            return gp
        moved = placed_anew(gp, blocks)
        before, after = (worth(one, blocks) for one in (gp, moved))
        placed = moved if after > before else gp
        return with_gaps(placed, blocks) if at_last else placed

    return replace(known, gps=map_leaves(with_cuts, known.gps, n_jobs))


def search(
    known: Alternatives,
    blocks: Sequence[Block],
    judges: Sequence[Block],
    effort: SearchEffort,
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[Alternatives, list[Finding]]:
    """Kernels with further parts for what residuals on ``judges`` show, and what the likeliest of them still leaves.

    Parts are learnt from ``blocks``; evidences are compared on ``judges``, all on the same rows. A kernel is extended
    only if it then is as likely as the best before: else it would but change where regions are cut.
    """
    judges = _at_most(judges)
    known = _with_jumps(known, blocks, judges, effort, plan)
    least_gain = max(_LEAST_GAIN, _LEAST_GAIN_PER_ROW * sum(block.y.size for block in judges))
    for searches_left in reversed(range(effort.searches + 1)):
        findings = map_leaves(lambda gp: _screen(gp, judges, effort, copy.deepcopy(rng)), known.gps, plan.n_jobs)
        if not any(findings):
            return known, []
        values = map_leaves(lambda gp: worth(gp, judges), known.gps, plan.n_jobs)
        left = findings[int(np.argmax(values))]
        if not searches_left:
            break
        bars = least_gain, max(values)
        tasks = [
            (start, gp, value, shown, blocks, judges, bars, effort.evaluations, plan)
            for start, gp, value, shown in zip(known.starts, known.gps, values, findings, strict=True)
        ]
        found = map_leaves(lambda task: extended(*task), tasks, plan.n_jobs)
        gps = [gp for _, gp in found]
        if all(gp is before for gp, before in zip(gps, known.gps, strict=True)):
            break
        known = replace(known, starts=[start for start, _ in found], gps=gps, curvatures=())
    return known, left


def _with_jumps(
    known: Alternatives, blocks: Sequence[Block], judges: Sequence[Block], effort: SearchEffort, plan: Plan
) -> Alternatives:
    """The same with levels where parts are fine along a single input, if the evidence is for jumps there."""

    def jumping(task: tuple[ExactGP, ExactGP]) -> tuple[ExactGP, ExactGP]:
        return with_jumps_instead(*task, blocks, judges, effort.evaluations, plan) if fine_parts(task[1]) else task

    found = map_leaves(jumping, list(zip(known.starts, known.gps, strict=True)), plan.n_jobs)
    gps = [gp for _, gp in found]
    if all(gp is before for gp, before in zip(gps, known.gps, strict=True)):
        return known
    return replace(known, starts=[start for start, _ in found], gps=gps, curvatures=())


def _screen(gp: ExactGP, judges: Sequence[Block], effort: SearchEffort, rng: np.random.Generator) -> list[Finding]:
    """What residuals show; nothing where there is no noise, since what was missed is called noise."""
    if not gp.noise_is_fixed and np.log(gp.noise_variance / _LEAST_NOISE) < gp.bounds[-1, 0]:
        return []
    try:
        return structure_left(gp, judges, _MOST_FINDINGS, effort.least_share, rng)
    except NotPositiveDefiniteError:  # on rows that the GP was not learnt from
        return []


def _at_most(judges: Sequence[Block]) -> list[Block]:
    """Some of many blocks, evenly spaced, and some rows of a large one, so that screening takes a fraction of a fit."""
    sizes = sum(block.y.size for block in judges)
    chosen = judges[:: -(-sizes // _MOST_ROWS)] if len(judges) > 1 else judges
    return [evenly(block, _MOST_ROWS) if block[1].size > _MOST_ROWS else block for block in chosen]


def evenly(block: Block, count: int) -> Block:
    """At most ``count`` rows of the block, evenly spaced."""
    return block.every(-(-block.y.size // count))


def _with_shorter_scales(gp: ExactGP) -> ExactGP:
    shift = [np.log(_SHORTER) if which.role == "length_scale" else 0.0 for which in gp.free_parameters]
    return gp.with_theta(np.clip(gp.theta + shift, *gp.bounds.T))


def evidences_of(gps: Sequence[ExactGP], blocks: Sequence[Block], n_jobs: int | None) -> Array:
    """Log evidences of kernels in blocks, (kernels, blocks)."""
    found = map_leaves(lambda gp: [evidence(gp, [block]) for block in blocks], gps, n_jobs)
    return np.maximum(np.array(found), -_NONE)  # where no covariance is positive definite, all are equal


def beliefs(evidences: Array) -> Array:
    """How much each kernel is believed: its posterior weight among all of them, averaged over the blocks."""
    return np.asarray(softmax(evidences, axis=0).mean(axis=1))
