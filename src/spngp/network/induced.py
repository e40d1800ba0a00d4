"""Induced trees: one child chosen at every sum. The network is the mixture of all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spngp.network.placement import distinct_nodes

if TYPE_CHECKING:
    from spngp.network.nodes import Node


def count(root: Node) -> int:
    """Number of induced trees: children add up at sums and multiply elsewhere."""
    from spngp.network.nodes import Sum

    counts: dict[int, int] = {}
    for node in distinct_nodes(root):
        below = [counts[id(child)] for child in node.children]
        counts[id(node)] = sum(below) if isinstance(node, Sum) else math.prod(below)
    return counts[id(root)]


def enumerate_trees(root: Node) -> Iterator[tuple[float, Node]]:
    """Each induced tree as a network without sums, with its log weight."""
    from spngp.network.nodes import Sum

    if not root.children:
        yield 0.0, root
    elif isinstance(root, Sum):
        for log_weight, child in zip(root.log_weights, root.children, strict=True):
            for below, tree in enumerate_trees(child):
                yield float(log_weight) + below, tree
    else:
        for choice in itertools.product(*(enumerate_trees(child) for child in root.children)):
            log_weights, trees = zip(*choice, strict=True)
            yield sum(log_weights), root.with_children(trees, np.zeros(len(trees)))
