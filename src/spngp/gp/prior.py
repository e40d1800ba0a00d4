"""A Gaussian process before it is conditioned on rows: kernel, noise, and the evidence of given rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp._support.checks import as_outputs
from spngp._support.types import Array
from spngp.gp.evidence import evidence_of
from spngp.gp.noise_profile import NoiseProfile
from spngp.kernels import Kernel, Parameter
from spngp.kernels.parameter import Identity, ParameterTable, declare


def overflow_is_checked() -> np.errstate:
    """For code that checks its result for overflow and raises an error: NumPy's warnings are switched off."""
    return np.errstate(over="ignore", invalid="ignore")


class Prior:
    """Covariance function and noise, with their free parameters as one vector ``theta``.

    Parameters
    ----------
    kernel : Kernel
        Covariance function of the latent function; its mean is zero.
    noise_variance : float or Parameter
        Variance of the noise, learnt unless fixed; 0 means none.
    """

    kernel: Kernel
    noise_profile: NoiseProfile | None  # how the noise changes with the inputs; None if it does not
    _noise: ParameterTable

    def __init__(self, kernel: Kernel, noise_variance: float | Parameter = 0.1) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a spngp kernel, got {kernel!r}")
        self.kernel, self.noise_profile = kernel, None
        self._noise, _ = declare(
            "a leaf",
            {"noise_variance": noise_variance},
            scalar=("noise_variance",),
            may_be_zero=("noise_variance",),
        )

    @property
    def noise_variance(self) -> float:
        """Variance of the noise."""
        return float(self._noise.values[0])

    def noise_at(self, X: Array) -> Array:
        """Variance of the noise at each row."""
        if self.noise_profile is None:
            return np.full(X.shape[0], self.noise_variance)
        return self.noise_variance * self.noise_profile.factors(X)

    @property
    def noise_is_fixed(self) -> bool:
        """Whether training leaves the noise as it is."""
        return not self._noise.free[0]

    @property
    def theta(self) -> Array:
        """Logs of the free parameters: the kernel's, then the noise variance."""
        return np.concatenate([self.kernel.theta, self._noise.theta])

    @property
    def bounds(self) -> Array:
        """Bounds of :attr:`theta`, shape (len(theta), 2)."""
        return np.concatenate([self.kernel.bounds, self._noise.bounds])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the free parameters, in the order of :attr:`theta`."""
        return tuple(identity.name for identity in self.free_parameters)

    @property
    def free_parameters(self) -> tuple[Identity, ...]:
        """Which parameters are free, in the order of :attr:`theta`."""
        return (*self.kernel.free_parameters, *self._noise.free_identities)

    def has_prior_of(self, gp: Prior) -> bool:
        """Whether this is ``gp`` conditioned on rows, or ``gp`` itself."""
        same = self.kernel is gp.kernel and self._noise is gp._noise
        return same and self.noise_profile is gp.noise_profile

    def log_evidence_with_gradient(self, X: Any, y: Any) -> tuple[float, Array]:
        """log p(y | X) under the prior and its gradient with respect to :attr:`theta`."""
        table = self.kernel.parameters
        with overflow_is_checked():
            X, y = self._checked(X, y, "X", "y")
            evidence = evidence_of(self.kernel, X, y, profile=self.noise_profile)
            value, by_kernel, by_noise = evidence(table.values, self.noise_variance)
        gradient = by_kernel[table.free]
        return value, np.append(gradient, by_noise) if self._noise.free[0] else gradient

    def _checked(self, X: Any, y: Any, X_name: str, y_name: str) -> tuple[Array, Array]:
        X = self.kernel.checked_rows(X, X_name)
        outputs = as_outputs(y, X.shape[0], y_name, missing=False)
        if outputs.shape[1] != 1:
            raise ValueError(f"{y_name} of a leaf must be one output, got {outputs.shape[1]}")
        return X, np.ascontiguousarray(outputs[:, 0])
