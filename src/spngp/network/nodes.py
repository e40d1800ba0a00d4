"""The four kinds of node: small, immutable, checked when they are built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spngp._typing import Array, Indices, RandomState
from spngp._validation import as_count, as_floats, as_outputs, as_rows
from spngp.kernels import Kernel, Parameter
from spngp.leaf import ExactGP
from spngp.network import conditioning, induced, prediction, sampling
from spngp.network.box import Box
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
    # smallest and largest cut along each axis anywhere below: what a split above must leave room for
    cut_ranges: dict[int, tuple[float, float]]

    __slots__ = ("children", "cut_ranges", "log_evidence", "outputs")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} nodes cannot be changed; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} nodes cannot be changed; build a new one")

    def __reduce__(self) -> Any:
        slots = [slot for kind in type(self).__mro__ for slot in getattr(kind, "__slots__", ())]
        return _restore, (type(self), {slot: getattr(self, slot) for slot in slots})

    # What a pass over the network asks of each kind of node.

    def child_boxes(self, box: Box) -> tuple[Box, ...]:
        """The box of each child when this node stands in ``box``."""
        return (box,) * len(self.children)

    def divide_rows(self, rows: Indices, X: Array) -> Sequence[Indices]:
        """Which of the rows each child sees."""
        return [rows] * len(self.children)

    def log_child_weights(self) -> Array:
        """Log probability of each child given this node."""
        return np.zeros(len(self.children))

    @abstractmethod
    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """This node's posterior, given its children's and by how much each child's log evidence rose."""

    # What people ask of a network.

    @property
    def n_induced_trees(self) -> int:
        """How many trees the network mixes: one child chosen at every sum."""
        return induced.count(self)

    def induced_trees(self) -> Iterator[tuple[float, Node]]:
        """Every induced tree with its log weight, one at a time; only small networks have few enough to list.

        It descends by recursion, so it is for networks less deep than Python's recursion limit allows.
        """
        return induced.enumerate_trees(self)

    def condition(self, X: Any, Y: Any, *, overlap: Any = None, n_jobs: int | None = None) -> Node:
        """The exact posterior network given the rows of X (n, d) and their outputs Y, (n,) or (n, p).

        NaN in Y is a missing output and is marginalised. Conditioning a posterior again is an exact update.

        Parameters
        ----------
        X, Y : array-like
        overlap : float or sequence of float, optional
            Leaves also *see*, when they predict, rows within this distance of their box, in the units of X; one
            for all inputs or one per input. Such rows do not count in the evidence, so the weights stay exact; each
            keeps the noise of its own region.
        n_jobs : int, optional
            Threads over leaves; -1 for one a core. One by default.
        """
        X = as_rows(X)
        context = None if overlap is None else conditioning.within_distance(X, overlap)
        posterior = conditioning.condition(self, X, Y, n_jobs=n_jobs)
        if context is None:
            return posterior
        Y = as_outputs(Y, X.shape[0], "Y", missing=True)
        return conditioning.add_context(posterior, X, Y, context, least_weight=0.0, n_jobs=n_jobs)

    def predict_dist(self, X: Any, latent: bool = False, *, n_jobs: int | None = None) -> GaussianMixture:
        """The predictive distribution at each row: a Gaussian mixture, exact.

        Of a new observation, or with ``latent`` of the function without noise. Its shape is (n,) for one output and
        (n, p) for several.
        """
        return prediction.predict_dist(self, X, latent, n_jobs)

    def covariance(self, X: Any, latent: bool = True) -> Array:
        """Covariance over the rows, (n, n), or over rows and outputs, (n, p, n, p).

        For a prior it is a weighted sum of block-diagonal matrices; a posterior adds what the experts disagree on.
        """
        return prediction.covariance(self, X, latent)

    def sample(self, X: Any, n_samples: int = 1, random_state: RandomState = None, latent: bool = False) -> Array:
        """Exact joint samples over the rows, shape (n, n_samples), or (n, p, n_samples) for several outputs.

        Each draws an induced tree and then from the joint Gaussian of each of its leaves.
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


def _restore(kind: type[Node], slots: dict[str, Any]) -> Node:
    node = object.__new__(kind)
    if "log_weights" in slots:  # a copied array can be written to again
        slots["log_weights"].setflags(write=False)
    node._set(**slots)
    return node


def _children(children: Any, owner: str) -> tuple[Node, ...]:
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


def _join_ranges(nodes: Sequence[Node]) -> dict[int, tuple[float, float]]:
    joined: dict[int, tuple[float, float]] = {}
    for node in nodes:
        for axis, (low, high) in node.cut_ranges.items():
            known = joined.get(axis, (low, high))
            joined[axis] = (min(low, known[0]), max(high, known[1]))
    return joined


def _check_same_outputs(nodes: Sequence[Node], owner: str) -> None:
    for i, child in enumerate(nodes):
        if child.outputs != nodes[0].outputs:
            raise ValueError(
                f"children of a {owner} must model the same outputs: child 0 models {list(nodes[0].outputs)}, "
                f"child {i} models {list(child.outputs)}: {child!r}"
            )


class Leaf(Node):
    """One exact GP for one output, on whatever box its place in the network gives it.

    Parameters
    ----------
    kernel : Kernel
    noise_variance : float or Parameter
        Variance of the observation noise, in the squared units of y.
    output : int
        Which column of Y it models.
    label : str
        A name for people, such as the kernel's; it changes nothing.

    Attributes
    ----------
    gp : ExactGP
        The Gaussian process: the prior, or conditioned on the rows of its box.

    Examples
    --------
    >>> from spngp.kernels import SquaredExponential
    >>> from spngp.network import Leaf
    >>> posterior = Leaf(SquaredExponential(), noise_variance=0.01).condition([[0.0], [1.0]], [1.0, -1.0])
    >>> posterior.predict_dist([[0.0]]).mean.round(2)
    array([0.98])
    """

    gp: ExactGP
    output: int
    label: str

    __slots__ = ("gp", "label", "output")

    def __init__(
        self, kernel: Kernel, noise_variance: float | Parameter = 0.1, output: int = 0, label: str = ""
    ) -> None:
        self._set_gp(ExactGP(kernel, noise_variance), as_count(output, "output of Leaf", 0), label)

    def _set_gp(self, gp: ExactGP, output: int, label: str) -> None:
        self._set(gp=gp, output=output, label=label, children=(), outputs=(output,), cut_ranges={})
        self._set(log_evidence=gp.log_evidence)

    @staticmethod
    def of(gp: ExactGP, output: int = 0, label: str = "") -> Leaf:
        """A leaf around a GP that exists already."""
        leaf = object.__new__(Leaf)
        leaf._set_gp(gp, output, label)
        return leaf

    @property
    def kernel(self) -> Kernel:
        """Covariance function."""
        return self.gp.kernel

    @property
    def noise_variance(self) -> float:
        """Variance of the observation noise."""
        return self.gp.noise_variance

    def with_gp(self, gp: ExactGP) -> Leaf:
        """A leaf for the same output with another GP."""
        return Leaf.of(gp, self.output, self.label)

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """A leaf has no children: itself."""
        return self

    def _summary(self, depth: int) -> str:
        output = f", output={self.output}" if self.output else ""
        rows = f", {self.gp.n_own} rows" if self.gp.n_own else ""
        return f"Leaf({self.kernel!r}, noise_variance={self.noise_variance:g}{output}{rows})"


class Sum(Node):
    """A mixture: exactly one of its children holds, each with its weight.

    A new sum has seen no data, so its ``log_evidence`` is 0 even over children that have: it mixes what they say now,
    and what was known before enters through ``weights``. Conditioned on further rows, it counts those alone.

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

    def __init__(self, children: Sequence[Node], weights: Any = None) -> None:
        nodes = _children(children, "Sum")
        log_weights = _log_weights(np.full(len(nodes), 1.0 / len(nodes)) if weights is None else weights, len(nodes))
        _check_same_outputs(nodes, "Sum")
        self._set(children=nodes, outputs=nodes[0].outputs, cut_ranges=_join_ranges(nodes))
        self._set(log_evidence=0.0, log_weights=log_weights)

    @staticmethod
    def of(children: Sequence[Node], log_weights: Array) -> Sum:
        """A sum by the logs of its weights, which may be too small to be told from zero."""
        total = Sum(children)
        normalised = np.asarray(log_weights - np.logaddexp.reduce(log_weights), dtype=np.float64)
        normalised.setflags(write=False)
        total._set(log_weights=normalised)
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
        joint = self.log_weights + log_evidence_gains
        gain = float(np.logaddexp.reduce(joint))  # SciPy's logsumexp takes thirty times as long for a few
        log_weights = joint - gain
        log_weights.setflags(write=False)
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
        nodes = _children(children, "Split")
        if cuts.ndim != 1 or cuts.size == 0 or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
            raise ValueError(f"at of Split must be one or more finite cuts in strictly ascending order, got {at!r}")
        if len(nodes) != cuts.size + 1:
            raise ValueError(
                f"children of Split must cover its box: {cuts.size} cuts make {cuts.size + 1} parts, "
                f"got {len(nodes)} children"
            )
        _check_same_outputs(nodes, "Split")
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
        ranges = _join_ranges(nodes)
        own = (positions[0], positions[-1])
        known = ranges.get(axis, own)
        ranges[axis] = (min(own[0], known[0]), max(own[1], known[1]))
        self._set(axis=axis, at=positions, children=nodes, outputs=nodes[0].outputs, cut_ranges=ranges)
        self._set(log_evidence=sum(child.log_evidence for child in nodes))

    def child_boxes(self, box: Box) -> tuple[Box, ...]:
        """The box of each child when this node stands in ``box``."""
        return box.cut(self.axis, self.at)

    def divide_rows(self, rows: Indices, X: Array) -> Sequence[Indices]:
        """Which of the rows each child sees."""
        part = np.searchsorted(self.at, X[rows, self.axis], side="left")  # on the cut: the lower side
        order = np.argsort(part, kind="stable")
        return np.split(rows[order], np.searchsorted(part[order], np.arange(1, len(self.children))))

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """The same cuts over the children's posteriors."""
        return _with_independent_children(self, children)

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
        nodes = _children(children, "Product")
        owner: dict[int, int] = {}
        for i, child in enumerate(nodes):
            for output in child.outputs:
                if output in owner:
                    raise ValueError(
                        f"children of Product must model disjoint outputs: children {owner[output]} and {i} both "
                        f"model output {output}: {child!r}"
                    )
                owner[output] = i
        self._set(children=nodes, outputs=tuple(sorted(owner)), cut_ranges=_join_ranges(nodes))
        self._set(log_evidence=sum(child.log_evidence for child in nodes))

    def with_children(self, children: Sequence[Node], log_evidence_gains: Array) -> Node:
        """The same outputs over the children's posteriors."""
        return _with_independent_children(self, children)


def _with_independent_children(node: Node, children: Sequence[Node]) -> Node:
    """Evidence of independent parts adds up; the structure was checked when the prior was built."""
    _, (kind, slots) = node.__reduce__()
    slots.update(children=tuple(children), log_evidence=sum(child.log_evidence for child in children))
    return _restore(kind, slots)
