"""One exact Gaussian process: posterior, evidence with gradient, row weights, leave-one-out, optimisation."""

from spngp.gp.exact import ExactGP

__all__ = ["ExactGP"]
