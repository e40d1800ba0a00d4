"""From a region graph to a network (the paper's Algorithm 2, factored)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from spngp.gp.exact import ExactGP
from spngp.network import Leaf, Node, Product, Split, Sum
from spngp.structure.regions import Region, distinct_regions

# ``experts(region, output)``: the experts of a leaf region for one output, each a label and a prior.
Experts: TypeAlias = Callable[[Region, int], Sequence[tuple[str, ExactGP]]]


def build_network(
    root: Region,
    experts: Experts,
    n_outputs: int = 1,
    *,
    outputs_first: bool = True,
    n_sums: int = 1,
    concentration: float = 1.0,
    rng: np.random.Generator | None = None,
) -> Node:
    """A prior network over the regions.

    - A leaf region becomes a sum over its experts.
    - A partition becomes split nodes over the networks of its parts.
    - Any other region becomes ``n_sums`` sum nodes over these split nodes; the root becomes one.

    With uniform weights, a sum over kernels in each leaf region is the same distribution as one split node per
    combination of kernels, with far fewer nodes.

    Parameters
    ----------
    root : Region
    experts : callable
        ``experts(region, output)`` lists the alternative GPs of a leaf region, each with a label.
    n_outputs : int
    outputs_first : bool
        True: a product at the root over one network per output. False: a product over the outputs in every leaf region.
    n_sums : int
        Sum nodes per inner region (the paper's S). Above one, weights are drawn from a Dirichlet distribution and each
        partition gets a split node for every combination of its parts' sum nodes.
    concentration : float
        Parameter of that Dirichlet distribution.
    rng : Generator, optional
        Draws the weights; needed if ``n_sums`` > 1.
    """
    if outputs_first:
        networks = []
        for k in range(n_outputs):

            def one_output(region: Region, k: int = k) -> list[Node]:
                return [_mixture(region, experts, k)]

            networks.append(_build(root, one_output, n_sums, concentration, rng))
        return networks[0] if n_outputs == 1 else Product(networks)

    def all_outputs(region: Region) -> list[Node]:
        nodes = [_mixture(region, experts, k) for k in range(n_outputs)]
        return [nodes[0] if n_outputs == 1 else Product(nodes)]

    return _build(root, all_outputs, n_sums, concentration, rng)


def _mixture(region: Region, experts: Experts, output: int) -> Node:
    leaves: list[Node] = [Leaf.of(gp, output, label) for label, gp in experts(region, output)]
    return leaves[0] if len(leaves) == 1 else Sum(leaves)


def _build(
    root: Region,
    leaf_nodes: Callable[[Region], list[Node]],
    n_sums: int,
    concentration: float,
    rng: np.random.Generator | None,
) -> Node:
    nodes: dict[int, list[Node]] = {}
    for region in distinct_regions(root):
        alternatives: list[Node] = list(leaf_nodes(region)) if region.is_leaf else []
        for partition in region.partitions:
            combinations: list[list[Node]] = [[]]
            for part in partition.parts:
                combinations = [[*chosen, node] for chosen in combinations for node in nodes[id(part)]]
            alternatives += [Split(partition.axis, partition.at, chosen) for chosen in combinations]
        count = 1 if region is root or not region.partitions else n_sums
        nodes[id(region)] = [_sum(alternatives, count, concentration, rng) for _ in range(count)]
    return nodes[id(root)][0]


def _sum(alternatives: list[Node], n_sums: int, concentration: float, rng: np.random.Generator | None) -> Node:
    if len(alternatives) == 1:
        return alternatives[0]
    if n_sums == 1:
        return Sum(alternatives)
    if rng is None:
        raise ValueError("rng is needed to draw the weights of several sum nodes, got None")
    return Sum(alternatives, weights=rng.dirichlet(np.full(len(alternatives), concentration)))
