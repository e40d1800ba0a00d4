"""The base of all nodes: what passes over a network need of each node, and what users can ask of a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from spngp._support.checks import as_outputs, as_rows, as_variances
from spngp._support.row_counts import as_weights
from spngp._support.types import Array, Indices, RandomState
from spngp.box import Box
from spngp.gp.row_weights import KnownVariances
from spngp.network import conditioning, flat, induced, prediction, sampling
from spngp.predictive import GaussianMixture


class Node(ABC):
    """A network: this node and everything below it. Prior and posterior networks are made of the same nodes.

    Attributes
    ----------
    children : tuple of Node
    outputs : tuple of int
        The outputs it models, in ascending order.
    log_evidence : float
        log p of all the data it was conditioned on; 0 for a prior. A :class:`Split` or :class:`Product` of posteriors
        has the sum of theirs; a :class:`Sum` built over posteriors starts from 0.
    """

    children: tuple[Node, ...]
    outputs: tuple[int, ...]
    log_evidence: float
    # smallest and largest cut along each axis anywhere below; a split above must leave these inside one of its parts
    cut_ranges: dict[int, tuple[float, float]]

    __slots__ = ("children", "cut_ranges", "log_evidence", "outputs")

    mixes: ClassVar[bool] = False  # whether exactly one of its children holds

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} nodes cannot be changed; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} nodes cannot be changed; build a new one")

    def __reduce__(self) -> Any:
        return flat.rebuild, (flat.flatten(self),)

    def rebuilt(self, children: Sequence[Node], **changes: Any) -> Node:
        """The same node with other children, and with other attributes if given; nothing is checked."""
        node = flat.restore(type(self), flat.attributes(self) | {"children": tuple(children)} | changes)
        node._set(cut_ranges=node._cut_ranges())
        return node

    def _cut_ranges(self) -> dict[int, tuple[float, float]]:
        return joined_ranges(self.children)

    # For passes over the network; kinds of nodes override them.

    def child_boxes(self, box: Box) -> tuple[Box, ...]:
        """The box of each child when this node stands in ``box``."""
        return (box,) * len(self.children)

    def divide_rows(self, rows: Indices, X: Array) -> Sequence[Indices]:
        """The rows in the box of each child, of the ``rows`` in this node's box."""
        return [rows] * len(self.children)

    def log_child_weights(self) -> Array:
        """Log probability of each child given this node."""
        return np.zeros(len(self.children))

    @abstractmethod
    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """This node's posterior, given its children's and by how much each child's log evidence rose."""

    # For users.

    @property
    def n_induced_trees(self) -> int:
        """How many trees the network mixes: one child chosen at every sum."""
        return induced.count(self)

    def induced_trees(self) -> Iterator[tuple[float, Node]]:
        """Every induced tree with its log weight, one at a time; only small networks have few enough to list.

        It descends by recursion, so it is for networks less deep than Python's recursion limit allows.
        """
        return induced.enumerate_trees(self)

    def condition(
        self,
        X: Any,
        Y: Any,
        *,
        sample_weight: Any = None,
        y_variance: Any = None,
        margin: Any = None,
        n_jobs: int | None = None,
    ) -> Node:
        """The exact posterior network given the rows of X (n, d) and their outputs Y, (n,) or (n, p).

        NaN in Y is a missing output and is marginalised. Conditioning a posterior again is an exact update.

        Parameters
        ----------
        X, Y : array-like
        sample_weight : array-like of shape (n,), optional
            A row of weight w counts as w equal rows, exactly; fractions are in between, smoothly, and 0 is no row.
        y_variance : array-like, optional
            Known variances of the outputs Y, which are added to the noise of their leaves: a number, one per row, or
            one per output, in the squared units of Y.
        margin : float or sequence of float, optional
            Leaves also see rows within this distance of their box when they predict (context rows), in the units of X;
            one distance for all inputs or one per input. Context rows do not enter the evidence, so the weights stay
            exact.
        n_jobs : int, optional
            Number of threads, which share the leaves; -1 for one thread per core. One by default.
        """
        X = as_rows(X)
        Y = as_outputs(Y, X.shape[0], "Y", missing=True)
        weights, variances = as_weights(sample_weight, X.shape[0]), as_variances(y_variance, Y)
        known = KnownVariances.of(weights.of(variances), weights.shares, Y.shape[1])
        X, Y = weights.of(X), weights.of(Y)
        context = None if margin is None else conditioning.within_margin(X, margin)
        posterior = conditioning.condition(self, X, Y, variances=known, n_jobs=n_jobs)
        if context is None:
            return posterior
        return conditioning.add_context(posterior, X, Y, context, least_weight=0.0, variances=known, n_jobs=n_jobs)

    def predict_dist(self, X: Any, latent: bool = False, *, n_jobs: int | None = None) -> GaussianMixture:
        """The predictive distribution at each row: a Gaussian mixture, exact.

        Of a new observation, or with ``latent`` of the function without noise. Its shape is (n,) for one output and
        (n, p) for several.
        """
        return prediction.predict_dist(self, X, latent, n_jobs)

    def covariance(self, X: Any, latent: bool = True) -> Array:
        """Covariance over the rows, (n, n), or over rows and outputs, (n, p, n, p).

        For a prior it is a weighted sum of block-diagonal matrices. For a posterior, the variance between the means of
        alternative experts is added.
        """
        return prediction.covariance(self, X, latent)

    def sample(self, X: Any, n_samples: int = 1, random_state: RandomState = None, latent: bool = False) -> Array:
        """Exact joint samples over the rows, shape (n, n_samples), or (n, p, n_samples) for several outputs.

        For each sample, an induced tree is drawn, and then values from the joint Gaussian of each of its leaves.
        """
        return sampling.sample(self, X, n_samples, random_state, latent)

    def responsibilities(self) -> list[prediction.PlacedLeaf]:
        """Every leaf with its box and the probability that it is in use; of a posterior, its responsibility."""
        return prediction.placed_leaves(self)

    def _summary(self, depth: int) -> str:
        """Text for ``repr``, which must stay short however large the network."""
        if depth == 0:
            return f"{type(self).__name__}(...)"
        shown = [child._summary(depth - 1) for child in self.children[:4]]
        shown += [f"... {len(self.children) - 4} more"] if len(self.children) > 4 else []
        return f"{type(self).__name__}({self._arguments()}[{', '.join(shown)}]{self._weights_text()})"

    def _arguments(self) -> str:
        return ""

    def _weights_text(self) -> str:
        return ""

    def __repr__(self) -> str:
        return self._summary(2)


def child_nodes(children: Any, owner: str) -> tuple[Node, ...]:
    """The children of a node of the kind ``owner``, checked."""
    if isinstance(children, Node):
        raise TypeError(f"children of {owner} must be a list of nodes, got one {type(children).__name__}")
    if not isinstance(children, Iterable):
        raise TypeError(f"children of {owner} must be a list of nodes, got {children!r}")
    nodes = tuple(children)
    for i, child in enumerate(nodes):
        if not isinstance(child, Node):
            raise TypeError(f"children of {owner} must be nodes, got {child!r} as child {i}")
    if not nodes:
        raise ValueError(f"{owner} needs at least one child, got none")
    return nodes


def joined_ranges(nodes: Sequence[Node]) -> dict[int, tuple[float, float]]:
    """Smallest and largest cut along each axis anywhere in these networks."""
    joined: dict[int, tuple[float, float]] = {}
    for node in nodes:
        for axis, (low, high) in node.cut_ranges.items():
            known = joined.get(axis, (low, high))
            joined[axis] = (min(low, known[0]), max(high, known[1]))
    return joined


def check_same_outputs(nodes: Sequence[Node], owner: str) -> None:
    """Raise an error unless all children model the same outputs."""
    for i, child in enumerate(nodes):
        if child.outputs != nodes[0].outputs:
            raise ValueError(
                f"children of a {owner} must model the same outputs: child 0 models {list(nodes[0].outputs)}, "
                f"child {i} models {list(child.outputs)}: {child!r}"
            )
