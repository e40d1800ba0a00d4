"""How the attributes of a kernel and of its parameters must agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._support.consistency import must, must_have_shape
from spngp.kernels.base import Kernel, KernelProduct, KernelSum
from spngp.kernels.parameter import Identity, Parameter, ParameterTable, declare


def check_parameter(parameter: Parameter) -> None:
    """Raise an error unless the constructor of a kernel or leaf would accept the parameter."""
    declare("a parameter", {"value": parameter}, may_be_zero=("value",))


def check_table(table: ParameterTable) -> None:
    """Raise an error unless values, bounds and free flags of parameters agree."""
    n = len(table.identities)
    for array, shape in ((table.values, (n,)), (table.free, (n,)), (table.log_bounds, (n, 2))):
        must_have_shape(array, shape, f"each part of a table of {n} parameters")
    free = table.free.tolist()  # tables are short: Python's lists are faster than NumPy
    for value, is_free, (low, high) in zip(table.values.tolist(), free, table.log_bounds.tolist(), strict=True):
        must(0.0 <= value < math.inf, "parameters must be finite and >= 0", value)
        must(value > 0.0 or not is_free, "free parameters must be > 0", value)
        must(-math.inf < low <= high < math.inf, "bounds must be finite and ascend", (low, high))
    must(table.n_free == sum(free), "n_free must be the number of free parameters", table.n_free)


def check_kernel(kernel: Kernel) -> None:
    """Raise an error unless a kernel has the parameters of its class."""
    name, table, places = type(kernel).__name__, kernel.parameters, kernel._places
    sizes = []
    for label, place in places.items():
        size = place.stop - place.start if isinstance(place, slice) else None
        must(size is None or 0 < size <= table.values.size, f"{label} of {name} must be in its table", place)
        sizes.append((label, size))
    identities, expected, may_be_zero = _kernel_layout(type(kernel), tuple(kernel._structure().items()), tuple(sizes))
    must(
        (table.identities, places) == (identities, expected),
        f"{name} must have the parameters {[each.name for each in identities]}",
        table.names,
    )
    must((may_be_zero | (table.values > 0)).all(), "parameters must be > 0", name)


@cache
def _kernel_layout(
    kind: Callable[..., Kernel], structure: tuple[tuple[str, Any], ...], sizes: tuple[tuple[str, int | None], ...]
) -> tuple[tuple[Identity, ...], dict[str, int | slice], NDArray[np.bool_]]:
    """Identities and places of a kernel's parameters, and which may be zero, as its constructor has them."""
    given = {name: 1.0 if size is None else [1.0] * size for name, size in sizes}
    kernel = kind(**dict(structure), **given)
    may_be_zero = np.zeros(kernel.parameters.values.size, dtype=bool)
    for name in given:
        try:
            kind(**dict(structure), **{**given, name: 0.0})
        except ValueError:
            continue
        may_be_zero[kernel._places[name]] = True
    return kernel.parameters.identities, kernel._places, may_be_zero


def check_combination(kernel: KernelSum | KernelProduct) -> None:
    """Raise an error unless a sum or product has the parameters of its parts."""
    must(kernel.parts, f"{type(kernel).__name__} needs at least one kernel", "none")
    joined = ParameterTable.join([part.parameters for part in kernel.parts])
    agrees = kernel._places == {} and kernel.parameters.key() == joined.key()
    must(agrees, f"{type(kernel).__name__} must have its parts' parameters", kernel.parameters.names)
