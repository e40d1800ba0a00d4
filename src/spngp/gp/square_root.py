"""A square root of a covariance matrix, for samples."""

from __future__ import annotations

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError, PackedGram, Square
from spngp._support.types import Array


def square_root(covariance: Array) -> Array:
    """A with A Aᵀ = covariance; by Cholesky, or by eigenvalues where rounding made it slightly indefinite."""
    root = Square.zeros(covariance.shape[0])
    try:
        root.factor(PackedGram.pack(covariance), 0.0)
    except NotPositiveDefiniteError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    return root.array
