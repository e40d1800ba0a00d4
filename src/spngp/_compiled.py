"""The library compiled from ``_native.c``, if there is one.

It is compiled when spngp is installed where there is a C compiler. Without it everything works, and gives the same
results up to rounding, in NumPy alone, more slowly (``benchmarks/compiled.py``). Calls release the GIL.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

_ADDRESS, _COUNT, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
_ARGUMENTS = {
    "packed_gram": (_COUNT, _ADDRESS, _COUNT, _COUNT, _ADDRESS, _ADDRESS, _NUMBER),
    "packed_pullback": (_ADDRESS, _COUNT, _COUNT, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS),
    "gram": (*[_COUNT, _ADDRESS] * 2, *[_COUNT] * 2, _ADDRESS, *[_COUNT] * 3, _NUMBER),
    "invert": (_ADDRESS, _ADDRESS, *[_COUNT] * 3),
    "evidence": (_ADDRESS, *[_COUNT] * 4, *[_ADDRESS] * 9, _NUMBER),
}

# Numbers of the formulas.
SQUARED_EXPONENTIAL = 0
MATERN = {0.5: 1, 1.5: 2, 2.5: 3}


class Library(NamedTuple):
    """Functions of the library. They take addresses and sizes and check nothing."""

    packed_gram: Callable[..., None]
    packed_pullback: Callable[..., None]
    gram: Callable[..., None]
    invert: Callable[..., None]
    evidence: Callable[..., int]


def _load() -> Library | None:
    with contextlib.suppress(ImportError, OSError):
        loaded = ctypes.CDLL(importlib.import_module("spngp._native").__file__ or "")
        functions: dict[str, Any] = {name: getattr(loaded, name) for name in _ARGUMENTS}
        for name, function in functions.items():
            function.argtypes, function.restype = _ARGUMENTS[name], _COUNT if name == "evidence" else None
        return Library(**functions)
    return None


library = _load()
