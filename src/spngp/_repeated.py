"""Rows that are exactly equal, taken together without loss: a million of them are one row of a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spngp._typing import Array


@dataclass(frozen=True, eq=False)
class Repeats:
    """How often each distinct row occurs, and what its outputs say besides their mean.

    For c outputs at one row with latent value f and noise σ²,
    Π N(y_j; f, σ²) = N(ȳ; f, σ²/c) · c^(−½) · (2πσ²)^(−(c−1)/2) · exp(−S/2σ²), with S = Σ (y_j − ȳ)²:
    the mean with its smaller noise says all about f, and the rest is a constant of the evidence.

    Attributes
    ----------
    counts : ndarray of shape (m,)
    scatter : float
        The sum of S over all rows.
    """

    counts: Array
    scatter: float

    def log_density(self, noise_variance: float) -> float:
        """Log of the constant."""
        more = float(self.counts.sum()) - self.counts.size
        return -0.5 * (
            float(np.log(self.counts).sum())
            + more * math.log(2.0 * math.pi * noise_variance)
            + self.scatter / noise_variance
        )


def merge(X: Array, y: Array, counts: Array, scatter: float = 0.0) -> tuple[Array, Array, Repeats]:
    """Distinct rows in ascending order, the mean output of each, and what was left out."""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    place = place.reshape(-1)
    totals: Array = np.bincount(place, counts, distinct.shape[0]).astype(np.float64)
    means = np.bincount(place, counts * y, distinct.shape[0]) / totals
    left = y - means[place]
    return distinct, means, Repeats(totals, scatter + float((counts * left) @ left))
