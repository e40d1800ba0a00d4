"""Kernels on fixed rows, to be evaluated for many parameter values; sums and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from spngp._linalg.scratch import empty
from spngp._linalg.square import PackedGram
from spngp._support.types import Array


class Evaluation(Protocol):
    """A kernel on fixed rows, to be evaluated for many parameter values: buffers are set up once and reused."""

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these (natural) values of all the kernel's parameters; valid until the next call."""

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters, fixed or not, at the values last given to :meth:`gram`."""


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
        """Gradient by the logs of all parameters: for each factor, the incoming gradient times all other factors."""
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
