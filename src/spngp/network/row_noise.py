"""The noise of single rows, for leaves that see rows of other regions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network.placement import Placed, distinct_nodes, log_path_weights, route

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf, Node

# Whose noise: an output, and the label of the experts that say it; "" for the average of all of them.
Kind: TypeAlias = tuple[int, str]


def noise_kinds(root: Node) -> list[Kind]:
    """The kinds of noise of a network, in order; they follow from its shape alone.

    Where a kernel does not fit, its experts take for noise what they miss. So for a row of another region a leaf asks
    the expert with its own label there, if there is always one at most: the children of every sum are leaves, each with
    another label. Where regions are cut in several ways it asks all experts of the row.
    """
    labels: dict[int, set[str]] = {k: set() for k in root.outputs}
    for node in distinct_nodes(root):
        if not node.children:
            leaf = cast("Leaf", node)
            labels[leaf.output].add(leaf.label)
    for node in distinct_nodes(root):
        alone = {cast("Leaf", child).label for child in node.children if not child.children}
        if node.mixes and len(alone) < len(node.children):
            labels.update({k: set() for k in node.outputs})
    return kinds_of([labels[k] for k in sorted(labels)])


def kinds_of(labels: Sequence[Collection[str]]) -> list[Kind]:
    """The kinds of noise where experts are told apart by these labels of each output, if there are several."""
    return [(k, label) for k, own in enumerate(labels) for label in (sorted(own) if len(own) > 1 else [""])]


def place_of(kinds: Sequence[Kind], output: int, label: str) -> int:
    """The place of the kind that leaves of an output with this label have."""
    return kinds.index((output, label) if (output, label) in kinds else (output, ""))


def noise_of_region(kinds: Sequence[Kind], experts: Iterable[tuple[int, str, float, float]]) -> Array:
    """The variance of each kind in a region, given output, label, probability and noise variance of its experts."""
    average, said = dict.fromkeys((k for k, _ in kinds), 0.0), {}
    for k, label, probability, variance in experts:
        average[k] += probability * variance
        said[k, label] = variance
    return np.array([said.get(kind, average[kind[0]]) if kind[1] else average[kind[0]] for kind in kinds])


def tells_apart(kinds: Iterable[Kind]) -> bool:
    """Whether experts are asked one by one: even those that are too improbable to predict say what they know."""
    return any(label for _, label in kinds)


def averages(n_outputs: int) -> tuple[Kind, ...]:
    """The kinds of noise where all experts of a row are asked."""
    return tuple((k, "") for k in range(n_outputs))


class RowNoise:
    """The variance of the noise of single rows, as the experts of their own regions know it.

    It is the average of what the leaves that a row reaches say, each by its probability, or what those of one kind say
    (:func:`noise_kinds`); an output in doubt has its own. A noise that leaves on all rows share is tied, not local: a
    leaf that has it takes it for every row.

    Parameters
    ----------
    local : mapping of Kind to ndarray
        The variance of the noise of every row that may be context.
    tied : collection of (int, float)
        Outputs and noise variances that leaves on all rows share.
    own_noise : ndarray of shape (n, p), optional
        For outputs in doubt, NaN for others.
    """

    def __init__(
        self, local: Mapping[Kind, Array], tied: Collection[tuple[int, float]], own_noise: Array | None
    ) -> None:
        self._local, self._tied, self._own_noise = dict(local), frozenset(tied), own_noise
        self._kinds = list(self._local)

    @staticmethod
    def of(placed: list[Placed], X: Array, own_noise: Array | None, kinds: Sequence[Kind]) -> RowNoise:
        """The noise of the rows X by a posterior network."""
        leaves = [(i, cast("Leaf", item.node)) for i, item in enumerate(placed) if not item.children]
        rows, weights = route(placed, X), np.exp(log_path_weights(placed))
        average = {output: np.zeros(X.shape[0]) for output, _ in kinds}
        tied: set[tuple[int, float]] = set()
        counts: dict[tuple[int, float], int] = {}
        for i, leaf in leaves:
            average[leaf.output][rows[i]] += weights[i] * leaf.noise_at(X[rows[i]])
            if leaf.gp.noise_profile is None:
                key = (leaf.output, leaf.noise_variance)
                counts[key] = counts.get(key, 0) + rows[i].size
        local = {kind: average[kind[0]].copy() for kind in kinds}  # of a kind that a row's region lacks, the average
        for i, leaf in leaves:
            kind = (leaf.output, leaf.label)
            if leaf.label and kind in local:
                local[kind][rows[i]] = leaf.noise_at(X[rows[i]])
        # as many rows as there are is possible for few values; those are looked at row by row
        candidates = {key for key, count in counts.items() if count >= X.shape[0]}
        for key in candidates:
            covered = np.zeros(X.shape[0], dtype=bool)
            for i, leaf in leaves:
                if (leaf.output, leaf.noise_variance) == key and leaf.gp.noise_profile is None:
                    covered[rows[i]] = True
            if covered.all():
                tied.add(key)
        return RowNoise(local, tied, own_noise)

    @property
    def tied(self) -> list[tuple[int, float]]:
        """Outputs and noise variances that leaves on all rows share."""
        return sorted(self._tied)

    @property
    def local(self) -> Array:
        """The variance of the noise of every row, as the experts of its region know it: a column for each kind."""
        return np.column_stack(list(self._local.values()))

    def seen_by(self, leaf: Leaf, rows: Indices) -> Array | None:
        """What a leaf takes for the variance of the noise of these rows; none if it is its own throughout."""
        tied = (leaf.output, leaf.noise_variance) in self._tied and leaf.gp.noise_profile is None
        if tied and self._own_noise is None:
            return None
        if tied:
            noise = np.full(rows.size, leaf.noise_variance)
        else:
            noise = self._local[self._kinds[place_of(self._kinds, leaf.output, leaf.label)]][rows]
        # NaN is not larger
        return noise if self._own_noise is None else np.fmax(noise, self._own_noise[rows, leaf.output])
