"""Noise that changes smoothly with the inputs: an expert's noise profile, learnt by its evidence.

The variance of the noise at x is noise_variance · exp(g(x)) with g = Φu: a constant, and along every input bumps that
together are a Gaussian process with a length-scale of its own, u ~ N(0, Λ⁻¹). With D = diag(noise), P = C⁻¹ and
alpha = Py, the log evidence of all rows has

    ∂/∂g = ½ D (alpha² − diag P),   expected curvature F = ½ D (P ∘ P) D,

so that around any g it is about a parabola, of which everything is known in closed form: where its maximum under the
prior is, and by Laplace's formula the evidence of the settings of the prior, the length-scales of the bumps and how
far each input may change the noise. Both are found in turn, as long as the evidence rises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from spngp._linalg.square import Square
from spngp._support.types import Array, Indices
from spngp.gp.exact import ExactGP
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.optimisation import Block

_LENGTHS = (0.2, 0.4, 0.8, 1.6)  # of bumps, in standard deviations of their input, that are tried along a single one
_LENGTHS_OF_SEVERAL = (0.5, 1.5)  # the same along several
_CENTRES, _CENTRES_OF_SEVERAL = 24, 6  # of bumps along a single input, and along each of several
_CONSTANT_STD = 1.75  # of the prior of the constant, as of an expert's log noise variance
_STDS = (0.3, 0.6, 1.2, 2.4)  # of the log factor along an input, where the search for them begins
_STEPS = 8  # of the search, at most
_SHARES = (1.0, 0.5, 0.25, 0.1)  # of such a step, if the evidence falls with all of it
_STD_STEPS = 5  # of the standard deviations, in each of them
_LEAST_STD = 1e-2  # below it, an input does not change the noise
_ENOUGH = 0.05  # nats: what the last step may gain
_LARGEST = 30.0  # log factor
_RIDGE = 1e-6  # of the bumps' covariance, whose eigenvalues fall fast


@dataclass(frozen=True)
class Basis:
    """Functions of the rows whose sum is the log factor of the noise.

    Attributes
    ----------
    Phi : ndarray of shape (n, 1 + m)
        A constant, then independent functions that together are a process of variance one along each input.
    axes : ndarray of shape (m,)
        The input that each of these functions is along.
    bumps : tuple of (int, ndarray, float, ndarray)
        For each input: its number, centres, length-scale, and the matrix from independent numbers to coefficients.
    """

    Phi: Array
    axes: Indices
    bumps: tuple[tuple[int, Array, float, Array], ...]

    @staticmethod
    def of(X: Array, inputs: Sequence[int], length: float) -> Basis:
        """Bumps of this length, in standard deviations, along some inputs."""
        count = _CENTRES if len(inputs) == 1 else _CENTRES_OF_SEVERAL
        columns, axes, bumps = [np.ones((X.shape[0], 1))], [], []
        for j in inputs:
            distinct = np.unique(X[:, j])
            spread = float(X[:, j].std())
            if distinct.size < 2 or not spread > 0:
                continue
            own = np.linspace(distinct[0], distinct[-1], count) if distinct.size > count else distinct
            own = np.unique(np.concatenate([own, np.quantile(X[:, j], np.linspace(0, 1, count))]))
            width = length * spread
            among = np.exp(-0.5 * ((own[:, np.newaxis] - own) / width) ** 2) + _RIDGE * np.eye(own.size)
            # columns of ``turn`` take independent numbers to coefficients of bumps; few of them are enough
            values, vectors = np.linalg.eigh(among)
            kept = values > 1e-3 * values[-1]
            turn = vectors[:, kept] / np.sqrt(values[kept])
            columns.append(np.exp(-0.5 * ((X[:, j : j + 1] - own) / width) ** 2) @ turn)
            axes += [j] * int(kept.sum())
            bumps.append((j, own, width, turn))
        return Basis(np.hstack(columns), np.array(axes, dtype=np.intp), tuple(bumps))

    def given_to(self, gp: ExactGP, u: Array) -> ExactGP:
        """``gp`` with the profile of these numbers, brought to a mean of one over the rows, and its noise to match."""
        limits = np.exp(gp.bounds[-1])
        logs = np.clip(self.Phi @ u, *np.log(limits / gp.noise_variance))
        mean = float(np.exp(logs).mean())
        variance = float(np.clip(mean * gp.noise_variance, *limits))
        profile = self._profile(u, float(u[0]) - math.log(mean), *(limits / variance).tolist())
        return gp.with_theta(np.append(gp.theta[:-1], math.log(variance))).with_noise_profile(profile)

    def _profile(self, u: Array, constant: float, least: float, most: float) -> NoiseProfile:
        axes, centres, widths, coefficients, start = [], [], [], [], 1
        for j, own, width, turn in self.bumps:
            axes.append(np.full(own.size, j, dtype=np.intp))
            centres.append(own)
            widths.append(np.full(own.size, width))
            coefficients.append(turn @ u[start : start + turn.shape[1]])
            start += turn.shape[1]
        joined = np.concatenate
        return NoiseProfile(constant, joined(axes), joined(centres), joined(widths), joined(coefficients), least, most)


@dataclass(frozen=True)
class Parabola:
    """The log evidence as a function of g, about: value + gradientᵀ(g − at) − ½ (g − at)ᵀ curvature (g − at)."""

    at: Array
    value: float
    gradient: Array
    curvature: Array


@dataclass(frozen=True)
class SmoothNoise:
    """A profile at its maximum.

    Attributes
    ----------
    basis : Basis
    u : ndarray
        Where it is.
    precision : ndarray
        Of the prior of each of these numbers.
    hessian : ndarray
        Minus that of the log posterior.
    log_evidence : float
        Of the rows, given the profile.
    log_correction : float
        Added to it for the freedom of the profile.
    """

    basis: Basis
    u: Array
    precision: Array
    hessian: Array
    log_evidence: float
    log_correction: float

    @property
    def log_total(self) -> float:
        """The log evidence integrated over profiles, by Laplace's formula."""
        return self.log_evidence + self.log_correction

    def log_correction_of(self, times: float) -> float:
        """The same for so many times the rows."""
        prior = np.diag(self.precision)
        more = prior + times * (self.hessian - prior)
        return self.log_correction + 0.5 * float(np.linalg.slogdet(self.hessian)[1] - np.linalg.slogdet(more)[1])

    def draw(self, rng: np.random.Generator) -> Array:
        """The numbers of a profile, by its plausibility."""
        factor = np.linalg.cholesky(self.hessian)
        return np.asarray(self.u + solve_triangular(factor.T, rng.standard_normal(self.u.size)))


def smooth_noise(
    gp: ExactGP, block: Block, inputs: Sequence[int], start: NoiseProfile | None = None
) -> SmoothNoise | None:
    """The noise profile of ``gp``, given its other parameters; None if there is nothing along which it could change.

    The search begins with one noise for all rows, or with the profile ``start``.
    """
    X, y, _ = block
    K = gp.kernel.gram(X)
    lengths = _LENGTHS if len(inputs) == 1 else _LENGTHS_OF_SEVERAL
    bases = [basis for length in lengths if (basis := Basis.of(X, inputs, length)).axes.size]
    if not bases:
        return None
    found: SmoothNoise | None = None
    precisions: list[Array | None] = [None] * len(bases)
    floor = float(np.exp(gp.bounds[-1, 0]))
    parabola = partial(_parabola, K, y, gp.noise_variance, floor)
    around = parabola(np.zeros(y.size) if start is None else np.log(start.factors(X)))
    for _ in range(_STEPS):
        if around is None:
            break
        try:
            settled = [_settled(basis, around, before) for basis, before in zip(bases, precisions, strict=True)]
        except np.linalg.LinAlgError:
            break
        precisions = [precision for _, precision, _ in settled]
        best = max(range(len(bases)), key=lambda i: settled[i][0])
        _, precision, u = settled[best]
        around, u = _uphill(parabola, bases[best], around, precision, u)
        if around is None:
            break
        values = np.array([value for value, *_ in settled])
        among = float(np.logaddexp.reduce(values) - values[best]) - math.log(len(bases))
        reached = _reached(bases[best], around, precision, u, among)
        if found is not None and reached.log_total < found.log_total + _ENOUGH:
            return max(found, reached, key=lambda one: one.log_total)
        found = reached
    return found


def _uphill(
    parabola: Callable[[Array], Parabola | None], basis: Basis, around: Parabola, precision: Array, u: Array
) -> tuple[Parabola | None, Array]:
    """A step towards ``u`` along which the log posterior rises, the whole one if it can be; None if there is none."""
    here = np.linalg.lstsq(basis.Phi, around.at, rcond=1e-6)[0]
    value = around.value - 0.5 * float(here @ (precision * here))
    for share in _SHARES:
        at = here + share * (u - here)
        now = parabola(basis.Phi @ at)
        if now is not None and now.value - 0.5 * float(at @ (precision * at)) > value - _ENOUGH:
            return now, at
    return None, u


def _reached(basis: Basis, around: Parabola, precision: Array, u: Array, among: float) -> SmoothNoise:
    """The profile of ``u``, where the parabola is, with its price.

    ``among`` is the mean evidence of all length-scales, relative to the one that it has, in nats.
    """
    hessian = basis.Phi.T @ around.curvature @ basis.Phi + np.diag(precision)
    correction = 0.5 * float(np.log(precision).sum()) - 0.5 * float(u @ (precision * u))
    correction += among - 0.5 * float(np.linalg.slogdet(hessian)[1])
    return SmoothNoise(basis, u, precision, hessian, around.value, correction)


def _parabola(K: Array, y: Array, noise_variance: float, floor: float, g: Array) -> Parabola | None:
    """The log evidence around these log factors of the noise, which is at least ``floor``; None if it cannot be had."""
    free = noise_variance * np.exp(np.minimum(g, _LARGEST))
    D = np.where(free > floor, free, 0.0)  # what changes with g
    C = Square(np.array(K, order="F"))
    C.diagonal += np.maximum(free, floor)
    if not C.cholesky():
        return None
    log_determinant = C.log_determinant()
    C.bound_invert()()
    P = np.tril(C.array)
    P += np.tril(P, -1).T
    alpha = P @ y
    value = -0.5 * float(y @ alpha) - 0.5 * log_determinant - 0.5 * y.size * math.log(2 * math.pi)
    gradient = 0.5 * D * (alpha**2 - np.diagonal(P))
    return Parabola(g, value, gradient, 0.5 * (P * P) * np.outer(D, D))


def _settled(basis: Basis, around: Parabola, before: Array | None) -> tuple[float, Array, Array]:
    """Log evidence of the parabola integrated over the prior, the precisions that maximise it, and where it then is."""
    FPhi = around.curvature @ basis.Phi
    A = basis.Phi.T @ FPhi
    b = basis.Phi.T @ around.gradient + FPhi.T @ around.at
    constant = around.value - float(around.gradient @ around.at) - 0.5 * float(around.at @ around.curvature @ around.at)
    groups = [np.flatnonzero(basis.axes == j) + 1 for j in dict.fromkeys(basis.axes.tolist())]

    def at(precision: Array) -> tuple[float, Array, Array]:
        factor = cho_factor(A + np.diag(precision), lower=True)
        u = cho_solve(factor, b)
        value = constant + 0.5 * float(b @ u) + 0.5 * float(np.log(precision).sum())
        return value - float(np.log(np.diagonal(factor[0])).sum()), u, factor

    def of(std: float) -> Array:
        return np.concatenate([[_CONSTANT_STD**-2], np.full(basis.axes.size, std**-2)])

    starts = [of(std) for std in _STDS] if before is None else [before]
    precision = max(starts, key=lambda own: at(own)[0])
    for _ in range(_STD_STEPS):  # expectation–maximisation: the mean square of each input's numbers
        _, u, factor = at(precision)
        spread = np.diagonal(cho_solve(factor, np.eye(u.size)))
        renewed = precision.copy()
        for group in groups:
            renewed[group] = 1.0 / max(_LEAST_STD**2, float((u[group] ** 2 + spread[group]).mean()))
        precision = renewed
    value, u, _ = at(precision)
    return value, precision, u
