"""Levels of categories that came after everything was learnt: their codes are larger than any that kernels know of.

Which region holds them was not decided by their outputs, and its experts know nothing of them. So they raise no alarm
of drift; when enough rows have them, everything is learnt again, and the levels are ranked with the others.
"""

from __future__ import annotations

import numpy as np

from spngp._support.types import Array, Indices, Mask
from spngp.learning.parts import levels_of
from spngp.network import Leaf
from spngp.streaming.living import Living


def code_limits(living: Living) -> Array | None:
    """For each input the smallest code that kernels did not know of, ∞ for numbers; None if there are no categories."""
    node = living.base.prior
    while not isinstance(node, Leaf):
        node = node.children[0]
    levels = np.array(levels_of(node.gp), dtype=float)
    return np.where(levels > 0, levels, np.inf) if levels.size else None


def with_new_levels(living: Living, numbers: Indices) -> Mask | None:
    """Which of some rows have a level that came later; None if there are no categories."""
    limits = code_limits(living)
    if limits is None:
        return None
    return np.asarray((living.log.W.values[living.log.positions(numbers)] >= limits).any(axis=1))
