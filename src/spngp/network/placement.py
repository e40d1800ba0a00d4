"""Placement: each node of a network together with its box, which follows from the cuts above it.

A node is a specification, and may be a child of several parents. If all paths to it give the same box, it is one
thing, computed once; for each different box it is an independent copy. Every pass over a network (conditioning,
prediction, sampling) runs over a flat list of placed nodes, children before parents, so depth is not limited by
recursion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box

if TYPE_CHECKING:
    from spngp.network.nodes import Node


@dataclass(frozen=True)
class Placed:
    """A node, its box, and the positions of its children in the list."""

    node: Node
    box: Box
    children: tuple[int, ...]


def distinct_nodes(root: Node) -> list[Node]:
    """Every node object once, children before parents."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in node.children)
    return order


def place(root: Node, box: Box = Box.EVERYWHERE) -> list[Placed]:
    """Every node with its box once, children before parents, the root last; the root stands in ``box``."""
    placed: list[Placed] = []
    position: dict[tuple[int, Box], int] = {}
    stack: list[tuple[Node, Box, tuple[Box, ...] | None]] = [(root, box, None)]
    while stack:
        node, box, boxes = stack.pop()
        key = (id(node), box)
        if key in position:
            continue
        if boxes is None:
            boxes = node.child_boxes(box)
            stack.append((node, box, boxes))
            stack.extend((child, child_box, None) for child, child_box in zip(node.children, boxes, strict=True))
        else:
            children = tuple(
                position[(id(child), child_box)] for child, child_box in zip(node.children, boxes, strict=True)
            )
            position[key] = len(placed)
            placed.append(Placed(node, box, children))
    return placed


def route(placed: list[Placed], X: Array) -> list[Indices]:
    """Indices of the rows of X inside the box of each placed node."""
    rows: list[Indices | None] = [None] * len(placed)
    rows[-1] = np.arange(X.shape[0])
    for i in range(len(placed) - 1, -1, -1):
        inside = rows[i]
        assert inside is not None  # every node but the root has a parent later in the list
        parts: Iterable[Indices] = placed[i].node.divide_rows(inside, X)
        for child, part in zip(placed[i].children, parts, strict=True):
            if rows[child] is None:
                rows[child] = part
    return [inside for inside in rows if inside is not None]


def log_path_weights(placed: list[Placed]) -> Array:
    """Log probability that an induced tree, drawn by the sum nodes' weights, holds each placed node."""
    weights = np.full(len(placed), -np.inf)
    weights[-1] = 0.0
    for i in range(len(placed) - 1, -1, -1):
        log_shares = placed[i].node.log_child_weights()
        for child, log_share in zip(placed[i].children, log_shares, strict=True):
            weights[child] = np.logaddexp(weights[child], weights[i] + log_share)
    return weights
