"""From a network in the units of learning to the same network in the units of the user, without computing anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spngp.network.nodes import Leaf, Node, Split, Sum
from spngp.network.placement import distinct_nodes
from spngp.network.units import Units
from spngp.noise import NoiseShape


def in_units(root: Node, units: Units, noise_shape: Callable[[Leaf], NoiseShape]) -> Node:
    """The same network for rows, cuts, outputs and evidences in the units of the user, with a noise shape per leaf.

    Leaves keep their GPs. Every row stays on its side of every cut. The log evidence is the density of the outputs in
    the units of the user: lower by log(scale) for every observed output.
    """
    renewed: dict[int, Node] = {}
    shifts: dict[int, float] = {}  # of the log evidence
    for node in distinct_nodes(root):
        children = [renewed[id(child)] for child in node.children]
        if isinstance(node, Leaf):
            scale = float(units.outputs.scale[node.output])
            shifts[id(node)] = -node.gp.n_counted * float(np.log(scale))
            renewed[id(node)] = Leaf.of(node.gp, node.output, node.label, units, noise_shape(node))
            continue
        below = [shifts[id(child)] for child in node.children]
        # the children of a sum are alternatives for the same outputs; children of other nodes are independent
        shifts[id(node)] = below[0] if isinstance(node, Sum) else sum(below)
        at = {"at": _cuts(node, units)} if isinstance(node, Split) else {}
        renewed[id(node)] = node.rebuilt(children, log_evidence=node.log_evidence + shifts[id(node)], **at)
    return renewed[id(root)]


def _cuts(node: Split, units: Units) -> tuple[float, ...]:
    return tuple(units.inputs.invert_cut(node.axis, cut) for cut in node.at)
