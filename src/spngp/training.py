"""Hyper-parameters that maximise the log evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from spngp._linalg import NotPositiveDefiniteError
from spngp._typing import Array
from spngp.leaf import Evidence, ExactGP


def fit_gp(gp: ExactGP, X: Any, y: Any) -> ExactGP:
    """The prior of ``gp`` with free parameters moved to a local maximum of its log evidence on the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.leaf import ExactGP
    >>> from spngp.training import fit_gp
    >>> X = np.linspace(0, 10, 50)
    >>> fitted = fit_gp(ExactGP(SquaredExponential(), 0.1), X, np.sin(X))
    >>> fitted.condition(X, np.sin(X)).log_evidence > 100
    True
    """
    X, y = gp._checked(X, y, "X", "y")
    evidence = Evidence(gp.kernel, X, y)

    def objective(theta: Array) -> tuple[float, Array]:
        moved = gp.with_theta(theta)
        try:
            value, by_kernel, by_noise = evidence(moved.kernel._table.values, moved.noise_variance)
        except NotPositiveDefiniteError:
            return np.inf, np.zeros(theta.size)  # the line search turns back
        return -value, -np.append(by_kernel, by_noise)[np.append(gp.kernel._table.free, gp._noise.free)]

    if gp.theta.size == 0:
        return gp
    found = minimize(objective, gp.theta, jac=True, method="L-BFGS-B", bounds=gp.bounds)
    return gp.with_theta(found.x)
