"""Distributions of transformed Gaussian mixtures: a target is learnt on another scale, and predicted on its own.

If z = T(y) has a Gaussian mixture, then y has the density p(T(y)) T'(y), the quantiles T⁻¹(q) and the cdf P(T(y)): an
exact change of variables. Means and variances are integrals over each component, in closed form or by quadrature.
"""

from spngp.transformed.mixture import TransformedMixture
from spngp.transformed.transforms import Fitted, Log, Transform, Unchanged

__all__ = ["Fitted", "Log", "Transform", "TransformedMixture", "Unchanged"]
