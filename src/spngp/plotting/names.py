"""Short names of kernels and leaves, for figures where room is scarce."""

from __future__ import annotations

from spngp.kernels import (
    Kernel,
    KernelProduct,
    KernelSum,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from spngp.network import Leaf

_SHORT = {SquaredExponential: "SE", RationalQuadratic: "RQ", Periodic: "Per", Polynomial: "Poly"}


def short_name(kernel: Kernel) -> str:
    """A kernel's name in a few letters.

    Examples
    --------
    >>> from spngp.kernels import Linear, Matern, SquaredExponential
    >>> from spngp.plotting.names import short_name
    >>> short_name((SquaredExponential() + Matern(1.5)) * Linear())
    '(SE + Mat 3/2) · Linear'
    """
    if isinstance(kernel, KernelSum):
        return " + ".join(short_name(part) for part in kernel.parts)
    if isinstance(kernel, KernelProduct):
        parts = (f"({short_name(p)})" if isinstance(p, KernelSum) else short_name(p) for p in kernel.parts)
        return " · ".join(parts)
    if isinstance(kernel, Matern):
        return f"Mat {round(2 * kernel.nu)}/2"
    return _SHORT.get(type(kernel), type(kernel).__name__)


def short_label(label: str) -> str:
    """The label that an estimator gave a kernel, in fewer letters.

    Examples
    --------
    >>> from spngp.plotting.names import short_label
    >>> short_label("SquaredExponential + Matern(1.5)")
    'SE + Mat 3/2'
    """
    for nu in (1, 3, 5):
        label = label.replace(f"Matern({nu / 2:g})", f"Mat {nu}/2")
    for kind, name in _SHORT.items():
        label = label.replace(kind.__name__, name)
    return label


def leaf_name(leaf: Leaf) -> str:
    """The label a leaf was given, or its kernel's name, in a few letters."""
    return short_label(leaf.label) or short_name(leaf.kernel)
