"""Structure: region graphs from rows, and networks from region graphs."""

from spngp.structure.construction import build_network
from spngp.structure.regions import Partition, Region, leaf_regions, tiling
from spngp.structure.strategies import Compact, EqualWidth, RandomAxes, Strategy

__all__ = [
    "Compact",
    "EqualWidth",
    "Partition",
    "RandomAxes",
    "Region",
    "Strategy",
    "build_network",
    "leaf_regions",
    "tiling",
]
