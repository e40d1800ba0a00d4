"""The kernel of random intercepts and slopes: a plane for each level, as in a mixed model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spngp._linalg.square import PackedGram, Square
from spngp._support.types import Array
from spngp.kernels import level_codes
from spngp.kernels.coded import CodedKernel


class RandomSlopes(CodedKernel):
    """variance · exp(−½ Σ [c ≠ c']/length_scale²) · (1 + Σ x·x'/length_scale²): planes that differ by level.

    The first sum is over inputs of codes c, the second over inputs of numbers x. A plane has an intercept of prior
    variance ``variance``, at the origin, and slopes of prior variance variance/length_scale²; two planes have the
    correlation exp(−1/(2·length_scale²)) for every input of codes in which their levels differ.

    Parameters
    ----------
    length_scale : float, sequence of float or Parameter
        One for all inputs, or one per input. For numbers the distance from the origin at which a slope adds as much as
        the intercept; for codes as in :class:`SquaredExponential`.
    variance : float or Parameter
        Prior variance at the origin.
    levels : sequence of int
        For each input that holds codes of levels the number of levels, 0 for an input of numbers. By default all inputs
        are numbers: one plane.

    Examples
    --------
    Two rows of one level and one of another, which shares nothing with it:

    >>> from spngp.kernels import RandomSlopes
    >>> RandomSlopes([1.0, 0.1], levels=[0, 2]).gram([[1.0, 0], [3.0, 0], [3.0, 1]]).round(4)
    array([[ 2.,  4.,  0.],
           [ 4., 10.,  0.],
           [ 0.,  0., 10.]])
    """

    def __init__(self, length_scale: Any = 1.0, variance: Any = 1.0, levels: Sequence[int] = ()) -> None:
        self._declare(length_scale=length_scale, variance=variance, scalar=("variance",))
        self._set_levels(levels)

    def _structure(self) -> dict[str, Any]:
        return {"levels": self.levels} if self.levels else {}

    def scales(self, values: Array, d: int) -> Array:
        """1/length_scale of each of d inputs."""
        return np.broadcast_to(1.0 / values[self._places["length_scale"]], (d,))

    def features(self, X: Array, scales: Array) -> Array:
        """Numbers divided by their length-scales; zero for codes."""
        return X * (np.where(np.array(self.levels) > 0, 0.0, scales) if self.levels else scales)

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        scales = self.scales(self.parameters.values, X1.shape[1])
        planes = self.features(X1, scales) @ self.features(X2, scales).T + 1.0
        if self.levels:
            u = np.zeros(planes.shape)
            level_codes.add_differences(u, X1, X2, self.levels, scales)
            planes *= np.exp(-0.5 * u)
        return self.variance * planes

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        features = self.features(X, self.scales(self.parameters.values, X.shape[1]))
        return self.variance * (1.0 + np.vecdot(features, features))

    def evaluation(self, X: Array, square: Square) -> RandomSlopesEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return RandomSlopesEvaluation(self, X, square)


class RandomSlopesEvaluation:
    """Random intercepts and slopes on fixed rows."""

    def __init__(self, kernel: RandomSlopes, X: Array, square: Square) -> None:
        n, d = X.shape
        self._kernel, self._square, self._X = kernel, square, X
        self._variance = kernel._places["variance"]
        self._coded = level_codes.DifferingPairs(kernel.levels, X)
        self._features = np.empty(X.shape)
        self._pairs, self._alike, self._weights = (np.empty(n * (n - 1) // 2) for _ in range(3))
        self._columns, self._product = np.empty((n, d), order="F"), np.empty((n, d), order="F")
        self._inner_products = square.bound_inner_products(self._features)
        self._pack, self._unpack = square.bound_pack(self._pairs), square.bound_unpack(self._weights)
        self._multiply = square.bound_product(self._columns, self._product)

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        self._values, self._scales = values, self._kernel.scales(values, self._X.shape[1])
        self._features[:] = self._kernel.features(self._X, self._scales)
        self._inner_products()
        self._pack()
        variance = values[self._variance]
        self._alike.fill(0.0)
        self._coded.add_to(self._alike, self._scales)
        np.multiply(np.exp(-0.5 * self._alike), variance, out=self._alike)  # covariances of intercepts
        self._pairs += 1.0
        self._pairs *= self._alike
        self._diagonal = variance * (1.0 + np.vecdot(self._features, self._features))
        return PackedGram(self._pairs, self._diagonal)

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters."""
        gradient = np.zeros(self._values.size)
        np.multiply(g_pairs, self._alike, out=self._weights)
        self._unpack()
        # each pair stands for two entries of the symmetric matrix
        self._square.diagonal[:] = 2.0 * self._values[self._variance] * g_diagonal
        self._columns[:] = self._features
        self._multiply()
        # dφ_k / d log ℓ_k = −φ_k
        per_input = -np.einsum("ij,ij->j", self._features, self._product)
        weighted = np.multiply(g_pairs, self._pairs, out=self._weights)
        gradient[self._variance] = np.add.reduce(weighted) + g_diagonal @ self._diagonal
        if self._coded.inputs:
            per_input[self._coded.inputs] = self._coded.sums(weighted, self._scales)
        self._kernel._accumulate(gradient, "length_scale", per_input)
        return gradient
