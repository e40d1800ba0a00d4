"""Induced trees: one child chosen at every sum. The network is the mixture of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spngp.network.placement import distinct_nodes

if TYPE_CHECKING:
    from spngp.network.nodes import Node


def count(root: Node) -> int:
    """Number of induced trees: children add up at sums and multiply elsewhere."""
    counts: dict[int, int] = {}
    for node in distinct_nodes(root):
        below = [counts[id(child)] for child in node.children]
        counts[id(node)] = sum(below) if node.mixes else math.prod(below)
    return counts[id(root)]


def enumerate_trees(root: Node) -> Iterator[tuple[float, Node]]:
    """Each induced tree as a network without sums, with its log weight. Recursive, so limited in depth."""
    if not root.children:
        yield 0.0, root
    elif root.mixes:
        for log_weight, child in zip(root.log_child_weights(), root.children, strict=True):
            for below, tree in enumerate_trees(child):
                yield float(log_weight) + below, tree
    else:
        for log_weight, trees in _combinations(root.children):
            yield log_weight, root.with_children(trees, np.zeros(len(trees)))


def _combinations(nodes: Sequence[Node]) -> Iterator[tuple[float, tuple[Node, ...]]]:
    """One tree of each node, in every combination; unlike ``itertools.product``, it holds one combination at a time."""
    remaining = [enumerate_trees(node) for node in nodes]
    chosen = [next(trees) for trees in remaining]
    while True:
        yield sum(log_weight for log_weight, _ in chosen), tuple(tree for _, tree in chosen)
        for i in reversed(range(len(nodes))):  # the last node's trees change first, as the last digit of a counter
            following = next(remaining[i], None)
            if following is not None:
                chosen[i] = following
                break
            remaining[i] = enumerate_trees(nodes[i])
            chosen[i] = next(remaining[i])
        else:
            return
