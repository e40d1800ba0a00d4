"""Alternatives that the data rule out, left away: a smaller network that says nearly the same."""

from __future__ import annotations

import numpy as np

from spngp.network.nodes import Node, Sum
from spngp.network.placement import Placed, log_path_weights, place


def prune(posterior: Node, bound: float) -> Node:
    """The posterior without children of sums whose trees hold with a probability of at most ``bound`` in all.

    What remains is the posterior given that none of them holds: every probability that it states differs by at most
    ``bound`` / (1 − ``bound``) from what the whole network says. Evidence stays that of the whole network.
    """
    placed = place(posterior)
    dropped = _improbable(placed, bound)
    if not dropped:
        return posterior
    kept: list[Node] = []
    totals = np.zeros(len(placed))  # log probability, given the node, that no child below it was dropped
    for i, item in enumerate(placed):
        if isinstance(item.node, Sum):
            left = [c for c in range(len(item.children)) if (i, c) not in dropped]
            children = [item.children[c] for c in left]
            joint = item.node.log_weights[left] + totals[children]
            totals[i] = float(np.logaddexp.reduce(joint))
            kept.append(item.node.narrowed([kept[c] for c in children], joint))
        elif item.children:
            totals[i] = float(totals[list(item.children)].sum())
            children_kept = [kept[c] for c in item.children]
            kept.append(item.node.with_children(children_kept, np.zeros(len(children_kept))))
        else:
            kept.append(item.node)
    return kept[-1]


def prune_prior(prior: Node, posterior: Node, bound: float) -> tuple[Node, float]:
    """The prior without the children of sums that :func:`prune` would drop, and the log of what is left of it.

    Given that none of them holds: to the evidence of the result, the log of what is left must be added.
    """
    dropped = _improbable(place(posterior), bound)
    if not dropped:
        return prior, 0.0
    placed = place(prior)  # in the same order as the posterior's
    kept: list[Node] = []
    totals = np.zeros(len(placed))
    for i, item in enumerate(placed):
        if isinstance(item.node, Sum):
            left = [c for c in range(len(item.children)) if (i, c) not in dropped]
            children = [item.children[c] for c in left]
            joint = item.node.log_weights[left] + totals[children]
            totals[i] = float(np.logaddexp.reduce(joint))
            kept.append(Sum.of([kept[c] for c in children], joint))
        elif item.children:
            totals[i] = float(totals[list(item.children)].sum())
            kept.append(item.node.with_children([kept[c] for c in item.children], np.zeros(len(item.children))))
        else:
            kept.append(item.node)
    return kept[-1], float(totals[-1])


def _improbable(placed: list[Placed], bound: float) -> set[tuple[int, int]]:
    """Children of sums, each by the position of the sum and its own, that have a probability of ``bound`` in all."""
    paths = log_path_weights(placed)
    edges: list[tuple[float, int, int]] = []  # probability that an induced tree uses a sum's child
    for i, item in enumerate(placed):
        if isinstance(item.node, Sum):
            shares = item.node.log_weights
            best = int(np.argmax(shares))  # a sum needs one child
            edges += [(float(np.exp(paths[i] + share)), i, c) for c, share in enumerate(shares) if c != best]
    edges.sort()
    lost = np.cumsum([probability for probability, _, _ in edges])
    return {(i, c) for _, i, c in edges[: int(np.searchsorted(lost, bound, side="right"))]}
