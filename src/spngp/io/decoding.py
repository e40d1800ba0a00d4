"""From records and arrays back to a model.

Every record that the model is made of is checked when the file is opened: its attributes and their types, then how they
agree. Rows and factors of GPs, nearly all of a file's bytes, are not read before they are used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._linalg.square import Square
from spngp._support.consistency import must
from spngp.io import consistency
from spngp.io.classes import SKLEARN, SKLEARN_KERNELS, Reference, class_of
from spngp.io.deferred import READ_LATER, Read, StoredGP
from spngp.io.fields import check_attributes, shown
from spngp.io.lean import Rows
from spngp.io.tensors import ModelFileError, TensorFile

# How deep lists and tuples may stand in each other; those of a model do four times.
_DEEPEST = 30
# Parts of parts that a list may have, for each character of the description. What is shared counts every time: sixty
# pairs of pairs take a few hundred characters, and whoever compares, hashes or prints them never ends.
_PARTS_PER_CHARACTER = 10

_BIT_GENERATORS = frozenset(["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
_PLAIN = (bool, int, float, str, type(None))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# json.loads looks at its options first: for short lines that counts
_from_json = json.JSONDecoder(parse_constant=_no_constant).decode


class Decoder:
    """Puts a model together; rows and factors of GPs are compared with their checksums when they are first used.

    Parameters
    ----------
    records : list of str
        Lines as the encoder left them.
    file : TensorFile
        The arrays.
    """

    def __init__(self, records: list[str], file: TensorFile) -> None:
        self._records, self._file = records, file
        self._done: dict[int, Any] = {}
        self._arrays: dict[tuple[Any, ...], NDArray[Any]] = {}  # one that is shared stays so
        self._tensors: dict[int, str] = {}  # of matrices: where in the file their arrays stand
        self._extents: dict[int, tuple[int, int]] = {}  # of lists: how deep they are, how many parts of parts they have
        self._most_parts = _PARTS_PER_CHARACTER * (sum(map(len, records)) + 100)
        self._stored: list[StoredGP] = []

    def decode(self, reference: Reference) -> Any:
        """The object a reference stands for."""
        with self._guard():
            return self._decode(reference)

    def check_stored(self) -> None:
        """Raise an error unless rows and factors of the GPs made so far, which are read later, can be used."""
        with self._guard():
            for gp in self._stored:
                gp.check_contents()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Whatever does not fit means a damaged or hostile file."""
        try:
            yield
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            what = " ".join(str(error).split())
            raise ModelFileError(f"{self._file.path} is damaged: its description makes no model ({what})") from None

    def _decode(self, reference: Reference) -> Any:
        """Parts before wholes, without recursion."""
        parsed: dict[int, tuple[str, Any]] = {}
        stack = _positions([reference], len(self._records))
        while stack:
            position = stack[-1]
            if position in self._done:
                stack.pop()
            elif position in parsed:
                kind, contents = parsed.pop(position)
                if kind in ("list", "tuple", "dict"):
                    self._extents[position] = self._extent(contents if kind != "dict" else [of for _, of in contents])
                self._done[position] = self._build(kind, contents)
                if kind == "Square":
                    self._tensors[position] = contents["array"]["array"][0]
            else:
                kind, contents = parsed[position] = _record(self._records[position])
                if kind == "dict":
                    parts: Iterable[Reference] = [value for _, value in contents]
                else:
                    parts = contents.values() if isinstance(contents, dict) else contents
                stack += [below for below in _positions(parts, position) if below not in self._done]
        return self._part(reference)

    def _part(self, reference: Reference, array: Callable[[str], NDArray[Any]] | None = None) -> Any:
        """What a reference stands for, its record being done."""
        if type(reference) in _PLAIN:
            return reference
        ((way, what),) = reference.items()
        if way == "@":
            return self._done[what]
        if way == "array":
            return self._array(array or self._file.array, *what)
        return _inline(reference)

    def _extent(self, parts: list[Reference]) -> tuple[int, int]:
        """How deep a list is, and how many parts of parts it has; too deep or too many is an error."""
        positions = [part["@"] for part in parts if isinstance(part, dict) and "@" in part]
        below = [self._extents[position] for position in positions if position in self._extents]
        deep, many = 1 + max((one for one, _ in below), default=0), len(parts) + sum(one for _, one in below)
        must(deep <= _DEEPEST, f"lists may stand in each other {_DEEPEST} times", deep)
        must(many <= self._most_parts, f"a list may have {self._most_parts:,} parts of parts", many)
        return deep, many

    def _build(self, kind: str, contents: Any) -> Any:
        if kind == "strings":
            if not all(type(item) is str for item in contents):
                raise ValueError("strings must be text")
            return np.array(contents, dtype=object)
        if kind == "dict":
            return {_inline(key): self._part(value) for key, value in contents}
        if kind in ("list", "tuple", "slice"):
            items = [self._part(part) for part in contents]
            return items if kind == "list" else tuple(items) if kind == "tuple" else _slice(items)
        if kind == "ExactGP":
            return self._gp(contents)
        if kind == "Square":  # part of a GP, and read with it
            return _square(**{label: self._part(part, self._file.unchecked) for label, part in contents.items()})
        attributes = {label: self._part(part) for label, part in contents.items()}
        if kind == "Rows":
            return Rows.checked(**attributes)
        if kind == "Generator":
            return np.random.Generator(_bit_generator(attributes["state"]))
        if kind == "RandomState":
            return np.random.RandomState(_bit_generator(attributes["state"]))
        if kind.startswith("sklearn.") and kind.removeprefix("sklearn.") in SKLEARN_KERNELS:
            return getattr(import_module(SKLEARN), kind.removeprefix("sklearn."))(**attributes)
        if kind == "NoiseShape":
            attributes.setdefault("surprises", False)  # up to schema 4, which made no difference
        if kind == "Learnt":  # up to schema 5 experts were asked for their noise together, and had one freedom
            attributes.setdefault("noise_kinds", [])
            attributes.setdefault("noise_prior_std", 0.5)
        return _checked_object(kind, attributes)

    def _gp(self, contents: dict[str, Reference]) -> StoredGP:
        rows = None
        if "rows" in contents:
            rows = self._part(contents["rows"])
            if not isinstance(rows, Rows):
                raise ValueError(f"rows must be those of a model, got {shown(rows)}")
        attributes: dict[str, Any] = {}
        read: dict[str, Read] = {}
        for label, part in contents.items():
            if label in READ_LATER:
                attributes[label], read[label] = self._later(label, part, rows, contents)
            elif label != "rows":
                attributes[label] = self._part(part)
        attributes.setdefault("noise_profile", None)  # which GPs had none of, up to schema 4
        self._stored.append(StoredGP.of(_checked_object("ExactGP", attributes), read))
        return self._stored[-1]

    def _later(
        self, label: str, part: Reference, rows: Rows | None, contents: dict[str, Reference]
    ) -> tuple[Any, Read]:
        """What an attribute that is read later looks like to a check, and how it is read."""
        file = self._file  # all that stays of this object
        if isinstance(part, dict) and "again" in part:
            if label == "_L":
                return None, None
            if label != "_alpha":
                raise ValueError(f"{label} cannot be computed again")
            return self._later("_y", contents["_y"], rows, contents)[0], None
        if isinstance(part, dict) and "taken" in part:
            reference, column = part["taken"]
            positions, tensor = self._part(reference, file.unchecked), str(reference["array"][0])
            if rows is None or label not in ("_X", "_y") or positions.ndim != 1 or positions.dtype.kind != "i":
                raise ValueError(f"{label} must be taken from rows by positions, got {shown(positions)}")
            shape = rows.shape_taken(positions.size, column)

            def taken() -> NDArray[Any]:
                file.array(tensor)  # compares it with its checksum
                if positions.size and not 0 <= positions.min() <= positions.max() < rows.X.shape[0]:
                    raise file.damaged(f"array {tensor!r}")
                return rows.inputs(positions) if column is None else rows.outputs(positions, column)

            return np.broadcast_to(np.zeros(()), shape), taken
        value, tensor_or_none = self._part(part, file.unchecked), self._tensor_of(part)

        def whole() -> Any:
            if tensor_or_none is not None:
                file.array(tensor_or_none)
            return value

        return value, whole

    def _tensor_of(self, reference: Reference) -> str | None:
        """The array of the file in which one that is read later stands, alone or as that of a matrix; none for none."""
        if reference is None:
            return None
        return self._tensors[reference["@"]] if "@" in reference else str(reference["array"][0])

    def _array(
        self, array: Callable[[str], NDArray[Any]], tensor: str, offset: int | None, shape: list[int], order: str
    ) -> NDArray[Any]:
        whole = array(tensor)
        key = (tensor, offset, *shape, order)
        if key not in self._arrays:
            if not all(type(number) is int and number >= 0 for number in (offset or 0, *shape)) or order not in "CF":
                raise ValueError(f"no array: offset {shown(offset)}, shape {shape}, order {shown(order)}")
            flat, size = whole.reshape(-1), math.prod(shape)
            if size != flat.size if offset is None else offset + size > flat.size:
                raise ValueError(f"an array of shape {shape} must fit into {tensor}, which has {flat.size:,} numbers")
            if offset is not None:
                flat = flat[offset : offset + size]
            self._arrays[key] = flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)
        return self._arrays[key]


def _record(line: str) -> tuple[str, Any]:
    kind, contents = _from_json(line)
    plain = kind in ("strings", "list", "tuple", "slice", "dict")
    if type(kind) is not str or type(contents) is not (list if plain else dict):
        raise ValueError(f"no record: {shown(kind)} of {shown(contents)}")
    return kind, contents


def _inline(reference: Reference, depth: int = 1) -> Any:
    """A number that JSON does not know, or a tuple of numbers or of such tuples."""
    if type(reference) in _PLAIN:
        return reference
    must(depth <= _DEEPEST, f"tuples may stand in each other {_DEEPEST} times", depth)
    ((way, what),) = reference.items()
    if way == "float" and what in ("nan", "inf", "-inf"):
        return float(what)
    if way == "tuple" and type(what) is list:
        return tuple([_inline(part, depth + 1) for part in what])
    raise ValueError(f"no part of a model: {shown(way)}")


def _slice(items: list[Any]) -> slice:
    if len(items) != 3 or not all(item is None or type(item) is int for item in items):
        told = ", ".join(shown(item) for item in items[:4])
        raise ValueError(f"a slice must have three whole numbers or null, got {told}")
    return slice(*items)


def _square(array: NDArray[Any]) -> Square:
    if type(array) is not np.ndarray or array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"a factor must be a square matrix, got {shown(array)}")
    return Square(array)


def _checked_object(kind: str, attributes: dict[str, Any]) -> Any:
    check_attributes(kind, attributes)
    value: Any = object.__new__(class_of(kind))
    for label, part in attributes.items():
        object.__setattr__(value, label, part)
    consistency.check(kind, value)
    return value


def _positions(references: Iterable[Reference], end: int) -> list[int]:
    """Positions of the records referred to, which must come before ``end``: parts stand before wholes."""
    found = [reference["@"] for reference in references if isinstance(reference, dict) and "@" in reference]
    for position in found:
        if type(position) is not int or not 0 <= position < end:
            raise ValueError(f"record {shown(position)} out of order")
    return found


def _bit_generator(state: dict[str, Any]) -> Any:
    if state["bit_generator"] not in _BIT_GENERATORS:
        raise ValueError(f"unknown bit generator {shown(state['bit_generator'])}")
    bit_generator = getattr(np.random, state["bit_generator"])()
    bit_generator.state = state
    return bit_generator
