"""The log evidence of one GP on fixed rows, with its gradient; training calls it at every step.

Notation as in ``gp/exact.py``.
"""

from __future__ import annotations

import ctypes
import math
from functools import partial
from typing import Protocol, cast

import numpy as np

from spngp._linalg import compiled
from spngp._linalg.lapack import LAPACK, pointer
from spngp._linalg.scratch import empty
from spngp._linalg.square import INVERTED_WHOLE, Square
from spngp._support.types import Array
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Kernel
from spngp.kernels.compiled_sum import CompiledSum, compiled_sum
from spngp.kernels.level_codes import caps

LOG_2PI = math.log(2.0 * math.pi)


class LogEvidence(Protocol):
    """The log evidence of fixed rows as a function of the parameters, with its gradient."""

    def __call__(self, values: Array, noise_variance: float) -> tuple[float, Array, float]:
        """Log evidence, its gradient by the logs of all kernel parameters, and by the log noise variance."""

    def value(self, values: Array, noise_variance: float) -> float:
        """Log evidence alone, at about a third of the cost."""


class Evidence:
    """The log evidence of fixed rows as a function of the parameters, with its gradient.

    log p(y|X) = −½ yᵀC⁻¹y − ½ log|C| − n/2 log 2π (eq. 4, with the sign of its last terms put right), and
    d log p / dK = ½ (alpha alphaᵀ − C⁻¹). Work space is set up once, so that an optimiser can call it cheaply; it
    belongs to one thread at a time.

    Parameters
    ----------
    kernel : Kernel
    X, y : ndarray
        Checked rows and their outputs.
    known : KnownVariances, optional
        Known variance v of each output, added to the noise, and the share u of a row that it counts as:
        C = K + diag((noise + v)/u), and each share adds log u^(−½) (2π(noise + v))^((1−u)/2).
    profile : NoiseProfile, optional
        How the noise changes with the inputs: at row i, ``noise`` is the noise variance times its factor there.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        y: Array,
        known: KnownVariances | None = None,
        profile: NoiseProfile | None = None,
    ) -> None:
        n = y.size
        self._factors = 1.0 if profile is None else profile.factors(X)
        known = known or KnownVariances()
        self._y, self._variances = y, 0.0 if known.variances is None else known.variances
        self._shares = known.shares
        self._constant = -0.5 * n * LOG_2PI
        self._square = Square(empty(n, n))
        self._kernel = kernel.evaluation(X, self._square)
        self._alpha, self._pairs = np.empty(n), empty(n * (n - 1) // 2)
        self._solve = self._square.bound_solve(self._alpha)
        self._solve_transposed = self._square.bound_solve(self._alpha, transposed=True)
        self._invert = self._square.bound_invert()
        self._subtract_outer = self._square.bound_subtract_outer(self._alpha)
        self._pack = self._square.bound_pack(self._pairs)
        self._unpacks: Array | None = None

    def __call__(self, values: Array, noise_variance: float) -> tuple[float, Array, float]:
        """Log evidence, its gradient by the logs of all kernel parameters, and by the log noise variance."""
        square = self._square
        value = self.value(values, noise_variance)
        self._solve_transposed()
        self._invert()
        self._subtract_outer()  # the square now holds C⁻¹ − alpha alphaᵀ = −2 d log p / dK
        g_diagonal = square.diagonal * 0.5
        trace = float(np.add.reduce(g_diagonal))
        if not math.isfinite(trace):
            raise out_of_range(self._y, square, self._log_determinant)
        self._pack()
        # an entry below the diagonal stands for two of the symmetric matrix, so its derivative is −pairs
        by_kernel = -self._kernel.pullback(self._pairs, g_diagonal)
        by_kernel[np.isnan(by_kernel)] = np.inf  # ∞ − ∞: it overflows, and that is what an optimiser has to know
        if self._shares is not None:
            missing = 0.5 * (1.0 - self._shares) / (noise_variance * self._factors + self._variances)
            by_row = self._factors * (missing - g_diagonal / self._shares)
            return value, by_kernel, noise_variance * float(by_row.sum())
        return value, by_kernel, -noise_variance * float(np.add.reduce(self._factors * g_diagonal))

    def value(self, values: Array, noise_variance: float) -> float:
        """Log evidence alone; the square then holds L and alpha L⁻¹y."""
        square, alpha = self._square, self._alpha
        gram = self._kernel.gram(values)
        if gram.pairs is not self._unpacks:  # bound once: most kernels write into the same vector at every call
            self._unpacks, self._unpack = gram.pairs, square.bound_unpack(gram.pairs)
        whole = noise_variance * self._factors + self._variances
        square.factor(gram, whole if self._shares is None else whole / self._shares, self._unpack)
        alpha[:] = self._y
        self._solve()
        self._log_determinant = square.log_determinant()
        quadratic = float(np.vdot(alpha, alpha))  # vdot overflows silently
        value = self._constant - 0.5 * quadratic - 0.5 * self._log_determinant
        if self._shares is not None:
            shares = (1.0 - self._shares) * np.log(2.0 * math.pi * whole) - np.log(self._shares)
            value += 0.5 * float(shares.sum())
        if not math.isfinite(value):
            raise out_of_range(self._y, square, self._log_determinant)
        return value


class CompiledEvidence:
    """:class:`Evidence` for a sum of kernels whose formulas are compiled, in one call of the library.

    Where a covariance needs jitter, or something is out of range, :class:`Evidence` takes over. It, too, belongs to one
    thread at a time.
    """

    @staticmethod
    def of(kernel: Kernel, X: Array, y: Array, profile: NoiseProfile | None = None) -> CompiledEvidence | None:
        """None if there is no library, or if it does not know the kernel."""
        parts = compiled_sum(kernel, X.shape[1])
        if parts is None or y.size < 2 or not parts.fits(X):
            return None
        return CompiledEvidence(kernel, parts, X, y, profile)

    def __init__(
        self, kernel: Kernel, parts: CompiledSum, X: Array, y: Array, profile: NoiseProfile | None = None
    ) -> None:
        assert compiled.library is not None
        n = y.size
        n_parts, m = parts.units.shape
        self._rows, self._parts = (kernel, X, y, None, profile), parts
        self._fallback: Evidence | None = None
        self._constant = -0.5 * n * LOG_2PI
        self._X, self._y = parts.inputs(X), np.ascontiguousarray(y)
        self._scales, self._log_variances = np.empty((n_parts, m)), np.empty(n_parts)
        self._caps = np.empty((n_parts, m)) if parts.levels else None
        self._caps_at = None if self._caps is None else pointer(self._caps)
        self._factors = None if profile is None else profile.factors(X)
        self._factors_at = None if self._factors is None else pointer(self._factors)
        self._results = np.empty(4 + n_parts * (m + 1))
        self._sums = self._results[4:].reshape(n_parts, m + 1)
        self._work = (empty(n, n), np.empty(n), empty(n_parts * (n * m + n * (n - 1))))
        arrays = (parts.numbers, self._X, self._scales, self._log_variances, self._y, *self._work, self._results)
        addresses = [pointer(cast(Array, array)) for array in arrays]
        sizes = (INVERTED_WHOLE, n, m, n_parts)
        self._evaluate = partial(compiled.library.evidence, ctypes.addressof(LAPACK), *sizes, *addresses)

    def __call__(self, values: Array, noise_variance: float) -> tuple[float, Array, float]:
        """Log evidence, its gradient by the logs of all kernel parameters, and by the log noise variance."""
        parts, variances = self._parts, self._given(values)
        failed = self._evaluate(float(np.add.reduce(variances)), noise_variance, self._factors_at, self._caps_at, 0)
        results = self._results.tolist()
        if failed or not all(map(math.isfinite, results)):
            return self._uncompiled(values, noise_variance)
        quadratic, log_determinant, trace, trace_by_noise = results[:4]
        value = self._constant - 0.5 * quadratic - 0.5 * log_determinant
        # u_ij = Σ_k (φ_ik − φ_jk)² and dφ_k / d log ℓ_k = −φ_k; a length-scale for all inputs gathers their sums
        by_inputs = 2.0 * parts.slope_factors * self._sums[:, 1:]
        gradient = np.bincount(parts.length_scales.ravel(), by_inputs.ravel(), parts.n_values).astype(
            np.float64, copy=False
        )
        gradient[parts.variances] = -(self._sums[:, 0] + variances * trace)
        return value, gradient, -noise_variance * trace_by_noise

    def value(self, values: Array, noise_variance: float) -> float:
        """Log evidence alone."""
        variances = self._given(values)
        failed = self._evaluate(float(np.add.reduce(variances)), noise_variance, self._factors_at, self._caps_at, 1)
        quadratic, log_determinant = self._results[:2].tolist()
        value = self._constant - 0.5 * quadratic - 0.5 * log_determinant
        return self._uncompiled.value(values, noise_variance) if failed or not math.isfinite(value) else value

    def _given(self, values: Array) -> Array:
        """Write the parameters where the library reads them; the variances of the parts."""
        parts = self._parts
        variances = values[parts.variances]
        np.divide(parts.units, values[parts.length_scales], out=self._scales)
        if parts.cut:
            self._scales += parts.apart
        np.log(variances, out=self._log_variances)
        if self._caps is not None:
            self._caps[:] = caps(parts.levels, self._scales)
        return variances

    @property
    def _uncompiled(self) -> Evidence:
        if self._fallback is None:
            self._fallback = Evidence(*self._rows)
        return self._fallback


def evidence_of(
    kernel: Kernel, X: Array, y: Array, known: KnownVariances | None = None, profile: NoiseProfile | None = None
) -> LogEvidence:
    """:class:`CompiledEvidence` if the library knows the kernel and all noise is learnt, else :class:`Evidence`."""
    if known is not None:
        return Evidence(kernel, X, y, known, profile)
    return CompiledEvidence.of(kernel, X, y, profile) or Evidence(kernel, X, y, None, profile)


def out_of_range(y: Array, L: Square, log_determinant: float) -> Exception:
    """Why an evidence is not finite: the covariance overflowed, or y is too large for it."""
    if not math.isfinite(log_determinant):
        return L.overflow()
    return ValueError(
        f"the log evidence of a leaf with {y.size} rows is out of range: y reaches {np.abs(y).max():g} where the "
        f"prior expects about {math.exp(0.5 * log_determinant / y.size):g}; rescale y or the kernel's variance"
    )
