"""Which attributes the record of each class has, and of what type: as the classes' own annotations say.

Types are checked here, one attribute at a time; how attributes must agree with each other is in
:mod:`spngp.io.consistency`.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from spngp.io.classes import ESTIMATORS, class_of
from spngp.kernels import Kernel

Check: TypeAlias = Callable[[Any], bool]

# The state of a kernel besides its parameters: annotations of a kernel name parameters, which are in its table.
_KERNEL_STRUCTURE: dict[str, dict[str, Any]] = {
    "SquaredExponential": {"levels": tuple[int, ...]},
    "Matern": {"nu": float, "levels": tuple[int, ...]},
    "Polynomial": {"degree": int},
    "RandomSlopes": {"levels": tuple[int, ...]},
    "Step": {"axis": int, "at": float},
    "PiecewiseConstant": {"axis": int, "at": tuple[float, ...], "gaps": tuple[float, ...]},
    "KernelSum": {"parts": tuple[Kernel, ...]},
    "KernelProduct": {"parts": tuple[Kernel, ...]},
}
# What scikit-learn and the command line add to an estimator.
_ALWAYS_ADDED: dict[str, Any] = {"n_features_in_": int}
_SOMETIMES_ADDED = ("feature_names_in_", "table_")

_LARGEST_INT = 2**63  # NumPy's indices are smaller


@dataclass(frozen=True)
class _Fields:
    """The attributes that a record must have, their types and type checks, and which further ones it may have."""

    types: Mapping[str, Any]
    checks: Mapping[str, Check]
    may_add: Callable[[str], bool]


def check_attributes(name: str, attributes: Mapping[str, Any]) -> None:
    """Raise an error unless these are the attributes of the class of this name, each of its type."""
    fields = _fields_of(name)
    if attributes.keys() != fields.types.keys():
        missing = [label for label in fields.types if label not in attributes]
        unknown = [label for label in attributes if label not in fields.types and not fields.may_add(label)]
        if missing or unknown:
            raise ValueError(f"{name} must have the attributes {list(fields.types)}, got {list(attributes)}")
    for label, fits in fields.checks.items():
        if not fits(attributes[label]):
            raise ValueError(f"{label} of {name} must be {fields.types[label]}, got {shown(attributes[label])}")


def shown(value: Any) -> str:
    """A value for an error message: what a file holds may have no text of its own, or a long one."""
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)[:60]
    shape = f" of shape {value.shape} and type {value.dtype}" if isinstance(value, np.ndarray) else ""
    return f"{type(value).__name__}{shape}"


@cache
def _fields_of(name: str) -> _Fields:
    kind = class_of(name)
    hints = get_type_hints(Kernel if issubclass(kind, Kernel) else kind)
    found = {label: hint for label, hint in hints.items() if get_origin(hint) is not ClassVar}
    found |= _KERNEL_STRUCTURE.get(name, {})
    if name in ESTIMATORS:
        found |= dict.fromkeys(kind._get_param_names(), Any)  # type: ignore[attr-defined]
        found |= _ALWAYS_ADDED

    def may_add(label: str) -> bool:
        """Whether a record may have an attribute that a user added: it must end in an underscore and hide nothing."""
        fitted = label.isidentifier() and label.endswith("_") and not label.startswith("_")
        return name in ESTIMATORS and (label in _SOMETIMES_ADDED or (fitted and not hasattr(kind, label)))

    return _Fields(found, {label: _check_of(hint) for label, hint in found.items() if hint is not Any}, may_add)


def _check_of(hint: Any) -> Check:
    """A function that tells whether a value has a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        either = [_check_of(argument) for argument in arguments]
        return lambda value: any(fits(value) for fits in either)
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        dtype = np.dtype(scalar)
        return lambda value: type(value) is np.ndarray and value.dtype == dtype
    if origin is tuple and arguments[-1] is not Ellipsis:
        each = [_check_of(argument) for argument in arguments]
        return lambda value: (
            type(value) is tuple
            and len(value) == len(each)
            and all(fits(part) for fits, part in zip(each, value, strict=True))
        )
    if origin in (tuple, list):
        fits_part = _check_of(arguments[0])
        return lambda value: type(value) is origin and all(map(fits_part, value))
    if origin is dict:
        fits_key, fits_value = map(_check_of, arguments)
        return lambda value: type(value) is dict and all(map(fits_key, value)) and all(map(fits_value, value.values()))
    if origin is Sequence:  # of numbers, as users write them
        fits_item = _check_of(arguments[0])
        return lambda value: (
            isinstance(value, np.ndarray) or (type(value) in (list, tuple) and all(map(fits_item, value)))
        )
    return _PLAIN.get(hint) or (lambda value: isinstance(value, hint))


_PLAIN: dict[Any, Check] = {
    Any: lambda value: True,
    type(None): lambda value: value is None,
    bool: lambda value: type(value) is bool,
    str: lambda value: type(value) is str,
    int: lambda value: type(value) is int and -_LARGEST_INT <= value < _LARGEST_INT,
    float: lambda value: (
        (type(value) is float and not math.isnan(value)) or (type(value) is int and abs(value) < _LARGEST_INT)
    ),
}
