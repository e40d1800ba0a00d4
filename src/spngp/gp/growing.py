"""One exact GP whose rows stand in the order in which they came, so that rows can be added and taken out.

:class:`~spngp.gp.exact.ExactGP` has own rows before context rows, and is the form in which GPs are kept and saved. Here
there is no such order. With L the factor of C = K + noise and z = L⁻¹y, a new row adds a row to L and a number to z,
its *innovation*: how far the output is from what the rows before it predict, in standard deviations. Mean and variance
at x are v·z and k(x, x) − v·v with v = L⁻¹k(X, x).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from spngp._linalg.growing import GrowingFactor
from spngp._linalg.square import JITTERS, NotPositiveDefiniteError, Square
from spngp._support.types import Array, Indices
from spngp.gp.evidence import LOG_2PI
from spngp.gp.exact import ExactGP
from spngp.gp.prior import overflow_is_checked
from spngp.gp.row_weights import Repeats

_REBUILT_BEYOND = 0.1  # share of the rows: if more are taken out, factoring anew is faster
_REBUILT_UP_TO = 300  # rows: factoring so few anew is faster
_ROWS_AT_ONCE = 1024  # rows of a batch that is predicted


@dataclass(frozen=True, eq=False)
class GrowingGP:
    """A GP given rows in any order.

    Attributes
    ----------
    prior : ExactGP
        Kernel and noise.
    X, y : ndarray
        Rows and outputs, in the order in which they came.
    noise : ndarray
        Variance of the noise of each row.
    factor : GrowingFactor
        The lower factor of the covariance of y.
    z : ndarray
        L⁻¹y, the innovations.
    jitter : float
        Added to the diagonal so that the factor exists; usually zero.
    """

    prior: ExactGP
    X: Array
    y: Array
    noise: Array
    factor: GrowingFactor
    z: Array
    jitter: float = 0.0

    @staticmethod
    def of(prior: ExactGP, X: Array, y: Array, noise: Array) -> GrowingGP:
        """The GP given rows, factored at once."""
        n = y.size
        if n == 0:
            return GrowingGP(prior, X, y, noise, GrowingFactor(), y)
        with overflow_is_checked():
            L = Square.scratch(n)
            try:
                jitter = L.factor_filled(partial(prior.kernel.fill, X, L), noise, JITTERS)
            except NotPositiveDefiniteError as error:
                raise NotPositiveDefiniteError(
                    f"{error}; raise noise_variance (now {prior.noise_variance:g}) or drop repeated rows"
                ) from None
            z = y.copy()
            L.solve(z)
        return GrowingGP(prior, X, y, noise, GrowingFactor.of(L.array), z, jitter)

    @staticmethod
    def thawed(gp: ExactGP) -> GrowingGP | None:
        """An exact GP that has its factor, own rows before context; None if it has not, or merged rows."""
        if gp._L is None or gp._jitter or gp._n_first != gp.n_own:
            return None
        z = gp._y.copy()
        gp._L.solve(z)
        prior = gp.with_kernel(gp.kernel)
        return GrowingGP(prior, gp._X, gp._y, gp._noise_per_row(), GrowingFactor.of(gp._L.array), z)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.y.size

    @property
    def log_evidence(self) -> float:
        """log p(y | X) of all rows."""
        if not self.n:
            return 0.0
        return float(-0.5 * self.z @ self.z - np.log(self.factor.diagonal).sum() - 0.5 * self.n * LOG_2PI)

    def given(self, X: Array, y: Array, noise: Array) -> tuple[GrowingGP, Array, Array]:
        """With further rows; and for each its innovation and the standard deviation it is measured in, in order."""
        if not y.size:
            return self, y, y
        rows = np.concatenate([self.X, X])
        try:
            with overflow_is_checked():
                cross = np.ascontiguousarray(self.prior.kernel.covariances(rows, X))
            below, gram = cross[: self.n], cross[self.n :]
            self.factor.solve(below)
            gp, triangle = self._with_solved(below, gram, rows, y, noise)
        except NotPositiveDefiniteError:  # jitter depends on all rows
            gp = self._anew(rows, y, noise)
            return gp, gp.z[self.n :], gp.factor.diagonal[self.n :]
        return gp, gp.z[self.n :], triangle.diagonal()

    def given_and_predicting(self, X: Array, y: Array, noise: Array, at: Array) -> tuple[GrowingGP, Array, Array]:
        """With further rows, and mean and variance of the latent function at others: the factor is read once."""
        m = y.size
        if not m or not self.n or at.shape[0] > _ROWS_AT_ONCE:
            gp = self.given(X, y, noise)[0]
            return gp, *gp.predict(at)
        rows = np.concatenate([self.X, X])
        try:
            with overflow_is_checked():
                cross = np.ascontiguousarray(self.prior.kernel.covariances(rows, np.concatenate([X, at])))
                variance = self.prior.kernel.variances(at)
            gram, between = cross[self.n :, :m], cross[self.n :, m:]
            cross = cross[: self.n]
            self.factor.solve(cross)
            below, solved = cross[:, :m], cross[:, m:]
            gp, triangle = self._with_solved(below, gram, rows, y, noise)
        except NotPositiveDefiniteError:
            gp = self._anew(rows, y, noise)
            return gp, *gp.predict(at)
        last = _solved(triangle, between - below.T @ solved)
        mean = self.z @ solved + gp.z[self.n :] @ last
        variance -= np.einsum("ij,ij->j", solved, solved) + np.einsum("ij,ij->j", last, last)
        return gp, *self._checked(mean, variance)

    def _anew(self, rows: Array, y: Array, noise: Array) -> GrowingGP:
        """With further rows, factored at once; ``rows`` are all inputs, the further ones last."""
        joined = np.concatenate
        return GrowingGP.of(self.prior, rows, joined([self.y, y]), joined([self.noise, noise]))

    def _with_solved(self, below: Array, gram: Array, rows: Array, y: Array, noise: Array) -> tuple[GrowingGP, Array]:
        """With further rows, given L⁻¹k(X, ·) and the covariances of these; and the new triangle at the diagonal.

        ``rows`` are all inputs, the further ones last.
        """
        if self.jitter:
            raise NotPositiveDefiniteError
        factor, triangle = self.factor.extended_by(below, gram + (noise if y.size == 1 else np.diag(noise)))
        z = _solved(triangle, (y - self.z @ below)[:, np.newaxis])[:, 0]
        joined = np.concatenate
        given = (joined([self.y, y]), joined([self.noise, noise]))
        return GrowingGP(self.prior, rows, *given, factor, joined([self.z, z])), triangle

    def without(self, gone: Indices) -> GrowingGP:
        """Without the rows at these positions, exactly."""
        if not gone.size:
            return self
        kept = np.ones(self.n, dtype=bool)
        kept[gone] = False
        X, y, noise = self.X[kept], self.y[kept], self.noise[kept]
        if self.jitter or self.n <= _REBUILT_UP_TO or gone.size > _REBUILT_BEYOND * self.n:
            return GrowingGP.of(self.prior, X, y, noise)
        factor = self.factor.without(gone)
        z = y[:, np.newaxis].copy()
        factor.solve(z)
        return GrowingGP(self.prior, X, y, noise, factor, z[:, 0])

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the latent function at each row."""
        with overflow_is_checked():
            mean, variance = np.zeros(X.shape[0]), self.prior.kernel.variances(X)
            for start in range(0, X.shape[0] if self.n else 0, _ROWS_AT_ONCE):
                batch = slice(start, start + _ROWS_AT_ONCE)
                cross = self._cross(X[batch])
                self.factor.solve(cross)
                mean[batch] = self.z @ cross
                variance[batch] -= np.einsum("ij,ij->j", cross, cross)
        return self._checked(mean, variance)

    def _checked(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
            raise ValueError(f"{self.prior.kernel!r} overflows at a row of X; rescale X")
        return mean, np.maximum(variance, 0.0)

    def _cross(self, X: Array) -> Array:
        """Covariances between the GP's rows and those of X, a column for each of the latter."""
        if not self.n:
            return np.empty((0, X.shape[0]))
        return np.ascontiguousarray(self.prior.kernel.covariances(self.X, X))

    def alpha(self) -> Array:
        """C⁻¹y."""
        z = self.z[:, np.newaxis].copy()
        self.factor.solve_transposed(z)
        return z[:, 0]

    def frozen(
        self, own: Indices, context: Indices, log_evidence: float, apart: tuple[Array, Array] | None = None
    ) -> ExactGP:
        """The same as an exact GP without its factor: rows at the positions ``own``, then those at ``context``.

        ``log_evidence`` is that of the own rows. ``apart`` are the two parts of the noise of each row, if some of it is
        known beforehand: what was learnt, and what is known.
        """
        gp = copy.copy(self.prior)
        gp.log_evidence = log_evidence
        order = np.concatenate([own, context])
        gp._X, gp._y, gp._alpha = self.X[order], self.y[order], self.alpha()[order]
        gp.n_own, gp._jitter, gp._L = own.size, self.jitter, None
        variance = self.prior.noise_variance
        noise, known = (self.noise, None) if apart is None else apart
        gp._variances = None if known is None else known[order]
        weights = variance / noise[order] if variance > 0 else np.ones(order.size)
        own_weights, context_weights = weights[: own.size], weights[own.size :]
        gp._repeats = None if (own_weights == 1.0).all() else Repeats.of(own_weights)
        gp._context_weights = None if (context_weights == 1.0).all() else context_weights
        return gp


def known_variances_of(gp: ExactGP) -> Array | None:
    """Known variances of the outputs of all rows, own rows first, beside the noise; None if none are known."""
    return gp._variances


def _solved(triangle: Array, B: Array) -> Array:
    """T⁻¹B for a small lower triangle T."""
    return B / triangle if triangle.size == 1 else np.asarray(np.linalg.solve(triangle, B))


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The leave-one-out prediction of every row of a GP, kept up as rows are added.

    Attributes
    ----------
    alpha : ndarray
        C⁻¹y. The residual of row i, left out, is alpha_i / precision_i.
    precision : ndarray
        Diagonal of C⁻¹: one over the variance of each row given all others.
    """

    alpha: Array
    precision: Array

    @staticmethod
    def of(gp: GrowingGP) -> LeftOut:
        """From all rows, in O(n³)."""
        if not gp.n:
            return LeftOut(np.empty(0), np.empty(0))
        square = Square(np.asfortranarray(gp.factor.dense()))
        square.bound_invert()()
        return LeftOut(gp.alpha(), square.diagonal.copy())

    def followed_by(self, gp: GrowingGP) -> LeftOut:
        """After rows were added at the end of the GP, in O(n²) for each."""
        n, m = self.alpha.size, gp.n - self.alpha.size
        if gp.jitter or m > n:
            return LeftOut.of(gp)
        if m == 0:
            return self
        # the last m rows of L⁻¹: L⁻ᵀ times the last unit vectors
        last = np.zeros((gp.n, m))
        last[n:] = np.eye(m)
        gp.factor.solve_transposed(last)
        return LeftOut(
            np.concatenate([self.alpha, np.zeros(m)]) + last @ gp.z[n:],
            np.concatenate([self.precision, np.zeros(m)]) + np.einsum("ij,ij->i", last, last),
        )

    def deviations(self) -> Array:
        """How many standard deviations each output is from what all other rows predict."""
        return np.abs(self.alpha) / np.sqrt(self.precision)
