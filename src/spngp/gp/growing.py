"""One exact GP whose rows stand in the order in which they came, so that rows can be added and taken out.

:class:`~spngp.gp.exact.ExactGP` has own rows before context rows, and is the form in which GPs are kept and saved. Here
there is no such order. With L the factor of C = K + noise and z = L⁻¹y, a new row adds a row to L and a number to z,
its *innovation*: how far the output is from what the rows before it predict, in standard deviations. Mean and variance
at x are v·z and k(x, x) − v·v with v = L⁻¹k(X, x).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from spngp._linalg.growing import GrowingFactor
from spngp._linalg.square import JITTERS, NotPositiveDefiniteError, Square
from spngp._support.types import Array, Indices
from spngp.gp.evidence import LOG_2PI
from spngp.gp.exact import ExactGP
from spngp.gp.prior import overflow_is_checked
from spngp.gp.row_weights import Repeats
from spngp.kernels.compiled_sum import FewColumns, covariances_with_few

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
    covariances : callable
        Those of the kernel, between two sets of rows.
    log_evidence : float
        log p(y | X) of all rows.
    jitter : float
        Added to the diagonal so that the factor exists; usually zero.
    """

    prior: ExactGP
    X: Array
    y: Array
    noise: Array
    factor: GrowingFactor
    z: Array
    covariances: Callable[[Array, Array], Array] = field(repr=False)
    log_evidence: float
    jitter: float = 0.0

    @staticmethod
    def of(prior: ExactGP, X: Array, y: Array, noise: Array) -> GrowingGP:
        """The GP given rows, factored at once."""
        n, covariances = y.size, covariances_with_few(prior.kernel, X.shape[1])
        if n == 0:
            return GrowingGP(prior, X, y, noise, GrowingFactor(), y, covariances, 0.0)
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
        return _factored(prior, X, y, noise, GrowingFactor.of(L.array), z, covariances, jitter)

    @staticmethod
    def thawed(gp: ExactGP) -> GrowingGP | None:
        """An exact GP that has its factor, own rows before context; None if it has not, or merged rows."""
        if gp._L is None or gp._jitter or gp._n_first != gp.n_own:
            return None
        z = gp._y.copy()
        gp._L.solve(z)
        prior = gp.with_kernel(gp.kernel)
        covariances = covariances_with_few(gp.kernel, gp._X.shape[1])
        return _factored(prior, gp._X, gp._y, gp._noise_per_row(), GrowingFactor.of(gp._L.array), z, covariances)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.y.size

    def given(self, X: Array, y: Array, noise: Array) -> GrowingGP:
        """With further rows."""
        return self._given(X, y, noise, X[:0])[0] if y.size else self

    def given_and_predicting(self, X: Array, y: Array, noise: Array, at: Array) -> tuple[GrowingGP, Array, Array]:
        """With further rows, and mean and variance of the latent function at others: the factor is read once."""
        if not y.size or at.shape[0] > _ROWS_AT_ONCE:
            gp = self.given(X, y, noise)
            return gp, *gp.predict(at)
        with overflow_is_checked():
            gp, mean, explained = self._given(X, y, noise, at)
            return gp, *self._checked(mean, self._variances(at) - explained)

    def _given(self, X: Array, y: Array, noise: Array, at: Array) -> tuple[GrowingGP, Array, Array]:
        """With further rows; and at others the mean, and the variance that is explained."""
        joined, covariances = np.concatenate, self.covariances
        rows, asked = joined([self.X, X]), joined([X, at]) if at.shape[0] else X
        try:
            if self.jitter:  # it depends on all rows
                raise NotPositiveDefiniteError
            if isinstance(covariances, FewColumns) and covariances.takes(rows, asked):
                z = joined([self.z, y])
                factor, gain, (mean, explained) = self.factor.grown(covariances.addressed, rows, asked, noise, z)
            else:
                factor, gain, z, mean, explained = self._grown(rows, asked, y, noise)
        except NotPositiveDefiniteError:
            gp = GrowingGP.of(self.prior, rows, joined([self.y, y]), joined([self.noise, noise]))
            return gp, *gp._asked(at)
        outputs = (joined([self.y, y]), joined([self.noise, noise]))
        log_evidence = self.log_evidence + gain - 0.5 * y.size * LOG_2PI
        return GrowingGP(self.prior, rows, *outputs, factor, z, covariances, log_evidence), mean, explained

    def _grown(
        self, rows: Array, asked: Array, y: Array, noise: Array
    ) -> tuple[GrowingFactor, float, Array, Array, Array]:
        """As :meth:`GrowingFactor.grown`, and L⁻¹y of all rows: by matrix products."""
        n, m = self.n, y.size
        with overflow_is_checked():
            cross = np.ascontiguousarray(self.covariances(rows, asked).T)
        gram, between = cross[n:, :m], cross[n:, m:]
        self.factor.solve(cross[:n])
        below, solved = cross[:n, :m], cross[:n, m:]
        factor, triangle = self.factor.extended_by(below, gram + np.diag(noise))
        new = np.linalg.solve(triangle, y - self.z @ below)
        last = np.asarray(np.linalg.solve(triangle, between - below.T @ solved))
        gain = -0.5 * float(new @ new) - float(np.log(triangle.diagonal()).sum())
        mean = self.z @ solved + new @ last
        explained = np.einsum("ij,ij->j", solved, solved) + np.einsum("ij,ij->j", last, last)
        return factor, gain, np.concatenate([self.z, new]), mean, explained

    def leading(self, n: int) -> GrowingGP:
        """Given its first n rows alone, in the same memory; not for a GP with jitter."""
        start = (self.X[:n], self.y[:n], self.noise[:n], self.factor.leading(n), self.z[:n])
        return _factored(self.prior, *start, self.covariances)

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
        return _factored(self.prior, X, y, noise, factor, z[:, 0], self.covariances)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the latent function at each row."""
        with overflow_is_checked():
            parts = [self._asked(X[i : i + _ROWS_AT_ONCE]) for i in range(0, X.shape[0], _ROWS_AT_ONCE)]
            mean, explained = parts[0] if len(parts) == 1 else np.concatenate([np.empty((2, 0)), *parts], axis=1)
            return self._checked(mean, self._variances(X) - explained)

    def _asked(self, at: Array) -> tuple[Array, Array]:
        """The mean at each row, and the variance that is explained."""
        covariances = self.covariances
        if isinstance(covariances, FewColumns) and covariances.takes(self.X, at):
            _, _, (mean, explained) = self.factor.grown(covariances.addressed, self.X, at, at[:0], self.z)
            return mean, explained
        cross = covariances(self.X, at)
        self.factor.solve_rows(cross)
        return cross @ self.z, np.einsum("ij,ij->i", cross, cross)

    def _variances(self, X: Array) -> Array:
        few = self.covariances
        return np.full(X.shape[0], few.variance) if isinstance(few, FewColumns) else self.prior.kernel.variances(X)

    def _checked(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
            raise ValueError(f"{self.prior.kernel!r} overflows at a row of X; rescale X")
        return mean, np.maximum(variance, 0.0)

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


def _factored(
    prior: ExactGP,
    X: Array,
    y: Array,
    noise: Array,
    factor: GrowingFactor,
    z: Array,
    covariances: Callable[[Array, Array], Array],
    jitter: float = 0.0,
) -> GrowingGP:
    """The GP of a factor and L⁻¹y, with its evidence."""
    log_evidence = float(-0.5 * z @ z - np.log(factor.diagonal).sum() - 0.5 * y.size * LOG_2PI)
    return GrowingGP(prior, X, y, noise, factor, z, covariances, log_evidence, jitter)


def known_variances_of(gp: ExactGP) -> Array | None:
    """Known variances of the outputs of all rows, own rows first, beside the noise; None if none are known."""
    return gp._variances


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The leave-one-out prediction of the last rows of a GP, kept up as rows are added.

    The residual of row i, left out, is alpha_i / precision_i. Of L⁻¹ the columns of the last rows have nothing in the
    rows before them, so both follow from the end of the factor.

    Attributes
    ----------
    alpha : ndarray
        C⁻¹y of these rows.
    precision : ndarray
        Diagonal of C⁻¹: one over the variance of each row given all others.
    first : int
        Position of the first of them.
    """

    alpha: Array
    precision: Array
    first: int = 0

    @staticmethod
    def of(gp: GrowingGP, first: int = 0) -> LeftOut:
        """From the rows at ``first`` and later positions, in O(m³) for m of them."""
        m = gp.n - first
        if m <= 0:
            return LeftOut(np.empty(0), np.empty(0), first)
        end = gp.factor.trailing(first)
        if m == 1:
            return LeftOut(gp.z[first:] / end[0], 1.0 / np.square(end[0]), first)
        alpha = gp.z[first:].copy()
        square = Square(np.asfortranarray(end))
        square.solve_transposed(alpha)
        square.bound_invert()()
        return LeftOut(alpha, square.diagonal.copy(), first)

    def followed_by(self, gp: GrowingGP) -> LeftOut:
        """After rows were added at the end of the GP, in O(n²) for each."""
        n = self.first + self.alpha.size
        m = gp.n - n
        if gp.jitter or m > self.alpha.size:
            return LeftOut.of(gp, self.first)
        if m == 0:
            return self
        # the last m rows of L⁻¹: L⁻ᵀ times the last unit vectors
        last = np.zeros((gp.n, m))
        last[n + np.arange(m), np.arange(m)] = 1.0
        gp.factor.solve_transposed(last, self.first)
        last = last[self.first :]
        return LeftOut(
            np.concatenate([self.alpha, np.zeros(m)]) + last @ gp.z[n:],
            np.concatenate([self.precision, np.zeros(m)]) + np.einsum("ij,ij->i", last, last),
            self.first,
        )

    def deviations(self) -> Array:
        """How many standard deviations each output is from what all other rows predict."""
        return np.abs(self.alpha) / np.sqrt(self.precision)
