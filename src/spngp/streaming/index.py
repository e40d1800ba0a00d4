"""A network as flat lists: from a row to the leaves it reaches, and from a leaf to the sums above it.

Networks are immutable trees, and a pass over one visits every node. A row changes a few leaves only, and what stands
above them. Here evidences are kept by the position of a node, and weights are computed from them when asked for: the
posterior weight of a child of a sum is its prior weight times its evidence, over the evidence of the sum.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.network import Leaf, Node, Split, Sum
from spngp.network.placement import place


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A node of a prior network in its place.

    Attributes
    ----------
    node : Node
        As it was built; what it says of its children holds only for their kinds and number.
    box : Box
    children, parents : tuple of int
        Positions.
    depth : int
        Length of the longest path from the root.
    log_weights : tuple of float
        Prior log weights of the children of a sum; empty for other nodes.
    """

    node: Node
    box: Box
    children: tuple[int, ...]
    parents: tuple[int, ...]
    depth: int
    log_weights: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Index:
    """A prior network as a list of entries.

    Attributes
    ----------
    entries : tuple of Entry
    root : int
        Position of the root.
    """

    entries: tuple[Entry, ...]
    root: int

    @staticmethod
    def of(prior: Node) -> Index:
        """Of a prior network."""
        entries = tuple(_entries(prior, Box.EVERYWHERE, (), 0, 0))
        return Index(entries, len(entries) - 1)

    def leaves(self) -> list[int]:
        """Positions of the leaves in use."""
        return [i for i in self.in_use() if not self.entries[i].children]

    def in_use(self, top: int | None = None) -> list[int]:
        """Positions of a node, the root by default, and of all below it."""
        found: dict[int, None] = {}
        stack = [self.root if top is None else top]
        while stack:
            i = stack.pop()
            if i not in found:
                found[i] = None
                stack.extend(reversed(self.entries[i].children))
        return list(found)

    def route(self, W: Array) -> dict[int, Indices]:
        """For each leaf that some rows reach, the positions of these rows."""
        if W.shape[0] == 1:
            return self._route_one(W[0])
        reached: dict[int, Indices] = {}
        stack: list[tuple[int, Indices]] = [(self.root, np.arange(W.shape[0]))]
        seen: set[int] = set()
        while stack:
            i, rows = stack.pop()
            if i in seen or not rows.size:
                continue
            seen.add(i)  # all paths to a place bring the same rows
            entry = self.entries[i]
            if not entry.children:
                reached[i] = rows
            else:
                stack.extend(zip(entry.children, entry.node.divide_rows(rows, W), strict=True))
        return reached

    def _route_one(self, w: Array) -> dict[int, Indices]:
        reached: dict[int, Indices] = {}
        stack, seen, only = [self.root], set(), np.zeros(1, dtype=np.intp)
        while stack:
            i = stack.pop()
            entry = self.entries[i]
            if not entry.children:
                reached[i] = only
            elif isinstance(entry.node, Split):
                stack.append(entry.children[bisect_left(entry.node.at, float(w[entry.node.axis]))])
            elif i not in seen:
                seen.add(i)
                stack.extend(entry.children)
        return reached

    def log_evidences(self, of_leaves: dict[int, float]) -> Array:
        """The log evidence of every node, given those of all leaves."""
        values = np.zeros(len(self.entries))
        for i, value in of_leaves.items():
            values[i] = value
        for i in sorted(self.in_use(), key=lambda i: -self.entries[i].depth):
            if self.entries[i].children:
                values[i] = self._log_evidence(i, values)
        return values

    def updated(self, values: Array, of_leaves: dict[int, float]) -> Array:
        """Log evidences after those of some leaves have changed: only what is above them is computed again."""
        values = values.copy()
        above: set[int] = set()
        stack: list[int] = []
        for i, value in of_leaves.items():
            values[i] = value
            stack.extend(self.entries[i].parents)
        while stack:
            i = stack.pop()
            if i not in above:
                above.add(i)
                stack.extend(self.entries[i].parents)
        for i in sorted(above, key=lambda i: -self.entries[i].depth):
            values[i] = self._log_evidence(i, values)
        return values

    def _log_evidence(self, i: int, values: Array) -> float:
        entry = self.entries[i]
        if not entry.log_weights:
            return math.fsum([values[c] for c in entry.children])
        top, _, total = _joint(entry, values)
        return top + total

    def log_path_weights(self, leaves: Iterable[int], values: Array) -> dict[int, float]:
        """Log posterior probability that an induced tree holds each of these leaves."""
        known: dict[int, float] = {self.root: 0.0}
        shares: dict[int, dict[int, float]] = {}  # of the children of a sum
        entries = self.entries

        def log_share(parent: int, child: int) -> float:
            if not entries[parent].log_weights:
                return 0.0
            if parent not in shares:
                shares[parent] = _log_shares(entries[parent], values)
            return shares[parent][child]

        def weight(i: int) -> float:
            parents = entries[i].parents
            while i not in known and len(parents) == 1 and not entries[parents[0]].log_weights:
                i = parents[0]  # only sums have shares
                parents = entries[i].parents
            if i not in known:
                paths = [weight(p) + log_share(p, i) for p in parents]
                top = max(paths)
                if top > -math.inf and len(paths) > 1:
                    top += math.log(sum(math.exp(path - top) for path in paths))
                known[i] = top
            return known[i]

        return {i: weight(i) for i in leaves}

    def tops(self, box: Box, leaves: Sequence[int]) -> list[int]:
        """The highest nodes that stand in a box and have no leaves but some of these, which all have this box."""
        inside, found = set(leaves), []
        for i in sorted(self._above(leaves), key=lambda i: -self.entries[i].depth):
            entry = self.entries[i]
            if entry.box == box and entry.children and all(child in inside for child in entry.children):
                inside.add(i)
        for i in sorted(inside):
            if not any(parent in inside for parent in self.entries[i].parents):
                found.append(i)
        return found

    def _above(self, nodes: Iterable[int]) -> set[int]:
        above: set[int] = set()
        stack = [parent for i in nodes for parent in self.entries[i].parents]
        while stack:
            i = stack.pop()
            if i not in above:
                above.add(i)
                stack.extend(self.entries[i].parents)
        return above

    def replaced(self, top: int, network: Node) -> Index:
        """With another network in the place of a node and all below it."""
        entries = list(self.entries)
        old = entries[top]
        entries += _entries(network, old.box, old.parents, old.depth, len(entries))
        new = len(entries) - 1
        for parent in dict.fromkeys(old.parents):
            known = entries[parent]
            entries[parent] = replace(known, children=tuple(new if c == top else c for c in known.children))
        return Index(tuple(entries), new if top == self.root else self.root)

    def with_leaves(self, leaves: Mapping[int, Leaf]) -> Index:
        """With other leaves in some places."""
        entries = list(self.entries)
        for i, leaf in leaves.items():
            entries[i] = replace(entries[i], node=leaf)
        return Index(tuple(entries), self.root)

    def network(self, leaves: dict[int, Leaf], values: Array) -> Node:
        """The posterior network with these leaves, as a tree of nodes."""
        made: dict[int, Node] = dict(leaves)
        for i in sorted(self.in_use(), key=lambda i: -self.entries[i].depth):
            entry = self.entries[i]
            if entry.children:
                below = [made[c] for c in entry.children]
                prior = Sum.of(below, np.array(entry.log_weights)) if entry.log_weights else entry.node
                made[i] = prior.with_children(below, values[list(entry.children)])
        return made[self.root]


def _joint(entry: Entry, values: Array) -> tuple[float, list[float], float]:
    """The largest log evidence of a sum's children; and less it, logs of weight times evidence: of each, of all.

    The largest is subtracted first: beside an evidence of -1e20 the weights would be lost to rounding.
    """
    given = [float(values[c]) for c in entry.children]
    top = max(value for value, weight in zip(given, entry.log_weights, strict=True) if weight > -math.inf)
    if top == -math.inf:
        return top, given, 0.0
    joint = [weight + (value - top) for value, weight in zip(given, entry.log_weights, strict=True)]
    return top, joint, math.log(math.fsum([math.exp(value) for value in joint]))


def _log_shares(entry: Entry, values: Array) -> dict[int, float]:
    """The log posterior weight of each child of a sum."""
    _, joint, total = _joint(entry, values)
    shares: dict[int, float] = {}
    for child, value in zip(entry.children, joint, strict=True):
        share = value - total
        shares[child] = float(np.logaddexp(shares[child], share)) if child in shares else share
    return shares


def _entries(network: Node, box: Box, parents: tuple[int, ...], depth: int, offset: int) -> list[Entry]:
    """The nodes of a prior network that stands in a box, children before parents; positions begin at ``offset``."""
    placed = place(network, box)
    above: list[list[int]] = [[] for _ in placed]
    depths = [depth] * len(placed)
    for i in range(len(placed) - 1, -1, -1):
        for child in placed[i].children:
            above[child].append(offset + i)
            depths[child] = max(depths[child], depths[i] + 1)
    entries = []
    for i, item in enumerate(placed):
        log_weights = tuple(item.node.log_weights.tolist()) if isinstance(item.node, Sum) else ()
        children = tuple(offset + child for child in item.children)
        mine = parents if i == len(placed) - 1 else tuple(dict.fromkeys(above[i]))
        entries.append(Entry(item.node, item.box, children, mine, depths[i], log_weights))
    return entries
