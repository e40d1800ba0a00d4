"""The experts of a set that is one region, averaged over settings of their hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.kernels import Constant, Kernel, Parameter
from spngp.learning.blocks import observed
from spngp.learning.defaults import simple_kernels
from spngp.learning.experts import Experts
from spngp.learning.laplace import FreeExpert
from spngp.learning.parts import levels_of
from spngp.learning.plan import Plan
from spngp.learning.search import evenly
from spngp.learning.settings import Alternative, Setting, best_theta, learn_settings
from spngp.learning.steps import cuts_of, moved, step_in, with_step
from spngp.learning.tied import Tied
from spngp.learning.tied_evidence import evidence

_MANY_ROWS = 500  # of more, hyper-parameters are known well enough, unless there is hardly anything to learn
_MOST_ROWS = 1000  # of more, in any case
_HARDLY_ANYTHING = 0.05  # nats per row that the tied kernels gain over a constant or a line
_USUAL_NOISE = 0.2  # share of the output's variance, where the prior of the noise is centred
_LINE_WEIGHT = 2.0  # prior weight of a line, relative to one for each kernel; a constant has as much as all others
_STEP_WEIGHT = 2.0  # the same of steps, all together
_HARDLY_ANY_ROWS = 20  # of fewer, a constant has more weight, in inverse proportion
_ROWS_TO_PLACE = 150  # by which parameters are learnt while a step is sought


class Averaged(NamedTuple):
    """Experts of the root region, and the nats of evidence that they owe to steps, of which tied kernels know none."""

    experts: list[FreeExpert]
    gain_of_steps: float


def averaged_experts(tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator) -> dict[int, Averaged]:
    """For each output that can be learnt, the experts of the root region: draws of several kernels' hyper-parameters.

    Beside the tied kernels, simple ones are among the alternatives, down to a constant, so that the number of
    parameters follows the number of rows.
    """
    experts: dict[int, Averaged] = {}
    if not plan.averages or not tied.regions.is_leaf or tied.regions.rows.size > _MOST_ROWS:
        return experts
    for k, (starts, gps, labels) in enumerate(zip(tied.starts, tied.gps, tied.labels, strict=True)):
        block = observed(tied.regions.rows, X, Y[:, k], plan.variances_of(k))
        if block[1].size < 2:
            continue
        levels = levels_of(starts[0])
        alternatives = alternatives_of(labels, starts, gps, simple_kernels(X.shape[1], levels))
        if block[1].size <= _MANY_ROWS:
            numbers = [j for j in range(X.shape[1]) if not any(levels[j : j + 1])]  # codes of levels have no order
            alternatives = _balanced([*alternatives, *with_steps(alternatives, block, numbers)], block[1].size)
        else:
            if not _hardly_anything(
                [own for own in alternatives if own.weight > 1.0], gps, evenly(block, _MANY_ROWS // 2)
            ):
                continue
            alternatives = [own for own in alternatives if own.found is not own.prior or own.prior.theta.size <= 3]
        drawn, gain_of_steps = learn_settings(alternatives, block, rng, plan.n_jobs)
        if drawn:
            experts[k] = Averaged([_expert(setting, len(drawn)) for setting in drawn], gain_of_steps)
    return experts


def believes_in_steps(averaged: dict[int, Averaged]) -> bool:
    """Whether a step is likelier than none, for one of the outputs."""
    return any(own.gain_of_steps > math.log(2.0) for own in averaged.values())


def with_steps(alternatives: Sequence[Alternative], block: Block, inputs: Sequence[int]) -> list[Alternative]:
    """A step along one of these inputs, alone and beside a curve; none if there is nothing to cut.

    Where it is best at first hangs on what else explains the rows, so a curve also begins with the step found alone.
    """
    found: list[Alternative] = []
    some = evenly(block, _ROWS_TO_PLACE)
    curve = "Matern(1.5)" if block.X.shape[1] == 1 else "Matern(1.5) (one length-scale)"
    for base in (own for own in alternatives if own.label in ("Constant", curve)):
        first = cuts_of(base.prior.with_theta(best_theta(base, some)), some, inputs)
        alone = [step_in(own.prior) for own in found]
        starts = dict.fromkeys([*([] if first is None else [first.best()]), *((step.axis, step.at) for step in alone)])
        placed = [item for start in starts if (item := _placed(base, block, some, inputs, *start)) is not None]
        if placed:
            found.append(max(placed, key=lambda item: item[0])[1])
    return [replace(own, weight=_STEP_WEIGHT / len(found)) for own in found]


def _placed(
    base: Alternative, block: Block, some: Block, inputs: Sequence[int], axis: int, at: float
) -> tuple[float, Alternative] | None:
    """An alternative with a step that begins there and ends where it is most plausible, and its evidence."""
    gp = with_step(base.prior, axis, at)
    stepped = Alternative(base.label, gp, gp)
    settled = gp.with_theta(best_theta(stepped, some))
    cuts = cuts_of(settled, block, inputs)
    if cuts is None:
        return None
    label = "Step" if base.label == "Constant" else f"Step + {base.label}"
    final = moved(gp, *cuts.best())
    value = evidence(moved(settled, *cuts.best()), [some])
    return value, Alternative(label, final, final, steps_along=inputs)


def _hardly_anything(simple: Sequence[Alternative], gps: Sequence[ExactGP], some: Block) -> bool:
    """Whether the tied kernels explain some of the rows hardly better than a constant or a line does."""
    known = max(evidence(own.prior.with_theta(best_theta(own, some)), [some]) for own in simple)
    return known > max(evidence(gp, [some]) for gp in gps) - _HARDLY_ANYTHING * some[1].size


def alternatives_of(
    labels: Sequence[str], starts: Sequence[ExactGP], gps: Sequence[ExactGP], simple: Sequence[tuple[str, Kernel]]
) -> list[Alternative]:
    """Simple kernels and those of the tied stage, each with an unknown constant, since y is centred on its own mean."""
    low, high = np.exp(starts[0].bounds[-1])

    def with_constant(kernel: Kernel, noise: float) -> ExactGP:
        return ExactGP(kernel + Constant(Parameter(1.0, fixed=True)), Parameter(noise, (low, high)))

    alternatives = []
    for label, kernel in simple:
        gp = with_constant(kernel, _USUAL_NOISE)
        alternatives.append(Alternative(label, gp, gp, _LINE_WEIGHT if label == "Linear" else 1.0))
    for label, start, gp in zip(labels, starts, gps, strict=True):
        found = with_constant(gp.kernel, gp.noise_variance)
        alternatives.append(Alternative(label, with_constant(start.kernel, _USUAL_NOISE), found))
    only_noise = ExactGP(Constant(Parameter(1.0, fixed=True)), Parameter(1.0, (low, high)))
    return _balanced([Alternative("Constant", only_noise, only_noise), *alternatives])


def _balanced(alternatives: Sequence[Alternative], n_rows: int = _HARDLY_ANY_ROWS) -> list[Alternative]:
    """The first of them, the constant, with the prior weight of all others, or more where there are hardly any rows."""
    constant, *others = alternatives
    factor = max(1.0, _HARDLY_ANY_ROWS / n_rows)
    return [replace(constant, weight=factor * sum(own.weight for own in others)), *others]


def put_in(averaged: dict[int, Averaged], experts: Experts, tied: Tied, X: Array, Y: Array, plan: Plan) -> Experts:
    """The experts with those of the root region replaced, which keep the evidence of all together, but for steps.

    Other regions, if the root may also be cut, are compared with it by their evidence, and the tied parameters, which
    cost none of them anything, were learnt from all rows.
    """
    replaced = dict(experts)
    for k, (drawn, gain_of_steps) in averaged.items():
        key = id(tied.regions), k
        block = observed(tied.regions.rows, X, Y[:, k], plan.variances_of(k))
        change = _log_total(experts[key], block) + gain_of_steps - _log_total(drawn, block)
        replaced[key] = [FreeExpert(expert.gp, expert.log_correction + change, expert.label) for expert in drawn]
    return replaced


def _expert(setting: Setting, count: int) -> FreeExpert:
    """With the factor that takes it from the prior weight of one among ``count`` to its share of the belief."""
    return FreeExpert(setting.gp, float(np.log(setting.share * count)) - setting.log_evidence, setting.label)


def _log_total(experts: list[FreeExpert], block: Block) -> float:
    values = [block.given_to(own.gp, keep_factor=False).log_evidence + own.log_correction for own in experts]
    return float(np.logaddexp.reduce(values)) - float(np.log(len(values)))
