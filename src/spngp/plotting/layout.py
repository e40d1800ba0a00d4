"""Where to draw the nodes of a directed acyclic graph: layers, few crossings, parents above their children.

After Sugiyama: layers by the longest path from the root, order within a layer by the means of neighbours, positions by
least squares with room for every node (an isotonic regression).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from spngp._support.types import Array

_SWEEPS = 12


@dataclass(frozen=True)
class Layout:
    """Positions of the nodes, and for each edge (parent, place among its children) the points it runs through."""

    x: Array
    layer: list[int]
    routes: dict[tuple[int, int], list[tuple[float, float]]]  # (x, layer), parent first


def layered(children: Sequence[Sequence[int]], widths: Sequence[float], gap: float) -> Layout:
    """Lay out a graph whose node 0 is the root and whose parents are numbered before their children.

    Parameters
    ----------
    children : sequence of sequence of int
        The children of each node.
    widths : sequence of float
        The room each node needs.
    gap : float
        Free room between neighbours.

    Examples
    --------
    >>> from spngp.plotting.layout import layered
    >>> layout = layered([[1, 2], [], []], widths=[1.0, 1.0, 1.0], gap=0.5)
    >>> layout.x.tolist(), layout.layer
    ([0.0, -0.75, 0.75], [0, 1, 1])
    """
    layer = [0] * len(children)
    for node, below in enumerate(children):
        for child in below:
            layer[child] = max(layer[child], layer[node] + 1)
    # an edge over several layers gets a narrow stand-in in each layer between, so that it is routed like a node
    room, depth = list(widths), list(layer)
    chains: dict[tuple[int, int], list[int]] = {}
    links: list[tuple[int, int]] = []
    for node, below in enumerate(children):
        for place, child in enumerate(below):
            chain = [node]
            for level in range(layer[node] + 1, layer[child]):
                chain.append(len(room))
                room.append(0.1 * gap)
                depth.append(level)
            chain.append(child)
            chains[node, place] = chain
            links += list(itertools.pairwise(chain))
    above: list[list[int]] = [[] for _ in room]
    under: list[list[int]] = [[] for _ in room]
    for parent, child in links:
        under[parent].append(child)
        above[child].append(parent)
    layers = _ordered(depth, above, under)
    x = _positions(layers, np.array(room), gap, above, under)
    routes = {edge: [(float(x[node]), float(depth[node])) for node in chain] for edge, chain in chains.items()}
    return Layout(x[: len(children)], layer, routes)


def _ordered(depth: list[int], above: list[list[int]], under: list[list[int]]) -> list[list[int]]:
    """The nodes of each layer from left to right: depth first to begin with, then by the means of neighbours."""
    layers: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    seen, stack = set(), [0]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            layers[depth[node]].append(node)
            stack += reversed(under[node])
    best, fewest = [list(nodes) for nodes in layers], _crossings(layers, under)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        downwards = sweep % 2 == 0
        neighbours = above if downwards else under
        for level in range(1, len(layers)) if downwards else range(len(layers) - 2, -1, -1):
            place = {node: i for nodes in layers for i, node in enumerate(nodes)}
            means = {node: _mean_place(node, neighbours, under, place) for node in layers[level]}
            layers[level].sort(key=means.__getitem__)
        crossings = _crossings(layers, under)
        if crossings < fewest:
            best, fewest = [list(nodes) for nodes in layers], crossings
    return best


def _mean_place(node: int, neighbours: list[list[int]], under: list[list[int]], place: dict[int, int]) -> float:
    """Mean place of a node's neighbours; a parent's place has a fraction, so that siblings keep their order."""
    if not neighbours[node]:
        return place[node]
    ranks = [
        under[other].index(node) / len(under[other]) if node in under[other] else 0.0 for other in neighbours[node]
    ]
    return float(np.mean([place[other] + rank for other, rank in zip(neighbours[node], ranks, strict=True)]))


def _crossings(layers: list[list[int]], under: list[list[int]]) -> int:
    """How many pairs of edges cross; edges leave a node in the order of its children."""
    total = 0
    for upper, lower in itertools.pairwise(layers):
        place = {node: i for i, node in enumerate(lower)}
        ends = np.array([place[child] for node in upper for child in under[node]])
        total += int(sum((ends[:i] > end).sum() for i, end in enumerate(ends)))
    return total


def _positions(
    layers: list[list[int]], room: Array, gap: float, above: list[list[int]], under: list[list[int]]
) -> Array:
    """Positions that keep the order and the room of every layer, near to the means of neighbours."""
    x = np.zeros(room.size)
    starts = []  # where each node of a layer stands if they are packed tight
    for nodes in layers:
        steps = 0.5 * (room[nodes][:-1] + room[nodes][1:]) + gap
        starts.append(np.concatenate([[0.0], np.cumsum(steps)]))
        x[nodes] = starts[-1] - 0.5 * starts[-1][-1]

    def settle(level: int, neighbours: list[list[int]]) -> None:
        nodes = layers[level]
        wanted = np.array([np.mean(x[neighbours[node]]) if neighbours[node] else x[node] for node in nodes])
        x[nodes] = isotonic_regression(wanted - starts[level]).x + starts[level]

    both = [up + down for up, down in zip(above, under, strict=True)]
    for _ in range(_SWEEPS):
        for level in range(1, len(layers)):
            settle(level, above)
        for level in range(len(layers) - 2, -1, -1):
            settle(level, under)
    for _ in range(_SWEEPS):
        for level in range(len(layers) - 1, -1, -1):
            settle(level, both)
    for level in range(len(layers) - 2, -1, -1):
        settle(level, under)
    return x - x[0]
