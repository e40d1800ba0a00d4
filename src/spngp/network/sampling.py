"""Exact joint samples: an induced tree by the sums' weights, then each leaf's joint Gaussian."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spngp._support.checks import as_count, as_generator, as_rows
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices, RandomState
from spngp.network.conditioning import check_inputs
from spngp.network.placement import place, route

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf, Node


@one_blas_thread()
def sample(root: Node, X: Any, n_samples: int, random_state: RandomState, latent: bool) -> Array:
    """Joint samples of the network over the rows of X."""
    X = as_rows(X)
    check_inputs(root, X)
    n_samples = as_count(n_samples, "n_samples", 0)
    rng = as_generator(random_state)
    placed = place(root)
    rows = route(placed, X)
    column = {output: j for j, output in enumerate(root.outputs)}
    result = np.zeros((X.shape[0], len(column), n_samples))
    # for each node, the numbers of the samples whose induced tree holds it, handed down from parents to children
    drawn: list[list[Indices]] = [[] for _ in placed]
    drawn[-1] = [np.arange(n_samples)]
    for i in range(len(placed) - 1, -1, -1):
        if not drawn[i]:
            continue
        samples = np.sort(np.concatenate(drawn[i]))
        item = placed[i]
        if not item.children:
            leaf = cast("Leaf", item.node)
            if samples.size and rows[i].size:
                values = leaf.draw(X[rows[i]], samples.size, rng, latent)
                result[rows[i][:, np.newaxis], column[leaf.output], samples] = values
            continue
        for child, part in zip(item.children, _choose(item.node, samples, rng), strict=True):
            drawn[child].append(part)
    return result[:, 0] if len(column) == 1 else result


def _choose(node: Node, samples: Indices, rng: np.random.Generator) -> list[Indices]:
    """The samples that each child gets: one child at random for each of a sum's, all of them elsewhere."""
    if not node.mixes:
        return [samples] * len(node.children)
    cumulative = np.cumsum(np.exp(node.log_child_weights()))
    choice = np.searchsorted(cumulative / cumulative[-1], rng.random(samples.size), side="right")
    return [samples[choice == c] for c in range(len(node.children))]
