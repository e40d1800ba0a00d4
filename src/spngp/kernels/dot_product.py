"""Kernels of the inner product x·x': linear and polynomial functions; and the constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp._linalg.square import PackedGram, Square
from spngp._support.checks import as_count
from spngp._support.types import Array
from spngp.kernels.base import Kernel


class Linear(Kernel):
    """Σ variance·x·x' + bias_variance: straight lines, planes.

    Parameters
    ----------
    variance : float, sequence of float or Parameter
        Prior variance of the slope, one for all inputs or one per input.
    bias_variance : float or Parameter
        Prior variance of the value at the origin. 0 forces the function through zero there.

    Examples
    --------
    >>> from spngp.kernels import Linear
    >>> Linear(variance=2.0, bias_variance=1.0).gram([[1.0], [3.0]])
    array([[ 3.,  7.],
           [ 7., 19.]])
    """

    variance: float | Array
    bias_variance: float

    def __init__(self, variance: Any = 1.0, bias_variance: Any = 0.0) -> None:
        self._declare(
            variance=variance,
            bias_variance=bias_variance,
            scalar=("bias_variance",),
            may_be_zero=("bias_variance",),
        )

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        return (X1 * self.variance) @ X2.T + self.bias_variance

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return (X * X * self.variance).sum(axis=1) + self.bias_variance

    def slope_variances(self, d: int) -> Array:
        """Prior variance of the slope along each input."""
        return np.broadcast_to(np.asarray(self.variance), (d,))

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        return self._scaled_by({"variance": (output_scale / input_scales) ** 2, "bias_variance": output_scale**2})

    def evaluation(self, X: Array, square: Square) -> LinearEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return LinearEvaluation(self, X, square)


class LinearEvaluation:
    """A linear kernel on fixed rows."""

    def __init__(self, kernel: Linear, X: Array, square: Square) -> None:
        self._square, self._X = square, X
        self._variance, self._bias = kernel._places["variance"], kernel._places["bias_variance"]
        self._features, self._pairs = np.empty(X.shape), np.empty(X.shape[0] * (X.shape[0] - 1) // 2)
        self._columns, self._product = np.empty(X.shape, order="F"), np.empty(X.shape, order="F")
        self._inner_products = square.bound_inner_products(self._features)
        self._pack = square.bound_pack(self._pairs)
        self._multiply = square.bound_product(self._columns, self._product)

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        self._values = values
        np.multiply(self._X, np.sqrt(values[self._variance]), out=self._features)
        self._inner_products()
        self._pack()
        bias = values[self._bias]
        np.add(self._pairs, bias, out=self._pairs)
        return PackedGram(self._pairs, np.einsum("ij,ij->i", self._features, self._features) + bias)

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters."""
        gradient = np.zeros(self._values.size)
        gradient[self._bias] = self._values[self._bias] * (g_pairs.sum() + g_diagonal.sum())
        self._square.bound_unpack(g_pairs)()
        self._square.diagonal[:] = 2.0 * g_diagonal  # each pair stands for two entries of the symmetric matrix
        self._columns[:] = self._features
        self._multiply()
        per_input = 0.5 * np.einsum("ij,ij->j", self._features, self._product)
        gradient[self._variance] = per_input if isinstance(self._variance, slice) else per_input.sum()
        return gradient


class Polynomial(Kernel):
    """variance · (x·x' + offset)^degree.

    Parameters
    ----------
    degree : int
        Degree of the polynomials, at least 1.
    offset : float or Parameter
        Weight of the lower-degree terms; 0 leaves only those of the full degree.
    variance : float or Parameter
        Factor of the whole.
    """

    offset: float
    variance: float

    def __init__(self, degree: int = 2, offset: Any = 1.0, variance: Any = 1.0) -> None:
        self.degree = as_count(degree, "degree of Polynomial", 1)
        self._declare(offset=offset, variance=variance, scalar=("offset", "variance"), may_be_zero=("offset",))

    def _structure(self) -> dict[str, Any]:
        return {"degree": self.degree}

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        return np.asarray(self.variance * (X1 @ X2.T + self.offset) ** self.degree)

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.asarray(self.variance * ((X * X).sum(axis=1) + self.offset) ** self.degree)

    def slope_variances(self, d: int) -> Array:
        """Prior variance of the slope along each input, at a distance of one from the origin."""
        # a power of NumPy's overflows to infinity, one of Python's raises an error
        return np.full(d, self.variance * self.degree**2 * np.float64(1.0 + self.offset) ** (self.degree - 1))

    def evaluation(self, X: Array, square: Square) -> PolynomialEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return PolynomialEvaluation(self, X, square)


class PolynomialEvaluation:
    """A polynomial kernel on fixed rows, whose inner products never change."""

    def __init__(self, kernel: Polynomial, X: Array, square: Square) -> None:
        self._degree, self._places = kernel.degree, kernel._places
        square.bound_inner_products(np.ascontiguousarray(X))()
        self._inner = np.empty(X.shape[0] * (X.shape[0] - 1) // 2)
        square.bound_pack(self._inner)()
        self._inner_diagonal = (X * X).sum(axis=1)

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for these values of the parameters."""
        self._offset, self._variance = values[self._places["offset"]], values[self._places["variance"]]
        self._base, self._base_diagonal = self._inner + self._offset, self._inner_diagonal + self._offset
        self._gram = PackedGram(
            self._variance * self._base**self._degree, self._variance * self._base_diagonal**self._degree
        )
        return self._gram

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the logs of all parameters."""
        power = self._degree - 1
        inner = g_pairs @ self._base**power + g_diagonal @ self._base_diagonal**power
        gradient = np.zeros(2)
        gradient[self._places["variance"]] = g_pairs @ self._gram.pairs + g_diagonal @ self._gram.diagonal
        gradient[self._places["offset"]] = self._variance * self._degree * self._offset * inner
        return gradient


class Constant(Kernel):
    """The same covariance everywhere: an unknown constant function, or a factor of another kernel.

    Parameters
    ----------
    variance : float or Parameter
        Prior variance of the constant.
    """

    variance: float

    def __init__(self, variance: Any = 1.0) -> None:
        self._declare(variance=variance, scalar=("variance",))

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        return np.full((X1.shape[0], X2.shape[0]), self.variance)

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.full(X.shape[0], self.variance)

    def slope_variances(self, d: int) -> Array:
        """A constant has no slope."""
        return np.zeros(d)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        return self._scaled_by({"variance": output_scale**2})

    def evaluation(self, X: Array, square: Square) -> ConstantEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        return ConstantEvaluation(X.shape[0])


class ConstantEvaluation:
    """A constant kernel on n rows."""

    def __init__(self, n: int) -> None:
        self._gram = PackedGram(np.empty(n * (n - 1) // 2), np.empty(n))

    def gram(self, values: Array) -> PackedGram:
        """Packed Gram matrix for this variance."""
        self._variance = values[0]
        for part in self._gram:
            part.fill(self._variance)
        return self._gram

    def pullback(self, g_pairs: Array, g_diagonal: Array) -> Array:
        """Gradient by the log variance."""
        return np.array([self._variance * (g_pairs.sum() + g_diagonal.sum())])
