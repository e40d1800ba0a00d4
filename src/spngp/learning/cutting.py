"""Where a set is cut because its parts differ: small sets by evidence, large ones where their noise changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Array, Mask
from spngp.gp.optimisation import Convergence
from spngp.gp.row_weights import KnownVariances
from spngp.learning.cut_candidates import candidate_regions, noise_cuts
from spngp.learning.experts import Experts, learn_experts
from spngp.learning.held_out import Score
from spngp.learning.leaf_cuts import noise_changes_within
from spngp.learning.plan import Plan
from spngp.learning.screening import DOUBTED
from spngp.learning.stacking import CUT, PLAIN, only, with_further
from spngp.learning.tied import Tied
from spngp.network import Box, Node, conditioning
from spngp.structure import Compact
from spngp.structure.regions import Cut


def cut_by_noise(
    tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator
) -> tuple[Tied, Plan, dict[Box, Cut]]:
    """A large set cut first where its noise changes; there, the noise of experts may be far from the tied one.

    With the tied parameters and the plan come these first cuts. The plan says whether leaf regions are to be cut
    further, once they are known.
    """
    strategy = plan.strategy(tied.scales)
    if not isinstance(strategy, Compact):
        return tied, plan, {}
    first, further = noise_cuts(tied, X, Y, plan), noise_changes_within(tied, X, Y, plan)
    if first:
        tied = replace(tied, regions=strategy.regions(X, rng, first))
    if first or further:
        plan = replace(plan, noise_prior_std=plan.freedom[-1], cuts_leaves=further)
    return tied, plan, first


def cut_if_better(
    tied: Tied,
    experts: Experts,
    X: Array,
    Y: Array,
    plan: Plan,
    score: Callable[[Tied, Experts, Plan], Score],
    scores: dict[str, Score],
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
) -> tuple[Tied, Experts, dict[str, Score]] | None:
    """Regions of a small set with cuts to choose from, their experts, and scores; None if nothing speaks for a cut.

    Evidence judges experts by what their own rows say, but they predict with the rows around them as well, and of
    several inputs that is much of what they know; nor does it know the shape of the noise. There, cuts have to predict
    better too, each row by all others, by ``score``. ``scores`` are those of alternatives that are known already.
    """
    candidates = candidate_regions(tied, X, Y, plan)
    if candidates is None:
        return None
    cut = replace(tied, regions=candidates)
    others = learn_experts(cut, X, Y, {}, plan, rng, convergence, progress)
    if X.shape[1] == 1:
        return cut, others, {}
    scores = scores or {PLAIN: score(tied, experts, replace(plan, chooses_cuts=False))}
    scores = with_further(scores, CUT, score(cut, only(CUT, others, cut), plan), tied.n_parameters)
    return (cut, others, scores) if CUT in scores else None


def explained(
    prior: Node, X: Array, Y: Array, sound: Array, own_noise: Array, variances: KnownVariances | None = None
) -> Mask:
    """Which outputs in doubt are not far off once the set is cut, where experts may have each its noise.

    ``sound`` are the outputs Y without those in doubt.
    """
    doubted = ~np.isnan(own_noise)
    rows = np.flatnonzero(doubted.any(axis=1))
    predicted = conditioning.condition(prior, X, sound, variances=variances).predict_dist(X[rows])
    shape = (rows.size, Y.shape[1])
    off = np.abs(Y[rows] - predicted.mean.reshape(shape)) / predicted.std.reshape(shape)
    found = np.zeros(Y.shape, dtype=bool)
    found[rows] = doubted[rows] & (off < DOUBTED)
    return found
