"""What each row contributes to a GP's mean: the mean is a weighted sum of outputs, and these are the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spngp._support.types import Array
from spngp.gp.exact import ExactGP


class Influence(NamedTuple):
    """The rows that a GP sees, own rows first, and their weights in its mean at one row x.

    Attributes
    ----------
    X, y : ndarray
        Rows and outputs, in the units of the GP. Equal rows that were merged are one row with their mean output.
    weights : ndarray
        C⁻¹k(X, x): the mean at x is ``weights @ y``.
    """

    X: Array
    y: Array
    weights: Array


def influence(gp: ExactGP, x: Array) -> Influence:
    """What the rows of ``gp`` contribute to its mean at ``x``, shape (1, d).

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.gp.exact import ExactGP
    >>> from spngp.gp.influence import influence
    >>> from spngp.kernels import SquaredExponential
    >>> gp = ExactGP(SquaredExponential(), noise_variance=0.01).condition([[0.0], [1.0]], [1.0, -1.0])
    >>> influence(gp, np.array([[0.0]])).weights.round(3)
    array([0.985, 0.009])
    """
    if not gp._y.size:
        return Influence(np.empty((0, x.shape[1])), np.empty(0), np.empty(0))
    weights = np.asfortranarray(gp.kernel.covariances(gp._X, x))
    L = gp._present_factor()
    L.solve(weights)
    L.solve_transposed(weights)
    return Influence(gp._X, gp._y, weights[:, 0])
