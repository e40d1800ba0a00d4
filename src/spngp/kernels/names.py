"""What kernels are called: in full, as classes are, and in a few letters where room is scarce."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spngp.kernels.base import Kernel, KernelProduct, KernelSum
from spngp.kernels.dot_product import Polynomial
from spngp.kernels.periodic import Periodic
from spngp.kernels.random_slopes import RandomSlopes
from spngp.kernels.stationary import Matern, RationalQuadratic, SquaredExponential

_SHORT: dict[type[Kernel], str] = {
    SquaredExponential: "SE",
    RationalQuadratic: "RQ",
    Periodic: "Per",
    Polynomial: "Poly",
    RandomSlopes: "Slopes",
}


def full_name(kernel: Kernel) -> str:
    """A kernel's name as it is written in Python.

    Examples
    --------
    >>> from spngp.kernels import Linear, Matern, SquaredExponential
    >>> from spngp.kernels.names import full_name
    >>> full_name((SquaredExponential() + Matern(1.5)) * Linear())
    '(SquaredExponential + Matern(1.5)) * Linear'
    """
    return _name(kernel, " * ", lambda part: f"Matern({part.nu:g})" if isinstance(part, Matern) else _class_name(part))


def short_name(kernel: Kernel) -> str:
    """A kernel's name in a few letters.

    Examples
    --------
    >>> from spngp.kernels import Linear, Matern, SquaredExponential
    >>> from spngp.kernels.names import short_name
    >>> short_name((SquaredExponential() + Matern(1.5)) * Linear())
    '(SE + Mat 3/2) · Linear'
    """
    return _name(kernel, " · ", _short)


def labels(kernels: Sequence[Kernel], name_of: Callable[[Kernel], str] = full_name) -> list[str]:
    """Names of kernels, made different where they would be the same.

    Examples
    --------
    >>> from spngp.kernels import Linear
    >>> from spngp.kernels.names import labels
    >>> labels([Linear(), Linear(2.0)])
    ['Linear #1', 'Linear #2']
    """
    names = [name_of(kernel) for kernel in kernels]
    return [name if names.count(name) == 1 else f"{name} #{names[: i + 1].count(name)}" for i, name in enumerate(names)]


def _name(kernel: Kernel, times: str, name_of_part: Callable[[Kernel], str]) -> str:
    def named(part: Kernel) -> str:
        return _name(part, times, name_of_part)

    if isinstance(kernel, KernelSum):
        return " + ".join(named(part) for part in kernel.parts)
    if isinstance(kernel, KernelProduct):
        return times.join(f"({named(part)})" if isinstance(part, KernelSum) else named(part) for part in kernel.parts)
    return name_of_part(kernel)


def _class_name(kernel: Kernel) -> str:
    return type(kernel).__name__


def _short(kernel: Kernel) -> str:
    if isinstance(kernel, Matern):
        return f"Mat {round(2 * kernel.nu)}/2"
    return _SHORT.get(type(kernel), _class_name(kernel))
