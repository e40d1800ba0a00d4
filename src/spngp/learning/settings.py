"""Settings: where rows are too few to tell hyper-parameters apart, several of them, each an expert under a sum.

A point estimate takes one setting θ for certain. Here each alternative kernel M has a prior on its log-parameters, is
brought to the maximum of its posterior, is weighed by Laplace's formula,

    log p(y | M) ≈ log p(y | θ̂) + log p(θ̂) − ½ log |H / 2π|,

and draws from p(θ | y, M) become its experts. A draw has the posterior weight p(M | y) / m, if M has m draws; so its
prior weight in the network is that divided by its evidence. Given more rows, the exact update of the network weighs
draws as importance sampling does.

The place of a step is integrated out of the evidence. Its draws take θ with the step where it is most plausible, and
then a place given θ and the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from spngp._linalg.scratch import lent_memory
from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, LeafEvidence, climb
from spngp.gp.slice_sampling import elliptical_slices
from spngp.kernels.parameter import Identity
from spngp.learning.steps import Cuts, cuts_of, moved, step_in

# Standard deviations of log-parameters under the prior. That of length-scales acts against short ones: it leaves the
# way to "irrelevant" open. Below its centre a log-parameter is s·z·(1 + _TAIL·|z|), with z standard normal, so that
# rows can also speak for a length-scale or a noise of almost zero.
_SHORTER, _LONGER = 0.7, 2.0
_TAIL = 0.3
_VARIANCE, _NOISE = 1.0, 1.5
_FARTHEST = 5.0  # standard deviations that a log-parameter may be from where its prior is centred
_SHORT_START = -1.3  # standard deviations of log length-scales at a second start: evidence has several peaks

_FEW_ROWS = 200  # of more, some show which alternatives are worth being learnt from all
_EVALUATIONS, _FURTHER_EVALUATIONS = 60, 40  # of the evidence, for a maximum
_CURVATURE = 30.0  # of the log posterior along each z, as far as nothing is known yet: first steps are short
_TOLERANCE = 1e-4  # nats per row that a further step would gain
_HOPELESS = 15.0  # nats behind the best of them
_STEP = 0.05  # standard deviations, for differences of gradients
_FLATTEST = 0.3  # least eigenvalue of H; it is one where only the prior speaks

_LEAST_SHARE = 0.005  # of the belief, for an alternative to get a draw
_MOST_DRAWS, _FEWEST_DRAWS = 24, 8
_ROWS_OF_DRAWS = 3600  # rows of all draws together, so that predictions take the same time whatever the rows

_BURN_IN, _STEPS_PER_DRAW = 10, 3


@dataclass(frozen=True)
class Alternative:
    """A kernel to decide about.

    Attributes
    ----------
    label : str
        Name of the kernel.
    prior : ExactGP
        With log-parameters where their priors are centred.
    found : ExactGP
        With log-parameters where an earlier search ended.
    weight : float
        Prior weight, relative to the other alternatives.
    steps_along : sequence of int
        Inputs along which the step of its kernel may be, anywhere; empty if it has none.
    """

    label: str
    prior: ExactGP
    found: ExactGP
    weight: float = 1.0
    steps_along: Sequence[int] = ()

    def cuts(self, theta: Array, block: Block) -> Cuts | None:
        """Where its step may be, with these log-parameters; None without a step, or if there is no inverse."""
        return cuts_of(self.prior.with_theta(theta), block, self.steps_along) if self.steps_along else None

    def price(self, cuts: Cuts | None) -> float:
        """Log evidence of a step anywhere, minus that of the step where it stands."""
        if not self.steps_along:
            return 0.0
        return -np.inf if cuts is None else cuts.gain_anywhere - cuts.gain_at(step_in(self.prior))


class Settings(NamedTuple):
    """Settings that share the belief; their shares sum to one. None if no covariance can be factored.

    ``gain_of_steps`` are the nats by which alternatives with a step raise the evidence of all of them together.
    """

    drawn: list[Setting]
    gain_of_steps: float = 0.0


@dataclass(frozen=True)
class Setting:
    """One setting of one kernel, with its share of the belief given the rows, and its log evidence."""

    label: str
    gp: ExactGP
    share: float
    log_evidence: float


def learn_settings(
    alternatives: Sequence[Alternative], block: Block, rng: np.random.Generator, n_jobs: int | None = None
) -> Settings:
    """Settings that share the belief given the rows. Same generator, same draws."""
    peaks = _peaks(alternatives, block, n_jobs)
    log_evidences = np.array([peak.log_evidence for peak in peaks])
    if not (log_evidences > -np.inf).any():
        return Settings([])
    shares = np.exp(log_evidences - logsumexp(log_evidences))
    shares[shares < _LEAST_SHARE] = 0.0
    shares /= shares.sum()
    most = float(np.clip(_ROWS_OF_DRAWS / block[1].size, _FEWEST_DRAWS, _MOST_DRAWS))
    counts = np.ceil(shares * most).astype(int).tolist()
    rngs = rng.spawn(len(peaks))

    def draws(i: int) -> list[Setting]:
        return peaks[i].draws(block, counts[i], shares[i] / max(1, counts[i]), rngs[i])

    found = [setting for own in map_leaves(draws, range(len(peaks)), n_jobs) for setting in own]
    smooth = [peak.log_evidence for peak in peaks if not peak.own.steps_along]
    least = log_evidences.max() - _HOPELESS * _thinned(block)  # those farther behind are not among the peaks
    return Settings(found, float(logsumexp(log_evidences) - logsumexp([*smooth, least])))


def drawn(alternatives: Sequence[Alternative], rng: np.random.Generator) -> ExactGP:
    """What is believed before any row is seen: an alternative by its weight, its log-parameters by their priors."""
    weights = np.array([own.weight for own in alternatives])
    prior = alternatives[rng.choice(len(alternatives), p=weights / weights.sum())].prior
    units = _Units(prior)
    return prior.with_theta(units.theta(rng.standard_normal(units.centre.size)))


def best_theta(own: Alternative, block: Block) -> Array:
    """The log-parameters of an alternative that are most plausible given the rows."""
    with lent_memory():
        posterior = _Posterior(own.prior, block)
        return posterior.theta(posterior.highest(own.found))


def _peaks(alternatives: Sequence[Alternative], block: Block, n_jobs: int | None) -> list[_Peak]:
    """Each alternative at the maximum of its posterior, but for those that some of the rows show to be hopeless."""
    n_rows, step = block[1].size, _thinned(block)
    some = block.every(step)

    def of_some(own: Alternative) -> tuple[float, Array]:
        """The log posterior of all rows at its maximum for some."""
        with lent_memory():
            z = _Posterior(own.prior, some).highest(own.found)
        with lent_memory():
            posterior = _Posterior(own.prior, block)
            known = [(posterior.value(z), z) for z in (z, posterior.starts(own.found)[-1])]
            value, z = max(known, key=lambda found: found[0])
            return value + own.price(own.cuts(posterior.theta(z), block)) if value > -np.inf else value, z

    def of_all(task: tuple[Alternative, Array]) -> _Peak:
        own, z = task
        with lent_memory():
            posterior = _Posterior(own.prior, block)
            if step > 1:
                z = posterior.climb(z, _FURTHER_EVALUATIONS)
            value = posterior.value(z)
            cuts = own.cuts(posterior.theta(z), block) if value > -np.inf else None
            value += own.price(cuts)
            if cuts is not None:
                own = replace(own, steps_along=sorted({step_in(own.prior).axis, *cuts.plausible_inputs()}))
        with lent_memory():
            curvature = _Posterior(own.prior, some).curvature(z, n_rows / some[1].size)
        return _Peak.of(own, z, value, curvature)

    found = map_leaves(of_some, alternatives, n_jobs)
    best = max(value for value, _ in found)
    hopeful = [(own, z) for own, (value, z) in zip(alternatives, found, strict=True) if value > best - _HOPELESS * step]
    return map_leaves(of_all, hopeful, n_jobs)


def _thinned(block: Block) -> int:
    """Every how many rows are those that show which alternatives are worth being learnt from all."""
    return -(-block[1].size // _FEW_ROWS)


class _Units:
    """From standard deviations z of their prior to a GP's log-parameters."""

    def __init__(self, prior: ExactGP) -> None:
        self._bounds = prior.bounds
        self.centre = prior.theta
        self.below, self.above = np.array([_prior_std(which) for which in prior.free_parameters]).reshape(-1, 2).T

    def theta(self, z: Array) -> Array:
        """The log-parameters, within their bounds."""
        return np.clip(self.unbounded(z), self._bounds[:, 0], self._bounds[:, 1])

    def unbounded(self, z: Array) -> Array:
        """The log-parameters."""
        return np.asarray(self.centre + z * np.where(z < 0, self.below * (1.0 - _TAIL * z), self.above))

    def slopes(self, z: Array) -> Array:
        """How fast each log-parameter changes."""
        return np.where(z < 0, self.below * (1.0 - 2.0 * _TAIL * z), self.above)


class _Posterior:
    """Log posterior of a GP's log-parameters given a block, in standard deviations z of their prior."""

    def __init__(self, prior: ExactGP, block: Block) -> None:
        self._prior, self._n_rows = prior, block[1].size
        self._evidence = LeafEvidence(prior, *block)
        self._units = _Units(prior)

    def theta(self, z: Array) -> Array:
        """The log-parameters, within their bounds."""
        return self._units.theta(z)

    def __call__(self, z: Array) -> tuple[float, Array]:
        """Log posterior without the constant of the prior, and its gradient."""
        unbounded, theta = self._units.unbounded(z), self.theta(z)
        value, gradient = self._evidence(theta)
        moving = np.where(theta == unbounded, gradient, 0.0)
        return value - 0.5 * float(z @ z), self._units.slopes(z) * moving - z

    def value(self, z: Array) -> float:
        """Log posterior; −∞ where the covariance cannot be factored."""
        try:
            return self._evidence.value(self.theta(z)) - 0.5 * float(z @ z)
        except NotPositiveDefiniteError:
            return -np.inf

    def starts(self, found: ExactGP) -> list[Array]:
        """Where to climb from: the centre of the prior, short length-scales, and what was found before."""
        is_length = np.array([which.role == "length_scale" for which in self._prior.free_parameters])
        units = self._units
        starts = [np.zeros(units.centre.size)]
        if is_length.any():
            starts.append(np.where(is_length, _SHORT_START, 0.0))
        if found is not self._prior:
            away = found.theta - units.centre
            below = (1.0 - np.sqrt(1.0 + 4.0 * _TAIL * np.maximum(-away, 0.0) / units.below)) / (2.0 * _TAIL)
            starts.append(np.clip(np.where(away < 0, below, away / units.above), -_FARTHEST, _FARTHEST))
        return starts

    def highest(self, found: ExactGP) -> Array:
        """The highest of the maxima that are climbed to."""
        return max((self.climb(start, _EVALUATIONS) for start in self.starts(found)), key=self.value)

    def climb(self, z: Array, evaluations: int) -> Array:
        """A maximum, by Newton steps from z; z itself if it cannot be evaluated."""
        bounds = np.tile([-_FARTHEST, _FARTHEST], (z.size, 1))
        try:
            return climb(self, z, bounds, _CURVATURE * np.eye(z.size), evaluations, _TOLERANCE * self._n_rows).theta
        except NotPositiveDefiniteError:
            return z

    def curvature(self, z: Array, ratio: float) -> Array | None:
        """Minus the Hessian at z, by differences of gradients, if there were ``ratio`` times as many rows.

        None where the covariance cannot be factored.
        """
        try:
            gradient = self(z)[1]
            rows = [(gradient - self(z + _STEP * unit)[1]) / _STEP for unit in np.eye(z.size)]
        except NotPositiveDefiniteError:
            return None
        hessian = np.array(rows).reshape(z.size, z.size)
        own = np.eye(z.size)  # the prior's
        return own + ratio * (0.5 * (hessian + hessian.T) - own)


@dataclass(frozen=True)
class _Peak:
    """A maximum of the posterior of an alternative.

    Attributes
    ----------
    own : Alternative
    z : ndarray
        Where it is, in standard deviations of the prior.
    root : ndarray
        A root of the covariance of the posterior around it.
    log_evidence : float
        log p(y | M) by Laplace's formula, plus the log of its prior weight.
    """

    own: Alternative
    z: Array
    root: Array
    log_evidence: float

    @staticmethod
    def of(own: Alternative, z: Array, value: float, curvature: Array | None) -> _Peak:
        """Laplace's Gaussian around the maximum z, where the log posterior has this value and curvature."""
        if curvature is None or not value > -np.inf:
            return _Peak(own, z, np.eye(z.size), -np.inf)
        eigenvalues, vectors = np.linalg.eigh(curvature)
        eigenvalues = np.maximum(eigenvalues, _FLATTEST)
        log_evidence = value - 0.5 * float(np.log(eigenvalues).sum()) + math.log(own.weight)
        return _Peak(own, z, vectors / np.sqrt(eigenvalues), log_evidence)

    def draws(self, block: Block, count: int, share: float, rng: np.random.Generator) -> list[Setting]:
        """``count`` draws from the posterior, each with this share of the belief."""
        if not count:
            return []
        with lent_memory():
            posterior = _Posterior(self.own.prior, block)
            n_steps = _BURN_IN + _STEPS_PER_DRAW * count
            chain = elliptical_slices(posterior.value, self.z, self.root, n_steps, rng)
            drawn = chain[_BURN_IN + _STEPS_PER_DRAW - 1 :: _STEPS_PER_DRAW]
            return [self._setting(posterior, z, block, share, rng) for z in drawn]

    def _setting(
        self, posterior: _Posterior, z: Array, block: Block, share: float, rng: np.random.Generator
    ) -> Setting:
        """A draw; its step, if it has one, is drawn too."""
        theta = posterior.theta(z)
        gp, log_evidence = self.own.prior.with_theta(theta), posterior.value(z) + 0.5 * float(z @ z)
        cuts = self.own.cuts(theta, block)
        if cuts is not None:
            axis, at, gain = cuts.drawn(rng)
            gp, log_evidence = moved(gp, axis, at), log_evidence + gain - cuts.gain_at(step_in(gp))
        return Setting(self.own.label, gp, share, log_evidence)


def _prior_std(which: Identity) -> tuple[float, float]:
    """Standard deviations of a log-parameter below and above the centre of its prior."""
    if which.role == "noise_variance":
        return _NOISE, _NOISE
    return (_SHORTER, _LONGER) if which.role == "length_scale" else (_VARIANCE, _VARIANCE)
