"""Cuts that gain only together: noise that depends on two inputs, like that of the squares of a chessboard.

Where rows are quiet if both inputs are low or both are high, no cut along one of them gains anything, but a cut along
one and then along the other in both parts does. So squared residuals are summed over the cells of a coarse grid along
every pair of inputs, and from these sums follows what each first cut gains, with the best second one on either side.
"""

from __future__ import annotations

import numpy as np

from spngp._support.types import Array
from spngp.structure.regions import Cut

_FEW_BINS, _BINS, _MANY = 4, 8, 2000  # along each input; more of them for so many rows
_MOST_INPUTS = 32  # that are looked at, the first ones


def first_of_two(X: Array, sizes: Array, least_gain: float, fewest: int) -> list[Cut]:
    """The first cut of the best two along two of the first 32 inputs, if they gain enough; none otherwise.

    All parts have at least ``fewest`` rows. ``sizes``, (n, outputs), are squared residuals in units of their variance,
    NaN where an output is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.learning.paired_cuts import first_of_two
    >>> X = np.random.default_rng(0).uniform(0, 1, (600, 3))
    >>> quiet = (X[:, 0] < 0.5) == (X[:, 2] < 0.5)
    >>> [cut.axis for cut in first_of_two(X, np.where(quiet, 0.2, 1.8)[:, np.newaxis], 30.0, 20)]
    [0]
    """
    if X.shape[0] < 2 * fewest:
        return []
    n_bins = _BINS if X.shape[0] >= _MANY else _FEW_BINS
    edges, kept = [], []
    for axis in range(min(X.shape[1], _MOST_INPUTS)):
        distinct = np.unique(X[:, axis])
        if distinct.size > n_bins:
            inner = np.unique(np.quantile(X[:, axis], np.arange(1, n_bins) / n_bins, method="lower"))
            inner = inner[inner < distinct[-1]]
        else:
            inner = distinct[:-1]
        if inner.size:
            edges.append(inner)
            kept.append(axis)
    if len(kept) < 2:
        return []
    codes = np.array([np.searchsorted(inner, X[:, axis], side="left") for axis, inner in zip(kept, edges, strict=True)])
    first, second = np.nonzero(~np.eye(len(kept), dtype=bool))
    n_pairs = first.size
    cells = (np.arange(n_pairs)[:, np.newaxis] * n_bins + codes[first]) * n_bins + codes[second]

    def table(values: Array) -> Array:
        """Sums over the cells of each pair, from the lowest bins up to each: (pairs, bins + 1, bins + 1)."""
        totals = np.bincount(cells.ravel(), np.tile(values, n_pairs), n_pairs * n_bins**2)
        padded = np.zeros((n_pairs, n_bins + 1, n_bins + 1))
        padded[:, 1:, 1:] = totals.reshape(n_pairs, n_bins, n_bins).cumsum(axis=1).cumsum(axis=2)
        return padded

    rows = _sides(table(np.ones(X.shape[0])))
    gains = np.zeros((n_pairs, n_bins - 1, 2, n_bins))  # by the first cut, its sides, and the second cut or none
    for column in sizes.T:
        known = ~np.isnan(column)
        counts, sums = table(known.astype(float)), table(np.where(known, column, 0.0))
        gains += _second_cuts(counts, sums) - 0.5 * _whole(counts, sums)
    lower = rows[..., 1:-1]
    enough = (lower >= fewest) & (rows[..., -1:] - lower >= fewest)
    gains[..., 1:] = np.where(enough, gains[..., 1:], -np.inf)
    both = np.where((rows[..., -1] >= fewest).all(axis=2), gains.max(axis=3).sum(axis=2), -np.inf)
    pair, place = np.unravel_index(int(np.argmax(both)), both.shape)
    if not both[pair, place] >= least_gain:
        return []
    return [Cut(kept[first[pair]], (float(edges[first[pair]][place]),))]


def _sides(table: Array) -> Array:
    """Sums up to each bin of the second input, below and above each cut along the first: (pairs, cuts, 2, bins + 1)."""
    below = table[:, 1:-1]
    return np.stack([below, table[:, -1:] - below], axis=2)


def _second_cuts(counts: Array, sums: Array) -> Array:
    """Log likelihood of each side of a first cut, uncut and with each second cut: (pairs, cuts, 2, 1 + cuts)."""
    counts, sums = _sides(counts), _sides(sums)
    uncut = _log_likelihood(counts[..., -1:], sums[..., -1:])
    lower = _log_likelihood(counts[..., 1:-1], sums[..., 1:-1])
    upper = _log_likelihood(counts[..., -1:] - counts[..., 1:-1], sums[..., -1:] - sums[..., 1:-1])
    return np.concatenate([uncut, lower + upper], axis=3)


def _whole(counts: Array, sums: Array) -> Array:
    """Log likelihood of all rows with one size."""
    return _log_likelihood(counts[:, -1:, -1:], sums[:, -1:, -1:])[..., np.newaxis]


def _log_likelihood(counts: Array, sums: Array) -> Array:
    """−n/2 log ē, as for single cuts."""
    return np.asarray(-0.5 * counts * np.log((np.maximum(sums, 0.0) + 1e-3) / np.maximum(counts, 1.0)))
