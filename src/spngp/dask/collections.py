"""Dask collections, partition by partition: to be learnt from, and to be answered."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from spngp._support.types import Array


def is_frame(X: Any) -> bool:
    """Whether a collection is a DataFrame or a Series; an error if it is neither that nor an Array."""
    if hasattr(X, "map_partitions"):
        return True
    if isinstance(X, da.Array):
        return False
    raise TypeError(f"X and y must be Dask DataFrames or Arrays, got a {type(X).__name__}")


def for_each_partition(X: Any, y: Any, step: Callable[[int, Any, Any], Any]) -> list[Any]:
    """``step(number, X, y)`` of every partition, as delayed tasks."""
    inputs, outputs = _delayed(X), _delayed(y)
    if len(inputs) != len(outputs):
        raise ValueError(f"X and y must have the same partitions, got {len(inputs)} and {len(outputs)} of them")
    task = dask.delayed(step, pure=False)
    token, both = secrets.token_hex(6), enumerate(zip(inputs, outputs, strict=True))
    return [task(i, *parts, dask_key_name=("spngp-write-" + token, i)) for i, parts in both]


def _delayed(collection: Any) -> list[Any]:
    if is_frame(collection):
        return list(collection.to_delayed())
    if collection.ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(collection.to_delayed().ravel())


def input_names(X: Any) -> list[str]:
    """Names of the inputs; x0, x1, … for an Array."""
    if is_frame(X):
        return [str(name) for name in X.columns]
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    return [f"x{j}" for j in range(X.shape[1])]


def target_names(y: Any, inputs: list[str]) -> list[str]:
    """Names of the outputs, none of which is that of an input."""
    if is_frame(y):
        names = [str(name) for name in y.columns] if y.ndim == 2 else [str(y.name or "y")]
    else:
        names = ["y"] if y.ndim == 1 else [f"y{k}" for k in range(y.shape[1])]
    return [name if name not in inputs else f"{name} (target)" for name in names]


def answers(X: Any, predict: Callable[[Any], list[Array]], ask: dict[str, Any], targets: list[str]) -> Any:
    """Lazy predictions for a collection: mean, or a tuple, or quantiles."""
    names = _names(ask)
    levels = ask["quantiles"]
    columns = targets if levels is None else None
    if levels is not None and np.ndim(levels):
        columns = [f"q{level:g}" for level in levels]
    many = columns is not None and (len(columns) > 1 or levels is not None)
    if levels is not None and len(targets) > 1:
        raise ValueError(f"quantiles of several outputs are not lazy yet, got {len(targets)} outputs; use to_local()")
    found = [_answer(X, _Nth(predict, i), columns if many else None) for i in range(len(names))]
    return found[0] if len(found) == 1 else tuple(found)


def _names(ask: dict[str, Any]) -> list[str]:
    if ask["quantiles"] is not None:
        return ["quantiles"]
    return ["mean", *(["std"] if ask["return_std"] else []), *(["low", "high"] if ask["interval"] is not None else [])]


def _answer(X: Any, nth: _Nth, columns: list[str] | None) -> Any:
    if is_frame(X):
        import pandas as pd

        empty = (
            pd.Series(dtype=float)
            if columns is None
            else pd.DataFrame({name: pd.Series(dtype=float) for name in columns})
        )
        return X.map_partitions(_framed, nth, columns, meta=empty)
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    if columns is None:
        return X.map_blocks(_block, nth, dtype=np.float64, drop_axis=1, meta=np.empty(0))
    return X.map_blocks(
        _block, nth, len(columns), dtype=np.float64, chunks=(X.chunks[0], (len(columns),)), meta=np.empty((0, 0))
    )


def _framed(rows: Any, nth: _Nth, columns: list[str] | None) -> Any:
    import pandas as pd

    values = nth(rows)
    if columns is None:
        return pd.Series(values.reshape(len(rows)), index=rows.index, dtype=float)
    return pd.DataFrame(values.reshape(len(rows), len(columns)), index=rows.index, columns=columns, dtype=float)


def _block(rows: Any, nth: _Nth, width: int | None = None) -> Array:
    values = nth(rows)
    return values.reshape(len(rows)) if width is None else values.reshape(len(rows), width)


class _Nth:
    """One of the arrays of an answer."""

    def __init__(self, predict: Callable[[Any], list[Array]], place: int) -> None:
        self._predict, self._place = predict, place

    def __call__(self, rows: Any) -> Array:
        found = self._predict(rows)
        return found[self._place] if len(rows) else np.empty(0)

    def __dask_tokenize__(self) -> Any:
        return (self._predict.__dask_tokenize__(), self._place)  # type: ignore[attr-defined]
