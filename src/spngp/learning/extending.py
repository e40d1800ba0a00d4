"""Kernels that get further parts for what their residuals show, if the evidence is for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.learning.jumps import fine_parts, placed_anew, with_jumps, with_levels_instead, worth
from spngp.learning.parts import of_parts, parts_of, with_less_noise, with_part, with_rougher_parts, without_part
from spngp.learning.plan import Effort
from spngp.learning.structure_left import Finding
from spngp.learning.tied_evidence import fit_tied, tied_prior

_MOST_PARTS = 5  # of a kernel; time grows with them
_LEARNING_GAINS = 0.02  # nats per row, at most, for levels as they are proposed
_LEAST_GAIN = 10.0  # nats that levels must gain over a part that follows them
_IDLE = 1.0  # nats: what a part may be worth to be dropped


def extended(
    start: ExactGP,
    gp: ExactGP,
    before: float,
    findings: Sequence[Finding],
    blocks: Sequence[Block],
    judges: Sequence[Block],
    bars: tuple[float, float],
    evaluations: int,
    effort: Effort,
) -> tuple[ExactGP, ExactGP]:
    """Where training of a kernel began and where it stands, with parts for the findings if the evidence is for them.

    ``bars`` are what further parts must gain as they are proposed, and what the kernel must be worth when learnt.
    """
    findings = findings[: max(0, _MOST_PARTS - len(parts_of(gp)))]
    if not findings:
        return start, gp
    d = blocks[0][0].shape[1]
    proposed_start, proposed = start, gp
    for finding in findings:
        variance = finding.share * proposed.noise_variance
        proposed_start = with_part(proposed_start, d, finding, variance)
        proposed = with_less_noise(with_part(proposed, d, finding, variance), finding.share)
    value = worth(proposed, judges)
    if value < before + bars[0]:
        return start, gp
    prior = tied_prior(proposed_start, effort)
    learnt = fit_tied([proposed], blocks, evaluations, priors=[prior])[0]
    rougher = with_rougher_parts(learnt, len(findings))
    # what few rows do not show is lost when learnt from them: then the proposal itself is better
    candidates = [(value, proposed), (worth(learnt, judges), learnt), (worth(rougher, judges), rougher)]
    value, best = max(candidates, key=_by_value)
    value, best = max(
        (value, best), _jumping(learnt, findings, value, blocks, judges, evaluations, effort), key=_by_value
    )
    if value < bars[1]:
        return start, gp
    if best is not proposed and best is not learnt:  # with other kinds of parts
        proposed_start = of_parts(start, [*parts_of(start), *parts_of(best)[len(parts_of(start)) :]])
    return _without_idle_parts(proposed_start, best, blocks)


def _jumping(
    learnt: ExactGP,
    findings: Sequence[Finding],
    bar: float,
    blocks: Sequence[Block],
    judges: Sequence[Block],
    evaluations: int,
    effort: Effort,
) -> tuple[float, ExactGP]:
    """What a kernel with levels for findings is worth, and the kernel."""
    proposed = with_jumps(learnt, findings, judges)
    if proposed is None:
        return -np.inf, learnt
    return _learnt(proposed, bar, blocks, judges, evaluations, effort)


def with_jumps_instead(
    start: ExactGP, gp: ExactGP, blocks: Sequence[Block], judges: Sequence[Block], evaluations: int, effort: Effort
) -> tuple[ExactGP, ExactGP]:
    """Where training of a kernel began and where it stands, with levels for what its parts follow along single inputs.

    What is found by gradients alone shows in no residual any more.
    """
    value = worth(gp, judges)
    for index, axis in fine_parts(gp):
        if len(parts_of(gp)) < _MOST_PARTS and (proposed := with_levels_instead(gp, index, axis, judges)) is not None:
            found, best = _learnt(proposed, value, blocks, judges, evaluations, effort)
            if found > value + _LEAST_GAIN:
                start, gp, value = of_parts(start, [*parts_of(start), parts_of(best)[-1]]), best, found
    return start, gp


def _learnt(
    proposed: ExactGP, bar: float, blocks: Sequence[Block], judges: Sequence[Block], evaluations: int, effort: Effort
) -> tuple[float, ExactGP]:
    """What a kernel is worth, and the kernel, learnt if it may come to exceed ``bar``."""

    def valued(gp: ExactGP) -> tuple[float, ExactGP]:
        return worth(gp, judges), gp

    value, _ = valued(proposed)
    if value < bar - _LEARNING_GAINS * sum(block.y.size for block in judges):
        return value, proposed
    found = fit_tied([proposed], blocks, evaluations, priors=[tied_prior(proposed, effort)])[0]
    return max((value, proposed), valued(found), valued(placed_anew(found, judges)), key=_by_value)


def _by_value(candidate: tuple[float, ExactGP]) -> float:
    return candidate[0]


def _without_idle_parts(start: ExactGP, gp: ExactGP, blocks: Sequence[Block]) -> tuple[ExactGP, ExactGP]:
    """Without parts that the evidence does not miss."""
    value = worth(gp, blocks)
    for index in reversed(range(len(parts_of(gp)))):
        if len(parts_of(gp)) > 1:
            without = without_part(gp, index)
            left = worth(without, blocks)
            if left > value - _IDLE:
                start, gp, value = without_part(start, index), without, left
    return start, gp
