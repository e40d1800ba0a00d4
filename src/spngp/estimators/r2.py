"""R² where some outputs are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from spngp._support.checks import as_floats
from spngp._support.types import Array


def mean_r2(mean: Array, Y: Array, sample_weight: Any = None) -> float:
    """The average over outputs of each one's R², on the rows where it was observed; both arrays are (n, p).

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.estimators.r2 import mean_r2
    >>> mean_r2(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [2.0], [np.nan]]))
    1.0
    """
    weights = np.ones(Y.shape[0]) if sample_weight is None else as_floats(sample_weight, "sample_weight")
    if weights.shape != (Y.shape[0],):
        raise ValueError(f"sample_weight must have one weight per row, ({Y.shape[0]},), got {weights.shape}")
    seen = ~np.isnan(Y)
    found = [
        r2_score(Y[rows, k], mean[rows, k], sample_weight=weights[rows]) for k, rows in enumerate(seen.T) if rows.any()
    ]
    if not found:
        raise ValueError("y must hold an observed value to score against, got NaN only")
    return float(np.mean(found))
