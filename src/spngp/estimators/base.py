"""What all our scikit-learn estimators share: checks, and a fit that is whole or not at all."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from spngp._support.checks import as_outputs, as_variances, refuse_masked
from spngp._support.locks import lock_of
from spngp._support.row_counts import as_weights
from spngp._support.types import Array, Indices
from spngp.estimators.answers import as_levels, as_probability
from spngp.estimators.display import as_html
from spngp.estimators.input_faults import fault_of, holds_times
from spngp.estimators.r2 import mean_r2
from spngp.estimators.rows import must_have_outputs
from spngp.estimators.scaling import check_inputs
from spngp.estimators.table_inputs import dense
from spngp.gp.row_weights import KnownVariances
from spngp.network.units import Units

# Rows of a batch when a network predicts. Batches bound the memory, whatever the number of rows asked for; they are
# large, because a leaf that did not keep its factor makes it again for each batch.
_ROWS_AT_ONCE = 200_000


class Regressor(RegressorMixin, BaseEstimator):
    """Rows in, rows out, in the units of the user.

    Attributes
    ----------
    n_outputs_ : int
    y_ndim_ : int
        1 if y was given as (n,), 2 if as (n, p): predictions come in the same form.
    row_repeats_ : ndarray of int
        How many rows stood for each, if ``sample_weight`` was given: its weight, rounded up.
    """

    n_outputs_: int
    y_ndim_: int

    @contextmanager
    def _being_fitted(self) -> Iterator[Self]:
        """A copy to fit, which takes the place of this model at the end.

        An interrupted or failed fit leaves the model as it was, names of inputs included.
        """
        with lock_of(self):
            model = self._snapshot()
            # noted about the data of an earlier fit
            for noted in ("table_", "columns_", "rows_left_out_", "row_repeats_"):
                model.__dict__.pop(noted, None)
            yield model
            self.__dict__ = model.__dict__

    def _must_be_fitted(self) -> None:
        """Raise scikit-learn's error unless the model is fitted; its check takes longer than a look."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool:
        """Whether something was learnt."""

    def _snapshot(self) -> Self:
        """A copy of the model as it is now, which an update in another thread does not change."""
        now = object.__new__(type(self))
        now.__dict__.update(self.__dict__)
        return now

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        """Rows (n, d) and outputs (n, p), checked.

        With ``reset`` the model takes names and shapes from them; without, they must have those that it knows.
        """
        X = np.ascontiguousarray(self._checked_inputs(X, reset, y))
        return X, np.ascontiguousarray(self._checked_outputs(y, X.shape[0], reset))

    def _to_learn(
        self, X: Any, y: Any, sample_weight: Any, y_variance: Any, reset: bool = True
    ) -> tuple[Array, Array, KnownVariances | None]:
        """Rows (n, d), outputs (n, p) and what is known of their noise, checked, each as often as its row counts."""
        X, Y = self._checked(X, y, reset)
        weights, variances = as_weights(sample_weight, X.shape[0]), as_variances(y_variance, Y)
        if reset:
            self._note_counts(weights.counts, X.shape[0])
            must_have_outputs(weights.of(Y))
        return weights.of(X), weights.of(Y), KnownVariances.of(weights.of(variances), weights.shares, Y.shape[1])

    def _note_counts(self, counts: Indices | None, n_new: int, n_before: int = 0) -> None:
        """Keep how often each row given was learnt from; nothing as long as no weights are given."""
        if counts is not None or hasattr(self, "row_repeats_"):
            before = getattr(self, "row_repeats_", np.ones(n_before, dtype=np.intp))
            self.row_repeats_ = np.concatenate([before, np.ones(n_new, dtype=np.intp) if counts is None else counts])

    def _checked_inputs(self, X: Any, reset: bool, y: Any = None) -> Array:
        """Rows of numbers; ``y`` are their outputs, for estimators that describe columns by them."""
        if not reset and self._is_plain(X):
            return np.asarray(X)
        refuse_masked(X, "X")
        X = dense(X)
        try:
            checked = np.asarray(validate_data(self, X, dtype=np.float64, reset=reset))
        except (TypeError, ValueError, OverflowError) as error:
            # scikit-learn's message on column names that do not match is clear enough
            fault = None if "feature names" in str(error) else fault_of(X)
            if fault is None:
                raise
            raise fault from None
        if holds_times(X) and (fault := fault_of(X)) is not None:
            raise fault
        return checked

    def _is_plain(self, X: Any) -> bool:
        """Whether X is what a check would make of it: for single rows, the check would take longer than the rest."""
        return bool(
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == getattr(self, "n_features_in_", None)
            and not hasattr(self, "feature_names_in_")
            and np.isfinite(X).all()
        )

    def _checked_outputs(self, y: Any, n_rows: int, reset: bool) -> Array:
        if y is None:
            # scikit-learn's wording, which its checks look for
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if getattr(y, "dtype", None) == np.complex128:
            raise ValueError("Complex data not supported: y must be real")
        Y = as_outputs(y, n_rows, "Input y", missing=True)
        ndim = 1 if np.asarray(y).ndim == 1 else 2
        if reset:
            if np.isnan(Y).all(axis=0).any():
                output = int(np.argmax(np.isnan(Y).all(axis=0)))
                raise ValueError(f"Input y contains NaN only, in output {output}: nothing to learn from")
            self.y_ndim_, self.n_outputs_ = ndim, Y.shape[1]
        elif (ndim, Y.shape[1]) != (self.y_ndim_, self.n_outputs_):
            expected = "(n,)" if self.y_ndim_ == 1 else f"(n, {self.n_outputs_})"
            raise ValueError(f"y must have shape {expected} as before, got {np.asarray(y).shape}")
        return Y

    def _batches(self, X: Any, units: Units, size: int | None = None) -> list[Array]:
        """Checked rows to predict, in batches of ``size``."""
        self._must_be_fitted()
        X = np.ascontiguousarray(self._checked_inputs(X, reset=False))
        check_inputs(X, units)
        size = _ROWS_AT_ONCE if size is None else size
        return [X[start : start + size] for start in range(0, X.shape[0], size)]

    def _shaped(self, Y: Array) -> Array:
        """Values (n, p, …) in the form of y: (n, …) if it was given as (n,)."""
        return Y[:, 0] if self.y_ndim_ == 1 else Y

    # What follows from the predictive distribution, which every estimator has.

    def predict_interval(self, X: Any, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper border of the central interval of a new observation, at each row."""
        _, low, high = self.predict(X, interval=as_probability(coverage, "coverage"))
        return low, high

    def predict_quantiles(self, X: Any, alpha: Any) -> Array:
        """Quantiles of a new observation: one per row for a number, one column per level for a sequence."""
        return np.asarray(self.predict(X, quantiles=as_levels(alpha, "alpha")))

    def predict_var(self, X: Any, latent: bool = False) -> Array:
        """Variance of a new observation at each row, or with ``latent`` of the function without noise."""
        return np.asarray(self.predict_dist(X, latent).var)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the share of the variance of y that the mean explains; rows whose y is missing (NaN) are left out.

        Of several outputs, the average of each one's R².
        """
        mean = np.asarray(self.predict(X))
        Y = self._checked_outputs(y, mean.shape[0], reset=False)
        return mean_r2(mean.reshape(Y.shape), Y, sample_weight)

    def _repr_html_inner(self) -> str:
        return as_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram, and what was learnt."""
        plain = {"text/plain": repr(self)}
        return plain | ({"text/html": as_html(self)} if get_config()["display"] == "diagram" else {})

    def save(self, path: str | os.PathLike[str], *, with_factors: bool = False) -> None:
        """Write the fitted model to one file, to be opened by :func:`spngp.load`; see :func:`spngp.io.save`.

        Factors are left out, and computed again when they are first used, unless ``with_factors`` is true.
        """
        from spngp.io import save  # the edges know the estimators, not the other way round

        save(self, path, with_factors=with_factors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # small ones
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
