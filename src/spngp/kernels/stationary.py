"""Kernels that depend on the distance between features of the inputs: SE, Matérn, rational quadratic."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from spngp._linalg import compiled
from spngp._linalg.square import Square
from spngp._support.types import Array
from spngp.kernels import level_codes
from spngp.kernels.coded import CodedKernel
from spngp.kernels.compiled import CompiledEvaluation, CompiledFormula
from spngp.kernels.distances import ExpandedDistances, centre, squared_distances
from spngp.kernels.stationary_evaluation import Profile, StationaryEvaluation

_LARGEST = float(np.finfo(np.float64).max)
_FEW_COLUMNS = 8


class Stationary(CodedKernel):
    """Base: a profile of u = |φ(x) − φ(x')|² with features φ(x) = scale · x/length_scale.

    Each formula chooses ``scale`` so that its profile needs the fewest passes over the matrix.
    """

    _n_spare = 0  # vectors that the profile needs besides u

    @property
    def _formula(self) -> CompiledFormula | None:
        """The compiled formula of this class; None for subclasses, which may have another formula."""
        return None

    def _compiled_formula(self, d: int) -> CompiledFormula | None:
        """The compiled formula for d inputs; None if there is none, or if NumPy is faster."""
        return None if compiled.library is None or d > compiled.MOST_INPUTS else self._formula

    @abstractmethod
    def _profile(self, u: Array, spare: list[Array], values: Array) -> Profile:
        """The kernel's formula, variance included, at given values of all parameters. May overwrite ``u``."""

    def _scale(self, values: Array) -> float:
        """Factor of the features, so that u is what the formula calls for."""
        return 1.0

    def _n_features(self, d: int) -> int:
        return d

    def _write_features(self, X: Array, values: Array, out: Array) -> None:
        np.multiply(X, self._scale(values) / values[self._places["length_scale"]], out=out)

    def scales(self, values: Array) -> Array:
        """Factor of the feature of each input, where inputs may be codes of levels."""
        return np.broadcast_to(self._scale(values) / values[self._places["length_scale"]], (len(self.levels),))

    def caps(self, values: Array) -> Array | None:
        """The most that each input may add to u; None where no input is a code of levels."""
        return level_codes.caps(self.levels, self.scales(values)) if self.levels else None

    def _features_pullback(
        self, X: Array, features: Array, g_features: Array, factor: float, values: Array, gradient: Array
    ) -> None:
        """Add to ``gradient`` what ``factor * g_features``, the derivative by the features, says about parameters."""
        # dφ_d / d log ℓ_d = −φ_d
        self._accumulate(gradient, "length_scale", -factor * np.vecdot(features.T, g_features.T))

    def _is_smooth(self) -> bool:
        """Whether the value near zero depends on u, not on √u, so that rounding errors in u do no harm."""
        return True

    def _features_are_free(self) -> bool:
        """Whether a parameter of the features is learnt; if not, most of the pullback can be skipped."""
        return bool(self.parameters.free[self._places["length_scale"]].any())

    def _features(self, X: Array, order: Literal["C", "F"] = "C") -> Array:
        features = np.empty((X.shape[0], self._n_features(X.shape[1])), order=order)
        self._write_features(X, self.parameters.values, features)
        np.minimum(features, _LARGEST, out=features)  # ∞ − ∞ is no distance
        return np.maximum(features, -_LARGEST, out=features)

    def _without_codes(self, features: Array) -> Array:
        """The features with those of codes set to zero, in place: what they add is added apart."""
        if self.levels:
            features[:, np.array(self.levels) > 0] = 0.0
        return features

    def covariances(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets."""
        formula = self._compiled_formula(X1.shape[1])
        if formula is not None:
            out = np.empty((X1.shape[0], X2.shape[0]))
            self._write_covariances(formula, X1, X2, out)
            return out
        middle = centre(X2)
        A, B = (self._without_codes(self._features(X - middle)) for X in (X1, X2))
        u = squared_distances(A, B, exact=not self._is_smooth())
        if self.levels:
            level_codes.add_differences(u, X1, X2, self.levels, self.scales(self.parameters.values))
        spare = [np.empty(u.size) for _ in range(self._n_spare)]
        return self._profile(u.reshape(-1), spare, self.parameters.values).value.reshape(u.shape)

    def add_covariances(self, X1: Array, X2: Array, total: Array) -> None:
        """Add the covariances between the rows of two checked sets to a matrix."""
        formula = self._compiled_formula(X1.shape[1])
        if formula is None or not total.flags.c_contiguous:
            super().add_covariances(X1, X2, total)
        else:
            self._write_covariances(formula, X1, X2, total, adds=True)

    def _write_covariances(
        self, formula: CompiledFormula, X1: Array, X2: Array, out: Array, adds: bool = False
    ) -> None:
        middle = centre(X2)
        A, B = self._features(X1 - middle, "F"), self._features(X2 - middle, "F")
        caps, log_variance = self.caps(self.parameters.values), math.log(self.variance)
        if X2.shape[0] > _FEW_COLUMNS:
            formula.write(B, A, out.T, log_variance, adds=adds, caps=caps)
            return
        columns = np.empty((X1.shape[0], X2.shape[0]), order="F")  # loops run along columns: the longer, the better
        formula.write(A, B, columns, log_variance, caps=caps)
        if adds:
            out += columns
        else:
            out[:] = columns

    def fill(self, X: Array, square: Square, adds: bool = False) -> None:
        """Write the covariances of checked rows into the lower triangle, or add them to it, for a single use."""
        formula = self._compiled_formula(X.shape[1])
        if formula is None:
            super().fill(X, square, adds)
        else:
            features = self._features(X - centre(X), "F")
            caps = self.caps(self.parameters.values)
            formula.write(features, features, square.array, math.log(self.variance), True, adds, caps)

    def _covariances_of(self, X: Array) -> Callable[[int, int], Array]:
        features = self._features(X - centre(X))
        expanded = None if not self._is_smooth() or self.levels else ExpandedDistances.of(features)
        if expanded is None:
            return super()._covariances_of(X)
        values = self.parameters.values

        def covariances(start: int, stop: int) -> Array:
            u = expanded(start, stop)
            spare = [np.empty(u.size) for _ in range(self._n_spare)]
            return self._profile(u.reshape(-1), spare, values).value.reshape(u.shape)

        return covariances

    def variances(self, X: Array) -> Array:
        """Prior variance at each checked row."""
        return np.full(X.shape[0], self.variance)

    def evaluation(self, X: Array, square: Square) -> StationaryEvaluation | CompiledEvaluation:
        """The kernel on checked rows, ready for many parameter values."""
        formula = self._compiled_formula(X.shape[1])
        if formula is not None:
            return CompiledEvaluation(self, formula, X - centre(X))
        return StationaryEvaluation(self, X, square)


class SquaredExponential(Stationary):
    """variance · exp(−r²/2) with r² = Σ ((x − x')/length_scale)².

    Parameters
    ----------
    length_scale : float, sequence of float or Parameter
        One for all inputs, or one per input (ARD).
    variance : float or Parameter
        Prior variance of the function.
    levels : sequence of int
        For each input that holds codes of levels (of a category) the number of levels, 0 for an input of numbers:
        codes that differ are one unit apart, whichever they are. By default all inputs are numbers.

    Examples
    --------
    >>> from spngp.kernels import SquaredExponential
    >>> SquaredExponential(length_scale=2.0).gram([[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def __init__(self, length_scale: Any = 1.0, variance: Any = 1.0, levels: Sequence[int] = ()) -> None:
        self._declare(length_scale=length_scale, variance=variance, scalar=("variance",))
        self._set_levels(levels)

    def _structure(self) -> dict[str, Any]:
        return {"levels": self.levels} if self.levels else {}

    @property
    def _formula(self) -> CompiledFormula | None:
        return CompiledFormula(compiled.SQUARED_EXPONENTIAL, -1.0) if type(self) is SquaredExponential else None

    def _scale(self, values: Array) -> float:
        return math.sqrt(0.5)  # u = r²/2

    def _profile(self, u: Array, spare: list[Array], values: Array) -> Profile:
        value = np.exp(np.subtract(math.log(values[self._places["variance"]]), u, out=u), out=u)
        return Profile(value, value, -1.0)


class Matern(Stationary):
    """Matérn kernel with smoothness ``nu`` of 0.5, 1.5 or 2.5.

    With s = √(2·nu)·r:  e⁻ˢ,  (1 + s)·e⁻ˢ  and  (1 + s + s²/3)·e⁻ˢ, times ``variance``.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}
        Smoothness: functions are nu − ½ times differentiable.
    length_scale, variance, levels
        As in :class:`SquaredExponential`.

    Examples
    --------
    >>> from spngp.kernels import Matern
    >>> Matern(nu=1.5, length_scale=[1.0, 10.0])
    Matern(nu=1.5, length_scale=[1.0, 10.0], variance=1.0)
    """

    def __init__(
        self, nu: float = 1.5, length_scale: Any = 1.0, variance: Any = 1.0, levels: Sequence[int] = ()
    ) -> None:
        if nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu of Matern must be 0.5, 1.5 or 2.5, got {nu!r}")
        self.nu = float(nu)
        self._declare(length_scale=length_scale, variance=variance, scalar=("variance",))
        self._set_levels(levels)

    def _structure(self) -> dict[str, Any]:
        return {"nu": self.nu, "levels": self.levels} if self.levels else {"nu": self.nu}

    _n_spare = 2

    @property
    def _formula(self) -> CompiledFormula | None:
        slope_factor = -1.0 / 6.0 if self.nu == 2.5 else -0.5
        return CompiledFormula(compiled.MATERN[self.nu], slope_factor) if type(self) is Matern else None

    def _scale(self, values: Array) -> float:
        return math.sqrt(2.0 * self.nu)  # u = s²

    def _is_smooth(self) -> bool:
        return self.nu > 0.5

    def _profile(self, u: Array, spare: list[Array], values: Array) -> Profile:
        s = np.sqrt(np.maximum(u, 0.0, out=u), out=u)
        decay = np.subtract(math.log(values[self._places["variance"]]), s, out=spare[0])
        np.exp(decay, out=decay)
        if self.nu == 0.5:
            # dk/du = −k/(2s) has no limit at s = 0, where it multiplies a difference of zero
            return Profile(decay, np.divide(decay, s, out=s, where=s > 0), -0.5)
        if self.nu == 1.5:
            return Profile(np.multiply(np.add(s, 1.0, out=s), decay, out=s), decay, -0.5)
        value = np.multiply(s, 1.0 / 3.0, out=spare[1])
        np.multiply(np.add(value, 1.0, out=value), s, out=value)
        np.multiply(np.add(value, 1.0, out=value), decay, out=value)
        return Profile(value, np.multiply(np.add(s, 1.0, out=s), decay, out=s), -1.0 / 6.0)


class RationalQuadratic(Stationary):
    """variance · (1 + r²/(2·alpha))^(−alpha): a scale mixture of squared exponentials.

    Parameters
    ----------
    alpha : float or Parameter
        Small: many length-scales at once. Large: close to :class:`SquaredExponential`.
    length_scale, variance : float, sequence of float or Parameter
        As in :class:`SquaredExponential`.
    """

    alpha: float

    def __init__(self, alpha: Any = 1.0, length_scale: Any = 1.0, variance: Any = 1.0) -> None:
        self._declare(alpha=alpha, length_scale=length_scale, variance=variance, scalar=("alpha", "variance"))

    _n_spare = 2

    def _profile(self, u: Array, spare: list[Array], values: Array) -> Profile:
        # u = r², not r²/(2·alpha): a large alpha would hide how large the features are, and with it the rounding error
        alpha, log_variance = values[self._places["alpha"]], math.log(values[self._places["variance"]])
        np.multiply(u, 0.5 / alpha, out=u)
        base = np.add(u, 1.0, out=spare[1])
        # log(1 + u) to the last digits, in a third of the time of log1p: log(base) − ((base − 1) − u)/base
        value = np.subtract(base, 1.0, out=spare[0])
        lost = np.divide(np.subtract(value, u, out=value), base, out=value)
        value = np.subtract(np.log(base), lost, out=value)
        # d log k / d log alpha at fixed r²
        alpha_slope = np.subtract(np.divide(u, base, out=u), value, out=u)
        np.multiply(alpha_slope, alpha, out=alpha_slope)
        np.exp(np.subtract(log_variance, np.multiply(value, alpha, out=value), out=value), out=value)
        np.multiply(alpha_slope, value, out=alpha_slope)
        return Profile(value, np.divide(value, base, out=base), -0.5, alpha_slope)
