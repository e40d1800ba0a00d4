"""Sums of kernels that the compiled library can take as a whole: which formulas, and where their parameters stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spngp._linalg import compiled
from spngp._linalg.growing import AddressedKernel
from spngp._support.types import Array, Indices
from spngp.kernels import level_codes
from spngp.kernels.base import Kernel, KernelSum
from spngp.kernels.compiled import CompiledFormula
from spngp.kernels.distances import centre
from spngp.kernels.dot_product import Constant
from spngp.kernels.piecewise_constant import PiecewiseConstant
from spngp.kernels.stationary import SquaredExponential, Stationary


class CompiledSum(NamedTuple):
    """The parts of a sum, or a single kernel as its only part, for d inputs.

    A part that is constant between cuts becomes a squared exponential along one more input, which holds the numbers of
    its cells and is so far apart between them that nothing is left of the covariance.

    Attributes
    ----------
    numbers : ndarray of shape (parts,)
        The library's numbers of the formulas.
    slope_factors : ndarray of shape (parts, 1)
        Factors of the slopes that each formula gives.
    units : ndarray of shape (parts, inputs)
        Factors of the features that each formula expects; zero for inputs that are not its own.
    apart : ndarray of shape (parts, inputs)
        What is added to the scales of inputs, which are units over length-scales.
    variances : ndarray of shape (parts,)
        Where each part's variance stands among all parameters of the sum.
    length_scales : ndarray of shape (parts, inputs)
        Where the length-scale of each part and input stands.
    n_values : int
        How many parameters the sum has.
    levels : tuple of int
        For each part and input its number of levels, 0 for numbers; empty if no part has inputs of codes.
    cut : tuple of PiecewiseConstant
        The parts with one more input, in order.
    """

    numbers: NDArray[np.int64]
    slope_factors: Array
    units: Array
    apart: Array
    variances: Indices
    length_scales: Indices
    n_values: int
    levels: tuple[tuple[int, ...], ...]
    cut: tuple[PiecewiseConstant, ...]

    def fits(self, X: Array) -> bool:
        """Whether no row lies in a gap of a part that is constant between cuts."""
        return all(bool((cells == np.rint(cells)).all()) for cells in (part.cells(X) for part in self.cut))

    def inputs(self, X: Array) -> Array:
        """Rows as the library takes them: near zero, with the further inputs."""
        near = X - centre(X)
        return np.asfortranarray(np.column_stack([near, *(part.cells(X) for part in self.cut)]) if self.cut else near)


class _Part(NamedTuple):
    """A part of a sum as the library takes it.

    Attributes
    ----------
    kernel : Stationary, Constant or PiecewiseConstant
    formula : CompiledFormula
    unit : float
        Factor of its features.
    """

    kernel: Stationary | Constant | PiecewiseConstant
    formula: CompiledFormula
    unit: float

    @staticmethod
    def of(kernel: Kernel, d: int) -> _Part | None:
        """None if there is no library, or if it does not know the kernel."""
        if type(kernel) is Constant or type(kernel) is PiecewiseConstant:  # all inputs of d are the same to it
            formula = SquaredExponential()._compiled_formula(d)
            return None if formula is None else _Part(kernel, formula, 0.0)
        if not isinstance(kernel, Stationary) or (formula := kernel._compiled_formula(d)) is None:
            return None
        return _Part(kernel, formula, kernel._scale(kernel.parameters.values))

    @property
    def length_scale_places(self) -> Any:
        """Where length-scales stand among the kernel's parameters; where it has none, any number does."""
        return self.kernel._places["length_scale" if isinstance(self.kernel, Stationary) else "variance"]

    def levels(self, d: int) -> tuple[int, ...]:
        """For each input of codes its number of levels, 0 for numbers."""
        return (isinstance(self.kernel, Stationary) and self.kernel.levels) or (0,) * d


def _compiled_parts(kernel: Kernel, d: int) -> list[_Part] | None:
    """The parts of a sum; None if one of them is not compiled."""
    parts = kernel.parts if isinstance(kernel, KernelSum) else (kernel,)
    known = [known for part in parts if (known := _Part.of(part, d)) is not None]
    return known if len(known) == len(parts) else None


def compiled_sum(kernel: Kernel, d: int) -> CompiledSum | None:
    """None if there is no library, or if it does not know one of the parts."""
    known = _compiled_parts(kernel, d)
    if known is None:
        return None
    cut = tuple(part.kernel for part in known if isinstance(part.kernel, PiecewiseConstant))
    first, variances = 0, []
    if d + len(cut) > compiled.MOST_INPUTS:
        return None
    units, apart = np.zeros((2, len(known), d + len(cut)))
    length_scales = np.zeros(units.shape, dtype=np.intp)
    for i, part in enumerate(known):
        places = first + np.arange(part.kernel.parameters.values.size)
        variances.append(int(places[part.kernel._places["variance"]]))
        units[i, :d], length_scales[i, :d] = part.unit, places[part.length_scale_places]
        if isinstance(part.kernel, PiecewiseConstant):
            apart[i, d + cut.index(part.kernel)] = _FAR_APART
        first += places.size
    levels = tuple(part.levels(d) + (0,) * len(cut) for part in known)
    return CompiledSum(
        numbers=np.array([part.formula.number for part in known], dtype=np.int64),
        slope_factors=np.array([[part.formula.slope_factor] for part in known]),
        units=units,
        apart=apart,
        variances=np.array(variances),
        length_scales=length_scales,
        n_values=first,
        levels=levels if any(map(any, levels)) else (),
        cut=cut,
    )


_FEW_ROWS = 8
_FAR_APART = 100.0  # length-scales between neighbouring cells


class FewColumns:
    """The covariances of many rows with few, by a sum that the library can take as a whole, in one call.

    For single rows that come to a GP, or are predicted by it: :meth:`Kernel.covariances` prepares features of all rows
    for every part, which takes longer than the rest.

    Attributes
    ----------
    addressed : AddressedKernel
    variance : float
        Prior variance at every row.
    """

    def __init__(self, kernel: Kernel, parts: Sequence[_Part], d: int) -> None:
        self._kernel, self._d = kernel, d
        numbers = np.array([part.formula.number for part in parts], dtype=np.int64)
        scales, caps = np.empty((len(parts), d)), None
        for part, row in zip(parts, scales, strict=True):
            row[:] = part.unit / part.kernel.parameters.values[part.length_scale_places]
        levels = tuple(part.levels(d) for part in parts)
        if any(map(any, levels)):
            caps = level_codes.caps(levels, scales)
        variances = np.array([math.log(part.kernel.variance) for part in parts])
        self._arrays = (numbers, scales, variances, caps)  # they stay, so that their addresses do
        addresses = [0 if array is None else array.ctypes.data for array in self._arrays]
        self.addressed = AddressedKernel(numbers.size, *addresses)
        self.variance = sum(part.kernel.variance for part in parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return covariances_with_few, (self._kernel, self._d)

    def __call__(self, X1: Array, X2: Array) -> Array:
        """Covariances between the rows of two checked sets, shape (rows of X2, rows of X1), in the order of C."""
        n1, n2 = X1.shape[0], X2.shape[0]
        if compiled.library is None or not (self.takes(X1, X2) and n2 and n1):
            return np.ascontiguousarray(self._kernel.covariances(X1, X2).T)
        out = np.empty((n2, n1))
        n_parts, formulas, *parameters = self.addressed
        rows = (X1.ctypes.data, n1, X2.ctypes.data, n2, self._d)
        compiled.library.sum_of_parts(n_parts, formulas, *rows, *parameters, out.ctypes.data)
        return out

    def takes(self, X1: Array, X2: Array) -> bool:
        """Whether the library takes these rows as they are."""
        in_order = X1.flags.c_contiguous and X2.flags.c_contiguous
        fits = X1.shape[1] == X2.shape[1] == self._d and X2.shape[0] <= _FEW_ROWS
        return compiled.library is not None and in_order and fits


def covariances_with_few(kernel: Kernel, d: int) -> Callable[[Array, Array], Array]:
    """A function of two sets of rows of d inputs: ``kernel.covariances`` transposed, in the order of C.

    It is fast where the second set is small.
    """
    known = _compiled_parts(kernel, d)
    if known is None or any(isinstance(part.kernel, PiecewiseConstant) for part in known):
        return lambda X1, X2: np.ascontiguousarray(kernel.covariances(X1, X2).T)
    return FewColumns(kernel, known, d)
