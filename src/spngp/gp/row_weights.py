"""Weights of a leaf's own rows: above one for equal rows that were merged (exactly), below one for those in doubt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array


@dataclass(frozen=True, eq=False)
class Repeats:
    """The weight of each distinct row, and what the outputs of merged rows contribute besides their mean.

    The noise of a row with weight w has variance σ²/w. For c outputs at one row with latent value f and weights w_j,
    Π N(y_j; f, σ²/w_j) = N(ȳ; f, σ²/W) · (Π w_j / W)^½ · (2πσ²)^(−(c−1)/2) · exp(−S/2σ²), with W = Σ w_j, the
    weighted mean ȳ and S = Σ w_j (y_j − ȳ)². Only the first factor depends on f, so one row with output ȳ and weight W
    stands for all c; the other factors are constants of the evidence.

    Attributes
    ----------
    counts : ndarray of shape (m,)
        The weight W of each distinct row: how often it occurs, where all its rows have weight one.
    scatter : float
        The sum of S over the distinct rows.
    n_rows : int
        Number of rows before merging.
    log_weights : float
        The sum of log w_j over the rows before merging.
    """

    counts: Array
    scatter: float
    n_rows: int
    log_weights: float

    @staticmethod
    def of(weights: Array) -> Repeats:
        """The weights of rows none of which are merged."""
        return Repeats(weights, 0.0, weights.size, float(np.log(weights).sum()))

    def followed_by(self, other: Repeats) -> Repeats:
        """These rows followed by those of ``other``."""
        return Repeats(
            np.concatenate([self.counts, other.counts]),
            self.scatter + other.scatter,
            self.n_rows + other.n_rows,
            self.log_weights + other.log_weights,
        )

    def log_density(self, noise_variance: float) -> float:
        """Log of the constants of the evidence."""
        merged = self.n_rows - self.counts.size
        if merged == 0:
            return 0.0
        return -0.5 * (
            float(np.log(self.counts).sum())
            - self.log_weights
            + merged * math.log(2.0 * math.pi * noise_variance)
            + self.scatter / noise_variance
        )


def merge(X: Array, y: Array, rows: Repeats) -> tuple[Array, Array, Repeats]:
    """Distinct rows in ascending order, the weighted mean output of each, and their weights."""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    place = place.reshape(-1)
    totals: Array = np.bincount(place, rows.counts, distinct.shape[0]).astype(np.float64)
    means = np.bincount(place, rows.counts * y, distinct.shape[0]) / totals
    left = y - means[place]
    scatter = rows.scatter + float((rows.counts * left) @ left)
    return distinct, means, Repeats(totals, scatter, rows.n_rows, rows.log_weights)


def joined(
    known: Array | None, own: Array | None, context: Array | None, n_own_before: int, n_rows: int, n_own: int
) -> Array | None:
    """Known variances of all rows of a GP, own rows first; None if none are known, zero where only some are.

    Parameters
    ----------
    known : ndarray or None
        Of the rows that it has seen before, ``n_own_before`` of them its own.
    own, context : ndarray or None
        Of further rows.
    n_own_before, n_rows, n_own : int
        Own rows before, all rows now, further own rows.
    """
    if known is None and own is None and context is None:
        return None
    n_own_now = n_own_before + n_own
    n_before = n_own_before if known is None else known.size
    variances = np.zeros(n_rows)
    if known is not None:
        variances[:n_own_before] = known[:n_own_before]
        variances[n_own_now : n_own_now + n_before - n_own_before] = known[n_own_before:]
    if own is not None:
        variances[n_own_before:n_own_now] = own
    if context is not None:
        variances[n_rows - context.size :] = context
    return variances
