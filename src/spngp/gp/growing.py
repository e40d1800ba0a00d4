"""One exact GP whose rows stand in the order in which they came, so that rows can be added and taken out.

:class:`~spngp.gp.exact.ExactGP` has own rows before context rows, and is the form in which GPs are kept and saved. Here
there is no such order. With L the factor of C = K + noise and z = L⁻¹y, a new row adds a row to L and a number to z,
its *innovation*: how far the output is from what the rows before it predict, in standard deviations. Mean and variance
at x are v·z and k(x, x) − v·v with v = L⁻¹k(X, x).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from spngp._linalg.growing import GrowingFactor, grown_together
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
        X = np.ascontiguousarray(gp._X)  # as the compiled library takes rows
        return _factored(prior, X, gp._y, gp._noise_per_row(), GrowingFactor.of(gp._L.array), z, covariances)

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
        try:
            if (found := _given_compiled([self], X, y, noise[np.newaxis], at)) is not None:
                (gp,), means, explained = found
                return gp, means[0], explained[0]
            return self._given_by_products(X, y, noise, at)
        except NotPositiveDefiniteError:
            joined = np.concatenate
            parts = (joined([self.X, X]), joined([self.y, y]), joined([self.noise, noise]))
            gp = GrowingGP.of(self.prior, *parts)
            return gp, *gp._asked(at)

    def _given_by_products(self, X: Array, y: Array, noise: Array, at: Array) -> tuple[GrowingGP, Array, Array]:
        """The same by matrix products."""
        if self.jitter:  # it depends on all rows
            raise NotPositiveDefiniteError
        joined = np.concatenate
        rows, asked = joined([self.X, X]), joined([X, at])
        factor, gain, z, mean, explained = self._grown(rows, asked, y, noise)
        outputs = (joined([self.y, y]), joined([self.noise, noise]))
        log_evidence = self.log_evidence + gain - 0.5 * y.size * LOG_2PI
        return GrowingGP(self.prior, rows, *outputs, factor, z, self.covariances, log_evidence), mean, explained

    def _grown(
        self, rows: Array, asked: Array, y: Array, noise: Array
    ) -> tuple[GrowingFactor, float, Array, Array, Array]:
        """As :func:`grown_together`, and L⁻¹y of all rows."""
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
        nothing = np.empty(0)
        if (found := _given_compiled([self], at[:0], nothing, nothing[np.newaxis], at)) is not None:
            return found[1][0], found[2][0]
        cross = self.covariances(self.X, at)
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
        variance = self.prior.noise_at(gp._X)
        noise, known = (self.noise, None) if apart is None else apart
        gp._variances = None if known is None else known[order]
        weights = variance / noise[order] if self.prior.noise_variance > 0 else np.ones(order.size)
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


def given_together(
    gps: Sequence[GrowingGP], X: Array, y: Array, noise: Array, at: Array
) -> tuple[list[GrowingGP], Array, Array]:
    """GPs of the same rows and outputs, each with further ones; and mean and variance of their functions at others.

    ``noise`` has a row for each GP, as have means and variances. Few rows take one call of the compiled library.
    """
    try:
        found = _given_compiled(gps, X, y, noise, at)
    except NotPositiveDefiniteError:
        found = None
    if found is None:
        parts = [gp.given_and_predicting(X, y, of_gp, at) for gp, of_gp in zip(gps, noise, strict=True)]
        return [gp for gp, *_ in parts], np.stack([part[1] for part in parts]), np.stack([part[2] for part in parts])
    after, mean, explained = found
    if not at.shape[0]:
        return after, mean, explained
    variance = np.array([gp._variances(at) for gp in gps]) - explained
    if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
        for gp, *of_gp in zip(gps, mean, variance, strict=True):
            gp._checked(*of_gp)  # it says which kernel it is
    return after, mean, np.maximum(variance, 0.0)


def _given_compiled(
    gps: Sequence[GrowingGP], X: Array, y: Array, noise: Array, at: Array
) -> tuple[list[GrowingGP], Array, Array] | None:
    """The same in one call of the compiled library, with the variances that are explained; None if it cannot do it.

    Raises NotPositiveDefiniteError if the rows of a GP must be factored anew.
    """
    first, m, joined = gps[0], y.size, np.concatenate
    rows = joined([first.X, X]) if m else first.X
    asked = (joined([X, at]) if at.shape[0] else X) if m else at
    kernels = []
    for gp in gps:
        few = gp.covariances
        if (gp.jitter and m) or not isinstance(few, FewColumns) or not few.takes(rows, asked):
            return None
        kernels.append(few.addressed)
    n = first.n
    Z = np.empty((len(gps), n + m))
    for gp, z in zip(gps, Z, strict=True):
        z[:n] = gp.z
    Z[:, n:] = y
    factors, gains, told = grown_together([gp.factor for gp in gps], kernels, rows, asked, noise, Z)
    if not m:
        return list(gps), told[:, 0], told[:, 1]
    outputs, constant = joined([first.y, y]), -0.5 * m * LOG_2PI
    after = []
    for gp, of_gp, factor, z, gain in zip(gps, noise, factors, Z, gains, strict=True):
        data = (rows, outputs, joined([gp.noise, of_gp]), factor, z, gp.covariances)
        after.append(GrowingGP(gp.prior, *data, gp.log_evidence + gain + constant))
    return after, told[:, 0], told[:, 1]


def known_variances_of(gp: ExactGP) -> Array | None:
    """Known variances of the outputs of all rows, own rows first, beside the noise; None if none are known."""
    return gp._variances
