"""Positive parameters of kernels and noise: values, bounds, and which of them are free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._support.checks import as_floats
from spngp._support.types import Array

# Default bounds of a parameter: its value divided and multiplied by this factor. So wide that they restrict nothing,
# and relative, so that they mean the same in any units.
DEFAULT_RANGE = 1e5

# Logs whose exponential is a positive, finite number.
_LOWEST, _HIGHEST = -744.4, 709.78


@dataclass(frozen=True)
class Parameter:
    """A positive parameter with bounds, or held fixed.

    Wherever a kernel or a leaf takes a plain number, it takes a ``Parameter`` too.

    Parameters
    ----------
    value : float or sequence of float
        One value, or one per input.
    bounds : (float, float) or sequence of (float, float), optional
        Smallest and largest value that optimisation may choose, one pair for all or one per element of ``value``. By
        default 1e-5 and 1e5 times ``value``.
    fixed : bool or sequence of bool
        Held at ``value``: all of it, or element by element.

    Examples
    --------
    >>> from spngp.kernels import Parameter, SquaredExponential
    >>> kernel = SquaredExponential(length_scale=Parameter([1.0, 2.0], fixed=[True, False]), variance=3.0)
    >>> kernel.parameter_names
    ('length_scale[1]', 'variance')
    """

    value: float | Sequence[float]
    bounds: Sequence[Any] | None = None
    fixed: bool | Sequence[bool] = False

    def __repr__(self) -> str:
        bounds = "" if self.bounds is None else f", bounds={self.bounds}"
        fixed = "" if self.fixed is False else f", fixed={self.fixed}"
        return f"Parameter({self.value}{bounds}{fixed})"


@dataclass(frozen=True)
class Identity:
    """Which parameter a value is.

    Attributes
    ----------
    role : str
        ``length_scale``, ``variance``, ``period``, ``alpha``, ``offset``, ``bias_variance`` or ``noise_variance``: the
        name of the constructor's argument.
    input : int or None
        The input it belongs to, where there is one value per input.
    part : tuple of int
        Its place in a sum or product of kernels, from the outermost inwards; empty for a single kernel.

    Examples
    --------
    >>> from spngp.kernels.parameter import Identity
    >>> Identity("length_scale", input=2, part=(0,)).name
    '0.length_scale[2]'
    """

    role: str
    input: int | None = None
    part: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """A name that no other parameter of the kernel has."""
        prefix = "".join(f"{i}." for i in self.part)
        return f"{prefix}{self.role}" if self.input is None else f"{prefix}{self.role}[{self.input}]"


class ParameterTable:
    """The parameters of one kernel as flat vectors: the bridge between their identities and ``theta``.

    Values are natural (not logs). A table is never changed; :meth:`replaced` makes another with other values.
    """

    identities: tuple[Identity, ...]
    values: Array
    free: NDArray[np.bool_]
    log_bounds: Array
    n_free: int

    def __init__(
        self, identities: tuple[Identity, ...], values: Array, free: NDArray[np.bool_], log_bounds: Array
    ) -> None:
        values.setflags(write=False)
        self.identities, self.values, self.free, self.log_bounds = identities, values, free, log_bounds
        self.n_free = int(free.sum())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all values."""
        return tuple(identity.name for identity in self.identities)

    def replaced(self, values: Array) -> ParameterTable:
        """The same parameters with other values."""
        table = object.__new__(ParameterTable)  # called at every step of an optimiser
        table.__dict__.update(self.__dict__)
        values.setflags(write=False)
        table.values = values
        return table

    def with_theta(self, theta: Array) -> ParameterTable:
        """The same parameters with the free ones set to exp(theta)."""
        theta = as_floats(theta, "theta")
        if theta.shape != (self.n_free,):
            raise ValueError(f"theta must have shape ({self.n_free},), got {theta.shape}")
        if not ((theta >= _LOWEST) & (theta <= _HIGHEST)).all():
            worst = int(np.argmin((theta >= _LOWEST) & (theta <= _HIGHEST)))
            raise ValueError(
                f"theta must hold logs of positive finite numbers, got {theta[worst]:g} for "
                f"{self.free_identities[worst].name}"
            )
        values = self.values.copy()
        values[self.free] = np.exp(theta)
        return self.replaced(values)

    @property
    def theta(self) -> Array:
        """Logs of the free values."""
        return np.log(self.values[self.free])

    @property
    def free_identities(self) -> tuple[Identity, ...]:
        """Which parameters the free values are, in the order of :attr:`theta`."""
        return tuple(identity for identity, free in zip(self.identities, self.free, strict=True) if free)

    @property
    def bounds(self) -> Array:
        """Bounds of :attr:`theta`, shape (number of free values, 2)."""
        return self.log_bounds[self.free]

    def key(self) -> tuple[Any, ...]:
        """What makes two tables equal."""
        return (self.identities, self.values.tobytes(), self.free.tobytes(), self.log_bounds.tobytes())

    @staticmethod
    def join(tables: Sequence[ParameterTable]) -> ParameterTable:
        """The tables of a combination's parts, one after the other."""
        return ParameterTable(
            tuple(
                replace(identity, part=(i, *identity.part))
                for i, table in enumerate(tables)
                for identity in table.identities
            ),
            np.concatenate([table.values for table in tables]),
            np.concatenate([table.free for table in tables]),
            np.concatenate([table.log_bounds for table in tables]),
        )


def declare(
    owner: str, given: Mapping[str, Any], scalar: Sequence[str] = (), may_be_zero: Sequence[str] = ()
) -> tuple[ParameterTable, dict[str, int | slice]]:
    """Check the constructor arguments of ``owner``; returns their table and the place of each name in it.

    A name in ``scalar`` takes one value only. A name in ``may_be_zero`` may be 0: its term is then switched off, and
    the parameter is fixed, because its log is −∞.
    """
    identities: list[Identity] = []
    values: list[Array] = []
    frees: list[NDArray[np.bool_]] = []
    bounds: list[Array] = []
    places: dict[str, int | slice] = {}
    for name, argument in given.items():
        parameter = argument if isinstance(argument, Parameter) else Parameter(argument)
        label = f"{name} of {owner}"
        value = as_floats(parameter.value, label)
        zero_allowed = name in may_be_zero
        if value.ndim > (0 if name in scalar else 1) or value.size == 0:
            shape = "a number" if name in scalar else "a number or a sequence of numbers"
            raise ValueError(f"{label} must be {shape}, got {parameter.value!r}")
        if not np.isfinite(value).all() or (value < 0).any() or (not zero_allowed and (value == 0).any()):
            sign = ">= 0" if zero_allowed else "> 0"
            raise ValueError(f"{label} must be finite and {sign}, got {parameter.value!r}")
        flat = np.atleast_1d(value).astype(np.float64)
        start = len(identities)
        places[name] = start if value.ndim == 0 else slice(start, start + flat.size)
        identities += [Identity(name)] if value.ndim == 0 else [Identity(name, i) for i in range(flat.size)]
        values.append(flat)
        frees.append(~_fixed(parameter, flat.size, label) & (flat > 0))
        bounds.append(_log_bounds(parameter, flat, label))
    table = ParameterTable(tuple(identities), np.concatenate(values), np.concatenate(frees), np.concatenate(bounds))
    return table, places


def _fixed(parameter: Parameter, size: int, label: str) -> NDArray[np.bool_]:
    fixed = np.asarray(parameter.fixed)
    if fixed.dtype != np.bool_ or fixed.shape not in ((), (size,)):
        raise ValueError(f"fixed of {label} must be a bool or {size} bools, got {parameter.fixed!r}")
    return np.broadcast_to(fixed, (size,)).copy()


def _log_bounds(parameter: Parameter, flat: Array, label: str) -> Array:
    if parameter.bounds is None:
        positive = np.where(flat > 0, flat, 1.0)
        around = np.log(positive)[:, np.newaxis] + np.log(DEFAULT_RANGE) * np.array([-1.0, 1.0])
        return np.clip(around, _LOWEST, _HIGHEST)
    bounds = as_floats(parameter.bounds, f"bounds of {label}")
    if bounds.shape not in ((2,), (flat.size, 2)):
        raise ValueError(f"bounds of {label} must be (low, high), or one such pair per value, got {parameter.bounds!r}")
    low, high = np.broadcast_to(bounds, (flat.size, 2)).T
    if not ((low > 0) & (low <= high) & (high < np.inf)).all():
        raise ValueError(f"bounds of {label} must be (low, high) with 0 < low <= high, got {parameter.bounds!r}")
    if ((flat < low) | (flat > high)).any():
        raise ValueError(f"{label} must lie within its bounds {parameter.bounds}, got {parameter.value!r}")
    return np.log(np.column_stack([low, high]))
