"""Rules by which committees of Gaussian processes put the predictions of their experts together.

With latent means μ_m and variances v_m of M experts, and the prior variance v₀, all at one point,

    1/v = Σ_m β_m/v_m + rest/v₀        μ = v · Σ_m β_m μ_m/v_m

==================================  ======================  ==========
rule                                β_m                     rest
==================================  ======================  ==========
product of experts                  1                       0
generalised product of experts      1/M                     0
Bayesian committee machine          1                       1 − M
robust Bayesian committee machine   ½ (log v₀ − log v_m)    1 − Σ β_m
==================================  ======================  ==========

Noise is added once, to v. Formulas of Hinton (2002), Cao and Fleet (2014), Tresp (2000), Deisenroth and Ng (2015).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from spngp._support.types import Array

# From means and variances of the experts, shape (M, n), and the prior variance (n,) to one mean and one variance (n,).
Rule: TypeAlias = Callable[[Array, Array, Array], tuple[Array, Array]]


def _sharpness(variances: Array, prior: Array) -> Array:
    """v₀/v_m: how much sharper than the prior each expert is, 1 for one that knows nothing.

    The rules use this ratio, because

    - it has no units, and
    - Σ β_m (v₀/v_m − 1) is never negative, while rounding can make Σ β_m/v_m + rest/v₀ negative.

    It is at most 1/eps: an expert without noise has a variance of zero at its training rows.
    """
    least = np.finfo(np.float64).eps * prior
    return np.maximum(prior / np.maximum(variances, least), 1.0)


def _product(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    sharp = _sharpness(variances, prior)
    total = sharp.sum(axis=0)
    return (sharp * means).sum(axis=0) / total, prior / total


def _generalized_product(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    mean, variance = _product(means, variances, prior)
    return mean, variance * len(means)


def _bayesian_committee(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    sharp = _sharpness(variances, prior)
    total = 1.0 + (sharp - 1.0).sum(axis=0)
    return (sharp * means).sum(axis=0) / total, prior / total


def _robust_bayesian_committee(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    sharp = _sharpness(variances, prior)
    beta = 0.5 * np.log(sharp)
    total = 1.0 + (beta * (sharp - 1.0)).sum(axis=0)
    return (beta * sharp * means).sum(axis=0) / total, prior / total


RULES: dict[str, Rule] = {
    "PoE": _product,
    "gPoE": _generalized_product,
    "BCM": _bayesian_committee,
    "rBCM": _robust_bayesian_committee,
}
