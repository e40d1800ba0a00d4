"""Checks at the doors of the library: each error says what was wrong, what is allowed and what was seen."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from spngp._support.types import Array


def refuse_masked(values: Any, name: str) -> None:
    """Raise an error if some of the values are masked: as a plain array they would pass for real ones."""
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise ValueError(f"{name} must not have masked values; fill them, or mark missing outputs by NaN")


def as_floats(values: Any, name: str) -> Array:
    """``values`` as a float64 array, or a one-line error that names it."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    refuse_masked(values, name)
    floats, kind = None, ""
    try:
        array = np.asarray(values)
        kind = array.dtype.kind
        if kind not in "cUSMmV" and not (kind == "O" and _holds_text(array)):
            floats = np.asarray(array, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must fit into double precision, got {shown(values)}") from None
    except (TypeError, ValueError) as error:
        if "inhomogeneous" in str(error):
            raise ValueError(f"{name} must have rows of one length, got {shown(values)}") from None
    if kind == "c":
        raise ValueError(f"{name} must be real, got complex numbers")
    if floats is None:
        raise ValueError(f"{name} must be numeric, got {shown(values)}")
    return floats


def _holds_text(array: Any) -> bool:
    """Whether any object is text, which NumPy would parse as a number if it can."""
    return any(isinstance(value, str | bytes | np.datetime64 | np.timedelta64) for value in array.flat)


def shown(values: Any) -> str:
    """A value for an error: on one line, and no longer than 60 characters."""
    text = repr(values).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."


def as_rows(X: Any, name: str = "X") -> Array:
    """``X`` as a finite (n, d) float64 array in C order; one-dimensional input is taken as one column."""
    rows = as_floats(X, name)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if rows.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), got {rows.shape}")
    if rows.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(f"{name} must be finite, got {rows[row, column]} in row {row}, column {column}")
    return np.ascontiguousarray(rows)


def as_outputs(Y: Any, n_rows: int, name: str = "y", *, missing: bool) -> Array:
    """``Y`` as an (n, p) float64 array of ``n_rows`` rows; NaN means missing where ``missing`` allows it."""
    outputs = as_floats(Y, name)
    if outputs.ndim == 1:
        outputs = outputs[:, np.newaxis]
    if outputs.ndim != 2 or outputs.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n,) or (n, p), got {outputs.shape}")
    if outputs.shape[0] != n_rows:
        raise ValueError(f"{name} must have as many rows as X ({n_rows}), got {outputs.shape[0]}")
    bad = np.isinf(outputs) if missing else ~np.isfinite(outputs)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        allowed = "finite or NaN (missing)" if missing else "finite"
        raise ValueError(f"{name} must be {allowed}, got {outputs[row, column]} in row {row}, column {column}")
    return outputs


def as_variances(y_variance: Any, Y: Array, name: str = "y_variance") -> Array | None:
    """Known variances of outputs in the shape of Y (n, p): from a number, one per row, or one per output.

    Those of missing outputs may be missing as well.
    """
    if y_variance is None:
        return None
    variances = as_floats(y_variance, name)
    n, p = Y.shape
    if variances.ndim == 1:
        variances = variances[:, np.newaxis]
    if variances.shape not in ((), (n, 1), (n, p)):
        raise ValueError(
            f"{name} must be a number, one per row ({n},) or one per output ({n}, {p}), got {np.shape(y_variance)}"
        )
    variances = np.where(np.isnan(Y), 0.0, np.broadcast_to(variances, Y.shape))
    bad = np.argwhere(~(np.isfinite(variances) & (variances >= 0)))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"{name} must be finite and >= 0, got {variances[row, column]:g} in row {row}; 0 for outputs known exactly"
        )
    return variances


def as_count(value: Any, name: str, minimum: int) -> int:
    """``value`` as an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a generator (used as it is) or None (fresh entropy)."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    raise ValueError(
        f"random_state must be None, an integer >= 0 or a numpy Generator or RandomState, got {random_state!r}"
    )
