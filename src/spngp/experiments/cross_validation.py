"""How well a model predicts rows it has not seen, when there are few: all rows, left out in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from spngp._support.types import Array
from spngp.metrics import Scores, Tally

# Fits rows; the result has ``predict_dist``.
Fit: TypeAlias = Callable[[Array, Array], Any]


def cross_validated(fit: Fit, X: Array, y: Array, folds: int = 10) -> Scores:
    """Scores of all rows, each predicted by a model that has not seen its fold; always the same folds."""
    fold = np.random.default_rng(0).permutation(np.arange(y.size) % folds)
    tally = Tally()
    for k in range(folds):
        test = fold == k
        tally.add(fit(X[~test], y[~test]).predict_dist(X[test]), y[test])
    return tally.scores()
