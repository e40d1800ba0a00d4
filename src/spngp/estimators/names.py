"""Names of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from spngp.network import Leaf, Node
from spngp.network.placement import distinct_nodes


def kernel_names(labels: Sequence[str], prior: Node) -> list[str]:
    """Labels of the kernels asked for, then of simpler ones that experts of a small set have."""
    used = [node.label for node in distinct_nodes(prior) if isinstance(node, Leaf)]
    return list(dict.fromkeys([*labels, *used]))
