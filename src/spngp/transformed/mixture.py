"""Transformed Gaussian mixtures as distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.checks import as_floats
from spngp._support.types import Array, RandomState
from spngp.predictive import GaussianMixture
from spngp.transformed.transforms import Transform

# Probabilities between which the CRPS is integrated piece by piece, and nodes of each piece.
_TAIL = np.array([1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5])
_LEVELS = np.concatenate([_TAIL, 1.0 - _TAIL[-2::-1]])
_PIECE, _PIECE_WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, eq=False)
class TransformedMixture:
    """One transformed Gaussian mixture per row (and output), with the methods of a GaussianMixture.

    Parameters
    ----------
    mixture : GaussianMixture
        Of the transformed values.
    transforms : tuple of Transform
        One per output if the last axis of the mixtures runs over outputs, else one.
    plain : GaussianMixture, optional
        The mixture that mean and variance are taken from: one whose noise is Gaussian, as the GPs learnt it from sound
        outputs. Rare wide parts of a shape leave the mean of a Gaussian mixture as it is, but one at twenty standard
        deviations of a logarithm would decide the mean alone.
    by_output : bool
        Whether the last axis runs over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.predictive import GaussianMixture
    >>> from spngp.transformed import Log, TransformedMixture
    >>> normal = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
    >>> lognormal = TransformedMixture(normal, (Log(),))
    >>> lognormal.quantile(0.5), lognormal.mean.round(3), lognormal.cdf([0.0])
    (array([1.]), array([1.649]), array([0.]))
    """

    mixture: GaussianMixture
    transforms: tuple[Transform, ...]
    plain: GaussianMixture | None = None
    by_output: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the moments: rows, or rows and outputs."""
        return self.mixture.shape

    @property
    def n_components(self) -> int:
        """Number of components of each mixture."""
        return self.mixture.n_components

    @property
    def mean(self) -> Array:
        """Mean, in the units of the user."""
        return self._moments[0]

    @property
    def var(self) -> Array:
        """Variance, in the squared units of the user."""
        return self._moments[1]

    @property
    def std(self) -> Array:
        """Standard deviation."""
        return np.sqrt(self.var)

    @property
    def _moments(self) -> tuple[Array, Array]:
        plain = self.mixture if self.plain is None else self.plain
        parts = (plain.log_weights, plain.means, plain.variances)
        if not self.by_output:
            return self.transforms[0].moments(*parts)
        found = [of.moments(*(part[..., k, :] for part in parts)) for k, of in enumerate(self.transforms)]
        mean, variance = (np.stack(column, axis=-1) for column in zip(*found, strict=True))
        return mean, variance

    def _each(self, name: str, values: Array) -> Array:
        """A function of every output's transform, of values in the shape of the mixtures, or with one more axis."""
        if not self.by_output:
            return np.asarray(getattr(self.transforms[0], name)(values))
        axis = len(self.shape) - 1
        parts = [getattr(of, name)(np.take(values, k, axis)) for k, of in enumerate(self.transforms)]
        return np.stack(parts, axis=axis)

    def logpdf(self, y: Any) -> Array:
        """Log density at ``y``, one value per mixture: that of the transformed value plus the log slope."""
        values = self._values(y)
        z = self._each("forward", values)
        inside = np.isfinite(z)
        density = self.mixture.logpdf(np.where(inside, z, 0.0)) + self._each("log_slope", values)
        return np.where(np.isnan(values), np.nan, np.where(inside, density, -np.inf))

    def cdf(self, y: Any) -> Array:
        """Probability of a value at most ``y``, one per mixture."""
        return self.mixture.cdf(self._each("forward", self._values(y)))

    def quantile(self, q: Any) -> Array:
        """Value below which a share ``q`` lies: same shape as the mixtures, or (..., len(q)) for a sequence."""
        return self._each("inverse", self.mixture.quantile(q))

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Central interval: equal probability on either side."""
        low, high = self.mixture.interval(coverage)
        return self._each("inverse", low), self._each("inverse", high)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Independent samples of each mixture, shape (..., n_samples)."""
        return self._each("inverse", self.mixture.sample(n_samples, random_state))

    def density(self, grid: Any) -> Array:
        """Density of each mixture at each point of a common one-dimensional grid, shape (..., len(grid))."""
        points = as_floats(grid, "grid")
        return np.stack([np.exp(self.logpdf(np.full(self.shape, point))) for point in points], axis=-1)

    def mode(self, grid: Any) -> Array:
        """The grid point of highest density of each mixture."""
        return np.asarray(as_floats(grid, "grid")[np.argmax(self.density(grid), axis=-1)])

    def crps_of_rows(self, y: Any) -> Array:
        """Continuous ranked probability score of each observation, ∫ (P(t) − [y ≤ t])² dt, to about 1e-6 of itself.

        By Gauss–Legendre quadrature between quantiles, which lie dense where the distribution has mass.
        """
        values = self._values(y)
        at = np.clip(self._each("forward", values), -1e300, 1e300)
        edges = np.sort(np.concatenate([self.mixture.quantile(_LEVELS), at[..., np.newaxis]], axis=-1), axis=-1)
        middles, halves = 0.5 * (edges[..., 1:] + edges[..., :-1]), 0.5 * np.diff(edges, axis=-1)
        total = np.zeros(self.shape)
        for node, weight in zip(_PIECE, _PIECE_WEIGHTS, strict=True):
            for i in range(middles.shape[-1]):
                z = middles[..., i] + node * halves[..., i]
                with np.errstate(over="ignore", invalid="ignore"):
                    slope = np.exp(-self._each("log_slope", self._each("inverse", z)))  # of the inverse
                    height = (self.mixture.cdf(z) - (at <= z)) ** 2
                    part = weight * halves[..., i] * height * slope
                total += np.where(halves[..., i] > 0, np.nan_to_num(part), 0.0)
        return np.where(np.isnan(values), np.nan, total)

    def with_outputs_axis(self) -> TransformedMixture:
        """The same mixtures with an axis of one output: (n,) becomes (n, 1)."""
        plain = None if self.plain is None else self.plain.with_outputs_axis()
        return TransformedMixture(self.mixture.with_outputs_axis(), self.transforms, plain, by_output=True)

    @staticmethod
    def concatenate(parts: Sequence[TransformedMixture]) -> TransformedMixture:
        """Those of several batches of rows, one after the other."""
        first = parts[0]
        plain = None
        if first.plain is not None:
            plain = GaussianMixture.concatenate([part.plain for part in parts if part.plain is not None])
        mixture = GaussianMixture.concatenate([part.mixture for part in parts])
        return TransformedMixture(mixture, first.transforms, plain, first.by_output)

    def _values(self, y: Any) -> Array:
        values = as_floats(y, "y")
        try:
            return np.broadcast_to(values, self.shape)
        except ValueError:
            raise ValueError(f"y must have shape {self.shape}, got {values.shape}") from None

    def __getitem__(self, index: Any) -> TransformedMixture:
        """Those of some rows, ``mixture[rows]``, or of one output, ``mixture[:, k]``."""
        transforms, by_output = self.transforms, self.by_output
        if isinstance(index, tuple) and len(index) == len(self.shape) and by_output:
            chosen = np.asarray(self.transforms, dtype=object)[index[-1]]
            by_output = isinstance(chosen, np.ndarray)
            transforms = tuple(chosen) if isinstance(chosen, np.ndarray) else (chosen,)
        plain = None if self.plain is None else self.plain[index]
        return TransformedMixture(self.mixture[index], transforms, plain, by_output)

    def __len__(self) -> int:
        return len(self.mixture)

    def __repr__(self) -> str:
        names = ", ".join(type(of).__name__ for of in self.transforms)
        return f"TransformedMixture(shape={self.shape}, components={self.mixture.means.shape[-1]}, {names})"
