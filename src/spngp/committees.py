"""Committees of Gaussian processes: the public names of :mod:`spngp.estimators.committees`."""

from spngp.estimators.committee_rules import RULES
from spngp.estimators.committees import (
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
