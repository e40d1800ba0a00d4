"""Committees of Gaussian processes: the public names of :mod:`spngp.estimators.committees`."""

from spngp.estimators.committees import (
    RULES,
    BayesianCommitteeMachine,
    GeneralizedProductOfExperts,
    ProductOfExperts,
    RobustBayesianCommitteeMachine,
)

__all__ = [
    "RULES",
    "BayesianCommitteeMachine",
    "GeneralizedProductOfExperts",
    "ProductOfExperts",
    "RobustBayesianCommitteeMachine",
]
