"""Kernels that a user gave, for inputs of which some are codes of levels."""

from __future__ import annotations

from spngp.kernels.base import Combination, Kernel
from spngp.kernels.dot_product import Constant
from spngp.kernels.random_slopes import RandomSlopes
from spngp.kernels.stationary import Matern, SquaredExponential


def with_levels(kernel: Kernel, levels: tuple[int, ...]) -> Kernel:
    """The same kernel for inputs with these numbers of levels, 0 for numbers; empty if all inputs are numbers."""
    if not levels or isinstance(kernel, Constant):
        return kernel
    if isinstance(kernel, Combination):
        return type(kernel)([with_levels(part, levels) for part in kernel.parts])
    if not isinstance(kernel, SquaredExponential | Matern | RandomSlopes):
        raise ValueError(
            "categories and missing values need kernels of SquaredExponential, Matern, RandomSlopes and Constant, "
            f"got {kernel!r}"
        )
    return kernel.with_levels(levels)
