"""The four kinds of node: small, immutable, checked when they are built. Here those with children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from spngp._support.checks import as_count, as_floats
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.network.leaf import Leaf
from spngp.network.node import Node, check_same_outputs, child_nodes, joined_ranges

__all__ = ["Leaf", "Node", "Product", "Split", "Sum"]


class Sum(Node):
    """A mixture: exactly one of its children holds, each with its weight.

    A new sum has ``log_evidence`` 0, even if its children are posteriors: what was known of them before is in
    ``weights``. Conditioning it on further rows adds the evidence of these rows alone.

    Parameters
    ----------
    children : sequence of Node
        Alternatives for the same outputs on the same box.
    weights : sequence of float, optional
        Probabilities, summing to one. Uniform by default.

    Examples
    --------
    >>> from spngp.kernels import Linear, SquaredExponential
    >>> from spngp.network import Leaf, Sum
    >>> prior = Sum([Leaf(Linear()), Leaf(SquaredExponential())])
    >>> posterior = prior.condition([[-1.0], [1.0], [2.0]], [-0.9, 0.7, 1.1])
    >>> posterior.weights.round(2)
    array([0.83, 0.17])
    """

    log_weights: Array

    __slots__ = ("log_weights",)

    mixes: ClassVar[bool] = True

    def __init__(self, children: Sequence[Node], weights: Any = None) -> None:
        nodes = child_nodes(children, "Sum")
        log_weights = _log_weights(np.full(len(nodes), 1.0 / len(nodes)) if weights is None else weights, len(nodes))
        check_same_outputs(nodes, "Sum")
        self._set(children=nodes, outputs=nodes[0].outputs, cut_ranges=joined_ranges(nodes))
        self._set(log_evidence=0.0, log_weights=log_weights)

    @staticmethod
    def of(children: Sequence[Node], log_weights: Array) -> Sum:
        """A sum by the logs of its weights, which may be too small to be told from zero."""
        total = Sum(children)
        total._set(log_weights=_updated(log_weights, np.zeros(len(children)))[0])
        return total

    def narrowed(self, children: Sequence[Node], log_weights: Array) -> Sum:
        """The same evidence over other children: some of its own, as they are given one of them holds."""
        narrowed = Sum.of(children, log_weights)
        narrowed._set(log_evidence=self.log_evidence)
        return narrowed

    @property
    def weights(self) -> Array:
        """Probability of each child."""
        return np.exp(self.log_weights)

    def log_child_weights(self) -> Array:
        """Log probability of each child given this node."""
        return self.log_weights

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """Bayes' rule: w'_c ∝ w_c · p(new data | child c)."""
        log_weights, gain = _updated(self.log_weights, log_evidence_gains)
        posterior = object.__new__(Sum)
        posterior._set(
            children=tuple(children),
            outputs=self.outputs,
            cut_ranges=self.cut_ranges,
            log_evidence=self.log_evidence + gain,
            log_weights=log_weights,
        )
        return posterior

    def _weights_text(self) -> str:
        shown = ", ".join(f"{weight:.4g}" for weight in self.weights[:4])
        return f", weights=[{shown}{', ...' if len(self.children) > 4 else ''}]"


def _updated(log_weights: Array, gains: Array) -> tuple[Array, float]:
    """Logs of weights times exp(gains) that sum to one, and the log of what they summed to before.

    The largest gain is subtracted first: beside an evidence of -1e20 the weights would be lost to rounding.
    """
    top = float(np.max(gains, where=log_weights > -np.inf, initial=-np.inf))
    joint = log_weights + (gains - top)
    total = np.logaddexp.reduce(joint)  # 30 times as fast as SciPy's logsumexp for a few children
    updated = np.asarray(joint - total, dtype=np.float64)
    updated.setflags(write=False)
    return updated, float(top + total)


def _log_weights(weights: Any, n_children: int) -> Array:
    values = as_floats(weights, "weights of Sum")
    if values.shape != (n_children,):
        raise ValueError(f"weights of Sum must have one value per child ({n_children}), got shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"weights of Sum must be finite and >= 0, got {values.tolist()}")
    if abs(values.sum() - 1.0) > 1e-8:
        raise ValueError(f"weights of Sum must sum to 1, got {values.tolist()} with sum {values.sum():.10g}")
    with np.errstate(divide="ignore"):  # a weight of zero is allowed: log 0 = −inf
        log_weights = np.asarray(np.log(values / values.sum()))
    log_weights.setflags(write=False)
    return log_weights


class Split(Node):
    """Cuts its box along one axis; the parts are modelled independently.

    Parameters
    ----------
    axis : int
        Column of X.
    at : float or sequence of float
        Ascending cut positions. A row exactly on a cut belongs to the lower side.
    children : sequence of Node
        One per part, from low to high: one more than there are cuts.

    Examples
    --------
    >>> from spngp.kernels import Linear, SquaredExponential
    >>> from spngp.network import Leaf, Split
    >>> Split(axis=0, at=[35.0], children=[Leaf(SquaredExponential()), Leaf(Linear())]).n_induced_trees
    1
    """

    axis: int
    at: tuple[float, ...]

    __slots__ = ("at", "axis")

    def __init__(self, axis: int, at: Any, children: Sequence[Node]) -> None:
        axis = as_count(axis, "axis of Split", 0)
        cuts = np.atleast_1d(as_floats(at, "at of Split"))
        nodes = child_nodes(children, "Split")
        if cuts.ndim != 1 or cuts.size == 0 or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
            raise ValueError(f"at of Split must be one or more finite cuts in strictly ascending order, got {at!r}")
        if len(nodes) != cuts.size + 1:
            raise ValueError(
                f"children of Split must cover its box: {cuts.size} cuts make {cuts.size + 1} parts, "
                f"got {len(nodes)} children"
            )
        check_same_outputs(nodes, "Split")
        positions = tuple(float(cut) for cut in cuts)
        edges = [-np.inf, *positions, np.inf]
        for i, child in enumerate(nodes):
            low, high = child.cut_ranges.get(axis, (np.inf, -np.inf))
            if low <= edges[i] or high >= edges[i + 1]:
                outside = low if low <= edges[i] else high
                raise ValueError(
                    f"child {i} of Split(axis={axis}, at={list(positions)}) cuts axis {axis} at {outside:g}, "
                    f"outside its part {edges[i]:g} < x{axis} <= {edges[i + 1]:g}: {child!r}"
                )
        self._set(axis=axis, at=positions, children=nodes, outputs=nodes[0].outputs)
        self._set(cut_ranges=self._cut_ranges(), log_evidence=sum(child.log_evidence for child in nodes))

    def _cut_ranges(self) -> dict[int, tuple[float, float]]:
        ranges = joined_ranges(self.children)
        known = ranges.get(self.axis, (np.inf, -np.inf))
        ranges[self.axis] = (min(self.at[0], known[0]), max(self.at[-1], known[1]))
        return ranges

    def child_boxes(self, box: Box) -> tuple[Box, ...]:
        """The box of each child when this node stands in ``box``."""
        return box.cut(self.axis, self.at)

    def divide_rows(self, rows: Indices, X: Array) -> Sequence[Indices]:
        """Which of the rows each child sees."""
        part = np.searchsorted(self.at, X[rows, self.axis], side="left")  # on the cut: the lower side
        order = np.argsort(part, kind="stable")
        return np.split(rows[order], np.searchsorted(part[order], np.arange(1, len(self.children))))

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """The same cuts over the children's posteriors, whose evidences add up."""
        return self.rebuilt(children, log_evidence=sum(child.log_evidence for child in children))

    def _arguments(self) -> str:
        shown = ", ".join(f"{cut:g}" for cut in self.at[:4]) + (", ..." if len(self.at) > 4 else "")
        return f"axis={self.axis}, at=[{shown}], "


class Product(Node):
    """Models groups of outputs independently of each other.

    Parameters
    ----------
    children : sequence of Node
        Networks over disjoint sets of outputs.

    Examples
    --------
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.network import Leaf, Product
    >>> Product([Leaf(SquaredExponential(), output=0), Leaf(SquaredExponential(), output=1)]).outputs
    (0, 1)
    """

    __slots__ = ()

    def __init__(self, children: Sequence[Node]) -> None:
        nodes = child_nodes(children, "Product")
        owner: dict[int, int] = {}
        for i, child in enumerate(nodes):
            for output in child.outputs:
                if output in owner:
                    raise ValueError(
                        f"children of Product must model disjoint outputs: children {owner[output]} and {i} both "
                        f"model output {output}: {child!r}"
                    )
                owner[output] = i
        self._set(children=nodes, outputs=tuple(sorted(owner)), cut_ranges=joined_ranges(nodes))
        self._set(log_evidence=sum(child.log_evidence for child in nodes))

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """The same outputs over the children's posteriors, whose evidences add up."""
        return self.rebuilt(children, log_evidence=sum(child.log_evidence for child in children))
