"""From a model to records and arrays."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._linalg.square import Square
from spngp.gp.exact import ExactGP
from spngp.io.classes import CLASSES, SKLEARN, SKLEARN_KERNELS, Reference, class_of
from spngp.io.deferred import StoredGP
from spngp.io.header import DTYPES
from spngp.io.lean import Again, Lean, Rows, Taken

# Bytes. Arrays up to this size are joined into one array per type: separate header entries would be longer than they.
_SMALL = 1024

_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class Encoder:
    """Takes a model apart.

    Parameters
    ----------
    lean : Lean, optional
        Takes GPs apart without what can be computed again; with none, everything is written.

    Attributes
    ----------
    records : list of str
        A line of JSON for each object, parts before wholes.
    tensors : dict of str to ndarray
        The arrays, in C order.
    """

    def __init__(self, lean: Lean | None = None) -> None:
        self._lean = lean
        self.records: list[str] = []
        self.tensors: dict[str, NDArray[Any]] = {}
        self._positions: dict[int, int] = {}
        self._stored: dict[int, Reference] = {}
        self._alive: list[Any] = []  # an id means something only while its object lives
        self._pools: dict[str, list[NDArray[Any]]] = {}
        self._pool_sizes: dict[str, int] = {}

    def encode(self, root: Any) -> Reference:
        """Add an object with all its parts, without recursion: networks may be deep."""
        pending: dict[int, tuple[str, Any]] = {}
        stack: list[Any] = [root]
        while stack:
            value = stack[-1]
            key = id(value)
            if key in self._positions:
                stack.pop()
                continue
            opened = key in pending
            if not opened:
                pending[key] = _take_apart(value, self._lean)
                self._alive += [value, pending[key]]
            kind, contents = pending[key]
            missing = [part for part in _parts(contents) if not _is_inline(part) and id(part) not in self._positions]
            if missing and opened:
                raise ValueError(f"cannot save a {kind} that contains itself")
            if missing:
                stack += missing
                continue
            stack.pop()
            self._positions[key] = len(self.records)
            self.records.append(_to_json([kind, self._contents(kind, contents)]))
        return self._reference(root, "model")

    def finish(self) -> None:
        """Put the small arrays together."""
        for name, parts in self._pools.items():
            self.tensors[name] = np.concatenate(parts)

    def _contents(self, kind: str, contents: Any) -> Any:
        if kind == "dict":
            return [[self._reference(key, "key"), self._reference(part, "value")] for key, part in contents.items()]
        if isinstance(contents, dict):
            return {label: self._reference(part, label) for label, part in contents.items()}
        return [self._reference(part, kind) for part in contents]

    def _reference(self, value: Any, label: str) -> Reference:
        if isinstance(value, np.ndarray) and value.dtype.kind not in "OU":
            return self._store(value, label)
        if type(value) is tuple and _is_inline(value):
            return {"tuple": [self._reference(part, label) for part in value]}
        if isinstance(value, Taken):
            return {"taken": [self._store(value.positions, "positions"), value.column]}
        if isinstance(value, Again):
            return {"again": True}
        if not _is_scalar(value):
            return {"@": self._positions[id(value)]}
        if isinstance(value, np.generic):
            value = value.item()
        return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value

    def _store(self, array: NDArray[Any], label: str) -> Reference:
        """Where an array is kept: tensor, offset in it (none: all of it), shape, memory order."""
        if id(array) in self._stored:
            return self._stored[id(array)]
        if array.dtype not in DTYPES:
            raise ValueError(f"cannot save an array of type {array.dtype}, in {label}")
        order = "F" if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(array.T if order == "F" else array)
        if flat.nbytes > _SMALL:
            tensor, offset = f"{label.lstrip('_')}.{len(self.tensors)}", None
            self.tensors[tensor] = flat
        else:
            tensor = f"small.{array.dtype.name}"
            offset = self._pool_sizes.get(tensor, 0)
            self._pools.setdefault(tensor, []).append(flat.ravel())
            self._pool_sizes[tensor] = offset + flat.size
        self._alive.append(array)
        self._stored[id(array)] = {"array": [tensor, offset, list(array.shape), order]}
        return self._stored[id(array)]


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number)


def _is_inline(value: Any) -> bool:
    """Whether a part is written where it is referred to: what is small, or kept among the arrays."""
    if isinstance(value, Taken | Again):
        return True
    if type(value) is tuple:  # numbers, or a box: tuples of numbers
        return all(_is_number(part) or (type(part) is tuple and all(map(_is_number, part))) for part in value)
    return _is_scalar(value) or (isinstance(value, np.ndarray) and value.dtype.kind not in "OU")


def _take_apart(value: Any, lean: Lean | None) -> tuple[str, Any]:
    """The type of a record and its contents, not yet referred to by position."""
    if type(value) in (list, tuple, dict):
        return type(value).__name__, value
    if isinstance(value, slice):
        return "slice", (value.start, value.stop, value.step)
    if isinstance(value, np.ndarray):
        return "strings", [str(item) for item in value]
    if isinstance(value, Square):
        return "Square", {"array": value.array}
    if isinstance(value, np.random.Generator):
        return "Generator", {"state": value.bit_generator.state}
    if isinstance(value, np.random.RandomState):
        return "RandomState", {"state": value.get_state(legacy=False)}
    if isinstance(value, Rows):
        return "Rows", {"X": value.X, "Y": value.Y, "units": value.units}
    if isinstance(value, ExactGP) and lean is not None:
        return "ExactGP", lean.take_apart(value)
    if isinstance(value, StoredGP):
        return "ExactGP", value.attributes()
    kind, name = type(value), type(value).__name__
    if name in CLASSES and kind is class_of(name):
        return name, _attributes(value)
    if kind.__module__ == SKLEARN and name in SKLEARN_KERNELS:
        return f"sklearn.{name}", value.get_params(deep=False)
    raise ValueError(
        f"cannot save a {kind.__module__}.{kind.__qualname__}: a model file holds estimators, kernels and structures "
        "of spngp and kernels of scikit-learn"
    )


def _attributes(value: Any) -> dict[str, Any]:
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    return {**{slot: getattr(value, slot) for slot in slots}, **getattr(value, "__dict__", {})}


def _parts(contents: Any) -> Iterator[Any]:
    yield from contents.values() if isinstance(contents, dict) else contents
