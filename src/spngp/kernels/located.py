"""Kernels that know where something is: steps and cuts. Finding them among the parts of a kernel, and moving them."""

from __future__ import annotations

from typing import TypeVar

from spngp._support.types import Array
from spngp.kernels.base import Combination, Kernel
from spngp.kernels.piecewise_constant import PiecewiseConstant
from spngp.kernels.step import Step

Located = TypeVar("Located", Step, PiecewiseConstant)


def of_kind(kernel: Kernel, kind: type[Located]) -> list[Located]:
    """The kernels of this kind among the parts of a kernel, and of the parts of these."""
    if isinstance(kernel, kind):
        return [kernel]
    return [found for part in kernel.parts for found in of_kind(part, kind)] if isinstance(kernel, Combination) else []


def shifted(kernel: Kernel, input_means: Array) -> Kernel:
    """The kernel of f(x − means), as far as it knows where it is: steps and cuts move, all others stay as they are."""
    if isinstance(kernel, Step):
        return kernel.moved(kernel.axis, kernel.at + float(input_means[kernel.axis]))
    if isinstance(kernel, PiecewiseConstant):
        return kernel.moved((cut + float(input_means[kernel.axis]) for cut in kernel.at), kernel.gaps)
    if isinstance(kernel, Combination):
        parts = [shifted(part, input_means) for part in kernel.parts]
        return kernel if all(a is b for a, b in zip(parts, kernel.parts, strict=True)) else type(kernel)(parts)
    return kernel
