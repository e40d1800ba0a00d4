"""Dask collections, partition by partition: to be learnt from, and to be answered."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
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


def for_each_partition(collections: Sequence[Any], step: Callable[..., Any]) -> list[Any]:
    """``step(number, *parts)`` of every partition of collections, X and y first, as delayed tasks."""
    delayed = [_delayed(collection) for collection in collections]
    for others in delayed[1:]:
        if len(delayed[0]) != len(others):
            raise ValueError(f"X and y must have the same partitions, got {len(delayed[0])} and {len(others)} of them")
    task = dask.delayed(step, pure=False)
    token = secrets.token_hex(6)
    numbered = enumerate(zip(*delayed, strict=True))
    return [task(i, *parts, dask_key_name=("spngp-write-" + token, i)) for i, parts in numbered]


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
    """Lazy predictions for a collection: mean, or a tuple, or quantiles.

    All of them are columns of one lazy table, so a partition is predicted once if they are computed together.
    """
    levels = ask["quantiles"]
    if levels is not None and len(targets) > 1:
        raise ValueError(f"quantiles of several outputs are not lazy yet, got {len(targets)} outputs; use to_local()")
    inner = targets if levels is None else [f"q{level:g}" for level in np.atleast_1d(levels)]
    names = _names(ask)
    columns = [f"{name}, {one}" for name in names for one in inner]
    whole = _whole(X, _Columns(predict, columns))
    alone = len(inner) == 1 and (levels is None or np.ndim(levels) == 0)
    found = []
    for i in range(len(names)):
        own = slice(i * len(inner), (i + 1) * len(inner))
        if is_frame(X):
            found.append(whole[columns[own.start]] if alone else whole[columns[own]].rename(columns=_short))
        else:
            found.append(whole[:, own.start] if alone else whole[:, own])
    return found[0] if len(found) == 1 else tuple(found)


def _names(ask: dict[str, Any]) -> list[str]:
    if ask["quantiles"] is not None:
        return ["quantiles"]
    return ["mean", *(["std"] if ask["return_std"] else []), *(["low", "high"] if ask["interval"] is not None else [])]


def _short(column: str) -> str:
    return column.split(", ", 1)[1]


def _whole(X: Any, predicted: _Columns) -> Any:
    """All columns of the answer, lazily."""
    if is_frame(X):
        import pandas as pd

        empty = pd.DataFrame(dict.fromkeys(predicted.names, pd.Series(dtype=float)))
        return X.map_partitions(_framed, predicted, meta=empty)
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    chunks = (X.chunks[0], (len(predicted.names),))
    return X.map_blocks(predicted, dtype=np.float64, chunks=chunks, meta=np.empty((0, 0)))


def _framed(rows: Any, predicted: _Columns) -> Any:
    import pandas as pd

    return pd.DataFrame(predicted(rows), index=rows.index, columns=predicted.names)


class _Columns:
    """The arrays of an answer as the columns of one matrix."""

    def __init__(self, predict: Callable[[Any], list[Array]], names: list[str]) -> None:
        self._predict, self.names = predict, names

    def __call__(self, rows: Any) -> Array:
        if not len(rows):
            return np.empty((0, len(self.names)))
        found = self._predict(rows)
        return np.concatenate([values.reshape(len(rows), -1) for values in found], axis=1)

    def __dask_tokenize__(self) -> Any:
        return (self._predict.__dask_tokenize__(), self.names)  # type: ignore[attr-defined]
