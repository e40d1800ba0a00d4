"""Learning: a plan turns rows into a posterior network, to which :mod:`spngp.streaming` adds rows."""

from __future__ import annotations

from spngp.learning.flow import add_rows, learn
from spngp.learning.learnt import Learnt
from spngp.learning.plan import FOR_GIVEN_KERNELS, Effort, Plan, StrategyOf
from spngp.learning.structure_left import StructureLeftWarning
from spngp.learning.tied import metric

__all__ = [
    "FOR_GIVEN_KERNELS",
    "Effort",
    "Learnt",
    "Plan",
    "StrategyOf",
    "StructureLeftWarning",
    "add_rows",
    "learn",
    "metric",
]
