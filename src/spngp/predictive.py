"""Gaussian mixtures as distributions: what a network says about each row."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from spngp._support.checks import as_count, as_floats, as_generator
from spngp._support.types import Array, Indices, RandomState

_HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))
_CORE = 9.0  # standard deviations around the mean, outside which a component has a probability of 1e-19
_NUMBERS_AT_ONCE = 2**16  # numbers of each array in a batch: bounds the memory, and fits into a cache


def _middle(low: Array, high: Array, edges: Array) -> Array:
    """For each row, the middle one of the sorted edges inside the bracket; if there is none, the bracket's middle."""
    inside = (edges > low[:, np.newaxis]) & (edges < high[:, np.newaxis])
    count = inside.sum(axis=-1)
    pick = inside.argmax(axis=-1) + count // 2
    return np.where(count > 0, np.take_along_axis(edges, pick[:, np.newaxis], axis=-1)[:, 0], low + 0.5 * (high - low))


def _batches(n: int, numbers: int) -> Iterator[slice]:
    """Batches of rows, as many rows in each as have ``_NUMBERS_AT_ONCE`` numbers, and at least one."""
    step = max(1, _NUMBERS_AT_ONCE // numbers)
    return (slice(start, start + step) for start in range(0, n, step))


def _components_at(levels: Array, weights: Array) -> Indices:
    """For each level in [0, 1) the first component up to which the weights of its row add up to it, by bisection."""
    cumulative = np.cumsum(weights, axis=-1)
    cumulative /= cumulative[:, -1:]
    size = weights.shape[1]
    below = np.zeros(levels.shape, dtype=np.intp)  # number of components below the level
    for power in reversed(range((size - 1).bit_length())):
        more = np.minimum(below + 2**power, size)
        np.copyto(below, more, where=levels > np.take_along_axis(cumulative, more - 1, axis=-1))
    return below


# What follows works on arrays of shape (rows, components), with positive variances, and y of shape (rows,).


def _standardised(y: Array, means: Array, variances: Array) -> Array:
    with np.errstate(over="ignore"):  # next to a component of no width everything else is infinitely far
        return np.asarray((y[:, np.newaxis] - means) / np.sqrt(variances))


def _log_sums(A: Array) -> Array:
    """log Σ exp along the last axis, as by ``scipy.special.logsumexp`` without its checks; A is overwritten."""
    top = A.max(axis=-1)
    top[~np.isfinite(top)] = 0.0  # a sum of nothing stays −inf
    A -= top[:, np.newaxis]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(A, out=A).sum(axis=-1)) + top)


def _log_density_of_rows(log_weights: Array, means: Array, variances: Array, y: Array) -> Array:
    z = _standardised(y, means, variances)
    with np.errstate(over="ignore"):  # a value out of all range has density zero
        z2 = z * z
    return _log_sums(log_weights - 0.5 * z2 - 0.5 * np.log(variances) - _HALF_LOG_2PI)


def _density_of_rows(points: Array, log_weights: Array, means: Array, variances: Array) -> Array:
    """At each of some points, shape (rows, points)."""
    heights, precisions = np.exp(log_weights - 0.5 * np.log(variances) - _HALF_LOG_2PI), -0.5 / variances
    found = np.empty((means.shape[0], points.size))
    with np.errstate(over="ignore", under="ignore"):
        for j, point in enumerate(points.tolist()):
            gaps = point - means
            gaps *= gaps
            gaps *= precisions
            found[:, j] = np.einsum("ik,ik->i", heights, np.exp(gaps, out=gaps))
    return found


def _probability_of_rows(log_weights: Array, means: Array, variances: Array, y: Array) -> Array:
    z = _standardised(y, means, variances)
    return np.minimum(np.einsum("ik,ik->i", np.exp(log_weights), ndtr(z)), 1.0)


def _quantile_of_rows(q: float, log_weights: Array, means: Array, variances: Array) -> Array:
    """The quantile of each row's mixture, 0 < q < 1."""
    # Above the median solve the mirrored problem, where 1 − q keeps its digits.
    sign, level = (1.0, q) if q <= 0.5 else (-1.0, 1.0 - q)
    means, stds = sign * means, np.sqrt(variances)
    component = means + stds * ndtri(level)
    used = log_weights > -np.inf
    low = np.where(used, component, np.inf).min(axis=-1)  # the mixture's quantile lies between its components'
    high = np.where(used, component, -np.inf).max(axis=-1)
    x = np.clip(np.einsum("ik,ik->i", np.exp(log_weights), np.where(used, component, 0.0)), low, high)
    # between these edges every component is either all in, all out, or wide
    edges = np.sort(np.concatenate([means - _CORE * stds, means, means + _CORE * stds], axis=-1), axis=-1)
    narrowest = np.where(used, stds, np.inf).min(axis=-1)
    error_low, error_high = np.full(x.size, np.inf), np.full(x.size, np.inf)
    active = np.flatnonzero(high > low)
    target = np.log(level)
    for _ in range(200):
        if active.size == 0:
            break
        at = x[active]
        with np.errstate(over="ignore"):
            z = (at[:, np.newaxis] - means[active]) / stds[active]
            z2 = z * z
        log_cdf = _log_sums(log_weights[active] + log_ndtr(z))
        log_pdf = _log_sums(log_weights[active] - 0.5 * z2 - np.log(stds[active]) - _HALF_LOG_2PI)
        excess = log_cdf - target
        above, below = excess >= 0, excess <= 0
        high[active[above]], error_high[active[above]] = at[above], np.abs(excess[above])
        low[active[below]], error_low[active[below]] = at[below], np.abs(excess[below])
        with np.errstate(over="ignore", invalid="ignore"):
            newton = at - excess * np.exp(log_cdf - log_pdf)
        resolution = np.maximum(2.0 * np.spacing(np.abs(at)), 1e-14 * narrowest[active])
        settled = (np.abs(newton - at) <= resolution) & (np.abs(excess) <= 1e-9)
        inside = (newton > low[active]) & (newton < high[active]) & (np.abs(newton - at) > resolution)
        x[active] = np.where(inside, newton, _middle(low[active], high[active], edges[active]))
        active = active[~settled & (high[active] - low[active] > resolution)]
    return np.asarray(sign * np.where(error_low <= error_high, low, high))


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """One Gaussian mixture per row (and output): the last axis of each array runs over components.

    Parameters
    ----------
    log_weights, means, variances : ndarray
        Arrays of one shape, (..., components); −inf is the log weight of a component that is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.predictive import GaussianMixture
    >>> mixture = GaussianMixture(np.log([[0.5, 0.5]]), np.array([[-1.0, 1.0]]), np.array([[0.1, 0.1]]))
    >>> mixture.mean, mixture.var
    (array([0.]), array([1.1]))
    >>> mixture.quantile(0.975).round(3)
    array([1.52])
    """

    log_weights: Array
    means: Array
    variances: Array

    def __post_init__(self) -> None:
        for name in ("log_weights", "means", "variances"):
            object.__setattr__(self, name, as_floats(getattr(self, name), name))
        if not self.log_weights.shape == self.means.shape == self.variances.shape or self.means.ndim < 1:
            raise ValueError(
                "log_weights, means and variances must have one shape (..., components), got "
                f"{self.log_weights.shape}, {self.means.shape}, {self.variances.shape}"
            )
        if self.means.shape[-1] == 0:
            raise ValueError(f"a mixture needs at least one component, got shape {self.means.shape}")
        if (self.variances < 0).any():
            raise ValueError(f"variances must be >= 0, got {self.variances.min():g}")
        total = self.weights.sum(axis=-1)
        if not (np.abs(total - 1.0) <= 1e-6).all():
            worst = total.flat[np.argmax(np.abs(total - 1.0))]
            raise ValueError(f"log_weights must be those of weights that sum to 1, got a sum of {worst:g}")
        for name, values in (("means", self.means), ("variances", self.variances)):
            finite = np.isfinite(values)
            if not finite.all() and (bad := ~finite & (self.log_weights > -np.inf)).any():
                raise ValueError(f"{name} must be finite where they are used, got {values[bad][0]}")

    @property
    def n_components(self) -> int:
        """Number of components of each mixture, those of no weight included."""
        return int(self.means.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the moments: rows, or rows and outputs."""
        return self.means.shape[:-1]

    @property
    def weights(self) -> Array:
        """Probability of each component."""
        return np.exp(self.log_weights)

    @property
    def mean(self) -> Array:
        """Mean Σ π μ."""
        return np.einsum("...k,...k->...", self.weights, self.means)

    @property
    def var(self) -> Array:
        """Variance Σ π (σ² + (μ − mean)²)."""
        return self.moments()[1]

    def moments(self) -> tuple[Array, Array]:
        """Mean and variance."""
        weights = self.weights
        mean = np.einsum("...k,...k->...", weights, self.means)
        spread = self.means - mean[..., np.newaxis]
        with np.errstate(over="ignore"):
            variance = np.einsum("...k,...k->...", weights, self.variances + spread * spread)
        if not np.isfinite(variance).all():
            raise ValueError("the variance overflows: components differ by more than 1e154; rescale y")
        return mean, variance

    @property
    def std(self) -> Array:
        """Standard deviation."""
        return np.sqrt(self.var)

    def scaled(self, scale: Any, shift: Any) -> GaussianMixture:
        """The distribution of scale · Y + shift; one scale for all, or one per output."""
        scale, shift = np.asarray(scale)[..., np.newaxis], np.asarray(shift)[..., np.newaxis]
        return GaussianMixture(self.log_weights, self.means * scale + shift, self.variances * scale**2)

    def with_outputs_axis(self) -> GaussianMixture:
        """The same mixtures with an axis of one output: (n,) becomes (n, 1)."""
        return GaussianMixture(*(part[:, np.newaxis] for part in (self.log_weights, self.means, self.variances)))

    @staticmethod
    def concatenate(mixtures: Sequence[GaussianMixture]) -> GaussianMixture:
        """The mixtures of several batches of rows, one after the other."""
        if len(mixtures) == 1:
            return mixtures[0]
        size = max(mixture.means.shape[-1] for mixture in mixtures)

        def join(name: str, fill: float) -> Array:
            parts = [getattr(mixture, name) for mixture in mixtures]
            padding = [[(0, 0)] * (part.ndim - 1) + [(0, size - part.shape[-1])] for part in parts]
            return np.concatenate(
                [np.pad(part, pad, constant_values=fill) for part, pad in zip(parts, padding, strict=True)]
            )

        return GaussianMixture(join("log_weights", -np.inf), join("means", 0.0), join("variances", 1.0))

    def logpdf(self, y: Any) -> Array:
        """Log density at ``y``, one value per mixture."""
        return self._of_rows(_log_density_of_rows, self._values(y))

    def cdf(self, y: Any) -> Array:
        """Probability of a value at most ``y``, one per mixture."""
        return self._of_rows(_probability_of_rows, self._values(y))

    def quantile(self, q: Any) -> Array:
        """Value below which a share ``q`` lies: same shape as the mixtures, or (..., len(q)) for a sequence.

        Found by Newton steps inside a shrinking bracket, to rounding error, on log q (or log(1 − q) above the
        median, so both tails are exact). Where components are narrow and far apart, Newton steps do not help, and the
        bracket is halved instead.
        """
        levels = as_floats(q, "q")
        if levels.ndim > 1:
            raise ValueError(f"q must be a number or a sequence of numbers, got shape {levels.shape}")
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"q must lie in [0, 1], got {q!r}")
        flat = np.atleast_1d(levels)
        order = np.argsort(flat)
        result = np.empty((*self.shape, flat.size))
        previous: Array | None = None
        for i in order:
            found = self._quantile(float(flat[i]))
            # quantiles of levels that differ by a rounding error must still be in order
            previous = found if previous is None else np.maximum(found, previous)
            result[..., i] = previous
        return result if levels.ndim else result[..., 0]

    def _quantile(self, q: float) -> Array:
        if q in (0.0, 1.0):
            return np.full(self.shape, -np.inf if q == 0.0 else np.inf)
        return self._of_rows(partial(_quantile_of_rows, q))

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Central interval: equal probability on either side."""
        if not isinstance(coverage, numbers.Real) or not 0 < coverage < 1:
            raise ValueError(f"coverage must lie strictly between 0 and 1, got {coverage!r}")
        both = self.quantile([0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)])  # in one call, so that they are in order
        return both[..., 0], both[..., 1]

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Independent samples of each mixture, shape (..., n_samples).

        Rows are drawn independently of each other; ``sample_y`` of a model draws them jointly.
        """
        n_samples = as_count(n_samples, "n_samples", 0)
        rng = as_generator(random_state)
        uniform = rng.random((math.prod(self.shape), n_samples))
        draws = rng.standard_normal(uniform.shape)
        size = self.means.shape[-1]
        log_weights, means, variances = (
            part.reshape(-1, size) for part in (self.log_weights, self.means, self.variances)
        )
        for rows in _batches(draws.shape[0], n_samples + size):
            component = _components_at(uniform[rows], np.exp(log_weights[rows]))
            draws[rows] *= np.sqrt(np.take_along_axis(variances[rows], component, axis=-1))
            draws[rows] += np.take_along_axis(means[rows], component, axis=-1)
        return draws.reshape(*self.shape, n_samples)

    def density(self, grid: Any) -> Array:
        """Density of each mixture at each point of a common one-dimensional grid, shape (..., len(grid))."""
        points = as_floats(grid, "grid")
        if points.ndim != 1 or points.size == 0:
            raise ValueError(f"grid must be one-dimensional with at least one point, got shape {points.shape}")
        return self._of_rows(partial(_density_of_rows, points), of_row=points.shape)

    def mode(self, grid: Any) -> Array:
        """The grid point of highest density of each mixture."""
        return np.asarray(as_floats(grid, "grid")[np.argmax(self.density(grid), axis=-1)])

    def _values(self, y: Any) -> Array:
        values = as_floats(y, "y")
        try:
            return np.broadcast_to(values, self.shape)
        except ValueError:
            raise ValueError(f"y must have shape {self.shape}, got {values.shape}") from None

    def _of_rows(self, function: Callable[..., Array], *given: Array, of_row: tuple[int, ...] = ()) -> Array:
        """``function(log_weights, means, variances, *given)`` of some rows at a time; variances are positive.

        It gives an array of the shape ``of_row`` for each row, by default a number.
        """
        size = self.means.shape[-1]
        parts = [part.reshape(-1, size) for part in (self.log_weights, self.means, self.variances)]
        flat = [values.reshape(-1) for values in given]
        found = np.empty((math.prod(self.shape), *of_row))
        for rows in _batches(found.shape[0], size):
            log_weights, means, variances = (part[rows] for part in parts)
            positive = np.maximum(variances, np.finfo(np.float64).tiny)
            found[rows] = function(log_weights, means, positive, *(values[rows] for values in flat))
        return found.reshape((*self.shape, *of_row))

    def __getitem__(self, index: Any) -> GaussianMixture:
        """The mixtures of some rows, ``mixture[rows]``, or of one output, ``mixture[:, k]``, with all components."""
        try:
            indices = (*index, slice(None)) if isinstance(index, tuple) else (index, slice(None))
            return GaussianMixture(*(part[indices] for part in (self.log_weights, self.means, self.variances)))
        except IndexError:
            raise IndexError(f"index must fit the shape of the mixtures, {self.shape}, got {index!r}") from None

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def __repr__(self) -> str:
        return f"GaussianMixture(shape={self.shape}, components={self.means.shape[-1]})"
