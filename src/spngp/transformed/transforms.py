"""Transforms of a target: increasing functions between the units of the user and those of learning."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from spngp._support.types import Array
from spngp.predictive import GaussianMixture

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)  # of a Gaussian component, for its mean and variance
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_FARTHEST = 1000.0  # ranges of y that values may be inverted to: some inverses reach infinity at a finite value
_NUMBERS_AT_ONCE = 2**20  # rows times components times nodes: bounds the memory


class Transform(Protocol):
    """An increasing function from the units of the user to those of learning, element by element; NaN stays NaN."""

    def forward(self, y: Array) -> Array:
        """To the units of learning; −∞ for values below all that it can take, and ∞ for those above."""

    def inverse(self, z: Array) -> Array:
        """Back to the units of the user."""

    def log_slope(self, y: Array) -> Array:
        """The log of its derivative."""

    def moments(self, log_weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
        """Mean and variance in the units of the user of mixtures, whose last axis runs over components."""


@dataclass(frozen=True)
class Unchanged:
    """No transform."""

    def forward(self, y: Array) -> Array:
        """The same."""
        return y

    def inverse(self, z: Array) -> Array:
        """The same."""
        return z

    def log_slope(self, y: Array) -> Array:
        """Zero."""
        return np.where(np.isnan(y), np.nan, 0.0)

    def moments(self, log_weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
        """Those of the mixture."""
        mixture = GaussianMixture(log_weights, means, variances)
        return mixture.mean, mixture.var


@dataclass(frozen=True)
class Log:
    """The natural logarithm, for positive values: components are log-normal.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.transformed import Log
    >>> mean, variance = Log().moments(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
    >>> mean.round(4), variance.round(4)
    (array([1.6487]), array([4.6708]))
    """

    def forward(self, y: Array) -> Array:
        """The logarithm; −∞ for values that are not positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(y > 0, np.log(y), np.where(np.isnan(y), np.nan, -np.inf))

    def inverse(self, z: Array) -> Array:
        """The exponential."""
        with np.errstate(over="ignore"):
            return np.exp(z)

    def log_slope(self, y: Array) -> Array:
        """−log y."""
        return -self.forward(y)

    def moments(self, log_weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
        """In closed form: the mean of a component is exp(μ + σ²/2)."""
        with np.errstate(over="ignore", invalid="ignore"):
            weights = np.exp(log_weights)
            of_each = np.exp(means + 0.5 * variances)
            mean = _total(weights, of_each)
            spread = of_each - mean[..., np.newaxis]
            return mean, _total(weights, of_each**2 * np.expm1(variances) + spread**2)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A transformer of scikit-learn's, fitted to one output, which must be increasing.

    Its slope is taken by differences, to about nine digits where it is smooth.

    Attributes
    ----------
    transformer : transformer
        With ``transform`` and ``inverse_transform``.
    low, high : float
        Between these, in the units of learning, it can be inverted; beyond, values are those at the border.
    """

    transformer: Any
    low: float = field(default=-np.inf)
    high: float = field(default=np.inf)

    @staticmethod
    def to(transformer: Any, y: Array) -> Fitted:
        """Fit a transformer to the values of one output and see how far it can be inverted."""
        known = y[~np.isnan(y)]
        transformer.fit(known[:, np.newaxis])
        fitted = Fitted(transformer)
        z = fitted.forward(known)
        back = fitted.inverse(z)
        size = float(np.ptp(known)) or 1.0
        name = type(transformer).__name__
        if not np.isfinite(z).all() or not np.allclose(back, known, rtol=1e-6, atol=1e-6 * size):
            raise ValueError(f"target={name} must give finite values back to where they came from on the values of y")
        order = np.argsort(known, kind="stable")
        if (np.diff(z[order]) < 0).any() or z[order[-1]] <= z[order[0]]:
            raise ValueError(f"target={name} must be increasing, got one that is not on the values of y")
        middle, reach = float(np.median(z)), float(np.ptp(z))
        low, high = (fitted._farthest(middle, sign * 20.0 * reach, _FARTHEST * size) for sign in (-1.0, 1.0))
        return Fitted(transformer, low, high)

    def _farthest(self, middle: float, distance: float, most: float) -> float:
        """As far from the middle as it can be inverted: at most by this distance, to values at most ``most`` off."""
        start = float(self._inverted(np.array([middle]))[0])
        low, high = 0.0, 1.0
        for step in range(60):
            share = 1.0 if step == 0 else 0.5 * (low + high)
            value = float(self._inverted(np.array([middle + share * distance]))[0])
            fine = np.isfinite(value) and 0 <= (value - start) * np.sign(distance) <= most
            if fine and step == 0:
                return middle + distance
            low, high = (share, high) if fine else (low, share)
        return middle + low * distance

    def _inverted(self, z: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of values that it cannot invert
            values = self.transformer.inverse_transform(z.reshape(-1, 1))
        return np.asarray(values, dtype=np.float64).reshape(z.shape)

    def forward(self, y: Array) -> Array:
        """Transformed; NaN that it makes of a value means that the value is below or above all that it can take."""
        found = np.full(y.shape, np.nan)
        known = ~np.isnan(y)
        if known.any():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = self.transformer.transform(y[known].reshape(-1, 1))
            found[known] = np.asarray(values, dtype=np.float64).reshape(-1)
        outside = known & np.isnan(found)
        if outside.any():
            middle = float(self._inverted(np.array([np.clip(0.0, self.low, self.high)]))[0])
            found[outside] = np.where(y[outside] < middle, -np.inf, np.inf)
        return found

    def inverse(self, z: Array) -> Array:
        """Back, from within the range that can be inverted."""
        found = np.full(z.shape, np.nan)
        known = ~np.isnan(z)
        if known.any():
            found[known] = self._inverted(np.clip(z[known], self.low, self.high))
        return found

    def log_slope(self, y: Array) -> Array:
        """By central differences of the inverse, in steps of 1e-5 of its range."""
        z = self.forward(y)
        inside = (z > self.low) & (z < self.high)
        at = np.where(inside, z, 0.5 * (max(self.low, -1e300) + min(self.high, 1e300)))
        step = np.minimum(1e-5 * min(self.high - self.low, 100.0), 0.5 * np.minimum(at - self.low, self.high - at))
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = (self.inverse(at + step) - self.inverse(at - step)) / (2.0 * step)
            return np.where(np.isnan(y), np.nan, np.where(inside, -np.log(rise), -np.inf))

    def moments(self, log_weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
        """By Gauss–Hermite quadrature with 40 nodes a component."""
        shape, size = means.shape[:-1], means.shape[-1]
        weights, centres, widths = (
            part.reshape(-1, size) for part in (np.exp(log_weights), means, np.sqrt(np.maximum(variances, 0.0)))
        )
        mean, variance = np.empty(centres.shape[0]), np.empty(centres.shape[0])
        step = max(1, _NUMBERS_AT_ONCE // (size * _NODES.size))
        for start in range(0, mean.size, step):
            rows = slice(start, start + step)
            values = self.inverse(centres[rows, :, np.newaxis] + widths[rows, :, np.newaxis] * _NODES)
            mean[rows] = _total(weights[rows], values @ _NODE_WEIGHTS)
            away = (values - mean[rows, np.newaxis, np.newaxis]) ** 2
            variance[rows] = _total(weights[rows], away @ _NODE_WEIGHTS)
        return mean.reshape(shape), variance.reshape(shape)


def _total(weights: Array, values: Array) -> Array:
    """Sum over components; those that are not used may be anything."""
    return np.asarray(np.where(weights > 0, weights * values, 0.0).sum(axis=-1))
