"""A Cholesky factor that grows by rows at the end, and from which rows can be taken out.

The triangle is kept in slabs of rows. Rows are appended in place, without copying what is there, and a solution reads
every number once, by matrix products. Versions of a factor share slabs: an older one keeps seeing its first n rows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spngp._linalg import compiled
from spngp._linalg.lapack import ONE, PLAIN, RIGHT, TRANSPOSED, UPPER, dtrsm, integer
from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.types import Array, Indices

_SLAB = 64  # rows of a slab
_PANEL = 16  # columns that are made triangular at once when rows are taken out
_EPSILON = float(np.finfo(np.float64).eps)
_CLAIM = threading.Lock()  # two versions of a factor may grow in two threads at once


class _Slab:
    """Rows ``start`` to ``start + capacity`` of the triangle; the first ``filled`` of them are in use.

    What stands above the diagonal is not part of it, and may be anything.
    """

    __slots__ = ("address", "array", "filled", "nbytes", "start", "stride")

    def __init__(self, start: int, capacity: int) -> None:
        self.start, self.filled = start, 0
        self.array = np.zeros((capacity, start + capacity))
        self.nbytes: int = self.array.nbytes
        self.stride = integer(start + capacity)
        self.address: int = self.array.ctypes.data + 8 * start  # of the triangle at the diagonal

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.start, self.filled, self.array)

    def copy(self, rows: int, capacity: int) -> _Slab:
        """The first rows, in memory of its own."""
        slab = _Slab(self.start, capacity)
        slab.array[:rows, : self.start + rows] = self.array[:rows, : self.start + rows]
        slab.filled = rows
        return slab


def _restored(start: int, filled: int, array: Array) -> _Slab:
    slab = _Slab(start, array.shape[0])
    slab.array[:], slab.filled = array, filled
    return slab


class AddressedKernel(NamedTuple):
    """A kernel as the compiled library takes it: how many formulas it has, and where these and their parameters are."""

    n_parts: int
    formulas: int
    scales: int
    log_variances: int
    caps: int  # 0 for none


class GrowingFactor:
    """The lower factor L of a covariance C = L Lᵀ. Immutable for its user; versions share memory.

    Attributes
    ----------
    n : int
        Number of rows.
    nbytes : int
        Memory that it takes.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp._linalg.growing import GrowingFactor
    >>> factor, _, _ = GrowingFactor().extended(np.empty((0, 1)), np.array([[4.0]]))
    >>> factor, below, _ = factor.extended(np.array([[2.0]]), np.array([[5.0]]))
    >>> factor.dense()
    array([[2., 0.],
           [1., 2.]])
    """

    __slots__ = ("_places", "_slabs", "n", "nbytes")

    def __init__(self, slabs: tuple[_Slab, ...] = (), n: int = 0, places: NDArray[np.int64] | None = None) -> None:
        self._slabs, self.n = slabs, n
        self._places = places  # where slabs are, for the compiled library; None if not known yet
        self.nbytes = sum([slab.nbytes for slab in slabs])

    def __reduce__(self) -> tuple[object, ...]:
        return GrowingFactor, (self._slabs, self.n)

    @staticmethod
    def of(L: Array) -> GrowingFactor:
        """A copy of a factor that is there already, in half the memory; only the lower triangle of ``L`` is read."""
        slabs, n = [], L.shape[0]
        for start in range(0, n, _SLAB):
            stop = min(start + _SLAB, n)
            slab = _Slab(start, stop - start)
            slab.array[:, :start] = L[start:stop, :start]
            slab.array[:, start:] = L[start:stop, start:stop]
            slab.filled = stop - start
            slabs.append(slab)
        return GrowingFactor(tuple(slabs), n)

    @property
    def diagonal(self) -> Array:
        """Diagonal of L."""
        parts = [slab.array[:, slab.start :].diagonal() for slab in self._slabs]
        return np.concatenate(parts)[: self.n] if parts else np.empty(0)

    def last_diagonal(self, count: int) -> Array:
        """The last entries of the diagonal of L, at least one."""
        slab = self._slabs[-1]
        inside = self.n - slab.start
        if count > inside:
            return self.diagonal[-count:]
        return slab.array[:, slab.start :].diagonal()[inside - count : inside]

    def dense(self) -> Array:
        """L as a matrix, with zeros above its diagonal."""
        return self.trailing(0)

    def leading(self, n: int) -> GrowingFactor:
        """The factor of the first n rows, in the same memory."""
        return GrowingFactor(tuple(slab for slab in self._slabs if slab.start < n), n)

    def trailing(self, first: int) -> Array:
        """What L has in rows and columns from ``first`` on, as a matrix with zeros above its diagonal."""
        T = np.zeros((self.n - first, self.n - first))
        for slab in self._slabs:
            start, stop = max(slab.start, first), min(slab.start + slab.array.shape[0], self.n)
            if start < stop:
                T[start - first : stop - first, : stop - first] = slab.array[
                    start - slab.start : stop - slab.start, first:stop
                ]
        return np.tril(T)

    def solve_rows(self, B: Array) -> None:
        """For each row b of a C-ordered matrix, of which the first n numbers count: b ← L⁻¹b."""
        if compiled.library is None or B.shape[0] > 2:
            columns = np.array(B[:, : self.n].T, order="C")
            self.solve(columns)
            B[:, : self.n] = columns.T
        elif self.n and B.shape[0]:
            solve = compiled.library.solve_one if B.shape[0] == 1 else compiled.library.solve_two
            solve(*self._where(), self.n, *[B.ctypes.data + i * B.strides[0] for i in range(B.shape[0])])

    def solve(self, B: Array) -> None:
        """B ← L⁻¹B, for a C-ordered matrix with a row per row of L."""
        m, address = B.shape[1], B.ctypes.data
        if compiled.library is not None and 0 < m <= 2 and self.n:
            few = np.array(B.T, order="C")
            self.solve_rows(few)
            B[:] = few.T
            return
        for slab in self._slabs:
            start = slab.start
            rows = min(slab.array.shape[0], self.n - start)
            if start:
                B[start : start + rows] -= slab.array[:rows, :start] @ B[:start]
            _solve_triangle(slab, rows, B, address, PLAIN)

    def solve_transposed(self, B: Array, first: int = 0) -> None:
        """B ← L⁻ᵀB, for a C-ordered matrix with a row per row of L; rows before ``first`` are not to be read."""
        address = B.ctypes.data
        if compiled.library is not None and B.shape[1] == 1 and self.n:
            compiled.library.solve_transposed(*self._where(), self.n, address, first)
            return
        for slab in reversed(self._slabs):
            start = slab.start
            rows = min(slab.array.shape[0], self.n - start)
            _solve_triangle(slab, rows, B, address, TRANSPOSED)
            if start:
                B[:start] -= slab.array[:rows, :start].T @ B[start : start + rows]

    def _where(self) -> tuple[int, int]:
        """Address and number of the library's records of slabs."""
        if self._places is None:
            records = [(slab.array.ctypes.data, slab.start, slab.array.shape[1]) for slab in self._slabs]
            self._places = np.array(records, dtype=np.int64)
        return self._places.ctypes.data, len(self._slabs)

    def extended(self, cross: Array, gram: Array) -> tuple[GrowingFactor, Array, Array]:
        """For the factor of C: that of [[C, cross], [crossᵀ, gram]], in O(n²m) for m new rows.

        Returns the factor and the two parts of its new rows: (L⁻¹cross)ᵀ, and the triangle at the diagonal. Raises
        NotPositiveDefiniteError if what C leaves unexplained of a new row is no more than a rounding error.
        """
        below = np.array(cross, order="C")
        self.solve(below)
        factor, triangle = self.extended_by(below, gram)
        return factor, below, triangle

    def extended_by(self, below: Array, gram: Array) -> tuple[GrowingFactor, Array]:
        """As :meth:`extended`, for L⁻¹cross that is known already; returns the factor and the triangle."""
        n = self.n + gram.shape[0]
        corner = gram - below.T @ below
        try:
            triangle: Array = np.asarray(np.linalg.cholesky(corner))
        except np.linalg.LinAlgError:
            raise _not_positive_definite(n) from None
        if not float(triangle.diagonal().min()) ** 2 > n * _EPSILON * float(gram.diagonal().mean()):
            raise _not_positive_definite(n)
        return self._followed_by(np.concatenate([below.T, triangle], axis=1)), triangle

    def _followed_by(self, rows: Array) -> GrowingFactor:
        """With these rows at the end, up to the diagonal."""
        m = rows.shape[0]
        if self._slabs:  # as a rule the last slab has room, and addresses stay as they are
            slab = self._slabs[-1]
            used = self.n - slab.start
            with _CLAIM:
                free = slab.filled == used and used + m <= slab.array.shape[0]
                if free:
                    slab.filled = used + m
            if free:
                slab.array[used : used + m, : self.n + m] = rows
                return GrowingFactor(self._slabs, self.n + m, self._places)
        slabs, n, done = list(self._slabs), self.n, 0
        while done < m:
            used = n - slabs[-1].start if slabs else _SLAB
            if used == _SLAB:
                slabs.append(_Slab(n, _SLAB))
                used = 0
            count = min(_SLAB - used, m - done)
            with _CLAIM:
                slab = slabs[-1]
                if slab.filled != used or slab.array.shape[0] < used + count:  # another version has rows here, or full
                    slabs[-1] = slab = slab.copy(used, _SLAB)
                slab.filled = used + count
            slab.array[used : used + count, : n + count] = rows[done : done + count, : n + count]
            n, done = n + count, done + count
        return GrowingFactor(tuple(slabs), n)

    def without(self, gone: Indices) -> GrowingFactor:
        """The factor of C without some rows and columns, in O(n²) for each row that is gone.

        What is left of L by rows still has the columns of the rows that are gone. Turning these into the others, from
        left to right, keeps L Lᵀ (only additions of squares, so nothing is lost by rounding).
        """
        L = self.dense()
        kept = np.ones(self.n, dtype=bool)
        kept[gone] = False
        A, V = L[np.ix_(kept, kept)], L[np.ix_(kept, ~kept)]
        n = A.shape[0]
        first = int(np.min(gone)) if gone.size else n  # rows before the first one gone stay as they are
        for start in range(first, n, _PANEL):
            stop = min(start + _PANEL, n)
            width = stop - start
            Q, R = np.linalg.qr(np.concatenate([A[start:stop, start:stop], V[start:stop]], axis=1).T, mode="complete")
            signs = np.where(R.diagonal() < 0, -1.0, 1.0)
            A[start:stop, start:stop] = (R[:width] * signs[:, np.newaxis]).T
            turned = np.concatenate([A[stop:, start:stop], V[stop:]], axis=1) @ Q
            A[stop:, start:stop], V[stop:] = turned[:, :width] * signs, turned[:, width:]
        return GrowingFactor.of(A)


def grown_together(
    factors: Sequence[GrowingFactor],
    kernels: Sequence[AddressedKernel],
    rows: Array,
    asked: Array,
    noise: Array,
    Z: Array,
) -> tuple[list[GrowingFactor], list[float], Array]:
    """Factors of the same rows with further ones, and what follows for others, in one call of the compiled library.

    ``rows`` are all rows, the further ones last; ``asked`` are the further ones and then those that are asked about,
    few in all. ``noise`` has for each factor the variances of the further rows, and ``Z`` what is L⁻¹y, followed by the
    outputs of the further rows, which are replaced by their innovations. All in the order of C.

    Returns the factors; for each, the log evidence of the further outputs given those before but for its constant; and
    an array of shape (factors, 2, rows asked about): means, and the variances that are explained. Raises
    NotPositiveDefiniteError if what the rows before leave unexplained of a further row is no more than a rounding
    error.
    """
    assert compiled.library is not None
    count, n, d, q = len(factors), *rows.shape, asked.shape[0]
    m = n - factors[0].n
    records = [(*kernel, *factor._where()) for kernel, factor in zip(kernels, factors, strict=True)]
    gps = np.array(records, dtype=np.int64)
    out, told = np.empty((count, q, n)), np.empty((count, 1 + 2 * (q - m)))
    given = (rows.ctypes.data, n, asked.ctypes.data, q, d, m, noise.ctypes.data, Z.ctypes.data)
    if compiled.library.grow(count, gps.ctypes.data, *given, out.ctypes.data, told.ctypes.data):
        raise _not_positive_definite(n)
    after = [factor._followed_by(new[:m]) for factor, new in zip(factors, out, strict=True)] if m else list(factors)
    return after, told[:, 0].tolist(), told[:, 1:].reshape(count, 2, q - m)


def _solve_triangle(slab: _Slab, rows: int, B: Array, address: int, form: int) -> None:
    """For the triangle D of a slab at the diagonal and its rows of B: B ← D⁻¹B, or D⁻ᵀB; B begins at the address.

    In the order of Fortran, D is an upper triangle, Dᵀ, and B is Bᵀ: (D⁻¹B)ᵀ = Bᵀ(Dᵀ)⁻¹.
    """
    if B.size == 0:
        return
    m = integer(B.shape[1])
    at = address + slab.start * B.strides[0]
    dtrsm(RIGHT, UPPER, form, PLAIN, m, integer(rows), ONE, slab.address, slab.stride, at, m)


def _not_positive_definite(n: int) -> NotPositiveDefiniteError:
    return NotPositiveDefiniteError(f"a {n} x {n} covariance matrix is not positive definite")
