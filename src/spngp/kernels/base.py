"""What every kernel is: parameters, a Gram matrix, and a pullback for training; and sums and products of kernels."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from spngp._linalg.square import PackedGram, Square
from spngp._support.checks import as_floats, as_rows
from spngp._support.types import Array
from spngp.kernels.evaluation import Evaluation, ProductEvaluation, SumEvaluation
from spngp.kernels.parameter import Identity, Parameter, ParameterTable, declare

# Given dL/d(pairs) and dL/d(diagonal), the gradient of L with respect to the free log-parameters.
Pullback: TypeAlias = Callable[[Array, Array], Array]

# Columns of a matrix filled at once: they fit into the cache, and Python's overhead per call is small against the work.
_FILLED_AT_ONCE = 96


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

        Fixed parameters stay fixed; free ones get the default bounds. Only the scale changes: a kernel of the inner
        product x·x' still needs inputs shifted as before.

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

        A few columns at a time, so that each entry stays in the cache until it is done.
        """
        covariances = self._covariances_of(X)
        for start in range(0, X.shape[0], _FILLED_AT_ONCE):
            stop = start + _FILLED_AT_ONCE
            part = square.array[start:, start:stop]
            if adds:
                part += covariances(start, stop).T
            else:
                part[:] = covariances(start, stop).T

    def _covariances_of(self, X: Array) -> Callable[[int, int], Array]:
        """A function of ``start`` and ``stop``: the covariances of ``X[start:stop]`` with ``X[start:]``."""
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

        Its inverse square root is the distance over which the function changes along an input. That is the kernel's
        metric, in which regions are cut and context rows are chosen.
        """

    @abstractmethod
    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""

    def add_covariances(self, X1: Array, X2: Array, total: Array) -> None:
        """Add the covariances between the rows of two checked sets to a matrix."""
        total += self.covariances(X1, X2)

    @abstractmethod
    def variances(self, X: Array) -> Array:
        """Prior variance at each row."""

    @abstractmethod
    def evaluation(self, X: Array, square: Square) -> Evaluation:
        """The kernel on checked rows, ready for many parameter values; ``square`` is memory to work in."""

    def __add__(self, other: Any) -> Kernel:
        return KernelSum([self, other]) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
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


class Combination(Kernel):
    """Base of sums and products: a list of parts. Sums inside a sum are flattened, and products inside a product."""

    parts: tuple[Kernel, ...]

    def __init__(self, parts: Sequence[Kernel]) -> None:
        if not isinstance(parts, Iterable):
            raise TypeError(f"parts of {type(self).__name__} must be a list of kernels, got {parts!r}")
        flat: list[Kernel] = []
        for part in parts:
            if not isinstance(part, Kernel):
                raise TypeError(f"parts of {type(self).__name__} must be kernels, got {part!r}")
            flat += part.parts if isinstance(part, Combination) and type(part) is type(self) else [part]
        if not flat:
            raise ValueError(f"{type(self).__name__} needs at least one kernel, got none")
        self.parts = tuple(flat)
        self._places = {}
        self.parameters = ParameterTable.join([part.parameters for part in self.parts])

    def _with_table(self, table: ParameterTable) -> Kernel:
        kernel = super()._with_table(table)
        assert isinstance(kernel, Combination)
        kernel.parts = tuple(
            part._with_table(part.parameters.replaced(table.values[place]))
            for part, place in zip(self.parts, self._part_places(), strict=True)
        )
        return kernel

    def _part_places(self) -> list[slice]:
        """For each part, the slice of its parameters among all."""
        ends = list(itertools.accumulate(part.parameters.values.size for part in self.parts))
        return [slice(end - part.parameters.values.size, end) for part, end in zip(self.parts, ends, strict=True)]

    def _part_evaluations(self, X: Array, square: Square) -> list[tuple[slice, Evaluation]]:
        # the parts may share the work space, because none uses it after its method has returned
        return [
            (place, part.evaluation(X, square)) for part, place in zip(self.parts, self._part_places(), strict=True)
        ]

    def check_inputs(self, d: int) -> None:
        """Raise an error unless the parameters fit d inputs."""
        for part in self.parts:
            part.check_inputs(d)

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *(part._key() for part in self.parts))


class KernelSum(Combination):
    """Sum of kernels: a function that is a sum of independent functions. Written ``a + b``."""

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        total = self.parts[0].covariances(X1, X2)
        for part in self.parts[1:]:
            part.add_covariances(X1, X2, total)
        return total

    def fill(self, X: Array, square: Square, adds: bool = False) -> None:
        """Write the covariances of checked rows into the lower triangle, or add them to it, for a single use."""
        for i, part in enumerate(self.parts):
            part.fill(X, square, adds or i > 0)

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return sum((part.variances(X) for part in self.parts[1:]), start=self.parts[0].variances(X))

    def slope_variances(self, d: int) -> Array:
        """Slopes of independent functions add up."""
        return np.sum([part.slope_variances(d) for part in self.parts], axis=0)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        return KernelSum([part.rescaled(input_scales, output_scale) for part in self.parts])

    def evaluation(self, X: Array, square: Square) -> SumEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return SumEvaluation(self._part_evaluations(X, square))

    def __repr__(self) -> str:
        return " + ".join(repr(part) for part in self.parts)


class KernelProduct(Combination):
    """Product of kernels. Written ``a * b``."""

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        total = self.parts[0].covariances(X1, X2)
        for part in self.parts[1:]:
            total *= part.covariances(X1, X2)
        return total

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.prod([part.variances(X) for part in self.parts], axis=0)

    def slope_variances(self, d: int) -> Array:
        """By the product rule; the variances of the other factors are those at the row of ones."""
        at = np.ones((1, d))
        variances = np.array([part.variances(at)[0] for part in self.parts])
        others = [np.prod(np.delete(variances, i)) for i in range(len(self.parts))]
        return np.sum([part.slope_variances(d) * other for part, other in zip(self.parts, others, strict=True)], axis=0)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        first, *others = self.parts
        return KernelProduct(
            [first.rescaled(input_scales, output_scale), *(part.rescaled(input_scales, 1.0) for part in others)]
        )

    def evaluation(self, X: Array, square: Square) -> ProductEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return ProductEvaluation(self._part_evaluations(X, square))

    def __repr__(self) -> str:
        return " * ".join(f"({part!r})" if isinstance(part, KernelSum) else repr(part) for part in self.parts)
