"""Sums of kernels that the compiled library can take as a whole: which formulas, and where their parameters stand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spngp._support.types import Array, Indices
from spngp.kernels.base import Kernel, KernelSum
from spngp.kernels.stationary import Stationary


class CompiledSum(NamedTuple):
    """The parts of a sum, or a single kernel as its only part, for d inputs.

    Attributes
    ----------
    numbers : ndarray of shape (parts,)
        The library's numbers of the formulas.
    slope_factors, units : ndarray of shape (parts, 1)
        Factors of the slopes that each formula gives, and of the features that it expects.
    variances : ndarray of shape (parts,)
        Where each part's variance stands among all parameters of the sum.
    length_scales : ndarray of shape (parts, d)
        Where the length-scale of each part and input stands.
    n_values : int
        How many parameters the sum has.
    levels : tuple of int
        For each part and input its number of levels, 0 for numbers; empty if no part has inputs of codes.
    """

    numbers: NDArray[np.int64]
    slope_factors: Array
    units: Array
    variances: Indices
    length_scales: Indices
    n_values: int
    levels: tuple[tuple[int, ...], ...]


def compiled_sum(kernel: Kernel, d: int) -> CompiledSum | None:
    """None if there is no library, or if it does not know one of the parts."""
    parts = kernel.parts if isinstance(kernel, KernelSum) else (kernel,)
    known = [part for part in parts if isinstance(part, Stationary)]
    formulas = [formula for part in known if (formula := part._compiled_formula(d)) is not None]
    if len(formulas) < len(parts):
        return None
    first, variances, length_scales = 0, [], []
    for part in known:
        places = first + np.arange(part.parameters.values.size)
        variances.append(int(places[part._places["variance"]]))
        length_scales.append(np.broadcast_to(places[part._places["length_scale"]], (d,)))
        first += places.size
    return CompiledSum(
        numbers=np.array([formula.number for formula in formulas], dtype=np.int64),
        slope_factors=np.array([[formula.slope_factor] for formula in formulas]),
        units=np.array([[part._scale(part.parameters.values)] for part in known]),
        variances=np.array(variances),
        length_scales=np.array(length_scales),
        n_values=first,
        levels=tuple(part.levels or (0,) * d for part in known) if any(part.levels for part in known) else (),
    )
