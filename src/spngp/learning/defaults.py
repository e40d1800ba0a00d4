"""Default kernels and where their training starts; ``benchmarks/defaults.md`` has the measurements behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

from spngp.kernels import Kernel, Linear, Matern, Parameter, RandomSlopes, SquaredExponential, from_sklearn

# In standard deviations of the output. Without a floor, repeated rows drive the noise to zero; many rows may know it to
# be smaller than few do: from 1,000 rows on the floor falls as n^−0.75, down to a sixth.
NOISE_STD_FLOOR = 0.003
_FLOOR_FALLS_FROM, _FLOOR_POWER, _LOWEST_FLOOR = 1000, 0.75, 1.0 / 6.0
NOISE_START = 0.05  # noise variance at the start of training, as a share of the output's variance
OVERLAP = 3.0  # context rows per own row, at least, up to OVERLAP_FALLS_FROM rows
ROWS_SEEN = 3.2  # own and context rows of a leaf, at least, in units of the largest leaf
MOST_OVERLAP = 2.0 * ROWS_SEEN - 1.0  # context rows per own row: those of a leaf that is half as large
CHOSEN_OVERLAP = (
    1.0  # context rows per own row where the evidence chooses cuts along one input: many share what is said
)
OVERLAP_FALLS_FROM = 50_000  # training rows
LEAST_OVERLAP = 0.5  # context rows per own row, at least, of more rows
LENGTH_SCALE_BOUNDS = (1e-3, 1e3)  # standard deviations of the input
# Where length-scales of codes begin, which are one apart or equal: levels differ in the slow part, and share the fast.
SLOW_OF_LEVELS, FAST_OF_LEVELS = 0.7, 3.0
VARIANCE_BOUNDS = (1e-4, 1e3)  # variances of the output


def _length_scale(d: int, factor: float, levels: tuple[int, ...] = (), of_levels: float = 1.0) -> Parameter:
    # two random rows of d standardised inputs are about √(2d) apart, so length-scales grow with √d
    scales = [factor * math.sqrt(d)] * d
    for j, count in enumerate(levels):
        if count:
            scales[j] = of_levels
    return Parameter(scales, LENGTH_SCALE_BOUNDS)


def default_kernels(
    d: int, levels: tuple[int, ...] = (), n_rows: int = 0, whole_size: float = math.inf
) -> list[Kernel]:
    """The kernels that a model with ``kernels=None`` mixes, for d standardised inputs.

    Two sums of a slow and a fast part, smooth and less smooth; where an input has more than two levels, a sum of random
    slopes and a fast smooth part; for sets that are cut in any case also a single rough kernel, which dense rows can
    tell from noise.

    Parameters
    ----------
    d : int
    levels : tuple of int
        For each input of codes the number of its levels, 0 for numbers; empty if all are numbers.
    n_rows : int
        Rows to learn from.
    whole_size : float
        Most rows that may be one region.
    """
    kernels = _default_kernels(d, levels)
    return list(kernels if n_rows > whole_size else kernels[:-1])


@lru_cache(maxsize=16)  # regions that are learnt again, one after the other, ask for the same
def _default_kernels(d: int, levels: tuple[int, ...]) -> tuple[Kernel, ...]:
    """The sums, and last the rough kernel."""

    def variance(value: float) -> Parameter:
        return Parameter(value, VARIANCE_BOUNDS)

    slow = _length_scale(d, 2.0, levels, SLOW_OF_LEVELS)
    fast = _length_scale(d, 0.7, levels, FAST_OF_LEVELS)
    fast_and_smooth = SquaredExponential(fast, variance(0.3), levels)
    by_level = [RandomSlopes(slow, variance(1.0), levels) + fast_and_smooth] if any(n > 2 for n in levels) else []
    return (
        SquaredExponential(slow, variance(1.0), levels) + fast_and_smooth,
        Matern(1.5, slow, variance(1.0), levels) + Matern(1.5, fast, variance(0.3), levels),
        *by_level,
        Matern(0.5, slow, variance(1.0), levels),
    )


def simple_kernels(d: int, levels: tuple[int, ...] = ()) -> list[tuple[str, Kernel]]:
    """Kernels with fewer parameters for sets of few rows, each with a label, for d standardised inputs.

    To be added to a constant.
    """

    def variance(value: float) -> Parameter:
        return Parameter(value, VARIANCE_BOUNDS)

    def length_scale(count: int) -> Parameter:
        return Parameter([math.sqrt(d)] * count if count > 1 else math.sqrt(d), LENGTH_SCALE_BOUNDS)

    kernels: list[tuple[str, Kernel]] = []
    if not levels:  # codes have no slope
        kernels.append(("Linear", Linear(Parameter(0.3 / d, VARIANCE_BOUNDS))))
    for count in sorted({1, d}):
        shared = " (one length-scale)" if count < d else ""
        kernels += [
            (f"SquaredExponential{shared}", SquaredExponential(length_scale(count), variance(1.0), levels)),
            (f"Matern(1.5){shared}", Matern(1.5, length_scale(count), variance(1.0), levels)),
        ]
    return kernels


def overlap(n_rows: int, own_rows: float, max_leaf_size: int = 500) -> float:
    """The default number of context rows per own row.

    A leaf sees at least

        3.2 · max_leaf_size · min(1, 50,000 / n_rows)^0.12

    rows in all, its own and context: cuts in half leave between half of ``max_leaf_size`` and all of it, and with a
    fixed ratio small leaves would see too few. Up to 50,000 training rows there are also at least 3 context rows per
    own row. The cost of a leaf grows with the third power of the rows it sees, and each further one adds less
    information than the one before; so beyond 50,000 rows the number falls, and 0.5 per own row is the least. The most
    is 5.4 per own row.

    Parameters
    ----------
    n_rows : int
        Training rows in all.
    own_rows : float
        Own rows of a leaf on average.
    max_leaf_size : int

    Examples
    --------
    >>> from spngp.learning.defaults import overlap
    >>> [round(overlap(n, own), 2) for n, own in [(8_000, 250), (16_000, 500), (100_000, 391), (1_000_000, 488)]]
    [5.4, 3.0, 2.77, 1.29]
    """
    seen = ROWS_SEEN * max_leaf_size * min(1.0, OVERLAP_FALLS_FROM / n_rows) ** 0.12
    least = OVERLAP if n_rows <= OVERLAP_FALLS_FROM else LEAST_OVERLAP
    return min(MOST_OVERLAP, max(least, seen / own_rows - 1.0))


def traditional_kernels(d: int, levels: tuple[int, ...] = (), n_rows: int = 0) -> list[Kernel]:
    """The kernel of a single GP with ``kernel=None``, for any number of rows; d and levels as in default kernels."""
    return [SquaredExponential(_length_scale(d, 1.0, levels), Parameter(1.0, VARIANCE_BOUNDS), levels)]


def noise_parameter(spread: float, n_rows: int) -> Parameter:
    """The noise variance to learn for an output whose standard deviation is ``spread``, with a lower bound.

    Examples
    --------
    >>> from spngp.learning.defaults import noise_parameter
    >>> [round(noise_parameter(1.0, n).bounds[0] ** 0.5, 4) for n in (100, 4000, 100_000)]
    [0.003, 0.0011, 0.0005]
    """
    variance = spread**2
    floor = NOISE_STD_FLOOR * min(1.0, max(_LOWEST_FLOOR, (_FLOOR_FALLS_FROM / max(1, n_rows)) ** _FLOOR_POWER))
    return Parameter(NOISE_START * variance, (floor**2 * variance, 4.0 * variance))


def given_noise(noise_variance: float | Parameter, output_scale: float) -> Parameter:
    """A noise variance that a user gave in the squared units of y, for outputs divided by ``output_scale``."""
    if isinstance(noise_variance, Parameter):
        if np.ndim(noise_variance.value):
            raise ValueError(f"noise_variance must be one number, got {noise_variance!r}")
        factor = output_scale**-2
        bounds = None
        if noise_variance.bounds is not None:
            low, high = (float(bound) for bound in np.ravel(noise_variance.bounds))
            bounds = (low * factor, high * factor)
        return Parameter(float(np.asarray(noise_variance.value)) * factor, bounds, noise_variance.fixed)
    return Parameter(float(noise_variance) * output_scale**-2, fixed=True)


def as_kernels(kernels: Any) -> list[tuple[Kernel, Parameter | None]]:
    """The kernels a user gave, one or several, ours or scikit-learn's, each with the noise of its ``WhiteKernel``."""
    given = list(kernels) if isinstance(kernels, Sequence) and not isinstance(kernels, str) else [kernels]
    if not given:
        raise ValueError("kernels must be None, a kernel or a list of kernels, got an empty list")
    result: list[tuple[Kernel, Parameter | None]] = []
    for kernel in given:
        if isinstance(kernel, SklearnKernel):
            translated = from_sklearn(kernel)
            result.append((translated.kernel, translated.noise_variance))
        elif isinstance(kernel, Kernel):
            result.append((kernel, None))
        else:
            raise TypeError(f"kernels must be spngp or scikit-learn kernels, got {kernel!r}")
    return result
