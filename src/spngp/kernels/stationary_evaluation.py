"""A stationary kernel on fixed rows, in NumPy: the Gram matrix by its profile, and the pullback."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spngp._linalg.scratch import empty
from spngp._linalg.square import PackedGram, Square
from spngp._support.types import Array
from spngp.kernels.distances import SquaredDistances, centre
from spngp.kernels.level_codes import DifferingPairs

if TYPE_CHECKING:
    from spngp.kernels.stationary import Stationary


class Profile(NamedTuple):
    """A kernel as a function of u = |φ(x) − φ(x')|², with its derivatives.

    Differentiating in u, a squared distance, leaves no 0/0 where two rows coincide.
    """

    value: Array
    slope: Array  # d value / du, divided by slope_factor
    slope_factor: float
    alpha_slope: Array | None = None  # d value / d log alpha (rational quadratic)


class StationaryEvaluation:
    """A stationary kernel on fixed rows."""

    def __init__(self, kernel: Stationary, X: Array, square: Square) -> None:
        n, m = X.shape[0], kernel._n_features(X.shape[1])
        self._kernel, self._square = kernel, square
        self._X = np.asfortranarray(X - centre(X))
        # a column of ones before the features, for W·1 and W·Φ in one product
        self._columns = np.ones((n, m + 1), order="F")
        self._features = self._columns[:, 1:]
        self._distances = SquaredDistances(self._features, square, exact=not kernel._is_smooth())
        n_pairs = self._distances.pairs.size
        self._spare = [empty(n_pairs) for _ in range(kernel._n_spare)]
        self._diagonal = np.empty(n)
        self._variance_place = kernel._places["variance"]
        self._moves = kernel._features_are_free()
        self._coded = DifferingPairs(kernel.levels, X) if kernel.levels else None
        if self._moves:
            self._weights = empty(n_pairs)
            product = np.empty((n, m + 1), order="F")
            self._row_sums, self._weighted_features = product[:, :1], product[:, 1:]
            self._g_features = np.empty((n, m), order="F")
            self._unpack_weights = square.bound_unpack(self._weights)
            self._multiply = square.bound_product(self._columns, product)

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        self._values = values
        self._kernel._write_features(self._X, values, self._features)
        self._kernel._without_codes(self._features)
        u = self._distances.update()
        if self._coded is not None:
            self._coded.add_to(u, self._kernel.scales(values))
        self._profile = self._kernel._profile(u, self._spare, values)
        self._diagonal.fill(values[self._variance_place])
        return PackedGram(self._profile.value, self._diagonal)

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters."""
        kernel, profile, values, features = self._kernel, self._profile, self._values, self._features
        gradient = np.zeros(values.size)
        variance = values[self._variance_place]
        gradient[self._variance_place] = g_pairs @ profile.value + variance * np.add.reduce(g_diagonal)
        if profile.alpha_slope is not None:
            gradient[kernel._places["alpha"]] = g_pairs @ profile.alpha_slope
        if self._moves:
            # With w_ij = dL/du_ij:  dL/dφ_i = Σ_j 2 w_ij (φ_i − φ_j) = 2 [(W·1)_i φ_i − (W·Φ)_i]
            np.multiply(g_pairs, profile.slope, out=self._weights)
            self._unpack_weights()
            self._square.diagonal.fill(0.0)
            self._multiply()
            g_features = np.multiply(self._row_sums, features, out=self._g_features)
            g_features -= self._weighted_features
            factor = 2.0 * profile.slope_factor  # applied last, to a vector instead of a matrix
            kernel._features_pullback(self._X, features, g_features, factor, values, gradient)
            if self._coded is not None:
                by_codes = np.zeros(features.shape[1])
                by_codes[self._coded.inputs] = -factor * self._coded.sums(self._weights, kernel.scales(values))
                kernel._accumulate(gradient, "length_scale", by_codes)
        return gradient
