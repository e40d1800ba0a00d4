"""What regions learn from their own rows: their experts, and which of their outputs are in doubt.

Given the ground, regions are independent of each other: any group of them can be learnt alone, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Array, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Convergence
from spngp.learning.doubt import judge, without_doubted
from spngp.learning.experts import Curvatures, Experts, learn_experts
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied, learn_again
from spngp.network import Node
from spngp.structure import Region, build_network


@dataclass(frozen=True, eq=False)
class Regional:
    """Experts of regions, and their verdict on outputs.

    Attributes
    ----------
    tied : Tied
        Tied parameters, learnt again if they were learnt from outputs in doubt.
    experts : dict
    sound : ndarray
        Outputs, NaN where they are in doubt.
    own : Node, optional
        The posterior given own rows, if outputs were judged; see :class:`spngp.learning.doubt.Judged`.
    own_noise : ndarray, optional
        In the shape of Y, noise variances of outputs in doubt, NaN elsewhere.
    """

    tied: Tied
    experts: Experts
    sound: Array
    own: Node | None
    own_noise: Array | None


def learn_regions(
    tied: Tied,
    W: Array,
    Z: Array,
    own_noise: Array | None,
    curvatures: Curvatures,
    plan: Plan,
    rng: np.random.Generator,
    convergence: Convergence,
    progress: Progress,
    *,
    doubts: bool,
    part: bool = False,
) -> Regional:
    """Learn the experts of the regions of ``tied``, and with ``doubts`` judge all outputs by them.

    Parameters
    ----------
    tied : Tied
    W, Z : ndarray
        Rows and outputs in the units of learning.
    own_noise : ndarray or None
        In the shape of Z, noise variances of outputs that are in doubt already.
    curvatures, plan, rng, convergence, progress
    doubts : bool
    part : bool
        Whether these regions are a part of all there are. Tied parameters then stay; otherwise they are learnt again
        where outputs that they were learnt from come into doubt.
    """
    sound = without_doubted(Z, own_noise)
    experts = learn_experts(tied, W, sound, curvatures, plan, rng, convergence, progress, part=part)
    if not doubts:
        return Regional(tied, experts, sound, None, own_noise)

    def without(outputs: Array, in_doubt: Mask) -> Node:
        nonlocal tied, experts, sound
        before, sound = (sound, experts), outputs
        if not part:
            tied = learn_again(tied, W, sound, in_doubt, plan)
        experts = learn_experts(tied, W, sound, curvatures, plan, rng, convergence, progress, before, part)
        return prior_of(tied.regions, experts, plan)

    prior = prior_of(tied.regions, experts, plan)
    judged = judge(prior, W, Z, own_noise, plan.n_jobs, learn_again=without, variances=plan.variances)
    return Regional(tied, experts, sound, judged.own, judged.own_noise)


def prior_of(regions: Region, experts: Experts, plan: Plan) -> Node:
    """The prior network of these experts."""

    def labelled(region: Region, k: int) -> list[tuple[str, ExactGP]]:
        return [(expert.label, expert.gp) for expert in experts[id(region), k]]

    def log_corrections(region: Region, k: int) -> list[float]:
        return [expert.log_correction for expert in experts[id(region), k]]

    return build_network(regions, labelled, len(plan.templates), log_factors=log_corrections)
