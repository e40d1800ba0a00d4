"""The leaf: one exact GP for one output, which may work in other units than its user."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._support.checks import as_count
from spngp._support.types import Array, Indices
from spngp._support.wording import counted
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Kernel, Parameter
from spngp.kernels.located import shifted
from spngp.network.node import Node
from spngp.network.units import Units
from spngp.noise import GAUSSIAN, NoiseShape


class Leaf(Node):
    """One exact GP for one output. Its box follows from its place in the network.

    Parameters
    ----------
    kernel : Kernel
    noise_variance : float or Parameter
        Variance of the observation noise, in the squared units of y.
    output : int
        Which column of Y it models.
    label : str
        A name to show, such as the kernel's; predictions do not depend on it.

    Attributes
    ----------
    gp : ExactGP
        The Gaussian process: the prior, or conditioned on the rows of its box.
    noise_shape : NoiseShape
        Shape of the noise: Gaussian, unless learning has found another.
    units : Units or None
        The units that the GP works in; None if they are the user's.

    Examples
    --------
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.network import Leaf
    >>> posterior = Leaf(SquaredExponential(), noise_variance=0.01).condition([[0.0], [1.0]], [1.0, -1.0])
    >>> posterior.predict_dist([[0.0]]).mean.round(2)
    array([0.98])
    """

    gp: ExactGP
    output: int
    label: str
    noise_shape: NoiseShape
    units: Units | None

    __slots__ = ("gp", "label", "noise_shape", "output", "units")

    def __init__(
        self, kernel: Kernel, noise_variance: float | Parameter = 0.1, output: int = 0, label: str = ""
    ) -> None:
        self._set_gp(ExactGP(kernel, noise_variance), as_count(output, "output of Leaf", 0), label, None, GAUSSIAN)

    def _set_gp(self, gp: ExactGP, output: int, label: str, units: Units | None, noise_shape: NoiseShape) -> None:
        self._set(gp=gp, output=output, label=label, children=(), outputs=(output,), cut_ranges={})
        self._set(units=units, noise_shape=noise_shape)
        self._set(log_evidence=gp.log_evidence - gp.n_counted * float(np.log(self._scale)))

    @staticmethod
    def of(
        gp: ExactGP,
        output: int = 0,
        label: str = "",
        units: Units | None = None,
        noise_shape: NoiseShape = GAUSSIAN,
    ) -> Leaf:
        """A leaf around a GP that exists already, which may work in other units than the leaf's user."""
        leaf = object.__new__(Leaf)
        leaf._set_gp(gp, output, label, units, noise_shape)
        return leaf

    def with_gp(self, gp: ExactGP) -> Leaf:
        """A leaf for the same output, in the same units, with another GP."""
        return Leaf.of(gp, self.output, self.label, self.units, self.noise_shape)

    @property
    def kernel(self) -> Kernel:
        """Covariance function, in the units of X and y."""
        if self.units is None:
            return self.gp.kernel
        return shifted(self.gp.kernel.rescaled(self.units.inputs.scale, self._scale), self.units.inputs.mean)

    @property
    def noise_variance(self) -> float:
        """Variance of the GP's noise, in the squared units of y; ``noise_shape`` may add to it.

        Where the noise changes with the inputs, it is the mean over the rows it was learnt from; see :meth:`noise_at`.
        """
        return self.gp.noise_variance * self._scale**2

    def noise_at(self, X: Array) -> Array:
        """Variance of the GP's noise at each row, in the squared units of y."""
        if self.gp.noise_profile is None:
            return np.full(X.shape[0], self.noise_variance)
        return self.gp.noise_at(self.inputs(X)) * self._scale**2

    def noise_of_own(self, positions: Indices) -> Array:
        """The same at some of its own rows, as if none were in doubt."""
        X, _ = self.gp.rows_seen
        return self.gp.noise_at(X[positions]) * self._scale**2

    @property
    def _scale(self) -> float:
        return 1.0 if self.units is None else float(self.units.outputs.scale[self.output])

    @property
    def _mean(self) -> float:
        return 0.0 if self.units is None else float(self.units.outputs.mean[self.output])

    def inputs(self, X: Array) -> Array:
        """Rows in the units of the GP."""
        return X if self.units is None else self.units.inputs.apply(X)

    def outputs_of(self, y: Array) -> Array:
        """Outputs in the units of the GP."""
        return y if self.units is None else (y - self._mean) / self._scale

    def variances_of(self, variances: KnownVariances | None, rows: Indices) -> KnownVariances | None:
        """What is known of the noise of this output at some rows, in the units of the GP."""
        return None if variances is None else variances[rows, self.output].divided_by(self._scale).plain()

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the latent function at each row."""
        mean, variance = self.gp.predict(self.inputs(X), latent=True)
        return (mean, variance) if self.units is None else (mean * self._scale + self._mean, variance * self._scale**2)

    def predict_mean(self, X: Array) -> Array:
        """Mean at each row, without the cost of its variance."""
        mean = self.gp.predict_mean(self.inputs(X))
        return mean if self.units is None else mean * self._scale + self._mean

    def joint(self, X: Array, latent: bool) -> tuple[Array, Array]:
        """Mean and covariance matrix over the rows, of new observations or of the latent function."""
        mean, covariance = self.gp.joint(self.inputs(X), latent=True)
        if not latent:
            noise = self.noise_shape.variance_at(self.gp.noise_at(self.inputs(X)), self.gp.noise_variance)
            np.einsum("ii->i", covariance)[:] += noise
        return (
            (mean, covariance) if self.units is None else (mean * self._scale + self._mean, covariance * self._scale**2)
        )

    def draw(self, X: Array, n_samples: int, rng: np.random.Generator, latent: bool) -> Array:
        """Joint samples over the rows, shape (n, n_samples)."""
        shaped = not latent and self.noise_shape != GAUSSIAN
        values = self.gp.sample(self.inputs(X), n_samples, rng, latent or shaped)
        if shaped:
            noise = self.gp.noise_at(self.inputs(X))
            values = values + self.noise_shape.sample(noise, self.gp.noise_variance, n_samples, rng)
        return values if self.units is None else values * self._scale + self._mean

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """A leaf has no children: itself."""
        return self

    def _summary(self, depth: int) -> str:
        output = f", output={self.output}" if self.output else ""
        rows = f", {counted(self.gp.n_own, 'row')}" if self.gp.n_own else ""
        return f"Leaf({self.kernel!r}, noise_variance={self.noise_variance:g}{output}{rows})"
