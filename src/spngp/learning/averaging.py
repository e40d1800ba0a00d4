"""The experts of a set that is one region, averaged over settings of their hyper-parameters."""

from __future__ import annotations

import numpy as np

from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.learning.blocks import observed
from spngp.learning.defaults import simple_kernels
from spngp.learning.experts import Experts
from spngp.learning.laplace import FreeExpert
from spngp.learning.parts import levels_of
from spngp.learning.plan import Plan
from spngp.learning.settings import Alternative, Setting, learn_settings
from spngp.learning.tied import Tied

_MOST_ROWS = 1000  # of more, hyper-parameters are known well enough


def averaged_experts(
    tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator
) -> dict[int, list[FreeExpert]]:
    """For each output that can be learnt, the experts of the root region: draws of several kernels' hyper-parameters.

    Beside the tied kernels, simple ones are among the alternatives, down to a constant, so that the number of
    parameters follows the number of rows.
    """
    experts: dict[int, list[FreeExpert]] = {}
    if not plan.averages or not tied.regions.is_leaf or tied.regions.rows.size > _MOST_ROWS:
        return experts
    for k, (starts, gps) in enumerate(zip(tied.starts, tied.gps, strict=True)):
        block = observed(tied.regions.rows, X, Y[:, k])
        if block[1].size < 2:
            continue
        kernels = simple_kernels(X.shape[1], levels_of(starts[0]))
        simple = [(label, starts[0].with_kernel(kernel)) for label, kernel in kernels]
        alternatives = [Alternative(label, gp, gp) for label, gp in simple]
        alternatives += [Alternative(*known) for known in zip(plan.labels, starts, gps, strict=True)]
        settings = learn_settings(alternatives, block, rng, plan.n_jobs)
        if settings:
            experts[k] = [_expert(setting, len(settings)) for setting in settings]
    return experts


def put_in(averaged: dict[int, list[FreeExpert]], experts: Experts, tied: Tied, X: Array, Y: Array) -> Experts:
    """The experts with those of the root region replaced, which keep the evidence of all of them together.

    Other regions, if the root may also be cut, are compared with it by their evidence, and the tied parameters, which
    cost none of them anything, were learnt from all rows.
    """
    replaced = dict(experts)
    for k, drawn in averaged.items():
        key = id(tied.regions), k
        block = observed(tied.regions.rows, X, Y[:, k])
        before = _log_total([(expert.gp, expert.log_correction) for expert in experts[key]], block)
        now = _log_total([(expert.gp, expert.log_correction) for expert in drawn], block)
        replaced[key] = [FreeExpert(expert.gp, expert.log_correction + before - now, expert.label) for expert in drawn]
    return replaced


def _expert(setting: Setting, count: int) -> FreeExpert:
    """With the factor that takes it from the prior weight of one among ``count`` to its share of the belief."""
    return FreeExpert(setting.gp, float(np.log(setting.share * count)) - setting.log_evidence, setting.label)


def _log_total(experts: list[tuple[ExactGP, float]], block: tuple[Array, Array]) -> float:
    values = [gp.condition(*block, keep_factor=False).log_evidence + factor for gp, factor in experts]
    return float(np.logaddexp.reduce(values)) - float(np.log(len(values)))
