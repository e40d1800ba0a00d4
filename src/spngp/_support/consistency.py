"""Checks of objects that no constructor has checked, such as those read from a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def must(holds: Any, what: str, seen: Any) -> None:
    """Raise an error that says what must hold and what was seen, unless it holds."""
    if not holds:
        raise ValueError(f"{what}, got {seen}")


def must_be_finite(values: Any, what: str) -> None:
    """Raise an error unless all values are finite."""
    must(np.isfinite(values).all(), f"{what} must be finite", "another")


def must_be_positive(values: Any, what: str, least: str = "> 0") -> None:
    """Raise an error unless all values are positive, or with ``">= 0"`` at least zero."""
    array = np.asarray(values)
    must((array > 0).all() if least == "> 0" else (array >= 0).all(), f"{what} must be {least}", "another")


def must_have_shape(array: NDArray[Any], shape: tuple[int, ...], what: str) -> None:
    """Raise an error unless the array has this shape."""
    if array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, got {array.shape}")
