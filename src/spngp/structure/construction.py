"""From a region graph to a network (the paper's Algorithm 2, factored)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from spngp.gp.exact import ExactGP
from spngp.network import Leaf, Node, Product, Split, Sum
from spngp.structure.regions import Region, distinct_regions

# ``experts(region, output)``: the experts of a leaf region for one output, each a label and a prior.
Experts: TypeAlias = Callable[[Region, int], Sequence[tuple[str, ExactGP]]]
# The log of a factor of the prior weight of each of them.
LogFactors: TypeAlias = Callable[[Region, int], Sequence[float]]


def build_network(
    root: Region,
    experts: Experts,
    n_outputs: int = 1,
    *,
    outputs_first: bool = True,
    n_sums: int = 1,
    concentration: float = 1.0,
    rng: np.random.Generator | None = None,
    log_factors: LogFactors | None = None,
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
    log_factors : callable, optional
        ``log_factors(region, output)`` lists, for the same GPs, the log of a factor that each brings along. Every tree
        has the prior weight that the sums give it times the factors of all its leaves, brought to a sum of one over all
        trees: weights of sums are the share of each child in the total below it.
    """
    if outputs_first:
        networks = []
        for k in range(n_outputs):

            def one_output(region: Region, k: int = k) -> _Weighted:
                return _mixture(region, experts, k, log_factors)

            networks.append(_build(root, one_output, n_sums, concentration, rng))
        return networks[0] if n_outputs == 1 else Product(networks)

    def all_outputs(region: Region) -> _Weighted:
        parts = [_mixture(region, experts, k, log_factors) for k in range(n_outputs)]
        return _product(parts) if n_outputs > 1 else parts[0]

    return _build(root, all_outputs, n_sums, concentration, rng)


class _Weighted(NamedTuple):
    """A node, and the log of the total of its trees' factors."""

    node: Node
    log_total: float


def _product(parts: Sequence[_Weighted]) -> _Weighted:
    return _Weighted(Product([part.node for part in parts]), sum(part.log_total for part in parts))


def _mixture(region: Region, experts: Experts, output: int, log_factors: LogFactors | None) -> _Weighted:
    leaves: list[Node] = [Leaf.of(gp, output, label) for label, gp in experts(region, output)]
    factors = np.zeros(len(leaves)) if log_factors is None else np.asarray(log_factors(region, output))
    return _sum([_Weighted(leaf, float(factor)) for leaf, factor in zip(leaves, factors, strict=True)], None)


def _build(
    root: Region,
    leaf_nodes: Callable[[Region], _Weighted],
    n_sums: int,
    concentration: float,
    rng: np.random.Generator | None,
) -> Node:
    nodes: dict[int, list[_Weighted]] = {}
    for region in distinct_regions(root):
        alternatives = [leaf_nodes(region)] if region.is_leaf else []
        for partition in region.partitions:
            combinations: list[list[_Weighted]] = [[]]
            for part in partition.parts:
                combinations = [[*chosen, node] for chosen in combinations for node in nodes[id(part)]]
            alternatives += [
                _Weighted(
                    Split(partition.axis, partition.at, [part.node for part in chosen]),
                    sum(part.log_total for part in chosen),
                )
                for chosen in combinations
            ]
        if region is root or not region.partitions or n_sums == 1:
            nodes[id(region)] = [_sum(alternatives, region.weights)]
        else:
            nodes[id(region)] = _drawn_sums([part.node for part in alternatives], n_sums, concentration, rng)
    return nodes[id(root)][0].node


def _sum(alternatives: Sequence[_Weighted], weights: Sequence[float] | None) -> _Weighted:
    if len(alternatives) == 1:
        return alternatives[0]
    nodes = [part.node for part in alternatives]
    totals = np.array([part.log_total for part in alternatives])
    if weights is None and not totals.any():
        return _Weighted(Sum(nodes), 0.0)
    joint = totals + np.log(np.full(len(nodes), 1.0 / len(nodes)) if weights is None else weights)
    total = float(np.logaddexp.reduce(joint))
    return _Weighted(Sum.of(nodes, joint - total), total)


def _drawn_sums(
    nodes: Sequence[Node], n_sums: int, concentration: float, rng: np.random.Generator | None
) -> list[_Weighted]:
    if len(nodes) == 1:
        return [_Weighted(nodes[0], 0.0)] * n_sums
    if rng is None:
        raise ValueError("rng is needed to draw the weights of several sum nodes, got None")
    weights = [rng.dirichlet(np.full(len(nodes), concentration)) for _ in range(n_sums)]
    return [_Weighted(Sum(nodes, weights=drawn), 0.0) for drawn in weights]
