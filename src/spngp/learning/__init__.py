"""Learning: from standardised rows to a posterior network, by a plan, and the exact update with more rows."""

from __future__ import annotations

from spngp.learning.flow import add_rows, learn
from spngp.learning.plan import Plan, StrategyOf
from spngp.learning.posterior import Learnt
from spngp.learning.tied import metric

__all__ = ["Learnt", "Plan", "StrategyOf", "add_rows", "learn", "metric"]
