"""Experts that may differ from the tied parameters, and what their freedom costs: evidence by Laplace's formula.

An expert moves away from the tied parameters θ₀ along a few directions, θ = θ₀ + Dᵀφ: all length-scales together, all
variances of its kernel together, and the noise. With the prior φ ~ N(0, S), S diagonal, and φ̂ at the maximum of
log p(y | φ) + log p(φ),

    log ∫ p(y | φ) p(φ) dφ ≈ log p(y | φ̂) − ½ φ̂ᵀS⁻¹φ̂ − ½ log |S H|,   H = −∇² [log p(y | φ) + log p(φ)] at φ̂.

The last two terms are the correction: never above zero where the evidence curves downwards, they make an expert pay for
every parameter that its rows determine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx

from spngp._linalg.scratch import lent_memory
from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, LeafEvidence, Objective, climb
from spngp.gp.slice_sampling import elliptical_slices

_SHAPES = ("length_scale", "period", "alpha")
_STEP = 0.05  # of a log-parameter, for differences of gradients
_FARTHEST = 4.0  # standard deviations of the prior that a direction may be followed
_FLATTEST = 0.1  # least eigenvalue of S H: at a maximum it is positive, and one where only the prior speaks
_TOLERANCE = 0.02  # nats that the last step may leave
_EVALUATIONS, _FURTHER_EVALUATIONS = 20, 4
_FEW_ROWS = 250
_BURN_IN, _STEPS_PER_DRAW = 6, 3
LEFT_AWAY = -1e6  # nats, for an expert whose covariance cannot be factored: as good as left away


@dataclass(frozen=True)
class Freedom:
    """Directions in which an expert may leave the tied parameters, and how far.

    Attributes
    ----------
    directions : ndarray of shape (m, len(theta))
        What each direction adds to the log-parameters.
    std : ndarray of shape (m,)
        Of the Gaussian prior on the way along each.
    """

    directions: Array
    std: Array

    @staticmethod
    def of(gp: ExactGP, length_scale: float, amplitude: float, noise: float) -> Freedom:
        """One direction for all length-scales, one for all variances of the kernel and one for the noise, if free."""
        roles = [which.role for which in gp.free_parameters]
        groups = [
            "noise" if role == "noise_variance" else "scale" if role in _SHAPES else "amplitude" for role in roles
        ]
        std = {"scale": length_scale, "amplitude": amplitude, "noise": noise}
        used = [group for group in std if group in groups]
        directions = np.array([[float(group == own) for own in groups] for group in used]).reshape(-1, len(roles))
        return Freedom(directions, np.array([std[group] for group in used]))


@dataclass(frozen=True)
class FreeExpert:
    """An expert at the maximum under its prior.

    Attributes
    ----------
    gp : ExactGP
    log_correction : float
        Added to its log evidence, for its freedom.
    label : str
        Name of its kernel.
    """

    gp: ExactGP
    log_correction: float
    label: str = ""


def fit_free(gp: ExactGP, block: Block, freedom: Freedom, moves: bool = True) -> FreeExpert:
    """The tied expert ``gp`` moved to where its rows and the prior want it, with its correction.

    Of more than 250 rows, some say which way to go and how the evidence curves per row; a few steps with all end there.
    Without ``moves`` it is at its maximum already.
    """
    if not freedom.std.size:
        return FreeExpert(gp, 0.0)
    path = _Path(gp, freedom)
    step = -(-block[1].size // _FEW_ROWS)
    some = Block(*block).every(step)
    m, n_some = freedom.std.size, some[1].size
    # rows determine the log noise variance by half a nat each, and other directions by less
    curvature = np.diag(1.0 + 0.3 * n_some * freedom.std**2)
    with lent_memory():
        objective = path.objective(some)
        phi = np.zeros(m)
        try:
            if moves:
                phi = climb(objective, phi, path.box, curvature, _EVALUATIONS, _TOLERANCE).theta
            gradient, hessian = _second_order(objective, phi, path.box)
            if step > 1:
                hessian = np.eye(m) + (block[1].size / n_some) * (hessian - np.eye(m))
            if step > 1 and moves:
                objective = path.objective(block)
                phi = climb(objective, phi, path.box, _upright(hessian), _FURTHER_EVALUATIONS, _TOLERANCE).theta
                gradient = objective(phi)[1]
        except NotPositiveDefiniteError:
            return FreeExpert(gp, LEFT_AWAY)
    return FreeExpert(gp.with_theta(path.theta(phi)), _log_correction(phi, gradient, hessian, path.box))


def draw_free(
    gp: ExactGP, block: Block, freedom: Freedom, known: FreeExpert, count: int, rng: np.random.Generator
) -> list[FreeExpert]:
    """``count`` draws of the expert ``known``, which :func:`fit_free` moved from ``gp``, given its rows and its prior.

    Together they have the corrected evidence that it had alone, each the same share.
    """
    if not freedom.std.size or known.log_correction == LEFT_AWAY:
        return [known]
    path = _Path(gp, freedom)
    phi = path.phi(known.gp.theta)
    with lent_memory():
        evidence = LeafEvidence(gp, *block)

        def value(phi: Array) -> float:
            try:
                return evidence.value(path.theta(phi))
            except NotPositiveDefiniteError:
                return -np.inf

        def log_posterior(phi: Array) -> float:
            return value(phi) - 0.5 * float(phi @ phi)

        try:
            hessian = _upright(_second_order(path.objective(block), phi, path.box)[1])
        except NotPositiveDefiniteError:
            return [known]
        eigenvalues, vectors = np.linalg.eigh(hessian)
        n_steps = _BURN_IN + _STEPS_PER_DRAW * count
        chain = elliptical_slices(log_posterior, phi, vectors / np.sqrt(eigenvalues), n_steps, rng)
        drawn = chain[_BURN_IN + _STEPS_PER_DRAW - 1 :: _STEPS_PER_DRAW]
        total = value(phi) + known.log_correction
        return [FreeExpert(gp.with_theta(path.theta(own)), total - value(own), known.label) for own in drawn]


class _Path:
    """From steps in units of the prior's standard deviations to parameters."""

    def __init__(self, gp: ExactGP, freedom: Freedom) -> None:
        self._gp, self._centre, self._bounds = gp, gp.theta, gp.bounds
        self._moves = freedom.std[:, np.newaxis] * freedom.directions
        self.box = np.empty((freedom.std.size, 2))
        for i, move in enumerate(self._moves):  # no further than the last of its parameters' bounds
            room = (self._bounds[move != 0] - self._centre[move != 0, np.newaxis]) / move[move != 0, np.newaxis]
            self.box[i] = max(-_FARTHEST, room[:, 0].min()), min(_FARTHEST, room[:, 1].max())

    def theta(self, phi: Array) -> Array:
        return np.clip(self._centre + phi @ self._moves, self._bounds[:, 0], self._bounds[:, 1])

    def phi(self, theta: Array) -> Array:
        """The steps to parameters that were reached by them."""
        phi = np.zeros(len(self._moves))
        for i, move in enumerate(self._moves):  # the parameter that went farthest is not held by its bounds
            steps = (theta - self._centre)[move != 0] / move[move != 0]
            phi[i] = steps[int(np.argmax(np.abs(steps)))]
        return phi

    def objective(self, block: Block) -> Objective:
        """Log evidence of the rows plus log prior, without its constant."""
        evidence = LeafEvidence(self._gp, *block)

        def posterior(phi: Array) -> tuple[float, Array]:
            wanted, theta = self._centre + phi @ self._moves, self.theta(phi)
            value, gradient = evidence(theta)
            moving = np.where(theta == wanted, gradient, 0.0)
            return value - 0.5 * float(phi @ phi), self._moves @ moving - phi

        return posterior


def _second_order(objective: Objective, phi: Array, box: Array) -> tuple[Array, Array]:
    """Gradient, and minus the Hessian by its differences."""
    gradient = objective(phi)[1]
    rows = []
    for i in range(phi.size):
        step = np.zeros(phi.size)
        step[i] = _STEP if phi[i] + _STEP <= box[i, 1] else -_STEP
        rows.append((gradient - objective(phi + step)[1]) / step[i])
    return gradient, 0.5 * (np.array(rows) + np.array(rows).T)


def _upright(hessian: Array) -> Array:
    """The nearest that curves downwards everywhere."""
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray((vectors * np.maximum(values, _FLATTEST)) @ vectors.T)


def _log_correction(phi: Array, gradient: Array, hessian: Array, box: Array) -> float:
    held = (phi <= box[:, 0]) & (gradient < 0) | (phi >= box[:, 1]) & (gradient > 0)
    eigenvalues = np.linalg.eigvalsh(hessian[np.ix_(~held, ~held)])
    correction = -0.5 * float(phi @ phi) - 0.5 * float(np.log(np.maximum(eigenvalues, _FLATTEST)).sum())
    for slope, bend in zip(np.abs(gradient[held]), np.diagonal(hessian)[held], strict=True):
        # half of the axis: ∫₀^∞ exp(−slope t − ½ bend t²) dt / √(2π)
        bend = max(float(bend), _FLATTEST)
        correction += math.log(0.5 * float(erfcx(slope / math.sqrt(2.0 * bend)))) - 0.5 * math.log(bend)
    return correction
