"""One exact Gaussian process for one output: evidence with gradient, posterior, samples.

Notation: X (n, d) rows, y their outputs, K the Gram matrix, C = K + noise·I, L its Cholesky factor,
z = L⁻¹y and alpha = C⁻¹y. Equation numbers are those of Trapp et al. (2018).
"""

from __future__ import annotations

import contextlib
import copy
import math
from functools import partial
from typing import Any

import numpy as np

from spngp._linalg.square import JITTERS, NotPositiveDefiniteError, Square
from spngp._support.checks import as_count, as_floats, as_generator
from spngp._support.types import Array, Indices, RandomState
from spngp._support.wording import counted
from spngp.gp.evidence import LOG_2PI, out_of_range
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.prior import Prior, overflow_is_checked
from spngp.gp.row_weights import KnownVariances, Repeats, check_weights, joined, merge, weights_of_both
from spngp.gp.square_root import square_root
from spngp.kernels import Kernel, Parameter

_MERGED_ABOVE = 2000  # own rows of a leaf: with more, equal rows are merged, which is exact but costs a sort
_ROWS_AT_ONCE = 1024  # rows of a batch that is predicted: bounds the memory, large enough for fast matrix products


class ExactGP(Prior):
    """A Gaussian process with Gaussian noise, conditioned on any number of rows; without rows, the prior. Immutable.

    Parameters are those of :class:`Prior`.

    Attributes
    ----------
    log_evidence : float
        log p(y | X) of the GP's own rows; 0 for the prior.
    n_own, n_context : int
        Number of own rows, which it was conditioned on, and of context rows, which it only sees when it predicts.

    Examples
    --------
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.gp.exact import ExactGP
    >>> gp = ExactGP(SquaredExponential(), noise_variance=0.01).condition([[0.0], [1.0]], [1.0, -1.0])
    >>> mean, variance = gp.predict([[0.5]])
    >>> round(float(variance[0]), 4)
    0.0465
    """

    log_evidence: float
    n_own: int
    _X: Array
    _y: Array
    _L: Square | None  # None if not kept in memory: it is computed again when a variance is asked for
    _alpha: Array
    _repeats: Repeats | None = None  # weights of own rows; merged rows are one row of _X, with their mean output in _y
    _context_weights: Array | None = None  # weights of context rows; None if all are one
    _variances: Array | None = None  # known variances of the outputs of all rows, added to their noise
    _jitter: float  # added to the diagonal of the own rows so that L exists; usually zero
    _extended: bool  # whether L was extended from that of fewer rows: made at once, it may differ in its last bits

    def __init__(self, kernel: Kernel, noise_variance: float | Parameter = 0.1) -> None:
        super().__init__(kernel, noise_variance)
        self._forget()

    def _forget(self) -> None:
        """Drop all data, in the constructor and on a fresh copy."""
        self.log_evidence, self.n_own, self._jitter, self._extended = 0.0, 0, 0.0, False
        self._repeats = self._context_weights = self._variances = None
        self._X, self._y, self._alpha, self._L = np.empty((0, 0)), np.empty(0), np.empty(0), None

    @property
    def n_context(self) -> int:
        """Rows that inform predictions but not the evidence."""
        return self._y.size - self._n_first

    @property
    def shape_of_rows(self) -> tuple[int, int]:
        """Rows and columns of what it was conditioned on, context included."""
        return self._X.shape[0], self._X.shape[1]

    @property
    def rows_seen(self) -> tuple[Array, Array]:
        """What it was conditioned on: rows and outputs, own ones first, then context."""
        return self._X, self._y

    @property
    def n_counted(self) -> float:
        """How many own rows there are, where some count as shares of one."""
        return float(self.n_own if self._repeats is None else self._repeats.shares.sum())

    @property
    def noise_is_even(self) -> bool:
        """Whether all own rows have the same noise, none being in doubt."""
        return self._repeats is None or self._repeats.log_weights == 0.0

    @property
    def _n_first(self) -> int:
        """Number of rows of the matrix that are own rows: the distinct ones, where equal rows were merged."""
        return self.n_own if self._repeats is None else self._repeats.counts.size

    def with_theta(self, theta: Array) -> ExactGP:
        """The prior with the free parameters set to exp(theta)."""
        theta = as_floats(theta, "theta")
        split, n = self.kernel.parameters.n_free, self.kernel.parameters.n_free + self._noise.n_free
        if theta.shape != (n,):
            raise ValueError(f"theta must have shape ({n},), got {theta.shape}")
        return self._with(kernel=self.kernel.with_theta(theta[:split]), _noise=self._noise.with_theta(theta[split:]))

    def with_kernel(self, kernel: Kernel) -> ExactGP:
        """The prior with another kernel and the same noise, its bounds included."""
        return self._with(kernel=kernel)

    def with_noise_profile(self, profile: NoiseProfile | None) -> ExactGP:
        """The prior with noise that changes with the inputs, or with the same noise everywhere."""
        return self._with(noise_profile=profile)

    def _with(self, **attributes: Any) -> ExactGP:
        gp = object.__new__(ExactGP)
        gp.__dict__.update(self.__dict__)
        gp._forget()
        gp.__dict__.update(attributes)
        return gp

    def condition(
        self,
        X: Any,
        y: Any,
        X_context: Any = None,
        y_context: Any = None,
        *,
        weights: Array | None = None,
        context_weights: Array | None = None,
        known: KnownVariances | None = None,
        context_known: KnownVariances | None = None,
        keep_factor: bool = True,
    ) -> ExactGP:
        """The GP given further rows, exactly, in O(n²m) for m new ones (O(n³) if the covariance needs jitter).

        ``X_context`` and ``y_context`` are rows that it also sees when it predicts but that do not enter
        :attr:`log_evidence`. They stand after the own rows, so the factor of the own rows is the top left corner of
        the whole factor, and one factorisation serves both. Without ``keep_factor`` it takes O(n) memory instead of
        O(n²): means cost the same, but variances, samples and further rows begin with the factorisation, in O(n³).

        The noise of a row of weight w has the variance noise_at(row) / w; all weights are one by default. ``known``
        are variances of outputs that are added to it, and shares of rows that single rows count as.
        """
        X, y = self._checked(X, y, "X", "y")
        if X_context is None and y_context is not None:
            raise ValueError("y_context needs X_context, got None")
        if X_context is None:
            X_context, y_context = X[:0], y[:0]
        else:
            X_context, y_context = self._checked(X_context, y_context, "X_context", "y_context")
            if X_context.shape[1] != X.shape[1]:
                raise ValueError(f"X_context must have {X.shape[1]} columns as X, got {X_context.shape[1]}")
        check_weights(weights, y.size)
        check_weights(context_weights, y_context.size)
        if y.size + y_context.size == 0:
            return self.with_factor() if keep_factor else self
        if self._y.size and self._X.shape[1] != X.shape[1]:
            raise ValueError(f"X must have {self._X.shape[1]} columns as before, got {X.shape[1]}")
        known, context_known = known or KnownVariances(), context_known or KnownVariances()
        known.check_noise(self.noise_variance)
        gp = self._followed_by(X, y, X_context, y_context, weights, known, context_known.times(context_weights))
        gp._variances = joined(self._variances, known, context_known, own := self._n_first, gp._y.size, y.size)
        try:
            with overflow_is_checked():
                extends = own > 0 and not self._jitter and self._repeats is None and gp._n_first == own + y.size
                first_factor = self._L.leading(own) if self._L is not None and extends else None
                gp._extended = first_factor is not None
                L, gp._jitter = gp._factor(first_factor, scratch=not keep_factor)
                gp._solve(L)
                gp._L = L if keep_factor else None
        except NotPositiveDefiniteError as error:
            raise NotPositiveDefiniteError(
                f"{error}; raise noise_variance (now {self.noise_variance:g}), drop repeated rows, "
                f"shorten the length-scales or rescale X and y; the kernel is {self.kernel!r}"
            ) from None
        return gp

    def _followed_by(
        self,
        X: Array,
        y: Array,
        X_context: Array,
        y_context: Array,
        weights: Array | None,
        known: KnownVariances,
        context_weights: Array | None,
    ) -> ExactGP:
        """A copy with further own and context rows in their places; factor and evidence are still to be computed."""
        gp, own, n_new = copy.copy(self), self._n_first, y.size
        old_X = self._X if self._y.size else X[:0]
        own_X, own_y = np.vstack([old_X[:own], X]), np.concatenate([self._y[:own], y])
        gp.n_own = self.n_own + n_new
        uneven = known.variances is not None or self._variances is not None or self.noise_profile is not None
        merges = gp.n_own > _MERGED_ABOVE and self.noise_variance > 0 and not uneven
        if merges or weights is not None or known.shares is not None or self._repeats is not None:
            rows = self._repeats or Repeats.of(np.ones(own))
            rows = rows.followed_by(Repeats.of(np.ones(n_new) if weights is None else weights, known.shares))
            if merges:
                merged_X, merged_y, merged = merge(own_X, own_y, rows)
                if merged_y.size < own_y.size:
                    own_X, own_y, rows = merged_X, merged_y, merged
            plain = rows.counts.size == gp.n_own and bool((rows.counts == 1.0).all())
            gp._repeats = None if plain else rows
        gp._X = np.vstack([own_X, old_X[own:], X_context])
        gp._y = np.concatenate([own_y, self._y[own:], y_context])
        gp._context_weights = weights_of_both(self._context_weights, self.n_context, context_weights, y_context.size)
        return gp

    def _factor(self, known: Square | None, scratch: bool) -> tuple[Square, float]:
        """Factor for own rows followed by context, and the jitter of the own rows; in scratch memory if asked.

        Without jitter, one factorisation serves all rows, or extends the ``known`` factor of the first rows. With it,
        own rows are factored first and all at once: the evidence depends neither on context nor on the order of rows.
        """
        X, n, own, noise = self._X, self._y.size, self._n_first, self._noise_per_row()
        with contextlib.suppress(NotPositiveDefiniteError):
            if known is not None:
                return self._extend(known, X, noise, (0.0,)), 0.0
            L = Square.scratch(n) if scratch else Square.zeros(n)
            return L, L.factor_filled(partial(self.kernel.fill, X, L), noise, jitters=(0.0,))
        L = Square.zeros(own)
        jitter = L.factor_filled(partial(self.kernel.fill, X[:own], L), noise[:own])
        return L if own == n else self._extend(L, X, noise + jitter, JITTERS), jitter

    def _noise_per_row(self) -> Array:
        """Variance of the noise of every row of the matrix."""
        per_row, own = self.noise_at(self._X), self._n_first
        if self._repeats is not None:
            per_row[:own] /= self._repeats.counts
        if self._context_weights is not None:
            per_row[own:] /= self._context_weights
        return per_row if self._variances is None else per_row + self._variances

    @property
    def has_factor(self) -> bool:
        """Whether the Cholesky factor is in memory, 8n² bytes."""
        return self._L is not None

    def with_factor(self) -> ExactGP:
        """The same GP with its Cholesky factor in memory."""
        if self._L is not None or not self._y.size:
            return self
        gp = copy.copy(self)
        gp._L = self._factor(None, scratch=False)[0]
        return gp

    def _present_factor(self) -> Square:
        """The factor: the one kept, or a new one in the thread's scratch memory, valid until the thread's next one."""
        if self._L is not None:
            return self._L
        return self._factor(None, scratch=True)[0]

    def _extend(self, L: Square, X: Array, noise: Array, jitters: tuple[float, ...]) -> Square:
        """From the factor of the first rows of X to that of all."""
        n = L.n
        return L.extended(self.kernel.covariances(X[:n], X[n:]), self.kernel.packed(X[n:]), noise[n:], jitters)

    def _solve(self, L: Square) -> None:
        own, z = self._n_first, self._y.copy()
        log_determinant = L.log_determinant()
        L.solve(z)
        quadratic = float(np.vdot(z[:own], z[:own]))  # overflows without a warning
        self.log_evidence = -0.5 * quadratic - 0.5 * L.leading(own).log_determinant() - 0.5 * own * LOG_2PI
        if self._repeats is not None:
            self.log_evidence += self._repeats.log_density(self.noise_variance, self._noise_per_row()[:own])
        L.solve_transposed(z)
        if not math.isfinite(log_determinant + self.log_evidence) or not np.isfinite(z).all():
            raise out_of_range(self._y, L, log_determinant)
        self._alpha = z

    def predict_mean(self, X: Any) -> Array:
        """Mean at each row, without the cost of its variance (eq. 2)."""
        X = self._rows(X, "X")
        mean = np.zeros(X.shape[0])
        if self._y.size:
            with overflow_is_checked():
                for start in range(0, X.shape[0], _ROWS_AT_ONCE):
                    batch = slice(start, start + _ROWS_AT_ONCE)
                    mean[batch] = self.kernel.covariances(X[batch], self._X) @ self._alpha
        return self._finite(mean, X)

    def predict(self, X: Any, latent: bool = False) -> tuple[Array, Array]:
        """Mean and variance at each row: of a new observation, or of the latent function (eq. 2–3)."""
        X = self._rows(X, "X")
        with overflow_is_checked():
            mean, variance = np.zeros(X.shape[0]), self.kernel.variances(X)
            if self._y.size and X.shape[0]:
                L = self._present_factor()
                for start in range(0, X.shape[0], _ROWS_AT_ONCE):
                    batch = slice(start, start + _ROWS_AT_ONCE)
                    cross = self.kernel.covariances(X[batch], self._X).T  # Fortran-ordered, a column per predicted row
                    mean[batch] = self._alpha @ cross
                    L.solve(cross)
                    variance[batch] -= np.einsum("ij,ij->j", cross, cross)
                np.maximum(variance, 0.0, out=variance)
        return self._finite(mean, X), self._finite(variance if latent else variance + self.noise_at(X), X)

    def joint(self, X: Any, latent: bool = False) -> tuple[Array, Array]:
        """Mean and covariance matrix over the rows, of new observations or of the latent function (eq. 2–3)."""
        X = self._rows(X, "X")
        with overflow_is_checked():
            mean, covariance = np.zeros(X.shape[0]), self.kernel.covariances(X, X)
            if self._y.size:
                cross = self.kernel.covariances(X, self._X).T
                mean = self._alpha @ cross
                self._present_factor().solve(cross)
                covariance -= cross.T @ cross
        if not latent:
            np.einsum("ii->i", covariance)[:] += self.noise_at(X)
        return self._finite(mean, X), self._finite(covariance, X)

    @property
    def rows_seen_once(self) -> Indices:
        """Positions of the own rows that can be left out one by one: all but merged ones."""
        return np.arange(self.n_own) if self._repeats is None else np.flatnonzero(self._repeats.counts <= 1)

    def sample(self, X: Any, n_samples: int, random_state: RandomState = None, latent: bool = False) -> Array:
        """Joint samples over the rows of X, shape (n, n_samples)."""
        n_samples, (mean, covariance) = as_count(n_samples, "n_samples", 0), self.joint(X, latent)
        normal = as_generator(random_state).standard_normal((n_samples, mean.size)).T
        return mean[:, np.newaxis] + square_root(covariance) @ normal

    def _finite(self, values: Array, X: Array) -> Array:
        """Values at the rows of X, or an error that says where they overflow."""
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            raise ValueError(f"{self.kernel!r} overflows at row {row} of X, {X[row].tolist()}; rescale X")
        return values

    def _rows(self, X: Any, name: str) -> Array:
        X = self.kernel.checked_rows(X, name)
        if self._y.size and X.shape[1] != self._X.shape[1]:
            raise ValueError(f"{name} must have {self._X.shape[1]} columns as in training, got {X.shape[1]}")
        return X

    def __repr__(self) -> str:
        rows = f", {counted(self.n_own, 'row')}" if self.n_own else ""
        context = f" and {self.n_context} of context" if self.n_context else ""
        return f"ExactGP({self.kernel!r}, noise_variance={self.noise_variance:g}{rows}{context})"
