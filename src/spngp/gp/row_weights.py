"""Weights of a leaf's own rows: above one for equal rows that were merged (exactly), below one for those in doubt.

A row may also count as a share of one, which a user said by a fractional weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array


@dataclass(frozen=True, eq=False)
class KnownVariances:
    """What is known of the noise of outputs, in any shape that outputs have: (n, p), or (n,) of one output.

    Attributes
    ----------
    variances : ndarray, optional
        Known variance of each output, added to the noise that is learnt.
    shares : ndarray, optional
        The share of a row that each counts as, in (0, 1]. The likelihood of a row with share u is the u-th power of
        that of a whole one, N(y; f, s)^u = N(y; f, s/u) · u^(−½) · (2πs)^((1−u)/2), so u₁ + u₂ = 1 make one row.
    """

    variances: Array | None = None
    shares: Array | None = None

    @staticmethod
    def of(variances: Array | None, shares: Array | None, n_outputs: int) -> KnownVariances | None:
        """Of variances (n, p) and of one share per row (n,); None if neither is given."""
        if variances is None and shares is None:
            return None
        return KnownVariances(
            variances, None if shares is None else np.repeat(shares[:, np.newaxis], n_outputs, axis=1)
        )

    def __getitem__(self, which: Any) -> KnownVariances:
        """Of some outputs, chosen as from an array."""
        return KnownVariances(*(None if of is None else of[which] for of in (self.variances, self.shares)))

    def check_noise(self, noise_variance: float) -> None:
        """Raise an error unless rows can be divided: without noise there is no likelihood to take to a power."""
        if self.shares is not None and not noise_variance > 0:
            raise ValueError("a row of fractional weight needs noise, got noise_variance=0; raise it, or round weights")

    def times(self, weights: Array | None) -> Array | None:
        """Weights of rows that count as shares; None if all are one."""
        return weights if self.shares is None else self.shares * (1.0 if weights is None else weights)

    def plain(self) -> KnownVariances | None:
        """The same, None if nothing is known: all variances zero, all shares whole rows."""
        variances = None if self.variances is None or not self.variances.any() else self.variances
        shares = None if self.shares is None or (self.shares == 1.0).all() else self.shares
        return None if variances is None and shares is None else KnownVariances(variances, shares)

    def per_share(self) -> Array | None:
        """The known variances of rows that stand for shares: v/u, as a noise of s/u is that of a share u."""
        return self.variances if self.variances is None or self.shares is None else self.variances / self.shares

    def divided_by(self, scale: float | Array) -> KnownVariances:
        """The same for outputs that are divided by ``scale``."""
        return KnownVariances(None if self.variances is None else self.variances / np.square(scale), self.shares)


@dataclass(frozen=True, eq=False)
class Repeats:
    """The weight of each distinct row, and what the outputs of merged rows contribute besides their mean.

    The noise of a row with weight w has variance σ²/w. For c outputs at one row with latent value f and weights w_j,
    Π N(y_j; f, σ²/w_j) = N(ȳ; f, σ²/W) · (Π w_j / W)^½ · (2πσ²)^(−(c−1)/2) · exp(−S/2σ²), with W = Σ w_j, the
    weighted mean ȳ and S = Σ w_j (y_j − ȳ)². Only the first factor depends on f, so one row with output ȳ and weight W
    stands for all c; the other factors are constants of the evidence. Where each row counts as a share u_j of one,
    W and S have u_j w_j for w_j, the product has w_j^(u_j), and c is Σ u_j.

    Attributes
    ----------
    counts : ndarray of shape (m,)
        The weight W of each distinct row: how often it occurs, where all its rows have weight one.
    scatter : float
        The sum of S over the distinct rows.
    n_rows : int
        Number of rows before merging.
    log_weights : float
        The sum of u_j log w_j over the rows before merging.
    shares : ndarray of shape (m,)
        How many rows each distinct row counts as, doubt aside: the sum of its u_j.
    """

    counts: Array
    scatter: float
    n_rows: int
    log_weights: float
    shares: Array

    @staticmethod
    def of(weights: Array, shares: Array | None = None) -> Repeats:
        """The weights of rows none of which are merged; each may count as a share of one."""
        if shares is None:
            return Repeats(weights, 0.0, weights.size, float(np.log(weights).sum()), np.ones(weights.size))
        return Repeats(weights * shares, 0.0, weights.size, float(shares @ np.log(weights)), shares)

    def followed_by(self, other: Repeats) -> Repeats:
        """These rows followed by those of ``other``."""
        return Repeats(
            np.concatenate([self.counts, other.counts]),
            self.scatter + other.scatter,
            self.n_rows + other.n_rows,
            self.log_weights + other.log_weights,
            np.concatenate([self.shares, other.shares]),
        )

    def log_density(self, noise_variance: float, noise: Array) -> float:
        """Log of the constants of the evidence; ``noise`` is that of each distinct row, known variances included.

        Rows whose variances are known are never merged, so theirs is s/u, and 2πs in the factor of their share u.
        """
        if (self.shares == 1.0).all():
            return 0.0
        return -0.5 * (
            float(np.log(self.counts).sum())
            - self.log_weights
            + float((self.shares - 1.0) @ np.log(2.0 * math.pi * self.counts * noise))
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
    shares: Array = np.bincount(place, rows.shares, distinct.shape[0]).astype(np.float64)
    return distinct, means, Repeats(totals, scatter, rows.n_rows, rows.log_weights, shares)


def check_weights(weights: Array | None, n_rows: int) -> None:
    """Raise an error unless there is one positive weight per row, or none are given."""
    if weights is not None and (weights.shape != (n_rows,) or not (weights > 0).all()):
        raise ValueError(f"weights must be {n_rows} positive numbers, one per row, got {weights!r}")


def weights_of_both(first: Array | None, n_first: int, second: Array | None, n_second: int) -> Array | None:
    """Weights of rows and of further ones; None if all are one."""
    if first is None and second is None:
        return None
    parts = [np.ones(n) if weights is None else weights for weights, n in ((first, n_first), (second, n_second))]
    return np.concatenate(parts)


def joined(
    before: Array | None,
    own_rows: KnownVariances,
    context_rows: KnownVariances,
    n_own_before: int,
    n_rows: int,
    n_own: int,
) -> Array | None:
    """Known variances of all rows of a GP, own rows first; None if none are known, zero where only some are.

    Parameters
    ----------
    before : ndarray or None
        Of the rows that it has seen before, ``n_own_before`` of them its own.
    own_rows, context_rows : KnownVariances
        Of further rows.
    n_own_before, n_rows, n_own : int
        Own rows before, all rows now, further own rows.
    """
    own, context = own_rows.per_share(), context_rows.per_share()
    if before is None and own is None and context is None:
        return None
    n_own_now = n_own_before + n_own
    n_before = n_own_before if before is None else before.size
    variances = np.zeros(n_rows)
    if before is not None:
        variances[:n_own_before] = before[:n_own_before]
        variances[n_own_now : n_own_now + n_before - n_own_before] = before[n_own_before:]
    if own is not None:
        variances[n_own_before:n_own_now] = own
    if context is not None:
        variances[n_rows - context.size :] = context
    return variances
