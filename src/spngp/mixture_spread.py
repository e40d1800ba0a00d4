"""How far apart two draws of a Gaussian mixture are on average, E|Y − Y'|: the costly half of the CRPS.

It is a sum over all pairs of components of E|Z| for Z ~ N(μ_i − μ_j, σ_i² + σ_j²). With the standard deviation s of Z
and z = |μ_i − μ_j| / s,

    E|Z| = |μ_i − μ_j| + s g(z),   g(z) = 2 (φ(z) − z Φ(−z)).

For a few components this is summed as it stands. For many, g is read from a table of parabolas, which costs a tenth of
φ and Φ, and components of hardly any weight are left out. Memory is bounded: rows are taken in batches, and pairs one
distance in the list of components at a time.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from spngp._support.types import Array, Indices

# Most components for which E|Z| is worked out for every pair: 15 to 20 µs a row at 16 (benchmarks/crps.py).
FEW = 16

# What the components left out of a row may add up to, as a share of Σ π (|μ − mean| + σ). E|Y − Y'| is at least 0.4
# times that sum, so the error is below 3e-9 of it.
_NEGLIGIBLE = 1e-9

_CELLS = 256  # parabolas per unit of z: g is met to 7e-10
_FARTHEST = 8.0  # where g is below 2e-16

_PAIRS = 2**18  # pairs worked out at once for few components
_CACHED = 2**15  # numbers per array in the loop over pairs of many: the arrays stay in the processor's cache


def mean_absolute(mean: Array, variance: Array) -> Array:
    """E|Z| of a normal variable."""
    std = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))
    with np.errstate(over="ignore"):  # next to a component of no width everything else is infinitely far
        z = mean / std
        density = np.exp(-0.5 * z * z)
    return np.asarray(mean * (2.0 * ndtr(z) - 1.0) + 2.0 * std * density / np.sqrt(2.0 * np.pi))


def mean_difference(weights: Array, means: Array, variances: Array) -> Array:
    """E|Y − Y'| of each row's mixture; arrays of shape (rows, components), everything finite."""
    n, size = weights.shape
    result = np.empty(n)
    if size <= FEW:
        step = max(1, _PAIRS // size**2)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            result[rows] = _all_pairs(weights[rows], means[rows], variances[rows])
        return result
    order, counts = _by_importance(weights, means, variances)
    by_count = np.argsort(counts, kind="stable")  # neighbours keep about as many components
    stop = n
    while stop > 0:
        count = max(int(counts[by_count[stop - 1]]), 1)
        alike = by_count[max(0, stop - max(1, _CACHED // count)) : stop]
        kept = alike, order[alike, :count].T
        result[alike] = _pairs_by_table(weights[kept], means[kept], variances[kept])
        stop -= alike.size
    return result


def _all_pairs(weights: Array, means: Array, variances: Array) -> Array:
    differences = mean_absolute(
        means[:, :, np.newaxis] - means[:, np.newaxis, :], variances[:, :, np.newaxis] + variances[:, np.newaxis, :]
    )
    return np.asarray(np.einsum("ij,ik,ijk->i", weights, weights, differences))


def _by_importance(weights: Array, means: Array, variances: Array) -> tuple[Indices, Indices]:
    """Components of each row, those that matter most first, and how many of them cannot be left out.

    A component's part of the sum is 2 π_k E|Y_k − Y'|, at most 2 π_k (d_k + Σ π d) with d = |μ − mean| + σ.
    """
    centre = np.einsum("ij,ij->i", weights, means)[:, np.newaxis]
    distance = np.abs(means - centre) + np.sqrt(variances)
    scale = np.einsum("ij,ij->i", weights, distance)[:, np.newaxis]
    importance = 2.0 * weights * (distance + scale)
    order = np.argsort(-importance, axis=1)
    left_out = np.cumsum(np.take_along_axis(importance, order[:, ::-1], axis=1), axis=1)
    return order, weights.shape[1] - (left_out <= _NEGLIGIBLE * scale).sum(axis=1)


def _parabolas() -> tuple[Array, Array, Array]:
    """Coefficients of g in each cell, in the distance from its lower end in cells: Taylor's about the middle."""
    middle = (np.arange(int(_FARTHEST * _CELLS) + 1) + 0.5) / _CELLS
    density = np.exp(-0.5 * middle * middle) / np.sqrt(2.0 * np.pi)
    value = 2.0 * (density - middle * ndtr(-middle))
    slope, curve = -2.0 * ndtr(-middle) / _CELLS, density / _CELLS**2
    return value - 0.5 * slope + 0.25 * curve, slope - curve, curve


_CONSTANT, _SLOPE, _CURVE = _parabolas()


def _pairs_by_table(weights: Array, means: Array, variances: Array) -> Array:
    """E|Y − Y'| of each column; every step runs over all columns and all pairs of components k apart, cyclically."""
    size = weights.shape[0]
    variances = np.maximum(variances, np.finfo(np.float64).tiny)
    in_cells = means * _CELLS
    twice_weights, twice_cells, twice_variances = (
        np.concatenate([part, part]) for part in (weights, in_cells, variances)
    )
    # half the sum of s g(z), without the weight of the first of each pair; a component and itself: s g(0) = 2 σ / √π
    total = weights * np.sqrt(variances) / np.sqrt(np.pi)
    std, z, value, part = (np.empty(weights.shape) for _ in range(4))
    cell = np.empty(weights.shape, dtype=np.intp)
    for k in range(1, size // 2 + 1):
        others = slice(k, k + size)
        np.add(variances, twice_variances[others], out=std)
        np.sqrt(std, out=std)
        np.subtract(in_cells, twice_cells[others], out=z)
        np.abs(z, out=z)
        with np.errstate(over="ignore"):
            z /= std
        np.minimum(z, _FARTHEST * _CELLS, out=z)
        np.copyto(cell, z, casting="unsafe")  # rounds down
        z -= cell
        _CURVE.take(cell, out=value, mode="clip")  # "clip" only because it is faster than a check
        value *= z
        value += _SLOPE.take(cell, out=part, mode="clip")
        value *= z
        value += _CONSTANT.take(cell, out=part, mode="clip")
        value *= std
        value *= twice_weights[others]
        if 2 * k == size:  # each of these pairs comes twice
            value *= 0.5
        total += value
    return np.asarray(2.0 * np.einsum("ij,ij->j", weights, total) + _difference_of_means(weights, means))


def _difference_of_means(weights: Array, means: Array) -> Array:
    """Σ_ij π_i π_j |μ_i − μ_j| of each column: twice the integral of F (1 − F) for a staircase F."""
    order = np.argsort(means, axis=0)
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    steps = np.diff(np.take_along_axis(means, order, axis=0), axis=0)
    return np.asarray(2.0 * np.einsum("ij,ij->j", steps, (below * (below[-1] - below))[:-1]))
