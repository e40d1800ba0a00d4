"""A model as a list of plain records and a set of arrays, and back.

Every object becomes one record ``[type, contents]``; contents refer to other records by their position, parts before
wholes, so shared parts stay shared and nothing can refer to itself. What may appear is a closed list: classes are named
by the key of :data:`CLASSES` and never looked up by what a file says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._linalg import Square
from spngp.io.tensors import DTYPES, ModelFileError
from spngp.leaf import ExactGP

# Arrays up to this many bytes stand together in one array per type: an entry of their own would be longer than they.
_SMALL = 1024

_PARAMETER = "spngp.kernels.parameter"
_KERNELS = "spngp.kernels"
_NODES = "spngp.network.nodes"
_STRATEGIES = "spngp.structure.strategies"
_SKLEARN = "sklearn.gaussian_process.kernels"

# The classes that a file may name, and where they live. Their state is all their attributes.
CLASSES: dict[str, str] = {
    "SPNGPRegressor": "spngp.estimators",
    "GPRegressor": "spngp.estimators",
    "ProductOfExperts": "spngp.committees",
    "GeneralizedProductOfExperts": "spngp.committees",
    "BayesianCommitteeMachine": "spngp.committees",
    "RobustBayesianCommitteeMachine": "spngp.committees",
    "Learnt": "spngp.learning",
    "Standardiser": "spngp._standardise",
    "NoiseShape": "spngp.noise",
    "TableSchema": "spngp.tables.schema",
    "Column": "spngp.tables.schema",
    "ExactGP": "spngp.leaf",
    "Box": "spngp.network.box",
    "Parameter": _PARAMETER,
    "ParameterTable": _PARAMETER,
    **dict.fromkeys(["Leaf", "Sum", "Split", "Product"], _NODES),
    **dict.fromkeys(["Compact", "RandomAxes", "EqualWidth"], _STRATEGIES),
    **dict.fromkeys(["SquaredExponential", "Matern", "RationalQuadratic", "Periodic"], _KERNELS),
    **dict.fromkeys(["Linear", "Polynomial", "Constant", "KernelSum", "KernelProduct"], _KERNELS),
}

# scikit-learn's kernels, as a user may have given them: rebuilt by their constructors.
SKLEARN_KERNELS = frozenset(
    {
        *("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct", "WhiteKernel", "ConstantKernel"),
        *("Sum", "Product", "Exponentiation"),
    }
)

_BIT_GENERATORS = frozenset(["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])

# A scalar stands for itself; a float that JSON does not know as {"float": "nan"}; anything else as {"@": position}.
Reference = Any


class Encoder:
    """Takes a model apart.

    Attributes
    ----------
    records : list
        One ``[type, contents]`` for each object, parts before wholes.
    tensors : dict of str to ndarray
        The arrays, in C order.
    """

    def __init__(self) -> None:
        self.records: list[list[Any]] = []
        self.tensors: dict[str, NDArray[Any]] = {}
        self._positions: dict[int, int] = {}
        self._alive: list[Any] = []  # an id means something only while its object lives
        self._pools: dict[str, list[NDArray[Any]]] = {}
        self._pool_sizes: dict[str, int] = {}

    def encode(self, root: Any) -> Reference:
        """Add an object with all its parts, without recursion: networks may be deep."""
        pending: dict[int, tuple[str, Any, str]] = {}
        stack: list[tuple[Any, str]] = [(root, "model")]
        while stack:
            value, name = stack[-1]
            key = id(value)
            if _is_scalar(value) or key in self._positions:
                stack.pop()
                continue
            opened = key in pending
            if not opened:
                pending[key] = (*_take_apart(value), name)
                self._alive.append(value)
            kind, contents, name = pending[key]
            missing = [
                (part, f"{kind}.{label}")
                for label, part in _parts(kind, contents)
                if not _is_scalar(part) and id(part) not in self._positions
            ]
            if missing and opened:
                raise ValueError(f"cannot save a {kind} that contains itself")
            if missing:
                self._alive.append(contents)  # temporary containers must keep their ids
                stack += missing
                continue
            stack.pop()
            self._positions[key] = len(self.records)
            self.records.append([kind, self._contents(kind, contents, name)])
        return self._reference(root)

    def finish(self) -> None:
        """Put the small arrays together."""
        for name, parts in self._pools.items():
            self.tensors[name] = np.concatenate(parts)

    def _contents(self, kind: str, contents: Any, name: str) -> Any:
        if kind == "array":
            return self._store(contents, name)
        if kind == "strings":
            return contents
        if kind in ("list", "tuple", "slice"):
            return [self._reference(part) for part in contents]
        if kind == "dict":
            return [[self._reference(key), self._reference(part)] for key, part in contents.items()]
        return {label: self._reference(part) for label, part in contents.items()}

    def _reference(self, value: Any) -> Reference:
        if not _is_scalar(value):
            return {"@": self._positions[id(value)]}
        if isinstance(value, np.generic):
            value = value.item()
        return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value

    def _store(self, array: NDArray[Any], name: str) -> list[Any]:
        """Where the array is kept: tensor, offset in it (none: all of it), shape, memory order."""
        if array.dtype not in DTYPES:
            raise ValueError(f"cannot save an array of type {array.dtype}, in {name}")
        order = "F" if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(array.T if order == "F" else array)
        if flat.nbytes > _SMALL:
            tensor = f"{name.rpartition('.')[2].lstrip('_')}.{len(self.records)}"
            self.tensors[tensor] = flat
            return [tensor, None, list(array.shape), order]
        tensor = f"small.{array.dtype.name}"
        offset = self._pool_sizes.get(tensor, 0)
        self._pools.setdefault(tensor, []).append(flat.ravel())
        self._pool_sizes[tensor] = offset + flat.size
        return [tensor, offset, list(array.shape), order]


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating)


def _take_apart(value: Any) -> tuple[str, Any]:
    """The type of a record and its contents, not yet referred to by position."""
    if type(value) in (list, tuple, dict):
        return type(value).__name__, value
    if isinstance(value, slice):
        return "slice", (value.start, value.stop, value.step)
    if isinstance(value, np.ndarray):
        return ("strings", [str(item) for item in value]) if value.dtype.kind in "OU" else ("array", value)
    if isinstance(value, Square):
        return "Square", {"array": value.array}
    if isinstance(value, np.random.Generator):
        return "Generator", {"state": value.bit_generator.state}
    if isinstance(value, np.random.RandomState):
        return "RandomState", {"state": value.get_state(legacy=False)}
    if isinstance(value, StoredGP):
        return "ExactGP", value.attributes()
    kind, name = type(value), type(value).__name__
    if name in CLASSES and kind is class_of(name):
        return name, _attributes(value)
    if kind.__module__ == _SKLEARN and name in SKLEARN_KERNELS:
        return f"sklearn.{name}", value.get_params(deep=False)
    raise ValueError(
        f"cannot save a {kind.__module__}.{kind.__qualname__}: a model file holds estimators, kernels and structures "
        "of spngp and kernels of scikit-learn"
    )


def _attributes(value: Any) -> dict[str, Any]:
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    return {**{slot: getattr(value, slot) for slot in slots}, **getattr(value, "__dict__", {})}


def class_of(name: str) -> type:
    """The class that a record's type stands for."""
    kind: type = getattr(import_module(CLASSES[name]), name)
    return kind


def _parts(kind: str, contents: Any) -> Iterator[tuple[str, Any]]:
    if kind in ("list", "tuple", "slice"):
        yield from ((kind, part) for part in contents)
    elif kind not in ("array", "strings"):
        yield from ((str(label), part) for label, part in contents.items())


class StoredGP(ExactGP):
    """A GP of a model file: each thing it holds is read, and checked, when first asked for."""

    def __init__(self, stored: dict[str, Reference], decode: Callable[[Reference], Any]) -> None:
        self.__dict__.update(_stored=stored, _decode=decode)

    def __getattr__(self, name: str) -> Any:
        stored = self.__dict__.get("_stored", {})
        if name not in stored:
            raise AttributeError(f"ExactGP has no attribute {name!r}")
        value = self.__dict__[name] = self.__dict__["_decode"](stored[name])
        return value

    def attributes(self) -> dict[str, Any]:
        """Everything a plain GP would hold."""
        return {name: getattr(self, name) for name in self.__dict__["_stored"]}

    def __reduce__(self) -> Any:
        return _plain_gp, (self.attributes(),)


def _plain_gp(attributes: dict[str, Any]) -> ExactGP:
    gp = object.__new__(ExactGP)
    gp.__dict__.update(attributes)
    return gp


class Decoder:
    """Puts a model together; what lies inside a GP only when it is asked for.

    Parameters
    ----------
    records : list
        As the encoder left them.
    tensor : callable
        Given a name: the array.
    source : str
        The file, for errors.
    """

    def __init__(self, records: list[Any], tensor: Callable[[str], NDArray[Any]], source: str) -> None:
        self._records, self._tensor, self._source = records, tensor, source
        self._done: dict[int, Any] = {}

    def decode(self, reference: Reference) -> Any:
        """The object a reference stands for."""
        try:
            return self._decode(reference)
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ImportError) as error:
            raise ModelFileError(f"{self._source} is damaged: its description makes no model ({error})") from None

    def _decode(self, reference: Reference) -> Any:
        """Parts before wholes, without recursion."""
        if not isinstance(reference, dict):
            return reference
        if "float" in reference:
            return float(reference["float"])
        stack = [_position(reference, len(self._records))]
        while stack:
            position = stack[-1]
            if position in self._done:
                stack.pop()
                continue
            kind, contents = self._records[position]
            missing = []
            if kind != "ExactGP":
                for part in _references(kind, contents):
                    below = _position(part, position)
                    if below not in self._done:
                        missing.append(below)
            if missing:
                stack += missing
                continue
            stack.pop()
            self._done[position] = self._build(kind, contents)
        return self._done[_position(reference, len(self._records))]

    def _ready(self, reference: Reference) -> Any:
        """The object, its record being done."""
        if not isinstance(reference, dict):
            return reference
        return self._done[reference["@"]] if "@" in reference else float(reference["float"])

    def _build(self, kind: str, contents: Any) -> Any:
        if kind == "array":
            return self._array(*contents)
        if kind == "strings":
            return np.array([str(item) for item in contents], dtype=object)
        if kind in ("list", "tuple"):
            items = [self._ready(part) for part in contents]
            return items if kind == "list" else tuple(items)
        if kind == "slice":
            return slice(*(self._ready(part) for part in contents))
        if kind == "dict":
            return {self._ready(key): self._ready(part) for key, part in contents}
        if kind == "ExactGP":
            return StoredGP(contents, self.decode)
        attributes = {label: self._ready(part) for label, part in contents.items()}
        if kind == "Square":
            return Square(attributes["array"])
        if kind == "Generator":
            return np.random.Generator(_bit_generator(attributes["state"]))
        if kind == "RandomState":
            return np.random.RandomState(_bit_generator(attributes["state"]))
        if kind.startswith("sklearn.") and kind.removeprefix("sklearn.") in SKLEARN_KERNELS:
            return getattr(import_module(_SKLEARN), kind.removeprefix("sklearn."))(**attributes)
        value: Any = object.__new__(class_of(kind))
        for label, part in attributes.items():
            object.__setattr__(value, label, part)
        return value

    def _array(self, tensor: str, offset: int | None, shape: list[int], order: str) -> NDArray[Any]:
        flat = self._tensor(tensor).reshape(-1)
        if offset is not None:
            if not 0 <= offset <= offset + math.prod(shape) <= flat.size:
                raise ValueError(f"array outside {tensor}")
            flat = flat[offset : offset + math.prod(shape)]
        return flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)


def _references(kind: str, contents: Any) -> Iterator[Reference]:
    if kind in ("array", "strings"):
        return
    if kind == "dict":
        for key, part in contents:
            yield from (reference for reference in (key, part) if isinstance(reference, dict) and "@" in reference)
    else:
        parts = contents if isinstance(contents, list) else contents.values()
        yield from (part for part in parts if isinstance(part, dict) and "@" in part)


def _position(reference: Reference, end: int) -> int:
    """Position of a record, which must come before ``end``: parts stand before wholes."""
    position = reference["@"]
    if type(position) is not int or not 0 <= position < end:
        raise ValueError(f"record {position!r} out of order")
    return position


def _bit_generator(state: dict[str, Any]) -> Any:
    if state["bit_generator"] not in _BIT_GENERATORS:
        raise ValueError(f"unknown bit generator {state['bit_generator']!r}")
    bit_generator = getattr(np.random, state["bit_generator"])()
    bit_generator.state = state
    return bit_generator
