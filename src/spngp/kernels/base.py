"""What every kernel is: parameters with names, a Gram matrix, and a pullback for training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from spngp._linalg.square import PackedGram, Square
from spngp._support.checks import as_floats, as_rows
from spngp._support.types import Array
from spngp.kernels.parameter import Identity, Parameter, ParameterTable, declare

# Given dL/d(pairs) and dL/d(diagonal), the gradient of L with respect to the free log-parameters.
Pullback: TypeAlias = Callable[[Array, Array], Array]

# Columns filled together: few enough for the cache, enough to keep the interpreter out of sight.
_FILLED_AT_ONCE = 96


class Evaluation(Protocol):
    """A kernel on fixed rows, to be evaluated for many parameter values: buffers are set up once and reused."""

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these (natural) values of all the kernel's parameters; valid until the next call."""

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters, fixed or not, at the values last given to :meth:`gram`."""


class Kernel(ABC):
    """A covariance function; immutable.

    A subclass declares its parameters in ``__init__`` and implements :meth:`covariances`, :meth:`variances` and
    :meth:`evaluation`. Parameters are positive and optimised in the log domain: ``theta`` holds the logs of the free
    ones.
    """

    parameters: ParameterTable  # all of them, with their roles
    _places: dict[str, int | slice]

    def _declare(self, *, scalar: tuple[str, ...] = (), may_be_zero: tuple[str, ...] = (), **parameters: Any) -> None:
        self.parameters, self._places = declare(type(self).__name__, parameters, scalar, may_be_zero)

    def __getattr__(self, name: str) -> Any:
        """Natural value of a parameter: a float, or a read-only array if there is one per input."""
        places = self.__dict__.get("_places", {})
        if name not in places:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        value = self.parameters.values[places[name]]
        return value if isinstance(value, np.ndarray) else float(value)

    @property
    def theta(self) -> Array:
        """Logs of the free parameters."""
        return self.parameters.theta

    @property
    def bounds(self) -> Array:
        """Bounds of :attr:`theta`, shape (len(theta), 2)."""
        return self.parameters.bounds

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the free parameters, in the order of :attr:`theta`."""
        return tuple(identity.name for identity in self.free_parameters)

    @property
    def free_parameters(self) -> tuple[Identity, ...]:
        """Which parameters are free, in the order of :attr:`theta`."""
        return self.parameters.free_identities

    def with_theta(self, theta: Array) -> Kernel:
        """The same kernel with the free parameters set to exp(theta)."""
        return self._with_table(self.parameters.with_theta(theta))

    def _with_table(self, table: ParameterTable) -> Kernel:
        kernel = object.__new__(type(self))  # several times faster than copy.copy
        kernel.__dict__.update(self.__dict__)
        kernel.parameters = table
        return kernel

    def rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        """The kernel of s·f(x/scales), for a function f of this one: the same covariances in other units.

        What is fixed stays fixed; bounds of what is free are the default ones again. Kernels of the inner product are
        then those of inputs as far from their centre as they were from the origin.

        Examples
        --------
        >>> import numpy as np
        >>> from spngp.kernels import Matern
        >>> Matern(1.5, length_scale=2.0, variance=0.5).rescaled(np.array([1.0, 10.0]), 2.0)
        Matern(nu=1.5, length_scale=[2.0, 20.0], variance=2.0)
        """
        if output_scale == 1.0 and bool((input_scales == 1.0).all()):
            return self
        return self._rescaled(input_scales, output_scale)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        raise ValueError(f"{self!r} cannot be put into other units")

    def _scaled_by(self, factors: dict[str, float | Array]) -> Kernel:
        """The same formula with parameters multiplied: by one factor each, or by one per input."""
        arguments: dict[str, Any] = {}
        for name, place in self._places.items():
            factor = np.asarray(factors.get(name, 1.0))
            value = self.parameters.values[place] * (factor.flat[0] if np.ptp(factor) == 0 else factor)
            fixed = np.broadcast_to(~self.parameters.free[place], value.shape) & (value > 0)
            arguments[name] = Parameter(value.tolist(), fixed=fixed.tolist() if fixed.any() else False)
        return type(self)(**self._structure(), **arguments)

    def gram(self, X1: Any, X2: Any = None) -> Array:
        """Covariances between the rows of X1 and of X2 (of X1 itself by default), shape (n1, n2)."""
        X1 = self.checked_rows(X1, "X1")
        X2 = X1 if X2 is None else self.checked_rows(X2, "X2")
        if X1.shape[1] != X2.shape[1]:
            raise ValueError(f"X1 and X2 must have as many columns, got {X1.shape[1]} and {X2.shape[1]}")
        return self.covariances(X1, X2)

    def diagonal(self, X: Any) -> Array:
        """Prior variance at each row of X."""
        return self.variances(self.checked_rows(X, "X"))

    def gram_with_pullback(self, X: Any) -> tuple[PackedGram, Pullback]:
        """Gram matrix of X, packed, and the function that carries a gradient back to ``theta``.

        ``pullback(g_pairs, g_diagonal)`` takes the derivative of a scalar by each entry of the packed matrix and
        returns its gradient with respect to :attr:`theta`. Nothing of size n × n × parameters is ever formed.
        """
        X = self.checked_rows(X, "X")
        evaluation = self.evaluation(X, Square.zeros(X.shape[0]))
        free = self.parameters.free

        gram = evaluation.gram(self.parameters.values)

        def pullback(g_pairs: Array, g_diagonal: Array) -> Array:
            by_pairs = np.ascontiguousarray(as_floats(g_pairs, "g_pairs"))
            by_diagonal = np.ascontiguousarray(as_floats(g_diagonal, "g_diagonal"))
            for name, given, part in (("g_pairs", by_pairs, gram.pairs), ("g_diagonal", by_diagonal, gram.diagonal)):
                if given.shape != part.shape:
                    raise ValueError(
                        f"{name} must have shape {part.shape}, as its part of the matrix, got {given.shape}"
                    )
            return evaluation.pullback(by_pairs, by_diagonal)[free]

        return gram, pullback

    def packed(self, X: Array) -> PackedGram:
        """Packed Gram matrix of checked rows."""
        return self.evaluation(X, Square.zeros(X.shape[0])).gram(self.parameters.values)

    def fill(self, X: Array, square: Square, adds: bool = False) -> None:
        """Write the covariances of checked rows into the lower triangle, or add them to it, for a single use.

        A block of columns at a time, so that what is done to each entry is done in the cache.
        """
        block = self._block_of(X)
        for start in range(0, X.shape[0], _FILLED_AT_ONCE):
            stop = start + _FILLED_AT_ONCE
            part = square.array[start:, start:stop]
            if adds:
                part += block(start, stop).T
            else:
                part[:] = block(start, stop).T

    def _block_of(self, X: Array) -> Callable[[int, int], Array]:
        """A function of ``start`` and ``stop``: covariances of these rows with each other and all that follow."""
        return lambda start, stop: self.covariances(X[start:stop], X[start:])

    def checked_rows(self, X: Any, name: str) -> Array:
        """X as rows that the kernel can take, or an error that calls it by ``name``."""
        X = as_rows(X, name)
        self.check_inputs(X.shape[1])
        return X

    def check_inputs(self, d: int) -> None:
        """Raise an error unless the parameters fit d inputs."""
        for name, place in self._places.items():
            if isinstance(place, slice) and place.stop - place.start != d:
                raise ValueError(
                    f"{name} of {type(self).__name__} has {place.stop - place.start} values, "
                    f"so X must have that many columns, got {d}"
                )

    @abstractmethod
    def slope_variances(self, d: int) -> Array:
        """Prior variance of the function's slope along each of d inputs, up to a factor near one.

        Its inverse square root is how far the function reaches along an input: the kernel's metric, by which regions
        are cut and neighbours chosen.
        """

    @abstractmethod
    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""

    @abstractmethod
    def variances(self, X: Array) -> Array:
        """Prior variance at each row."""

    @abstractmethod
    def evaluation(self, X: Array, square: Square) -> Evaluation:
        """The kernel on checked rows, ready for many parameter values; ``square`` is memory to work in."""

    def __add__(self, other: Any) -> Kernel:
        from spngp.kernels.combination import KernelSum  # the two modules need each other

        return KernelSum([self, other]) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from spngp.kernels.combination import KernelProduct

        return KernelProduct([self, other]) if isinstance(other, Kernel) else NotImplemented

    def _structure(self) -> dict[str, Any]:
        """Constructor arguments that are not parameters, such as ``nu``."""
        return {}

    def _key(self) -> tuple[Any, ...]:
        return (type(self), tuple(self._structure().items()), self.parameters.key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self._structure().items()]
        for name, place in self._places.items():
            value = self.parameters.values[place]
            text = repr(value.tolist())
            if not self.parameters.free[place].all() and np.any(value != 0):
                text = f"Parameter({text}, fixed={(~self.parameters.free[place]).tolist()})"
            arguments.append(f"{name}={text}")
        return f"{type(self).__name__}({', '.join(arguments)})"
