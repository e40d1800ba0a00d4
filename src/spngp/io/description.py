"""A model as a list of plain records and a set of arrays, and back.

Every object becomes one record ``[type, contents]``, a line of JSON; contents refer to other records by their position,
parts before wholes, so shared parts stay shared and nothing can refer to itself. What may appear is a closed list:
classes are named by the key of :data:`CLASSES` and never looked up by what a file says.

Records are parsed when they are needed: opening a model of thousands of experts reads the network and leaves what is
inside the experts for later.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._linalg import Square
from spngp.io.tensors import DTYPES, ModelFileError
from spngp.leaf import ExactGP
from spngp.learning import Learnt

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
    "Budget": "spngp._memory",
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

# What is left for later when its owner is put together, besides all that is inside a GP.
_LATER = frozenset([("Learnt", "own")])

# How a record refers to a part: a scalar stands for itself, a float that JSON does not know is {"float": "nan"}, an
# array {"array": [tensor, offset, shape, order]}, a tuple of numbers {"tuple": [...]}, anything else {"@": position}.
Reference = Any

_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class Encoder:
    """Takes a model apart.

    Attributes
    ----------
    records : list of str
        A line of JSON for each object, parts before wholes.
    tensors : dict of str to ndarray
        The arrays, in C order.
    """

    def __init__(self) -> None:
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
                pending[key] = _take_apart(value)
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
        if isinstance(value, tuple) and _is_inline(value):
            return {"tuple": [self._reference(part, label) for part in value]}
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
            tensor, offset = f"{label.lstrip('_')}.{len(self.records)}", None
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
    if isinstance(value, tuple):  # numbers, or a box: tuples of numbers
        return all(_is_number(part) or (isinstance(part, tuple) and all(map(_is_number, part))) for part in value)
    return _is_scalar(value) or (isinstance(value, np.ndarray) and value.dtype.kind not in "OU")


def _take_apart(value: Any) -> tuple[str, Any]:
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
    if isinstance(value, Deferred):
        return type(value).__mro__[2].__name__, value.attributes()
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


@cache
def class_of(name: str) -> type:
    """The class that a record's type stands for."""
    kind: type = getattr(import_module(CLASSES[name]), name)
    return kind


def _parts(contents: Any) -> Iterator[Any]:
    yield from contents.values() if isinstance(contents, dict) else contents


class Deferred:
    """An object of a model file, some of whose attributes are read, and checked, when first asked for."""

    @staticmethod
    def make(kind: type, references: Callable[[], dict[str, Reference]], decode: Callable[[Reference], Any]) -> Any:
        """An instance of a subclass of this one; ``references`` gives what each deferred attribute stands for."""
        value: Any = object.__new__(kind)
        value.__dict__.update(_references=references, _decode=decode)
        return value

    def __getattr__(self, name: str) -> Any:
        references = self.__dict__.get("_references", dict)() if not name.startswith("__") else {}
        if name not in references:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        value = self.__dict__[name] = self.__dict__["_decode"](references[name])
        return value

    def attributes(self) -> dict[str, Any]:
        """Everything a plain object would hold."""
        names = [*self.__dict__.get("_references", dict)(), *self.__dict__]
        return {name: getattr(self, name) for name in dict.fromkeys(names) if name not in ("_references", "_decode")}

    def __reduce__(self) -> Any:
        return _plain, (type(self).__mro__[2], self.attributes())


def _plain(kind: type, attributes: dict[str, Any]) -> Any:
    value: Any = object.__new__(kind)
    value.__dict__.update(attributes)
    return value


class StoredGP(Deferred, ExactGP):
    """A GP of a model file."""


class StoredLearnt(Deferred, Learnt):
    """What was learnt, of a model file; the network without context waits for an update."""


class Decoder:
    """Puts a model together; what lies inside a GP only when it is asked for.

    Parameters
    ----------
    records : list of bytes
        Lines as the encoder left them.
    tensor : callable
        Given a name: the array.
    source : str
        The file, for errors.
    """

    def __init__(self, records: list[bytes], tensor: Callable[[str], NDArray[Any]], source: str) -> None:
        self._records, self._tensor, self._source = records, tensor, source
        self._done: dict[int, Any] = {}

    def decode(self, reference: Reference) -> Any:
        """The object a reference stands for."""
        with self._guard():
            return self._decode(reference)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Whatever does not fit means a damaged or hostile file."""
        try:
            yield
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ImportError, RecursionError) as error:
            raise ModelFileError(f"{self._source} is damaged: its description makes no model ({error})") from None

    def _decode(self, reference: Reference) -> Any:
        """Parts before wholes, without recursion."""
        parsed: dict[int, tuple[str, Any]] = {}
        stack = _positions([reference], len(self._records))
        while stack:
            position = stack[-1]
            if position in self._done:
                stack.pop()
            elif self._records[position].startswith(b'["ExactGP",'):
                self._done[position] = Deferred.make(StoredGP, partial(self._gp_references, position), self.decode)
            elif position in parsed:
                self._done[position] = self._build(*parsed.pop(position))
            else:
                kind, contents = parsed[position] = tuple(json.loads(self._records[position]))
                if kind == "dict":
                    contents = [part for pair in contents for part in pair]
                elif isinstance(contents, dict):
                    contents = [part for label, part in contents.items() if (kind, label) not in _LATER]
                stack += [below for below in _positions(contents, position) if below not in self._done]
        return self._ready(reference)

    def _gp_references(self, position: int) -> dict[str, Reference]:
        with self._guard():
            references: dict[str, Reference] = dict(json.loads(self._records[position])[1])
            _positions(references.values(), position)
        return references

    def _ready(self, reference: Reference) -> Any:
        """The object a reference stands for, its record being done."""
        if not isinstance(reference, dict):
            return reference
        if "@" in reference:
            return self._done[reference["@"]]
        if "array" in reference:
            return self._array(*reference["array"])
        if "tuple" in reference:
            return tuple([self._ready(part) for part in reference["tuple"]])
        return float(reference["float"])

    def _build(self, kind: str, contents: Any) -> Any:
        if kind == "strings":
            return np.array([str(item) for item in contents], dtype=object)
        if kind == "dict":
            return {self._ready(key): self._ready(part) for key, part in contents}
        if kind in ("list", "tuple", "slice"):
            items = [self._ready(part) for part in contents]
            return items if kind == "list" else tuple(items) if kind == "tuple" else slice(*items)
        later = {label: part for label, part in contents.items() if (kind, label) in _LATER}
        attributes = {label: self._ready(part) for label, part in contents.items() if label not in later}
        if kind == "Square":
            return Square(attributes["array"])
        if kind == "Generator":
            return np.random.Generator(_bit_generator(attributes["state"]))
        if kind == "RandomState":
            return np.random.RandomState(_bit_generator(attributes["state"]))
        if kind.startswith("sklearn.") and kind.removeprefix("sklearn.") in SKLEARN_KERNELS:
            return getattr(import_module(_SKLEARN), kind.removeprefix("sklearn."))(**attributes)
        value: Any = object.__new__(class_of(kind))
        if later:
            value = Deferred.make(StoredLearnt, lambda: later, self.decode)
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


def _positions(references: Iterable[Reference], end: int) -> list[int]:
    """Positions of the records referred to, which must come before ``end``: parts stand before wholes."""
    found = [reference["@"] for reference in references if isinstance(reference, dict) and "@" in reference]
    for position in found:
        if type(position) is not int or not 0 <= position < end:
            raise ValueError(f"record {position!r} out of order")
    return found


def _bit_generator(state: dict[str, Any]) -> Any:
    if state["bit_generator"] not in _BIT_GENERATORS:
        raise ValueError(f"unknown bit generator {state['bit_generator']!r}")
    bit_generator = getattr(np.random, state["bit_generator"])()
    bit_generator.state = state
    return bit_generator
