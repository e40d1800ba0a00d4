"""From records and arrays back to a model.

Records are parsed when they are needed: opening a model of thousands of experts reads the network and leaves what is
inside the experts for later.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._linalg.square import Square
from spngp.io.classes import SKLEARN, SKLEARN_KERNELS, Reference, class_of
from spngp.io.deferred import Deferred, StoredGP, StoredLearnt
from spngp.io.tensors import ModelFileError

_BIT_GENERATORS = frozenset(["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])

# What is left for later when its owner is put together, besides all that is inside a GP.
_LATER = frozenset([("Learnt", "prior"), ("Learnt", "own")])

_from_json = json.JSONDecoder().decode  # json.loads looks at its options first: for short lines that counts


class Decoder:
    """Puts a model together; what lies inside a GP only when it is asked for.

    Parameters
    ----------
    records : list of str
        Lines as the encoder left them.
    tensor : callable
        Given a name: the array.
    source : str
        The file, for errors.
    """

    def __init__(self, records: list[str], tensor: Callable[[str], NDArray[Any]], source: str) -> None:
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
            elif self._records[position].startswith('["ExactGP",'):
                self._done[position] = Deferred.make(StoredGP, partial(self._gp_references, position), self.decode)
            elif position in parsed:
                self._done[position] = self._build(*parsed.pop(position))
            else:
                kind, contents = parsed[position] = tuple(_from_json(self._records[position]))
                if kind == "dict":
                    contents = [part for pair in contents for part in pair]
                elif isinstance(contents, dict):
                    contents = [part for label, part in contents.items() if (kind, label) not in _LATER]
                stack += [below for below in _positions(contents, position) if below not in self._done]
        return self._ready(reference)

    def _gp_references(self, position: int) -> dict[str, Reference]:
        with self._guard():
            references: dict[str, Reference] = dict(_from_json(self._records[position])[1])
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
            return getattr(import_module(SKLEARN), kind.removeprefix("sklearn."))(**attributes)
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
