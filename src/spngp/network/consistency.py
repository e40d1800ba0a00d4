"""How the attributes of nodes, boxes and networks must agree."""

from __future__ import annotations

import math

import numpy as np

from spngp._support.consistency import must, must_be_finite, must_be_positive, must_have_shape
from spngp.box import Box
from spngp.gp.consistency import check_inputs_of
from spngp.network.nodes import Leaf, Node, Product, Split, Sum
from spngp.network.placement import distinct_nodes
from spngp.network.units import Affine, Units
from spngp.noise import NoiseShape


def check_leaf(leaf: Leaf) -> None:
    """Raise an error unless the node is what its constructor makes of its arguments."""
    must(leaf.output >= 0, "output of Leaf must be >= 0", leaf.output)
    if leaf.units is not None:
        n_outputs = leaf.units.outputs.scale.size
        must(leaf.output < n_outputs, "a leaf must model an output of its units", leaf.output)
    _as_built(leaf, Leaf.of(leaf.gp, leaf.output, leaf.label, leaf.units, leaf.noise_shape))


def check_sum(node: Sum) -> None:
    """Raise an error unless the node is what its constructor makes; the evidence of a posterior may be any number."""
    must((node.log_weights <= 1e-6).all(), "log weights of Sum must be <= 0", "others")  # and none is NaN
    _as_built(node, Sum(node.children, np.exp(node.log_weights)))


def check_split(node: Split) -> None:
    """Raise an error unless the node is what its constructor makes of its arguments."""
    _as_built(node, Split(node.axis, node.at, node.children))


def check_product(node: Product) -> None:
    """Raise an error unless the node is what its constructor makes of its arguments."""
    _as_built(node, Product(node.children))


def _as_built(node: Node, built: Node) -> None:
    must(node.children == built.children, "a leaf must have no children", node.children)
    must(node.outputs == built.outputs, "a node must have the outputs of its children", node.outputs)
    must(node.cut_ranges == built.cut_ranges, "a node must know the cuts below it", node.cut_ranges)
    must(math.isfinite(node.log_evidence), "the log evidence of a node must be finite", node.log_evidence)


def check_box(box: Box) -> None:
    """Raise an error unless low <= high along every bounded axis."""
    for axis, low, high in box.sides:
        must(axis >= 0 and low <= high, "a box must have low <= high along an axis", (axis, low, high))


def check_noise_shape(shape: NoiseShape) -> None:
    """Raise an error unless weights and factors are those of a distribution."""
    weights, factors = np.array(shape.weights, dtype=float), np.array(shape.factors, dtype=float)
    must(
        weights.size and weights.size == factors.size, "a noise shape must have a weight for each factor", weights.size
    )
    must_be_finite([*weights, *factors], "weights and factors of noise")
    must_be_positive(factors, "factors of noise")
    must_be_positive(weights, "weights of noise", ">= 0")
    must(abs(weights.sum() - 1.0) < 1e-9, "weights of noise must sum to 1", weights.sum())


def check_network(root: Node, n_inputs: int, n_outputs: int) -> set[Box]:
    """Raise an error unless a network fits a model of these numbers of inputs and outputs; returns its boxes."""
    outputs = tuple(range(n_outputs))
    must(root.outputs == outputs, f"a network of {n_outputs} outputs must model them", root.outputs)
    must(max(root.cut_ranges, default=0) < n_inputs, f"cuts must be along {n_inputs} inputs", list(root.cut_ranges))
    nodes = distinct_nodes(root)
    check_inputs_of((node.gp for node in nodes if isinstance(node, Leaf)), n_inputs)
    boxes = {id(root): Box.EVERYWHERE}
    for node in reversed(nodes):
        for child, box in zip(node.children, node.child_boxes(boxes[id(node)]), strict=True):
            # true of every fitted network; in one built by hand a node may have too many boxes to list them all
            must(boxes.setdefault(id(child), box) == box, "a node must stand in one box", box)
    return set(boxes.values())


def check_affine(affine: Affine) -> None:
    """Raise an error unless means and scales are finite, one of each per column."""
    must(affine.mean.ndim == 1 and affine.mean.size, "there must be columns to scale", affine.mean.shape)
    must_have_shape(affine.scale, affine.mean.shape, "scale")
    must_be_finite([affine.mean, affine.scale], "mean and scale")
    must_be_positive(affine.scale, "scale")


def check_units(units: Units) -> None:
    """Raise an error unless variances in the units of the user can be told."""
    with np.errstate(over="ignore"):
        must_be_finite(np.square(units.outputs.scale), "squares of the outputs' scales")
