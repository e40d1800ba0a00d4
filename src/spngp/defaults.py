"""Default kernels and where their training starts; ``benchmarks/defaults.md`` has the measurements behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

from spngp.kernels import Kernel, KernelProduct, KernelSum, Matern, Parameter, SquaredExponential, from_sklearn

NOISE_STD_FLOOR = 0.01  # of the output's standard deviation; without it, repeated rows drive the noise to zero
NOISE_START = 0.05
OVERLAP = 3.0
CHOSEN_OVERLAP = 1.0  # where the evidence chooses cuts of a small set: many share what is said near each of them
OVERLAP_FALLS_FROM = 50_000  # rows
LEAST_OVERLAP = 0.5
LENGTH_SCALE_BOUNDS = (1e-3, 1e3)
VARIANCE_BOUNDS = (1e-4, 1e3)


def _length_scale(d: int, factor: float) -> Parameter:
    # rows of d standardised inputs lie about √(2d) apart
    return Parameter([factor * math.sqrt(d)] * d, LENGTH_SCALE_BOUNDS)


def default_kernels(d: int) -> list[Kernel]:
    """The kernels that a model with ``kernels=None`` mixes, for d standardised inputs."""

    def variance(value: float) -> Parameter:
        return Parameter(value, VARIANCE_BOUNDS)

    return [
        SquaredExponential(_length_scale(d, 2.0), variance(1.0))
        + SquaredExponential(_length_scale(d, 0.7), variance(0.3)),
        Matern(1.5, _length_scale(d, 2.0), variance(1.0)) + Matern(1.5, _length_scale(d, 0.7), variance(0.3)),
    ]


def overlap(n_rows: int, own_rows: float, max_leaf_size: int = 500) -> float:
    """Context rows per own row, where none is asked for, for leaves of so many own rows on average.

    Up to 50,000 rows it is 3. What a leaf costs grows with the third power of the rows it sees, while every further
    context row says less: with more rows in all, the same time buys more by more leaves than by wider views. So the
    number of rows that a leaf sees falls, slowly, from 2.8 times ``max_leaf_size`` on, and small leaves look further
    than large ones.

    Examples
    --------
    >>> from spngp.defaults import overlap
    >>> [round(overlap(n, own), 2) for n, own in [(1_000, 250), (100_000, 391), (300_000, 293), (1_000_000, 488)]]
    [3.0, 2.29, 2.85, 1.0]
    """
    if n_rows <= OVERLAP_FALLS_FROM:
        return OVERLAP
    seen = 2.8 * max_leaf_size * (OVERLAP_FALLS_FROM / n_rows) ** 0.12
    return min(OVERLAP, max(LEAST_OVERLAP, seen / own_rows - 1.0))


def traditional_kernel(d: int) -> Kernel:
    """The kernel of a single GP with ``kernel=None``, for d standardised inputs."""
    return SquaredExponential(_length_scale(d, 1.0), Parameter(1.0, VARIANCE_BOUNDS))


def noise_parameter(noise_variance: float | Parameter | None, output_scale: float) -> Parameter:
    """The noise variance in standardised units: learnt above a floor, or as given."""
    if noise_variance is None:
        return Parameter(NOISE_START, (NOISE_STD_FLOOR**2, 4.0))
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


def as_kernels(kernels: Any, d: int) -> list[tuple[Kernel, Parameter | None]]:
    """The kernels a user gave, one or several, ours or scikit-learn's, each with the noise it brought along."""
    if kernels is None:
        return [(kernel, None) for kernel in default_kernels(d)]
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


def labels(kernels: Sequence[Kernel]) -> list[str]:
    """Short names of kernels, made different where they would be the same."""
    names = [_name(kernel) for kernel in kernels]
    return [name if names.count(name) == 1 else f"{name} #{names[: i + 1].count(name)}" for i, name in enumerate(names)]


def _name(kernel: Kernel) -> str:
    if isinstance(kernel, KernelSum):
        return " + ".join(_name(part) for part in kernel.parts)
    if isinstance(kernel, KernelProduct):
        return " * ".join(f"({_name(p)})" if isinstance(p, KernelSum) else _name(p) for p in kernel.parts)
    return f"Matern({kernel.nu:g})" if isinstance(kernel, Matern) else type(kernel).__name__
