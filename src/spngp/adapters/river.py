"""An online regressor with river's interface (extra ``river``)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base
from river.proba.base import ContinuousDistribution

from spngp._support.types import Array
from spngp.columns.frames import is_missing
from spngp.estimators import SPNGPRegressor
from spngp.predictive import GaussianMixture
from spngp.transformed import TransformedMixture

if TYPE_CHECKING:
    import pandas as pd


class Predictive(ContinuousDistribution):
    """What a model says about one output: a Gaussian mixture, with the methods of river's distributions.

    Parameters
    ----------
    mixture : GaussianMixture or TransformedMixture
        At one row.
    n_samples : int
        Rows that the model has learnt from.
    seed : int, optional
    """

    def __init__(self, mixture: GaussianMixture | TransformedMixture, n_samples: int, seed: int | None = None) -> None:
        super().__init__(seed)
        self.mixture = mixture
        self._n_samples = n_samples

    @property
    def n_samples(self) -> int:
        """Rows that the model has learnt from."""
        return self._n_samples

    @property
    def mu(self) -> float:
        """Mean."""
        return float(self.mixture.mean[0])

    @property
    def sigma(self) -> float:
        """Standard deviation."""
        return float(self.mixture.std[0])

    @property
    def mode(self) -> float:
        """The mean: what :meth:`SPNGPOnline.predict_one` predicts."""
        return self.mu

    def __call__(self, x: float) -> float:
        """Density."""
        return float(np.exp(self.mixture.logpdf(np.array([x]))[0]))

    def cdf(self, x: float) -> float:
        """P(y ≤ x)."""
        return float(self.mixture.cdf(np.array([x]))[0])

    def quantile(self, level: float) -> float:
        """The value that y does not exceed with this probability."""
        return float(self.mixture.quantile(level)[0])

    def interval(self, coverage: float) -> tuple[float, float]:
        """An interval that holds y with this probability."""
        low, high = self.mixture.interval(coverage)
        return float(low[0]), float(high[0])

    def sample(self) -> float:
        """A random value."""
        return float(np.ravel(self.mixture.sample(1, self._rng.randrange(2**32)))[0])

    def update(self, x: float) -> None:
        """Refused: a prediction does not learn; the model does."""
        raise NotImplementedError("a prediction cannot be updated; call learn_one of the model")

    def revert(self, x: float) -> None:
        """Refused, as :meth:`update`."""
        raise NotImplementedError("a prediction cannot be reverted; call forget of the model")

    def __repr__(self) -> str:
        return f"Predictive(μ={self.mu:.3f}, σ={self.sigma:.3f})"


class SPNGPOnline(base.MiniBatchRegressor):
    """Regression by a sum-product network of Gaussian processes that learns row by row, exactly.

    The features are those of the first row learnt from. Later ones are left aside; where one is missing, the mean of
    the values seen so far takes its place. Texts are levels of a category, to which rows may add; a missing one is a
    level as well.

    Parameters
    ----------
    window
        If given, only so many rows that came last are remembered.
    max_leaf_size
    overlap
    hyperparameters
    outliers
    memory_limit
        As in :class:`spngp.SPNGPRegressor`.
    seed
        Seed of the random rows that hyper-parameters are learnt from.

    Attributes
    ----------
    model
        The :class:`spngp.SPNGPRegressor` that has learnt.

    Examples
    --------
    >>> from spngp.adapters.river import SPNGPOnline
    >>> model = SPNGPOnline(seed=0)
    >>> for t in range(10):
    ...     model.learn_one({"t": t / 10}, t / 5)
    >>> round(model.predict_one({"t": 0.55}), 1)
    1.1
    >>> model.predict_one({"t": 0.55}, with_dist=True).sigma < 0.2
    True
    """

    def __init__(
        self,
        window: int | None = None,
        max_leaf_size: int = 500,
        overlap: float | None = None,
        hyperparameters: str = "adaptive",
        outliers: str = "doubt",
        memory_limit: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.window = window
        self.max_leaf_size = max_leaf_size
        self.overlap = overlap
        self.hyperparameters = hyperparameters
        self.outliers = outliers
        self.memory_limit = memory_limit
        self.seed = seed
        self.model = SPNGPRegressor(
            max_leaf_size=max_leaf_size,
            overlap=overlap,
            hyperparameters=hyperparameters,
            outliers=outliers,
            memory_limit=memory_limit,
            random_state=seed,
        )
        self._features: list[Hashable] = []
        self._texts: list[Hashable] = []
        self._sums: Array = np.empty(0)
        self._counts: Array = np.empty(0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"hyperparameters": "fixed", "max_leaf_size": 50, "seed": 42}  # learning would take most of the time

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Add a row, exactly."""
        if not self.model.__sklearn_is_fitted__():
            self._features = sorted(x, key=str)
            self._texts = [name for name in self._features if isinstance(x[name], str)]
            self._sums, self._counts = np.zeros(len(self._features)), np.zeros(len(self._features))
        given = self._given([x])
        known = ~np.isnan(given[0])
        sums, counts = self._sums + np.where(known, given[0], 0.0), self._counts + known
        self.model.partial_fit(self._rows([x], _filled(given, sums, counts)), np.array([y], dtype=np.float64))
        self._sums, self._counts = sums, counts
        if self.window is not None and self.model.row_numbers_.size > self.window:
            self.model.forget(keep_last=self.window)

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Add the rows of a data frame, exactly, one after the other: when to learn again is looked at after each."""
        for x, value in zip(X.to_dict("records"), y, strict=True):
            self.learn_one(x, value)

    def predict_one(self, x: Mapping[Hashable, Any], with_dist: bool = False) -> Any:
        """The mean, or with ``with_dist`` the whole distribution; 0 before anything was learnt."""
        if not self.model.__sklearn_is_fitted__():
            return Predictive(_UNKNOWN, 0, self.seed) if with_dist else 0.0
        rows = _filled(self._given([x]), self._sums, self._counts)
        mixture = self.model.predict_dist(self._rows([x], rows))
        return Predictive(mixture, self.model.row_numbers_.size, self.seed) if with_dist else float(mixture.mean[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The mean at each row of a data frame."""
        import pandas as pd

        if not self.model.__sklearn_is_fitted__() or not len(X):
            return pd.Series(np.zeros(len(X)), index=X.index, dtype=np.float64)
        records = X.to_dict("records")
        rows = _filled(self._given(records), self._sums, self._counts)
        return pd.Series(self.model.predict_dist(self._rows(records, rows)).mean, index=X.index)

    def _given(self, rows: Sequence[Mapping[Any, Any]]) -> Array:
        """Values of the features, NaN where one is missing or a text."""
        numbers = [None if name in self._texts else name for name in self._features]
        return np.array([[math.nan if name is None else _number(name, x.get(name)) for name in numbers] for x in rows])

    def _rows(self, rows: Sequence[Mapping[Any, Any]], numbers: Array) -> Any:
        """Rows as the model takes them: their numbers, or a table where some features are texts."""
        if not self._texts:
            return numbers
        import pandas as pd

        table = pd.DataFrame(numbers, columns=[str(name) for name in self._features])
        for name in self._texts:
            values = [x.get(name) for x in rows]
            table[str(name)] = pd.Categorical([None if is_missing(value) else str(value) for value in values])
        return table


def _filled(given: Array, sums: Array, counts: Array) -> Array:
    """With the mean of a feature where it is missing."""
    return np.where(np.isnan(given), sums / np.maximum(counts, 1.0), given)


def _number(name: Hashable, value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except ValueError:
        raise ValueError(f"feature {name!r} was no text in the first row, got {value!r}") from None


_UNKNOWN = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
