"""Sum–split–product networks with Gaussian-process leaves and exact inference."""

from spngp.box import Box
from spngp.network.nodes import Leaf, Node, Product, Split, Sum

__all__ = ["Box", "Leaf", "Node", "Product", "Split", "Sum"]
