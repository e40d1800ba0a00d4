"""Scores of whole predictive distributions for ``cross_val_score``, ``GridSearchCV`` and the like.

Each scorer is called with a fitted estimator, rows and what was observed there, and is passed as ``scoring=``. The
estimator is one of ours, or a pipeline or search that ends in one. NaN in y is left out. As scikit-learn wants it,
larger is better: scores of which less is better are negative.

Examples
--------
>>> from sklearn.model_selection import cross_val_score
>>> from spngp import GPRegressor, datasets, scorers
>>> data = datasets.load("motorcycle")
>>> scores = cross_val_score(GPRegressor(random_state=0), data.X, data.Y[:, 0], scoring=scorers.neg_nlpd, cv=2)
>>> scores.shape
(2,)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from spngp import metrics
from spngp._support.checks import as_floats

# ``scorer(estimator, X, y)``
Scorer: TypeAlias = Callable[[Any, Any, Any], float]


def neg_nlpd(estimator: Any, X: Any, y: Any) -> float:
    """Mean log predictive density, in nats: minus the NLPD."""
    return -metrics.nlpd(distribution_of(estimator, X), as_floats(y, "y"))


def neg_crps(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean continuous ranked probability score, in the units of y."""
    return -metrics.crps(distribution_of(estimator, X), as_floats(y, "y"))


def coverage(level: float = 0.95) -> Scorer:
    """Scorer: the share of observations inside the central interval of this probability; to read, not to maximise."""
    return partial(_coverage, level=level)


def neg_coverage_error(level: float = 0.95) -> Scorer:
    """Scorer: minus the distance between that share and its probability."""
    return partial(_neg_coverage_error, level=level)


def _coverage(estimator: Any, X: Any, y: Any, level: float) -> float:
    return metrics.coverage(distribution_of(estimator, X), as_floats(y, "y"), level)


def _neg_coverage_error(estimator: Any, X: Any, y: Any, level: float) -> float:
    return -abs(_coverage(estimator, X, y, level) - level)


def distribution_of(estimator: Any, X: Any) -> Any:
    """The predictive distribution of a model, or of a pipeline or search that ends in one."""
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    if hasattr(estimator, "predict_dist"):
        return estimator.predict_dist(X)
    if hasattr(estimator, "steps"):  # a Pipeline
        before = estimator[:-1]
        return distribution_of(estimator[-1], before.transform(X) if len(before.steps) else X)
    raise TypeError(
        f"scorers of predictive distributions need a model with predict_dist, got {type(estimator).__name__}; "
        "a transformed target is SPNGPRegressor(target=…)"
    )
