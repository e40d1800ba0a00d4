"""LAPACK and BLAS as functions of addresses.

They are reached through the function pointers that SciPy exports for Cython. Called with ``ctypes`` they release the
GIL, which SciPy's own wrappers do not, so threads can work on different leaves at once. Arguments are addresses only;
those of constants stand below, those of integers and arrays come from :func:`integer` and :func:`pointer`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from scipy.linalg import cython_blas, cython_lapack

from spngp._support.types import Array


def _routine(module: Any, name: str, n_arguments: int) -> Callable[..., None]:
    """Look up an exported LAPACK or BLAS routine; calls through the result release the GIL."""
    capsule = module.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)
    routine: Callable[..., None] = prototype(get_pointer(capsule, get_name(capsule)))
    return routine


dpotrf = _routine(cython_lapack, "dpotrf", 5)
dpotri = _routine(cython_lapack, "dpotri", 5)
dtrtri = _routine(cython_lapack, "dtrtri", 6)
dlauum = _routine(cython_lapack, "dlauum", 5)
dtrttp = _routine(cython_lapack, "dtrttp", 6)
dtpttr = _routine(cython_lapack, "dtpttr", 6)
dtrsm = _routine(cython_blas, "dtrsm", 11)
dtrmm = _routine(cython_blas, "dtrmm", 11)
dtrsv = _routine(cython_blas, "dtrsv", 8)
dsyrk = _routine(cython_blas, "dsyrk", 10)
dsymm = _routine(cython_blas, "dsymm", 12)
dsyr = _routine(cython_blas, "dsyr", 7)
dsyr2 = _routine(cython_blas, "dsyr2", 9)


def _address(routine: Any) -> int:
    return ctypes.cast(routine, ctypes.c_void_p).value or 0


# In the order of ``struct lapack`` in native.c, which calls them by their place.
_table = (dpotrf, dpotri, dtrtri, dlauum, dtrsm, dtrmm, dtrsv, dsyr)
LAPACK = (ctypes.c_void_p * len(_table))(*(_address(routine) for routine in _table))

_LETTERS = {letter: ctypes.c_char(letter.encode()) for letter in "LNRTU"}
LOWER, PLAIN, RIGHT, TRANSPOSED, UPPER = (ctypes.addressof(letter) for letter in _LETTERS.values())
_NUMBERS = {number: ctypes.c_double(number) for number in (-2.0, -1.0, 0.0, 1.0)}
MINUS_TWO, MINUS_ONE, ZERO, ONE = (ctypes.addressof(number) for number in _NUMBERS.values())
_INTEGERS: dict[int, ctypes.c_int] = {}


@cache
def integer(value: int) -> int:
    """Address of a C int that lives as long as the process; LAPACK only reads it."""
    return ctypes.addressof(_INTEGERS.setdefault(value, ctypes.c_int(value)))


def pointer(A: Array) -> int:
    """Address of the first element; the buffer protocol is three times as fast as ``A.ctypes.data``."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(A.T))  # type: ignore[arg-type]
    except (ValueError, TypeError, BufferError):  # part of a matrix, a read-only or an empty array
        address: int = A.ctypes.data
        return address
