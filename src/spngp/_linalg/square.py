"""A square matrix with the few dense operations that a GP needs, and the packed form of a symmetric one.

Everything is Fortran-ordered, in place, and touches the lower triangle only.

A symmetric matrix is handed around *packed*: its diagonal and its ``pairs``, the strict lower triangle column by
column – the order of :func:`scipy.spatial.distance.pdist`. Element-wise work then costs half, on contiguous memory.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spngp._linalg import compiled
from spngp._linalg.lapack import (
    LAPACK,
    LOWER,
    MINUS_ONE,
    MINUS_TWO,
    ONE,
    PLAIN,
    RIGHT,
    TRANSPOSED,
    ZERO,
    dlauum,
    dpotrf,
    dpotri,
    dsymm,
    dsyr,
    dsyr2,
    dsyrk,
    dtpttr,
    dtrmm,
    dtrsm,
    dtrsv,
    dtrtri,
    dtrttp,
    integer,
    pointer,
)
from spngp._linalg.scratch import scratch
from spngp._support.types import Array

# Multiples of the mean diagonal tried in turn when a matrix is not positive definite in floating point.
JITTERS = (0.0, 1e-10, 1e-8, 1e-6)

# Largest triangle that is inverted by one call of LAPACK; chosen with benchmarks/inverse.py.
INVERTED_WHOLE = 48


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """A covariance matrix stayed indefinite after every jitter was tried."""


Call: TypeAlias = Callable[[], Any]


def _nothing() -> None:
    """The call for an empty matrix."""


def _check(A: Array, shape: tuple[int, ...], name: str, in_order: bool) -> None:
    """Raise an error for an array that LAPACK would misread, as it gets addresses and sizes only."""
    if A.dtype != np.float64 or A.shape != shape or not in_order:
        raise ValueError(
            f"{name} must be float64 of shape {shape} without gaps, "
            f"got {A.dtype} of shape {A.shape} with strides {A.strides}"
        )


def _bind(routine: Callable[..., None], arguments: tuple[int, ...], *alive: object) -> Call:
    """A call of ``routine`` with these addresses, which keeps alive what they point into."""
    call = partial(routine, *arguments)
    call.alive = alive  # type: ignore[attr-defined]
    return call


class PackedGram(NamedTuple):
    """A symmetric matrix as its strict lower triangle (``pairs``) and its ``diagonal``."""

    pairs: Array
    diagonal: Array

    def dense(self) -> Array:
        """The full matrix, for reading and for tests."""
        square = Square.zeros(self.diagonal.size)
        square.bound_unpack(self.pairs)()
        return square.array + square.array.T + np.diag(self.diagonal)

    @staticmethod
    def pack(A: Array) -> PackedGram:
        """Pack a full symmetric matrix."""
        pairs = np.empty(A.shape[0] * (A.shape[0] - 1) // 2)
        Square(np.asfortranarray(A)).bound_pack(pairs)()
        return PackedGram(pairs, np.diagonal(A).copy())


class Square:
    """A Fortran-ordered square matrix, or the top left corner of one, of which only the lower triangle counts.

    The triangle may hold a covariance, its Cholesky factor or an inverse; the caller knows which, and every
    method works in place. The ``bound_`` methods look up all addresses once and return a call without arguments, for
    code that repeats the same step on the same arrays: at a hundred rows the look-ups cost as much as the arithmetic.
    """

    __slots__ = ("_info", "_lower", "_n", "_whole", "array", "diagonal", "n")

    def __init__(self, array: Array) -> None:
        self.n = n = array.shape[0]
        if array.dtype != np.float64 or (n > 1 and (array.strides[0] != 8 or array.shape[1] != n)):
            raise ValueError("matrix must be square, Fortran-ordered float64")  # can only be a bug of spngp
        self.array = array
        self.diagonal: Array = array.diagonal()
        if array.flags.writeable:  # not so for a model that was loaded from a read-only file
            self.diagonal.flags.writeable = True
        self._info = ctypes.c_int()
        self._n = integer(n)
        self._lower = (pointer(array), integer(array.strides[1] // 8 if n > 1 else max(n, 1)))
        self._whole = (LOWER, self._n, *self._lower, ctypes.addressof(self._info))

    def __reduce__(self) -> tuple[Any, ...]:
        return Square, (np.asfortranarray(self.array),)  # addresses mean nothing in a copy or another process

    @staticmethod
    def zeros(n: int) -> Square:
        """A new matrix."""
        return Square(np.zeros((n, n), order="F"))

    @staticmethod
    def scratch(n: int) -> Square:
        """A matrix in memory that belongs to the calling thread, until it asks for the next one; not cleared.

        Fresh memory of this size is slow to get, above all for several threads at once.
        """
        return Square(scratch(n * n).reshape(n, n, order="F"))

    def leading(self, n: int) -> Square:
        """The top left corner, the first n rows and columns, sharing memory."""
        return Square(self.array[:n, :n])

    def _check_pairs(self, pairs: Array) -> None:
        _check(pairs, (self.n * (self.n - 1) // 2,), "pairs", pairs.flags.c_contiguous)

    def bound_pack(self, pairs: Array) -> Call:
        """To copy the strict lower triangle into ``pairs``."""
        self._check_pairs(pairs)
        if self.n < 2:
            return _nothing
        # it is the lower triangle, diagonal included, of the matrix that starts one row further down
        address, leading = self._lower
        arguments = (LOWER, integer(self.n - 1), address + 8, leading, pointer(pairs), ctypes.addressof(self._info))
        return _bind(dtrttp, arguments, self, pairs)

    def bound_unpack(self, pairs: Array) -> Call:
        """To copy ``pairs`` into the strict lower triangle."""
        self._check_pairs(pairs)
        if self.n < 2:
            return _nothing
        address, leading = self._lower
        arguments = (LOWER, integer(self.n - 1), pointer(pairs), address + 8, leading, ctypes.addressof(self._info))
        return _bind(dtpttr, arguments, self, pairs)

    def bound_solve(self, B: Array, *, transposed: bool = False) -> Call:
        """For a factor L, to replace B by L⁻¹B or L⁻ᵀB; B a vector or a Fortran-ordered matrix."""
        in_order = B.strides[0] == 8 and (B.ndim == 1 or B.size == self.n or B.strides[1] >= 8 * self.n)
        in_order = in_order or self.n < 2 or B.size == 0  # NumPy gives an array without elements any strides
        _check(B, (self.n, *B.shape[1:2]), "B", in_order)
        if B.size == 0:
            return _nothing
        form = TRANSPOSED if transposed else PLAIN
        if B.ndim == 1:
            return _bind(dtrsv, (LOWER, form, PLAIN, self._n, *self._lower, pointer(B), integer(1)), self, B)
        m, stride = B.shape[1], B.strides[1] // 8 if B.shape[1] > 1 else self.n
        arguments = (LOWER, LOWER, form, PLAIN, self._n, integer(m), ONE, *self._lower, pointer(B), integer(stride))
        return _bind(dtrsm, arguments, self, B)

    def bound_subtract_outer(self, v: Array) -> Call:
        """To replace A by A − v vᵀ."""
        _check(v, (self.n,), "v", v.flags.c_contiguous)
        return _bind(dsyr, (LOWER, self._n, MINUS_ONE, pointer(v), integer(1), *self._lower), self, v)

    def bound_product(self, B: Array, out: Array) -> Call:
        """To put A B into ``out`` for the symmetric A; both Fortran-ordered."""
        for name, matrix in (("B", B), ("out", out)):
            _check(matrix, (self.n, *B.shape[1:2]), name, matrix.ndim == 2 and matrix.flags.f_contiguous)
        if B.size == 0:
            return _nothing
        n, m = integer(B.shape[0]), integer(B.shape[1])
        arguments = (LOWER, LOWER, n, m, ONE, *self._lower, pointer(B), n, ZERO, pointer(out), n)
        return _bind(dsymm, arguments, self, B, out)

    def bound_inner_products(self, features: Array, factor: int = 1) -> Call:
        """To fill with factor (1 or −2) times X Xᵀ for rows X in either memory order."""
        by_row, by_column = features.flags.c_contiguous, features.flags.f_contiguous
        _check(features, (self.n, *features.shape[1:2]), "features", features.ndim == 2 and (by_row or by_column))
        d = integer(features.shape[1])
        form, stride = (TRANSPOSED, d) if by_row else (PLAIN, self._n)
        alpha = ONE if factor == 1 else MINUS_TWO
        arguments = (LOWER, form, self._n, d, alpha, pointer(features), stride, ZERO, *self._lower)
        return _bind(dsyrk, arguments, self, features)

    def bound_add_sums(self, v: Array) -> Call:
        """To add v_i + v_j to each A_ij."""
        _check(v, (self.n,), "v", v.flags.c_contiguous)
        ones = np.ones(self.n)
        arguments = (LOWER, self._n, ONE, pointer(v), integer(1), pointer(ones), integer(1), *self._lower)
        return _bind(dsyr2, arguments, self, v, ones)

    def bound_invert(self, inverted_whole: int = INVERTED_WHOLE) -> Call:
        """To overwrite the factor of C with C⁻¹: first L⁻¹, by halves, then L⁻ᵀL⁻¹.

        LAPACK's ``dpotri`` does the same, but OpenBLAS is slow at inverting a triangle of more than a few dozen rows.
        """
        if self.n <= inverted_whole:
            return _bind(dpotri, self._whole, self)
        if compiled.library is not None:
            sizes = (self.n, self.array.strides[1] // 8, inverted_whole)
            return _bind(compiled.library.invert, (ctypes.addressof(LAPACK), self._lower[0], *sizes), self)
        steps = [*self.triangle_inversion(max(inverted_whole, 16)), _bind(dlauum, self._whole, self)]

        def invert() -> None:
            for step in steps:
                step()

        return invert

    def triangle_inversion(self, inverted_whole: int) -> list[Call]:
        """Calls that replace L by L⁻¹: [A 0; B D]⁻¹ = [A⁻¹ 0; −D⁻¹BA⁻¹ D⁻¹]."""
        if self.n <= inverted_whole:
            return [_bind(dtrtri, (LOWER, PLAIN, *self._whole[1:]), self)]
        cut = (self.n // 2 + 7) // 8 * 8  # the inner loops of BLAS are 4 or 8 entries wide
        A, D = self.leading(cut), Square(self.array[cut:, cut:])
        B = (self._lower[0] + 8 * cut, self._lower[1])
        return [
            *D.triangle_inversion(inverted_whole),
            # solved with A, not multiplied by its inverse: a tenth slower, but loses fewer digits
            _bind(dtrsm, (RIGHT, LOWER, PLAIN, PLAIN, D._n, A._n, MINUS_ONE, *A._lower, *B), self),
            _bind(dtrmm, (LOWER, LOWER, PLAIN, PLAIN, D._n, A._n, ONE, *D._lower, *B), self),
            *A.triangle_inversion(inverted_whole),
        ]

    def cholesky(self) -> bool:
        """Overwrite a covariance with its factor; false if it is not positive definite."""
        dpotrf(*self._whole)
        # A NaN can pass through LAPACK unnoticed, but it spreads to the last pivot. An infinite pivot need not: a leaf
        # sees it in the determinant.
        return self._info.value == 0 and math.isfinite(self.diagonal[-1])

    def factor(
        self,
        gram: PackedGram,
        noise: Array | float,
        unpack: Call | None = None,
        jitters: tuple[float, ...] = JITTERS,
    ) -> float:
        """Fill with the factor of ``gram + diag(noise)``; returns the jitter it took.

        The jitter is zero for a matrix that is positive definite in floating point; else the smallest of ``jitters``,
        in units of the mean diagonal, that works, and :class:`NotPositiveDefiniteError` if none does. ``unpack`` may
        be given ready bound.
        """
        diagonal = gram.diagonal + noise
        if self.n == 0:
            return 0.0
        unpack = unpack or self.bound_unpack(gram.pairs)
        for relative in jitters:
            jitter = relative * float(diagonal.sum()) / self.n if relative else 0.0
            unpack()
            self.diagonal[:] = diagonal + jitter if jitter else diagonal
            if self.cholesky():
                return jitter
        raise self._not_positive_definite(float(diagonal.sum()) / self.n, jitters)

    def factor_filled(self, fill: Call, noise: Array | float, jitters: tuple[float, ...] = JITTERS) -> float:
        """As :meth:`factor`, for a covariance that ``fill`` writes into the triangle, once per jitter tried."""
        if self.n == 0:
            return 0.0
        scale = 0.0
        for relative in jitters:
            fill()
            diagonal = self.diagonal + noise
            scale = float(diagonal.sum()) / self.n
            jitter = relative * scale if relative else 0.0
            self.diagonal[:] = diagonal + jitter
            if self.cholesky():
                return jitter
        raise self._not_positive_definite(scale, jitters)

    def _not_positive_definite(self, scale: float, jitters: tuple[float, ...]) -> NotPositiveDefiniteError:
        if not math.isfinite(scale):
            return self.overflow()
        return NotPositiveDefiniteError(
            f"a {self.n} x {self.n} covariance matrix is not positive definite, "
            f"even with {jitters[-1]:g} times its mean diagonal ({scale:g}) added to the diagonal"
        )

    def overflow(self) -> NotPositiveDefiniteError:
        """The error for a factor whose determinant is not finite."""
        return NotPositiveDefiniteError(f"a {self.n} x {self.n} covariance matrix is not finite: it overflows")

    def extended(
        self, cross: Array, gram: PackedGram, noise: Array | float, jitters: tuple[float, ...] = JITTERS
    ) -> Square:
        """For the factor of C: that of [[C, cross], [crossᵀ, gram + noise]], in O(n²m) for m new rows.

        ``jitters`` are tried in turn on the new rows, in units of the mean of their own diagonal: what C leaves
        unexplained of them may be as small as a rounding error and says nothing about their scale.
        """
        n, m = cross.shape
        n_, m_ = integer(n), integer(m)
        whole = np.zeros((n + m, n + m), order="F")
        whole[:n, :n] = self.array
        if m == 0:
            return Square(whole)
        below = np.array(cross, order="F")
        self.solve(below)
        whole[n:, :n], schur = below.T, Square.zeros(m)
        schur.bound_unpack(gram.pairs)()
        schur.diagonal[:] = gram.diagonal + noise
        scale = float(schur.diagonal.mean())
        # schur −= belowᵀ below
        dsyrk(LOWER, TRANSPOSED, m_, n_, MINUS_ONE, pointer(below), integer(max(n, 1)), ONE, *schur._lower)
        remainder = PackedGram.pack(schur.array)
        unpack = schur.bound_unpack(remainder.pairs)
        # a pivot no larger than what the subtraction rounds off carries no information, though it may be positive
        rounding = (n + m) * np.finfo(np.float64).eps * scale
        for relative in jitters:
            unpack()
            schur.diagonal[:] = remainder.diagonal + relative * scale
            if schur.cholesky() and schur.diagonal.min() ** 2 > rounding:
                whole[n:, n:] = schur.array
                return Square(whole)
        raise schur._not_positive_definite(scale, jitters)

    def solve(self, B: Array) -> None:
        """For a factor L: B ← L⁻¹B, for a vector or a Fortran-ordered matrix."""
        self.bound_solve(B)()

    def solve_transposed(self, B: Array) -> None:
        """For a factor L: B ← L⁻ᵀB, for a vector or a Fortran-ordered matrix."""
        self.bound_solve(B, transposed=True)()

    def log_determinant(self) -> float:
        """For the factor of C: log|C|."""
        return 2.0 * float(np.add.reduce(np.log(self.diagonal)))  # half the overhead of .sum()
