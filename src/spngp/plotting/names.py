"""What a figure calls the leaves of a network and the kernels of a model: in a few letters."""

from __future__ import annotations

from typing import Any

from spngp.kernels.base import KernelSum
from spngp.kernels.names import full_name, short_name
from spngp.network import Leaf


def leaf_name(leaf: Leaf) -> str:
    """The short name of a leaf's kernel, or the label it was given where that says something else.

    Examples
    --------
    >>> from spngp.kernels import Matern
    >>> from spngp.network import Leaf
    >>> from spngp.plotting.names import leaf_name
    >>> leaf_name(Leaf(Matern(1.5), label="Matern(1.5) #2")), leaf_name(Leaf(Matern(1.5), label="crash"))
    ('Mat 3/2 #2', 'crash')
    """
    name, mark, number = leaf.label.partition(" #")
    if name in ("", full_name(leaf.kernel)):
        return short_name(leaf.kernel) + mark + number
    parts = leaf.kernel.parts if isinstance(leaf.kernel, KernelSum) else ()
    if full_name(leaf.kernel).startswith(f"{name} + "):  # with further parts for what residuals showed
        return " + ".join(short_name(part) for part in parts[: name.count(" + ") + 1]) + mark + number
    start, bracket, remark = leaf.label.rpartition(" (")
    if start == full_name(leaf.kernel):  # a kernel of the defaults, with a remark such as "one length-scale"
        return short_name(leaf.kernel) + bracket + remark
    return leaf.label


def short_names(model: Any) -> dict[str, str]:
    """From each of a fitted model's ``kernel_names_`` to the short name, in the same order."""
    found: dict[str, str] = {}
    for item in model.network_.responsibilities():
        found.setdefault(item.leaf.label, leaf_name(item.leaf))
        if len(found) == len(model.kernel_names_):
            break
    return {label: found.get(label, label) for label in model.kernel_names_}
