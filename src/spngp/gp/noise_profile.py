"""How the noise of a GP changes with its inputs, smoothly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array, Indices

_FAR = 1400.0  # squared distance in length-scales beyond which a bump is zero


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """How the noise of a GP changes with its inputs: by the factor exp(g(x)), g(x) = constant + Σ_k c_k b_k(x_j(k)).

    The functions b_k are bumps exp(−½ ((x_j − centre_k) / length_scale)²) along single inputs. Far from all centres the
    factor is that of the constant. Where it was learnt, its mean over the rows is one.

    Attributes
    ----------
    constant : float
    axes : ndarray of int, shape (m,)
        The input j(k) of each bump.
    centres, length_scales, coefficients : ndarray of shape (m,)
    least, most : float
        The factor is not smaller, nor larger: noise has a floor, and is no more than outputs show.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.gp.noise_profile import NoiseProfile
    >>> one = np.array([1.0])
    >>> bump = NoiseProfile(0.0, np.array([0]), 2.0 * one, one, np.log(9.0) * one, least=0.1, most=99.0)
    >>> bump.factors(np.array([[2.0], [50.0]]))
    array([9., 1.])
    """

    constant: float
    axes: Indices
    centres: Array
    length_scales: Array
    coefficients: Array
    least: float
    most: float

    def factors(self, X: Array) -> Array:
        """The factor of the noise variance at each row."""
        steps = (X[:, self.axes] - self.centres) / self.length_scales
        with np.errstate(over="ignore", under="ignore"):  # far away, bumps are zero
            bumps = np.exp(-0.5 * np.minimum(steps**2, _FAR))
        logs = self.constant + bumps @ self.coefficients
        return np.asarray(np.exp(np.clip(logs, np.log(self.least), np.log(self.most))))
