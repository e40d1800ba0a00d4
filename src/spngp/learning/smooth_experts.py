"""Experts of a small set whose noise changes smoothly, as an alternative to one noise for all and to cuts."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.optimisation import Block
from spngp.learning.blocks import observed
from spngp.learning.experts import Experts, freedom_of
from spngp.learning.laplace import FreeExpert, draw_free, fit_free
from spngp.learning.parts import levels_of
from spngp.learning.plan import Plan
from spngp.learning.smooth_noise import SmoothNoise, smooth_noise
from spngp.learning.tied import Profiled, Tied
from spngp.learning.tied_evidence import fit_tied, tied_prior

_PROBABILITY = 0.5  # prior probability that the noise of an uncut set changes smoothly
_FEWEST_ROWS = 30
_MOST_ROWS = 1000
_MOST_INPUTS = 32
_LEAST_NOISE = 1.5  # times its lower bound; where there is hardly any, residuals tell where the kernel does not fit
_LEAST_STD = 0.05  # of the noise that is found, relative to the output's: as above
_LEAST_GAIN = 3.0  # nats, for which it becomes an alternative
_SOME_ROWS = 250  # by which it is tried
_ROUNDS, _EVALUATIONS, _ENOUGH = 2, 30, 0.5  # of profile and other parameters in turn; of these; nats of the last round
_MANY_ROWS = 500  # from which it is learnt; of more, some are left out, and the most plausible profile is the only one
_DRAWS = 8  # of profile and parameters


class Smooth(NamedTuple):
    """Experts of all rows together whose noise changes smoothly, and the kernel that they are of.

    Attributes
    ----------
    experts : list of FreeExpert
        Draws, which have the same evidence, that of all together.
    profiled : Profiled, optional
        For experts of parts of the set, which is cut along a single input.
    """

    experts: list[FreeExpert]
    profiled: Profiled | None


def smooth_experts(tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator) -> dict[int, Smooth]:
    """For each output whose noise may change smoothly, its experts; Y has no outputs in doubt."""
    found: dict[int, Smooth] = {}
    if not plan.averages or not tied.regions.is_leaf or plan.variances is not None:
        return found
    for k, gps in enumerate(tied.gps):
        block = observed(tied.regions.rows, X, Y[:, k], None)
        levels = levels_of(gps[0])
        inputs = [j for j in range(X.shape[1]) if not any(levels[j : j + 1])]  # codes of levels have no order
        if not _FEWEST_ROWS <= block.y.size <= _MOST_ROWS or not 0 < len(inputs) <= _MOST_INPUTS:
            continue
        if any(gp.noise_is_fixed for gp in gps):
            continue
        with contextlib.suppress(np.linalg.LinAlgError):  # without it, there is the same noise everywhere
            smooth = _smooth(k, tied, block, inputs, plan, rng)
            found |= {} if smooth is None else {k: smooth}
    return found


def _smooth(k: int, tied: Tied, block: Block, inputs: list[int], plan: Plan, rng: np.random.Generator) -> Smooth | None:
    """The likeliest kernel with a noise profile; None if that gains too little.

    A kernel that was learnt with one noise for all rows may explain some noise as a function. So training also begins
    anew, with some of the rows, and goes on from where these are likelier.
    """
    evidences = [block.given_to(gp, keep_factor=False).log_evidence for gp in tied.gps[k]]
    best = int(np.argmax(evidences))
    gp, some, tried = tied.gps[k][best], _at_most(_SOME_ROWS, block), []
    if gp.noise_variance < _LEAST_NOISE * float(np.exp(gp.bounds[-1, 0])):
        return None
    for start in (gp, tied.starts[k][best]):
        with contextlib.suppress(np.linalg.LinAlgError):
            tried.append(_settled(start, some, inputs, plan, rounds=1))
    if not tried:
        return None
    bare, found = max(tried, key=lambda one: one[1].log_total)
    if found.log_total < some.given_to(gp, keep_factor=False).log_evidence:
        return None
    if some.y.size < block.y.size:
        more = _at_most(_MANY_ROWS, block)
        bare, found = _settled(bare, more, inputs, plan, found.basis.given_to(bare, found.u).noise_profile)
    profiled = found.basis.given_to(bare, found.u)
    price = found.log_correction_of(block.y.size / found.basis.Phi.shape[0])
    total = block.given_to(profiled, keep_factor=False).log_evidence + price
    too_little = profiled.noise_variance < (_LEAST_STD * plan.output_spreads[k]) ** 2
    if too_little or total < evidences[best] + _LEAST_GAIN:
        return None
    profile, freedom = profiled.noise_profile, freedom_of(profiled, plan)
    assert profile is not None
    known = fit_free(profiled, block, freedom, moves=False)
    # one of several kernels was chosen, which elsewhere share the weight
    total, drawn = total + known.log_correction - math.log(len(evidences)), [profiled]
    if block.y.size <= _MANY_ROWS:
        relative = bare.noise_variance / profiled.noise_variance
        parameters = draw_free(profiled, block, freedom, FreeExpert(profiled, 0.0), _DRAWS, rng)
        drawn = [_drawn(found, own.gp, relative, rng) for own in parameters]
    label = tied.labels[k][best]
    experts = [FreeExpert(own, total - block.given_to(own, keep_factor=False).log_evidence, label) for own in drawn]
    if block.X.shape[1] > 1:
        return Smooth(experts, None)
    gps = [
        profiled if j == best else _trained(other.with_noise_profile(profile), block, plan)
        for j, other in enumerate(tied.gps[k])
    ]
    return Smooth(experts, Profiled(gps, math.log(_PROBABILITY) + price, math.log(1.0 - _PROBABILITY)))


def _settled(
    gp: ExactGP,
    block: Block,
    inputs: list[int],
    plan: Plan,
    start: NoiseProfile | None = None,
    rounds: int = _ROUNDS,
) -> tuple[ExactGP, SmoothNoise]:
    """``gp`` and its noise profile, learnt in turn, as long as the evidence rises."""
    found = smooth_noise(gp, block, inputs, start)
    if found is None:
        raise NotPositiveDefiniteError("no noise profile can be learnt")
    for _ in range(rounds):
        trained = _trained(found.basis.given_to(gp, found.u), block, plan)
        again = smooth_noise(trained.with_noise_profile(None), block, inputs, trained.noise_profile)
        if again is None or again.log_total < found.log_total:
            break
        enough = again.log_total < found.log_total + _ENOUGH
        gp, found = trained.with_noise_profile(None), again
        if enough:
            break
    return gp, found


def _trained(gp: ExactGP, block: Block, plan: Plan) -> ExactGP:
    """With its noise profile, and all parameters where they then belong."""
    return fit_tied([gp], [block], _EVALUATIONS, priors=[tied_prior(gp, plan)], tolerance=plan.tolerance)[0]


def _at_most(count: int, block: Block) -> Block:
    """``count`` rows of the block, evenly spaced, or all."""
    n = block.y.size
    return block if n <= count else block.only(np.linspace(0, n - 1, count).round().astype(np.intp))


def _drawn(found: SmoothNoise, gp: ExactGP, relative: float, rng: np.random.Generator) -> ExactGP:
    """``gp`` with another profile by its plausibility.

    ``relative`` is the noise variance before the best profile was brought to a mean of one, relative to that after it.
    """
    bare = gp.with_noise_profile(None)
    bare = bare.with_theta(np.append(bare.theta[:-1], bare.theta[-1] + math.log(relative)))
    return found.basis.given_to(bare, found.draw(rng))


def joined(smooth: dict[int, Smooth], experts: Experts, tied: Tied) -> Experts:
    """The experts with those of smooth noise among the alternatives of the root region."""
    result = dict(experts)
    for k, (own, _) in smooth.items():
        key = id(tied.regions), k
        count = len(experts[key]) + len(own)
        shares = ((experts[key], 1.0 - _PROBABILITY), (own, _PROBABILITY))
        result[key] = [
            replace(expert, log_correction=expert.log_correction + math.log(share * count / len(group)))
            for group, share in shares
            for expert in group
        ]
    return result
