"""Sums and products of kernels, to any depth."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spngp._linalg.scratch import empty
from spngp._linalg.square import PackedGram, Square
from spngp._support.types import Array
from spngp.kernels.base import Evaluation, Kernel
from spngp.kernels.parameter import ParameterTable


class Combination(Kernel):
    """Base: an ordered list of parts that share one input. Parts of the same kind are taken up flat."""

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
        """Where each part's parameters stand among all."""
        ends = list(itertools.accumulate(part.parameters.values.size for part in self.parts))
        return [slice(end - part.parameters.values.size, end) for part, end in zip(self.parts, ends, strict=True)]

    def _part_evaluations(self, X: Array, square: Square) -> list[tuple[slice, Evaluation]]:
        # the parts may share the work space: each is done with it when its method returns
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
            total += part.covariances(X1, X2)
        return total

    def fill(self, X: Array, square: Square, adds: bool = False) -> None:
        """Write the covariances of checked rows into the lower triangle, or add them to it, for a single use."""
        for i, part in enumerate(self.parts):
            part.fill(X, square, adds or i > 0)

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.sum([part.variances(X) for part in self.parts], axis=0)

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
        """The product rule, with each factor's variance taken at the origin plus one."""
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


class SumEvaluation:
    """A sum of kernels on fixed rows."""

    def __init__(self, parts: list[tuple[slice, Evaluation]]) -> None:
        self._parts = parts
        self._sum: PackedGram | None = None

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        first, *others = [part.gram(values[place]) for place, part in self._parts]
        if not others:
            return first
        if self._sum is None:
            self._sum = PackedGram(empty(first.pairs.size), np.empty(first.diagonal.size))
        for i, total in enumerate(self._sum):
            np.add(first[i], others[0][i], out=total)
            for gram in others[1:]:
                total += gram[i]
        return self._sum

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters."""
        return np.concatenate([part.pullback(g_pairs, g_diagonal) for _, part in self._parts])


class ProductEvaluation:
    """A product of kernels on fixed rows."""

    def __init__(self, parts: list[tuple[slice, Evaluation]]) -> None:
        self._parts = parts

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        self._grams = [part.gram(values[place]) for place, part in self._parts]
        return self._product(self._grams)

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters: the other factors multiply what comes from above."""
        gradients = []
        for i, (_, part) in enumerate(self._parts):
            above = PackedGram(g_pairs, g_diagonal)
            pulled = self._product([above, *self._grams[:i], *self._grams[i + 1 :]])
            gradients.append(part.pullback(*pulled))
        return np.concatenate(gradients)

    @staticmethod
    def _product(grams: Sequence[PackedGram]) -> PackedGram:
        pairs, diagonal = grams[0].pairs.copy(), grams[0].diagonal.copy()
        for gram in grams[1:]:
            pairs *= gram.pairs
            diagonal *= gram.diagonal
        return PackedGram(pairs, diagonal)
