"""Names of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from spngp.network import Leaf, Node
from spngp.network.placement import distinct_nodes


def kernel_names(labels: Sequence[str], prior: Node) -> list[str]:
    """Labels of the kernels that were kept, in the order asked for, then of simpler ones of small sets."""
    used = [node.label for node in distinct_nodes(prior) if isinstance(node, Leaf)]
    return list(dict.fromkeys([*(label for label in labels if label in used), *used]))
