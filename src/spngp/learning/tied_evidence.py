"""The joint evidence of experts that share their parameters, and its maximum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import (
    WORTH_TELLING,
    Block,
    Convergence,
    GaussianPrior,
    LeafEvidence,
    Objective,
    climb,
    maximise,
    mean_curvature,
)
from spngp.kernels.parameter import Identity
from spngp.learning.parts import levels_of
from spngp.learning.plan import Effort


class TiedEvidence:
    """Log evidence of a network of independent regions that share their experts' parameters, with its gradient.

    Each block is a region with one expert per template under a sum with uniform weights, so
    log Z = Σ_block logsumexp_k(log w_k + log Z_block,k) and ∇ log Z = Σ r_block,k ∇ log Z_block,k, with r the posterior
    responsibility. ``theta`` holds the templates' parameters one after the other.
    """

    def __init__(self, templates: Sequence[ExactGP], blocks: Sequence[Block], n_jobs: int | None = None) -> None:
        self.templates = list(templates)
        self._sizes = [gp.theta.size for gp in self.templates]
        self._n_jobs = n_jobs
        self._n_blocks, self._rows = len(blocks), [block[1].size for block in blocks]
        self._tasks = [(k, LeafEvidence(gp, *block)) for k, gp in enumerate(self.templates) for block in blocks]

    @property
    def theta(self) -> Array:
        """The templates' free log-parameters, one template after the other."""
        return np.concatenate([gp.theta for gp in self.templates])

    @property
    def bounds(self) -> Array:
        """Bounds of :attr:`theta`."""
        return np.concatenate([gp.bounds for gp in self.templates])

    def parts(self, theta: Array) -> list[Array]:
        """``theta`` split into one array per template."""
        return np.split(theta, np.cumsum(self._sizes)[:-1])

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Log evidence and gradient."""
        parts = self.parts(theta)
        results = map_leaves(lambda task: task[1](parts[task[0]]), self._tasks, self._n_jobs, self._rows)
        values = np.array([value for value, _ in results]).reshape(len(parts), self._n_blocks)
        values -= np.log(len(parts))
        totals = logsumexp(values, axis=0) if len(parts) > 1 else values[0]
        responsibilities = np.exp(values - totals).reshape(-1)
        gradients = [np.zeros(size) for size in self._sizes]
        for (k, _), (_, gradient), responsibility in zip(self._tasks, results, responsibilities, strict=True):
            gradients[k] += responsibility * gradient
        return float(totals.sum()), np.concatenate(gradients)


def fit_tied(
    templates: Sequence[ExactGP],
    blocks: Sequence[Block],
    max_evaluations: int,
    *,
    priors: Sequence[GaussianPrior] | None = None,
    tolerance: float = 1e-5,
    n_jobs: int | None = None,
    convergence: Convergence | None = None,
) -> list[ExactGP]:
    """Templates moved to a maximum of their joint evidence on the blocks (see :class:`TiedEvidence`)."""
    evidence = TiedEvidence(templates, blocks, n_jobs)
    objective: Objective = evidence
    if priors is not None:
        objective = GaussianPrior.together(priors).added_to(evidence)
    n_rows = sum(block[1].size for block in blocks)
    theta = maximise(objective, evidence.theta, evidence.bounds, n_rows, max_evaluations, tolerance, convergence)
    return [gp.with_theta(part) for gp, part in zip(templates, evidence.parts(theta), strict=True)]


def climb_tied(
    gp: ExactGP,
    blocks: Sequence[Block],
    max_evaluations: int,
    prior: GaussianPrior,
    curvature: Array | None = None,
    *,
    tolerance: float = 1e-5,
    n_jobs: int | None = None,
    convergence: Convergence | None = None,
) -> tuple[ExactGP, Array]:
    """One template moved to a maximum of its evidence on several blocks times a prior, by Newton steps.

    Of several blocks one tells how the evidence curves, for one evaluation per parameter; L-BFGS has to find that out
    from all of them, and often stops short of the maximum. ``curvature`` is minus the Hessian per row if it is known
    from earlier blocks; the one that was learnt on the way is returned for later ones.
    """
    evidence, theta = TiedEvidence([gp], blocks, n_jobs), gp.theta
    if not theta.size:
        return gp, np.zeros((0, 0))
    n_rows = sum(block[1].size for block in blocks)
    if curvature is None:
        stiffness = np.diag(prior.std**-2.0 if prior.below is None else np.minimum(prior.std, prior.below) ** -2.0)
        curvature = mean_curvature(gp, blocks[len(blocks) // 2 :][:1]) + stiffness / n_rows
    objective = prior.added_to(evidence)
    found = climb(objective, theta, gp.bounds, n_rows * curvature, max_evaluations, tolerance * n_rows)
    if convergence is not None:
        last = 0.0 if found.last_gain is None else found.last_gain / n_rows
        convergence.record(last if last > WORTH_TELLING else None)
    return gp.with_theta(found.theta), found.curvature / n_rows


def evidence(gp: ExactGP, blocks: Sequence[Block]) -> float:
    """Log evidence of a prior on all blocks; −∞ where its covariance is not positive definite."""
    try:
        return sum(block.given_to(gp, keep_factor=False).log_evidence for block in blocks)
    except NotPositiveDefiniteError:
        return -np.inf


def tied_prior(start: ExactGP, effort: Effort) -> GaussianPrior:
    """What holds tied variances near their start, and length-scales along codes of levels; and short ones back.

    Without it a part of a sum of kernels may die early, and it never comes back: its gradient is gone. Between levels
    the gradient is gone as soon as they are unlike, or all alike. A part that is short along many inputs is noise to
    all rows but a few, whose outputs it then explains.
    """
    levels = levels_of(start)

    def std(which: Identity) -> float:
        if which.role == "length_scale" and which.input is not None and levels and levels[which.input]:
            return effort.levels_prior_std
        return effort.variance_prior_std if which.role == "variance" else np.inf

    def below(which: Identity) -> float:
        return min(std(which), effort.short_prior_std) if which.role == "length_scale" else std(which)

    return GaussianPrior.of(start, std, below)
