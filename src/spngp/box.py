"""Axis-parallel boxes of input space."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spngp._support.types import Array


@dataclass(frozen=True)
class Box:
    """The rows x with low < x[axis] ≤ high for each (axis, low, high) listed; other axes are unbounded.

    Examples
    --------
    >>> from spngp.network import Box
    >>> left, right = Box().cut(0, [35.0])
    >>> right
    Box(x0 > 35)
    >>> right.contains([[35.0], [35.1]])
    array([False,  True])
    """

    sides: tuple[tuple[int, float, float], ...] = ()

    EVERYWHERE: ClassVar[Box]

    def side(self, axis: int) -> tuple[float, float]:
        """Lower and upper limit along an axis."""
        for bounded_axis, low, high in self.sides:
            if bounded_axis == axis:
                return low, high
        return -math.inf, math.inf

    def corners(self, d: int) -> tuple[Array, Array]:
        """Lower and upper limits along d axes; infinite where it is unbounded."""
        low, high = np.full(d, -math.inf), np.full(d, math.inf)
        for axis, start, stop in self.sides:
            low[axis], high[axis] = start, stop
        return low, high

    def cut(self, axis: int, at: Sequence[float]) -> tuple[Box, ...]:
        """The sub-boxes between cuts along one axis, from low to high."""
        low, high = self.side(axis)
        edges = [low, *at, high]
        others = [side for side in self.sides if side[0] != axis]
        return tuple(Box(tuple(sorted([*others, (axis, edges[i], edges[i + 1])]))) for i in range(len(edges) - 1))

    def intersection(self, other: Box) -> Box:
        """What lies in both boxes."""
        sides = {axis: (low, high) for axis, low, high in self.sides}
        for axis, low, high in other.sides:
            before = sides.get(axis, (-math.inf, math.inf))
            sides[axis] = (max(low, before[0]), min(high, before[1]))
        return Box(tuple(sorted((axis, low, high) for axis, (low, high) in sides.items())))

    def contains(self, X: Array) -> NDArray[np.bool_]:
        """Which rows lie inside."""
        X = np.asarray(X)
        inside = np.ones(X.shape[0], dtype=bool)
        for axis, low, high in self.sides:
            inside &= (X[:, axis] > low) & (X[:, axis] <= high)
        return inside

    def __repr__(self) -> str:
        sides = [side_text(f"x{axis}", low, high, at_most="<=") for axis, low, high in self.sides]
        return f"Box({', '.join(sides) or 'everywhere'})"


Box.EVERYWHERE = Box()


def _short(value: float) -> str:
    return f"{value:g}"


def side_text(name: str, low: float, high: float, number: Callable[[float], str] = _short, at_most: str = "≤") -> str:
    """A side of a box in words, with limits as ``number`` writes them; empty if both are infinite."""
    if not math.isfinite(low):
        return f"{name} {at_most} {number(high)}" if math.isfinite(high) else ""
    return f"{number(low)} < {name} {at_most} {number(high)}" if math.isfinite(high) else f"{name} > {number(low)}"


def sides_text(low: Array, high: Array, names: Sequence[str], number: Callable[[float], str] = _short) -> list[str]:
    """The sides of a box in words, one per name; open sides are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.box import sides_text
    >>> sides_text(np.array([-np.inf, 1.0]), np.array([2.5, 3.0]), ["time", "speed"])
    ['time ≤ 2.5', '1 < speed ≤ 3']
    """
    sides = (side_text(name, start, stop, number) for name, start, stop in zip(names, low, high, strict=True))
    return [side for side in sides if side]
