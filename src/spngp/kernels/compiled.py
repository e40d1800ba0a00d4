"""Stationary kernels whose formula is also compiled (``native.c``): the same values, in fewer passes over memory."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spngp._linalg import compiled
from spngp._linalg.lapack import pointer
from spngp._linalg.scratch import empty
from spngp._linalg.square import PackedGram
from spngp._support.types import Array

if TYPE_CHECKING:
    from spngp.kernels.stationary import Stationary


class CompiledFormula(NamedTuple):
    """A formula of the compiled library: its number, and the factor of the slopes it gives."""

    number: int
    slope_factor: float

    def write(
        self,
        A: Array,
        B: Array,
        out: Array,
        log_variance: float,
        lower: bool = False,
        adds: bool = False,
        caps: Array | None = None,
    ) -> None:
        """Write, or add, the covariances of Fortran-ordered features A, a row of ``out`` each, and B, a column each.

        With ``lower``, those of the lower triangle. ``caps`` are those of :meth:`Stationary.caps`.
        """
        assert compiled.library is not None
        if out.size == 0:
            return
        m, stride = A.shape[1], out.strides[1] // 8
        in_order = A.flags.f_contiguous and B.flags.f_contiguous and (out.shape[0] < 2 or out.strides[0] == 8)
        if not (in_order and out.flags.writeable and out.shape == (A.shape[0], B.shape[0]) and B.shape[1] == m):
            raise ValueError(f"a bug of ours: features {A.shape}, {B.shape} do not fit a matrix {out.shape}")
        rows = (pointer(A), A.shape[0], pointer(B), B.shape[0], m)
        where = (pointer(out), stride, lower, adds)
        compiled.library.gram(self.number, *rows, *where, log_variance, None if caps is None else pointer(caps))


class CompiledEvaluation:
    """A stationary kernel whose formula is compiled, on fixed rows."""

    def __init__(self, kernel: Stationary, formula: CompiledFormula, X: Array) -> None:
        assert compiled.library is not None
        n, m = X.shape
        self._kernel = kernel
        self._X = np.asfortranarray(X)
        self._features = np.empty((n, m), order="F")
        self._value = empty(n * (n - 1) // 2)
        self._slope = self._value if formula.number == compiled.SQUARED_EXPONENTIAL else empty(self._value.size)
        self._sums = np.empty(m + 1)
        self._diagonal = np.empty(n)
        self._variance_place = kernel._places["variance"]
        self._factor = -2.0 * formula.slope_factor
        features = (pointer(self._features), n, m)
        value, slope = pointer(self._value), pointer(self._slope)
        separate = None if self._slope is self._value else slope
        self._write = partial(compiled.library.packed_gram, formula.number, *features, value, separate)
        self._sum = partial(compiled.library.packed_pullback, *features)
        self._caps = np.empty(m) if kernel.levels else None
        self._caps_at = None if self._caps is None else pointer(self._caps)
        self._after = (value, slope, pointer(self._sums), self._caps_at)

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        variance = values[self._variance_place]
        self._kernel._write_features(self._X, values, self._features)
        if self._caps is not None:
            self._caps[:] = self._kernel.caps(values)
        self._write(math.log(variance), self._caps_at)
        self._diagonal.fill(variance)
        return PackedGram(self._value, self._diagonal)

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters."""
        sums = self._sums
        self._sum(pointer(g_pairs), *self._after)
        gradient = np.zeros(self._kernel.parameters.values.size)
        variance = self._diagonal[0] if self._diagonal.size else 0.0
        gradient[self._variance_place] = sums[0] + variance * np.add.reduce(g_diagonal)
        # u_ij = Σ_k (φ_ik − φ_jk)² and dφ_k / d log ℓ_k = −φ_k
        self._kernel._accumulate(gradient, "length_scale", self._factor * sums[1:])
        return gradient
