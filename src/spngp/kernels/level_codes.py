"""Inputs that hold codes of levels instead of numbers: any two levels are equally far apart.

The squared distance r² = Σ ((x − x')/ℓ)² counts 1/ℓ² for an input of codes wherever they differ, and 0 where they are
equal. That is the distance between the corners of a simplex (indicator columns divided by √2 that share a
length-scale), so every kernel of r² stays a covariance. Between different levels of an input, all else equal, a squared
exponential has the correlation exp(−1/(2ℓ²)): one learnt number per input, the same for all pairs of levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from spngp._support.types import Array


def as_levels(levels: Sequence[int], n_length_scales: int | None, owner: str) -> tuple[int, ...]:
    """Checked numbers of levels, one per input: 0 for an input of numbers; empty if all inputs are numbers.

    ``n_length_scales`` is the number of length-scales, None for one that all inputs share.
    """
    counts = tuple(levels)
    if not all(isinstance(count, int | np.integer) and count >= 0 for count in counts):
        raise ValueError(f"levels of {owner} must be numbers of levels, 0 for an input of numbers, got {levels!r}")
    if counts and n_length_scales not in (None, len(counts)):
        raise ValueError(
            f"levels of {owner} must be one per input, as length_scale has {n_length_scales}, got {levels!r}"
        )
    return tuple(int(count) for count in counts) if any(counts) else ()


def caps(levels: tuple[Any, ...], scales: Array) -> Array:
    """The most that each input may add to u: the square of its scale for codes, no limit for numbers.

    ``scales`` are the factors of the features, of the shape of ``levels``: one per input, or per part and input.
    """
    return np.where(np.array(levels) > 0, np.square(scales), np.inf)


def slope_factors(levels: tuple[int, ...]) -> Array:
    """Factors of slope variances: over the whole width of its codes, an input of levels changes as over one unit."""
    return 1.0 / np.square(np.maximum(np.array(levels, dtype=float) - 1.0, 1.0))


class DifferingPairs:
    """Which pairs of fixed rows differ in each input of codes.

    Attributes
    ----------
    inputs : list of int
    """

    def __init__(self, levels: tuple[int, ...], X: Array) -> None:
        self.inputs = [j for j, count in enumerate(levels) if count]
        self._differ: list[NDArray[np.bool_]] = [
            pdist(np.ascontiguousarray(X[:, j : j + 1]), "chebyshev") > 0.5 for j in self.inputs
        ]

    def add_to(self, u: Array, scales: Array) -> None:
        """Add the squared scale of an input where rows differ in it; ``scales`` has one per input."""
        for j, differ in zip(self.inputs, self._differ, strict=True):
            u += differ * scales[j] ** 2

    def sums(self, weights: Array, scales: Array) -> Array:
        """For each input of codes, the sum of weights times what it adds."""
        return np.array(
            [scales[j] ** 2 * weights[differ].sum() for j, differ in zip(self.inputs, self._differ, strict=True)]
        )


def add_differences(u: Array, X1: Array, X2: Array, levels: tuple[int, ...], scales: Array) -> None:
    """Add to u, (n1, n2), the squared scale of each input of codes where a row of X1 differs from one of X2."""
    for j, count in enumerate(levels):
        if count:
            u += (X1[:, j, np.newaxis] != X2[np.newaxis, :, j]) * scales[j] ** 2
