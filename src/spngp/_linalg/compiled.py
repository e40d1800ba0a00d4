"""The library compiled from ``native.c``, if there is one.

It is compiled when spngp is installed where there is a C compiler. Without it everything works, and gives the same
results up to rounding (and covariances below 1e-307, which are zero here), in NumPy alone, more slowly
(``benchmarks/compiled.py``). ``SPNGP_COMPILED=0`` in the environment does without it. Calls release the GIL.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

_VERSION = 8  # of the functions' arguments; the same number is in native.c
_ADDRESS, _COUNT, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
_ARGUMENTS = {
    "packed_gram": (_COUNT, _ADDRESS, _COUNT, _COUNT, _ADDRESS, _ADDRESS, _NUMBER, _ADDRESS),
    "packed_pullback": (_ADDRESS, _COUNT, _COUNT, *[_ADDRESS] * 5),
    "gram": (*[_COUNT, _ADDRESS] * 2, *[_COUNT] * 2, _ADDRESS, *[_COUNT] * 3, _NUMBER, _ADDRESS),
    "sum_of_parts": (_COUNT, _ADDRESS, *[_ADDRESS, _COUNT] * 2, _COUNT, *[_ADDRESS] * 4),
    "near_box": (_ADDRESS, *[_COUNT] * 3, *[_ADDRESS] * 3, _NUMBER, _ADDRESS),
    "mark_near": (_ADDRESS, *[_COUNT] * 2, *[_ADDRESS] * 3, _COUNT, *[_ADDRESS] * 5),
    "solve_one": (_ADDRESS, *[_COUNT] * 2, _ADDRESS),
    "solve_two": (_ADDRESS, *[_COUNT] * 2, *[_ADDRESS] * 2),
    "grow": (_COUNT, _ADDRESS, *[_ADDRESS, _COUNT] * 2, *[_COUNT] * 2, *[_ADDRESS] * 4),
    "solve_transposed": (_ADDRESS, *[_COUNT] * 2, _ADDRESS, _COUNT),
    "invert": (_ADDRESS, _ADDRESS, *[_COUNT] * 3),
    "evidence": (_ADDRESS, *[_COUNT] * 4, *[_ADDRESS] * 9, *[_NUMBER] * 2, *[_ADDRESS] * 2, _COUNT),
}
_COUNTING = ("near_box", "grow", "evidence")  # those that return a number

# Numbers of the formulas, as in native.c.
SQUARED_EXPONENTIAL = 0
MATERN = {0.5: 1, 1.5: 2, 2.5: 3}

# Most inputs for the library: with more, distances by BLAS products are faster than its loops (benchmarks/compiled.py).
MOST_INPUTS = 64


class Library(NamedTuple):
    """Functions of the library. They take addresses and sizes and check nothing."""

    packed_gram: Callable[..., None]
    packed_pullback: Callable[..., None]
    gram: Callable[..., None]
    sum_of_parts: Callable[..., None]
    near_box: Callable[..., int]
    mark_near: Callable[..., None]
    solve_one: Callable[..., None]
    solve_two: Callable[..., None]
    grow: Callable[..., int]
    solve_transposed: Callable[..., None]
    invert: Callable[..., None]
    evidence: Callable[..., int]


def _load() -> Library | None:
    if os.environ.get("SPNGP_COMPILED") == "0":
        return None
    try:
        loaded = ctypes.CDLL(importlib.import_module("spngp._linalg._native").__file__ or "")
    except (ImportError, OSError):
        return None
    try:
        loaded.version.restype = _COUNT
        current = loaded.version() == _VERSION
        functions: dict[str, Any] = {name: getattr(loaded, name) for name in _ARGUMENTS}
    except AttributeError:
        current = False
    if not current:
        warnings.warn(
            "spngp was updated but not its compiled library, which is left aside: install spngp again", stacklevel=2
        )
        return None
    for name, function in functions.items():
        function.argtypes, function.restype = _ARGUMENTS[name], _COUNT if name in _COUNTING else None
    library = Library(**functions)
    return library if _can_compute(library) else None


def _can_compute(library: Library) -> bool:
    """Whether the library computes exp(−½) correctly; with some compiler options (fast math) it would not."""
    at, out = ctypes.c_double(0.0), ctypes.c_double()
    row = (ctypes.addressof(at), 1)
    library.gram(SQUARED_EXPONENTIAL, *row, *row, 1, ctypes.addressof(out), 1, False, False, -0.5, None)
    return math.isclose(out.value, math.exp(-0.5), rel_tol=1e-15)


library = _load()
