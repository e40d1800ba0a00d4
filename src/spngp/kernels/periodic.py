"""The periodic kernel: the squared exponential on circles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.kernels.base import Kernel
from spngp.kernels.stationary import Stationary
from spngp.kernels.stationary_evaluation import Profile


class Periodic(Stationary):
    """variance · exp(−2 Σ sin²(π(x − x')/period)/length_scale²), summed over the inputs.

    It is the squared exponential on the circle: φ(x) = (cos 2πx/period, sin 2πx/period)/length_scale. Unlike a sine
    of the Euclidean distance, this is a valid covariance for any number of inputs; for one input both agree.

    Parameters
    ----------
    period : float, sequence of float or Parameter
        Length after which the function repeats, one for all inputs or one per input.
    length_scale, variance : float, sequence of float or Parameter
        As in :class:`SquaredExponential`, the length-scale relative to the period's circle.
    """

    period: float | Array

    def __init__(self, period: Any = 1.0, length_scale: Any = 1.0, variance: Any = 1.0) -> None:
        self._declare(period=period, length_scale=length_scale, variance=variance, scalar=("variance",))

    def slope_variances(self, d: int) -> Array:
        """Prior variance of the slope along each input."""
        return super().slope_variances(d) * np.square(2.0 * np.pi / self.period)

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        return self._scaled_by({"period": input_scales, "variance": output_scale**2})

    def _n_features(self, d: int) -> int:
        return 2 * d

    def _write_features(self, X: Array, values: Array, out: Array) -> None:
        angle = self._angle(X, values)
        radius = math.sqrt(0.5) / values[self._places["length_scale"]]  # u = half the squared distance on the circle
        np.multiply(np.cos(angle), radius, out=out[:, : X.shape[1]])
        np.multiply(np.sin(angle), radius, out=out[:, X.shape[1] :])

    def _angle(self, X: Array, values: Array) -> Array:
        return X * (2.0 * np.pi / values[self._places["period"]])

    def _features_pullback(
        self, X: Array, features: Array, g_features: Array, factor: float, values: Array, gradient: Array
    ) -> None:
        d = X.shape[1]
        cosine, sine = features[:, :d], features[:, d:]
        g_cosine, g_sine = g_features[:, :d], g_features[:, d:]
        self._accumulate(gradient, "length_scale", -factor * (cosine * g_cosine + sine * g_sine).sum(axis=0))
        # d angle / d log period = −angle
        by_angle = factor * (sine * g_cosine - cosine * g_sine)
        self._accumulate(gradient, "period", (self._angle(X, values) * by_angle).sum(axis=0))

    def _features_are_free(self) -> bool:
        return super()._features_are_free() or bool(self.parameters.free[self._places["period"]].any())

    def _profile(self, u: Array, spare: list[Array], values: Array) -> Profile:
        value = np.exp(np.subtract(math.log(values[self._places["variance"]]), u, out=u), out=u)
        return Profile(value, value, -1.0)
