"""Optimisation of hyper-parameters: maxima of the log evidence.

``theta`` is the vector of free log-parameters of a GP: its kernel's, then its noise variance.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from spngp._linalg.scratch import lent_memory
from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices, Mask
from spngp.gp.evidence import evidence_of
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.kernels.parameter import Identity

_SHORTEST_STEP = 1e-6  # of a log-parameter, in a climb
_LARGEST_LOG = 690.0  # log-parameters within ±690 are those of positive, finite floats
WORTH_TELLING = 1e-2  # nats per row that the last step of an optimisation gained, for it to count as unfinished

Objective: TypeAlias = Callable[[Array], tuple[float, Array]]


class Block(NamedTuple):
    """The rows and outputs of one region that parameters are learnt from, checked.

    Attributes
    ----------
    X, y : ndarray
    variances : KnownVariances or None
        What is known of the noise of each output, beside the noise that is learnt.
    """

    X: Array
    y: Array
    variances: KnownVariances | None = None

    def every(self, step: int) -> Block:
        """Every ``step``-th row."""
        known = None if self.variances is None else self.variances[::step]
        return Block(np.ascontiguousarray(self.X[::step]), self.y[::step].copy(), known)

    def only(self, kept: Mask | Indices) -> Block:
        """Some of the rows."""
        known = None if self.variances is None else self.variances[kept]
        return Block(np.ascontiguousarray(self.X[kept]), self.y[kept], known)

    def given_to(self, gp: ExactGP, keep_factor: bool = True) -> ExactGP:
        """``gp`` conditioned on these rows."""
        return gp.condition(self.X, self.y, known=self.variances, keep_factor=keep_factor)


@dataclass
class Convergence:
    """Counts the optimisations of one fit, so that there is one warning for all, with the figures."""

    runs: int = 0
    unfinished: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, last_gain: float | None) -> None:
        """Count one run; ``last_gain`` is its last gain in nats per row if it was still improving. Thread-safe."""
        with self._lock:
            self.runs += 1
            if last_gain is not None:
                self.unfinished.append(last_gain)

    def warn(self) -> None:
        """Warn if any run was still improving when its evaluations were used up."""
        if self.unfinished:
            warnings.warn(
                f"hyper-parameters: {len(self.unfinished)} of {self.runs} optimisations were still improving when they "
                f"stopped, the worst by {max(self.unfinished):.2g} nats per row in its last step; predictions are "
                "valid for the parameters reached",
                ConvergenceWarning,
                stacklevel=3,
            )


class LeafEvidence:
    """Log evidence of one GP on one block as a function of ``theta``, with its gradient."""

    def __init__(self, gp: ExactGP, X: Array, y: Array, known: KnownVariances | None = None) -> None:
        table = gp.kernel.parameters
        self._values = np.append(table.values, gp._noise.values)
        self._free = np.flatnonzero(np.append(table.free, gp._noise.free))
        self._gp, self._evidence = gp, evidence_of(gp.kernel, X, y, known, gp.noise_profile)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Log evidence and gradient."""
        value, by_kernel, by_noise = self._evidence(*self._with(theta))
        return value, np.append(by_kernel, by_noise)[self._free]

    def value(self, theta: Array) -> float:
        """Log evidence alone."""
        return self._evidence.value(*self._with(theta))

    def _with(self, theta: Array) -> tuple[Array, float]:
        """All parameters of the kernel, and the noise variance."""
        if theta.shape != self._free.shape or not float(np.abs(theta).max(initial=0.0)) < _LARGEST_LOG:
            self._gp.with_theta(theta)  # raises an error that says what is wrong
        values = self._values.copy()
        values[self._free] = np.exp(theta)
        return values[:-1], float(values[-1])


@dataclass(frozen=True)
class GaussianPrior:
    """An independent Gaussian on each free log-parameter; an infinite standard deviation leaves one alone.

    Attributes
    ----------
    centre, std : ndarray
    below : ndarray, optional
        Standard deviations below the centre, where they are others.
    """

    centre: Array
    std: Array
    below: Array | None = None

    @staticmethod
    def of(
        gp: ExactGP, std_of: Callable[[Identity], float], below_of: Callable[[Identity], float] | None = None
    ) -> GaussianPrior:
        """Centred at the parameters of ``gp``, with a standard deviation by the identity of each."""
        free = gp.free_parameters
        below = None if below_of is None else np.array([below_of(identity) for identity in free])
        return GaussianPrior(gp.theta, np.array([std_of(identity) for identity in free]), below)

    @staticmethod
    def together(priors: Sequence[GaussianPrior]) -> GaussianPrior:
        """One prior on the parameters of several GPs, one after the other."""
        below = [prior.std if prior.below is None else prior.below for prior in priors]
        centre, std = (np.concatenate([getattr(prior, name) for prior in priors]) for name in ("centre", "std"))
        return GaussianPrior(centre, std, np.concatenate(below))

    def added_to(self, objective: Objective) -> Objective:
        """The objective plus the log density (without its constant), and its gradient."""
        above = self.std**-2.0
        below = above if self.below is None else self.below**-2.0

        def posterior(theta: Array) -> tuple[float, Array]:
            value, gradient = objective(theta)
            shift = theta - self.centre
            pull = np.where(shift < 0.0, below, above) * shift
            return value - 0.5 * float(pull @ shift), gradient - pull

        return posterior


def maximise(
    objective: Objective,
    theta: Array,
    bounds: Array,
    n_rows: int,
    max_evaluations: int,
    tolerance: float = 1e-5,
    convergence: Convergence | None = None,
) -> Array:
    """L-BFGS-B from ``theta``; stops when a step gains less than ``tolerance`` nats per row.

    It also stops where the slope along every log-parameter is less than ten times that.
    """
    if theta.size == 0:
        return theta
    best, best_theta = -np.inf, theta
    gains: list[float] = []

    def negative(point: Array) -> tuple[float, Array]:
        nonlocal best, best_theta
        try:
            value, gradient = objective(point)
        except NotPositiveDefiniteError:
            if best == -np.inf:
                raise  # the start itself cannot be evaluated
            # 10 nats per row below the best: the line search steps back
            return 10.0 - best / n_rows, np.zeros(point.size)
        if value > best:
            gains.append(value - best)
            best, best_theta = value, point.copy()
        return -value / n_rows, -gradient / n_rows

    start = np.clip(theta, bounds[:, 0], bounds[:, 1])
    options = {"maxfun": max_evaluations, "maxiter": max_evaluations, "ftol": 0.0, "gtol": 10.0 * tolerance}
    previous = np.inf

    def small_step(intermediate_result: Any) -> None:
        nonlocal previous
        if previous - intermediate_result.fun < tolerance:
            raise StopIteration
        previous = intermediate_result.fun

    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=small_step)
    if convergence is not None:
        last = gains[-1] / n_rows if len(gains) > 1 else 0.0
        convergence.record(last if found.status == 1 and last > WORTH_TELLING else None)
    return best_theta


def fit_gp(gp: ExactGP, X: Any, y: Any, max_evaluations: int = 200) -> ExactGP:
    """The prior of ``gp`` with free parameters moved to a local maximum of its log evidence on the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.gp.exact import ExactGP
    >>> from spngp.gp.optimisation import fit_gp
    >>> X = np.linspace(0, 10, 50)
    >>> fitted = fit_gp(ExactGP(SquaredExponential(), 0.1), X, np.sin(X))
    >>> fitted.condition(X, np.sin(X)).log_evidence > 100
    True
    """
    X, y = gp._checked(X, y, "X", "y")
    objective = LeafEvidence(gp, X, y)
    return gp.with_theta(maximise(objective, gp.theta, gp.bounds, y.size, max_evaluations, tolerance=1e-7))


def mean_curvature(gp: ExactGP, blocks: Sequence[Block], n_jobs: int | None = None) -> Array:
    """Minus the Hessian of the log evidence per row at the parameters of ``gp``, averaged over blocks.

    Computed by differences of gradients: one evaluation per parameter and block. Directions in which the evidence
    curves upwards are taken as flat.
    """
    theta, step = gp.theta, 0.03  # of a log-parameter; about as far as a Newton step will go
    flat = 1e-6  # nats per row
    if not blocks or not theta.size:
        return flat * np.eye(theta.size)

    def of_block(block: Block) -> Array:
        evidence = LeafEvidence(gp, *block)
        try:
            _, gradient = evidence(theta)
            rows = [gradient - evidence(theta + step * unit)[1] for unit in np.eye(theta.size)]
        except NotPositiveDefiniteError:
            return np.zeros((theta.size, theta.size))
        return np.array(rows) / (step * block[1].size)

    mean = np.mean(map_leaves(of_block, blocks, n_jobs, [block[1].size for block in blocks]), axis=0)
    values, vectors = np.linalg.eigh(0.5 * (mean + mean.T))
    return np.asarray((vectors * np.maximum(values, flat)) @ vectors.T)


class Summit(NamedTuple):
    """Where a climb ended, minus the Hessian as it was learnt, and the last gain if there were no evaluations left."""

    theta: Array
    curvature: Array
    last_gain: float | None


def climb(
    objective: Objective, theta: Array, bounds: Array, curvature: Array, max_evaluations: int, tolerance: float
) -> Summit:
    """Newton steps from ``theta`` with a curvature known beforehand and corrected on the way (BFGS).

    For many similar objectives: with a curvature that fits most of them, each takes fewer evaluations. Ends when the
    next step promises a gain of less than ``tolerance`` nats.
    """
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(theta, low, high)
    value, gradient = objective(theta)
    radius = farthest = 1.5  # largest step in a log-parameter, as the curvature may differ further away
    gain = 0.0
    for _ in range(max_evaluations - 1):
        held = (theta <= low) & (gradient < 0) | (theta >= high) & (gradient > 0)
        if not np.isfinite(gradient).all():  # which way is up cannot be told
            return Summit(theta, curvature, None)
        newton, step = _steps(curvature, gradient, ~held, radius)
        trial = np.clip(theta + step, low, high)
        step = trial - theta
        if 0.5 * gradient @ newton < tolerance or not np.abs(step).max(initial=0.0) > _SHORTEST_STEP:
            return Summit(theta, curvature, None)
        try:
            new_value, new_gradient = objective(trial)
        except NotPositiveDefiniteError:
            new_value, new_gradient = -np.inf, gradient
        if not (np.isfinite(new_value) and np.isfinite(new_gradient).all()):
            radius = 0.25 * float(np.abs(step).max())
            continue
        gain = new_value - value
        bend, along = gradient - new_gradient, curvature @ step
        promised = gradient @ step - 0.5 * step @ along
        if bend @ step > 1e-8 * (step @ along):
            curvature = curvature - np.outer(along / (step @ along), along) + np.outer(bend / (bend @ step), bend)
        if gain > 0:
            theta, value, gradient = trial, new_value, new_gradient
            radius = min(farthest, 2.0 * radius) if gain > 0.5 * promised else radius
        else:
            radius = 0.5 * float(np.abs(step).max())
    return Summit(theta, curvature, max(0.0, gain))


def _steps(curvature: Array, gradient: Array, free: Mask, radius: float) -> tuple[Array, Array]:
    """Newton's step along the free parameters, and one that changes none of them by more than ``radius``.

    The second adds a multiple of one to the curvature: parameters that the objective hardly depends on wait, and others
    are not held up by them.
    """
    values, vectors = np.linalg.eigh(curvature[np.ix_(free, free)])
    values = np.maximum(values, 1e-12 * max(float(values.max(initial=0.0)), 1e-300))
    along = vectors.T @ gradient[free]

    def damped(by: float) -> Array:
        step = np.zeros(gradient.size)
        step[free] = vectors @ (along / (values + by))
        return step

    def reach(by: float) -> float:
        return float(np.abs(damped(by)).max(initial=0.0))

    newton = damped(0.0)
    if reach(0.0) <= radius:
        return newton, newton
    least = most = 1e-3 * float(values.min())
    while reach(most) > radius:
        least, most = most, 10.0 * most
    for _ in range(8):
        middle = math.sqrt(least * most)
        least, most = (middle, most) if reach(middle) > radius else (least, middle)
    return newton, damped(most) * (radius / reach(most))


def fit_adaptive(
    gp: ExactGP, block: Block, prior: GaussianPrior, curvature: Array, max_evaluations: int, tolerance: float
) -> ExactGP:
    """One expert moved towards the maximum of its evidence times a prior, usually around the tied values.

    ``curvature`` is the initial one, of the log evidence per row (see :func:`mean_curvature`). Only a few steps are
    made, so an expert that stops short of the maximum is not reported.
    """
    if not gp.theta.size:
        return gp
    n_rows = block[1].size
    start = n_rows * curvature + np.diag(prior.std**-2.0)
    with lent_memory():
        objective = prior.added_to(LeafEvidence(gp, *block))
        return gp.with_theta(climb(objective, gp.theta, gp.bounds, start, max_evaluations, tolerance * n_rows).theta)
