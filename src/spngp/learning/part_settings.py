"""Parts of a cut set, whose few rows leave their experts in doubt: each plausible one becomes a sum over settings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array
from spngp.box import Box
from spngp.learning.blocks import observed
from spngp.learning.experts import Experts, freedom_of
from spngp.learning.laplace import FreeExpert, draw_free
from spngp.learning.plan import Plan
from spngp.learning.tied import Tied
from spngp.network import Node, conditioning
from spngp.structure import Region, leaf_regions

_LEAST_PROBABILITY = 0.02  # of a part, for its experts to be spread
_MOST_ROWS = 150  # of a part; of more, parameters are known well enough
_DRAWS = 6  # of each expert


def spread_parts(
    prior: Node, tied: Tied, experts: Experts, X: Array, Y: Array, plan: Plan, rng: np.random.Generator
) -> Experts:
    """The experts with those of plausible parts replaced by draws, which keep the evidence of each.

    ``prior`` is the network of the experts. A part is plausible given the rows, which Y has without outputs in doubt.
    The whole, which is no part, is left alone, and so are all where settings are not averaged.
    """
    if not plan.averages:
        return experts
    probabilities: dict[tuple[Box, int], float] = {}
    keep = conditioning.no_factors
    own = conditioning.condition(prior, X, Y, variances=plan.variances, n_jobs=plan.n_jobs, keep=keep)
    for leaf, box, weight in own.responsibilities():
        probabilities[box, leaf.output] = probabilities.get((box, leaf.output), 0.0) + weight
    tasks = [
        (region, k, generator)
        for region in leaf_regions(tied.regions)
        for k, generator in enumerate(rng.spawn(len(tied.gps)))
        if region is not tied.regions
        and region.rows.size <= _MOST_ROWS
        and probabilities.get((region.box, k), 0.0) >= _LEAST_PROBABILITY
    ]

    def draws(task: tuple[Region, int, np.random.Generator]) -> list[FreeExpert]:
        region, k, generator = task
        block = observed(region.rows, X, Y[:, k], plan.variances_of(k))
        before = experts[id(region), k]
        if block[1].size < 2:
            return before
        drawn = [
            draw_free(gp, block, freedom_of(gp, plan), known, _DRAWS, generator)
            for (_, gp), known in zip(tied.gps_of(region, k), before, strict=True)
        ]
        # all experts of a region have the same prior weight
        count = sum(len(own) for own in drawn)
        return [
            replace(expert, log_correction=expert.log_correction + math.log(count / (len(before) * len(own))))
            for own in drawn
            for expert in own
        ]

    found = map_leaves(draws, tasks, plan.n_jobs, [region.rows.size for region, _, _ in tasks])
    return {**experts, **{(id(region), k): own for (region, k, _), own in zip(tasks, found, strict=True)}}
