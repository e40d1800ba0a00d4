"""What estimators with a network share: the fit, predictions, and properties that show what was learnt."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import validate_data

from spngp._support.checks import as_count, as_generator
from spngp._support.row_counts import RowWeights
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices, RandomState
from spngp.columns import InputColumns
from spngp.columns.learning import refuse_single_levels, with_further_levels
from spngp.estimators import present
from spngp.estimators.answers import Question
from spngp.estimators.base import Regressor
from spngp.estimators.completion import CompletedRows, completed_once
from spngp.estimators.explanation import Explanation, explain
from spngp.estimators.fitting import learn_rows
from spngp.estimators.importance import Importance, importance_of
from spngp.estimators.names import kernel_names
from spngp.estimators.planning import Request
from spngp.estimators.table_inputs import dense, described, encoded, has_all, has_checked_names, takes_numbers
from spngp.estimators.targets import check_target, log_slopes, transformed, transforms_for
from spngp.learning import Learnt
from spngp.learning.sharded import Sharded
from spngp.network import Node, prediction
from spngp.noise import NoiseShape
from spngp.predictive import GaussianMixture
from spngp.transformed import TransformedMixture, Unchanged

Distribution: TypeAlias = GaussianMixture | TransformedMixture


class NetworkModel(Regressor):
    """An estimator whose model is a posterior network. Concrete estimators turn their parameters into a request."""

    _learnt: present.Present
    kernel_names_: list[str]
    targets_: list[Any]  # of Transform, one per output
    columns_: InputColumns

    @property
    def _is_transformed(self) -> bool:
        self._must_be_fitted()
        return not all(isinstance(of, Unchanged) for of in self.targets_)

    def _fit(self, X: Any, y: Any, request: Request, sample_weight: Any, y_variance: Any, begins: bool = False) -> Self:
        """Check, standardise, plan, learn, store. Where a stream ``begins``, a category may have one level as yet."""
        with self._being_fitted() as model:
            X, Y, known = model._to_learn(X, y, sample_weight, y_variance)
            if not begins:
                refuse_single_levels(model.columns_)
            check_target(self.target, known)
            model.targets_ = transforms_for(self.target, X, Y, type(self).__name__)
            Y = transformed(Y, model.targets_)
            plan, model._learnt = learn_rows(model, X, Y, request, known)
            model.kernel_names_ = kernel_names(plan.labels, model._learnt.prior)
        return self

    def _checked_inputs(self, X: Any, reset: bool, y: Any = None) -> Array:
        """Rows of inputs: of a table the numbers that its columns become, of an array the array.

        Rows to learn from, which come with ``y``, lack no input that was never missing in the fit, and may add levels.
        """
        if not reset and takes_numbers(self) and self._is_plain(X):
            return np.asarray(X)
        X = dense(X)
        if reset:
            columns = described(X, y, self.columns, self.unknown)
            if columns is not None and not (columns.is_plain and has_all(columns, X)):
                validate_data(self, X, reset=True, skip_check_array=True)  # names and number of columns
                self.columns_ = columns
                return columns.encode(X)
            X = super()._checked_inputs(X, reset=True)
            self.columns_ = columns or InputColumns.of_numbers([f"x{j}" for j in range(X.shape[1])])
            return X
        if takes_numbers(self) and not has_checked_names(self, X):
            return super()._checked_inputs(X, reset=False)
        if y is not None:
            self.columns_ = with_further_levels(self.columns_, X)
        return encoded(X, self.columns_, complete=y is not None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learnt")

    # Each method begins with a snapshot: an update in another thread changes the next call, and not half of this one.

    def predict(self, X: Any, return_std: bool = False, *, interval: Any = None, quantiles: Any = None) -> Any:
        """Mean of a new observation at each row, and on request how far it may be off.

        A pipeline passes these keywords on: ``pipeline.predict(X, interval=0.9)``.

        Parameters
        ----------
        X : array-like of shape (n, d)
        return_std : bool
            Return the standard deviation after the mean.
        interval : float, optional
            Return the borders of the central interval of this probability after the mean (and the standard deviation).
        quantiles : float or sequence of float, optional
            Return quantiles of these levels, and nothing else, with one column per level.

        Examples
        --------
        >>> from spngp import GPRegressor, datasets
        >>> data = datasets.load("motorcycle")
        >>> model = GPRegressor(random_state=0).fit(data.X, data.Y[:, 0])
        >>> mean, low, high = model.predict([[20.0]], interval=0.9)
        >>> bool(low < mean < high), model.predict([[20.0]], quantiles=[0.05, 0.5, 0.95]).shape
        (True, (1, 3))
        """
        now, question = self._snapshot(), Question.of(return_std, interval, quantiles)
        if question.mean_alone and not now._is_transformed:
            return now._shaped(now._average(X, lambda leaf, rows: leaf.predict_mean(rows)))
        return question.of_all(now._mixtures(X, latent=False))

    def predict_dist(self, X: Any, latent: bool = False) -> Distribution:
        """The Gaussian mixture at each row: of a new observation, or with ``latent`` of the function without noise.

        With a ``target`` it is the transformed mixture, in the units of y.
        """
        parts = self._snapshot()._mixtures(X, latent)
        return type(parts[0]).concatenate(parts)  # type: ignore[arg-type]

    def _mixtures(self, X: Any, latent: bool) -> list[Distribution]:
        """One for each batch of rows."""
        return [self._mixture(part, latent) for part in self._completed(X)]

    def _mixture(self, part: CompletedRows, latent: bool) -> Distribution:
        """Of checked rows."""
        found = present.components_of(self._learnt, part.rows, self.n_jobs)
        shaped = part.merged(prediction.mixture_of(found, latent))
        mixture: Distribution = shaped
        if self._is_transformed:
            plain = part.merged(prediction.plain_mixture_of(found, latent))
            mixture = TransformedMixture(shaped, tuple(self.targets_), plain, by_output=self.n_outputs_ > 1)
        return mixture.with_outputs_axis() if self.y_ndim_ == 2 and self.n_outputs_ == 1 else mixture

    def sample_y(self, X: Any, n_samples: int = 1, random_state: RandomState = 0, latent: bool = False) -> Array:
        """Exact joint samples of new observations at all rows, shape (n, n_samples) or (n, outputs, n_samples)."""
        now, n_samples = self._snapshot(), as_count(n_samples, "n_samples", 0)
        rng = as_generator(random_state)
        rows = completed_once(np.concatenate(now._rows(X)), now.X_train_, rng)
        draws = now.network_.sample(rows, n_samples, rng, latent)
        draws = draws.reshape(rows.shape[0], now.n_outputs_, n_samples)
        draws = np.stack([of.inverse(draws[:, k]) for k, of in enumerate(now.targets_)], axis=1)
        return now._shaped(draws)

    def predict_noise(self, X: Any) -> Array:
        """Learnt standard deviation of the noise at each row, in the units of y; of the transformed y with a target.

        Without surprises, which are rare.
        """
        now = self._snapshot()
        shapes = now.noise_shapes_
        variance = now._average(X, lambda leaf, rows: leaf.noise_at(rows) * shapes[leaf.output].variance)
        return now._shaped(np.sqrt(variance))

    def predict_kernel_weights(self, X: Any) -> Array:
        """Posterior probability of each kernel at each row, shape (n, kernels), or (n, outputs, kernels)."""
        now = self._snapshot()
        weights = [
            now._average(X, lambda leaf, rows: float(leaf.label == name))  # noqa: B023
            for name in now.kernel_names_
        ]
        return now._shaped(np.stack(weights, axis=-1))

    def predict_cov(self, X: Any, latent: bool = False) -> Array:
        """Covariance of new observations at all rows, (n, n), or (n, p, n, p) for p outputs; or of the function."""
        now = self._snapshot()
        if now._is_transformed:
            raise ValueError(f"predict_cov goes without a target, got target={self.target!r}; sample_y draws jointly")
        rows = np.concatenate(now._rows(X))
        found, sizes = now.network_.covariance(rows, latent), (rows.shape[0], now.n_outputs_)
        return found if now.y_ndim_ == 1 else found.reshape(*sizes, *sizes)

    def importance(self, X: Any = None, *, most_rows: int = 1000, random_state: RandomState = 0) -> Importance:
        """How much each input matters: its shares of the variance of the mean and of the log std of predictions.

        First order (the input alone, on the rows as they are) and total (what is lost if the input is shuffled among
        the rows), with standard errors; see :class:`~spngp.estimators.importance.Shares`.

        Parameters
        ----------
        X : array-like, optional
            Rows to measure it on; by default those learnt from.
        most_rows : int
            Of more rows, a random subset of this size is used.
        random_state : int, Generator or None
            Seed of the subset and of the shuffling.

        Examples
        --------
        >>> import numpy as np
        >>> from spngp import SPNGPRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> model = SPNGPRegressor(random_state=0).fit(X, 3 * X[:, 0])
        >>> model.importance(X).mean.total.round(1)
        array([1., 0.])
        """
        now = self._snapshot()
        rows = now.X_train_ if X is None else np.concatenate(now._rows(X))
        if rows.shape[0] < 2:
            raise ValueError(f"X must have at least 2 rows to compare, got {rows.shape[0]}")
        names = now.columns_.input_names

        def predict(some: Array) -> Array:
            mixture = now._mixture(now._complete(some), latent=False)
            moments = np.stack([mixture.mean, np.log(np.maximum(mixture.std, np.finfo(np.float64).tiny))], axis=-1)
            return moments.reshape(some.shape[0], now.n_outputs_, 2)

        rng, most_rows = as_generator(random_state), as_count(most_rows, "most_rows", 2)
        found = importance_of(predict, rows, names, most_rows, rng)
        return found if now.y_ndim_ == 2 else found.of_one_output()

    def explain(self, x: Any, *, output: int = 0, n_rows: int = 5) -> Explanation:
        """Why the prediction at one row is what it is: experts, nearest rows, and their weights in the mean.

        With a ``target``, all of it is about the transformed output.

        Parameters
        ----------
        x : array-like of shape (d,) or (1, d), or a table of one row
        output : int
            The output to explain.
        n_rows : int
            Number of rows that are listed.
        """
        now = self._snapshot()
        output, n_rows = as_count(output, "output", 0), as_count(n_rows, "n_rows", 0)
        rows = np.concatenate(now._rows(np.asarray(x)[np.newaxis] if np.ndim(x) == 1 else x))
        if rows.shape[0] != 1:
            raise ValueError(f"x must be one row to explain, got {rows.shape[0]}")
        if output >= now.n_outputs_:
            raise ValueError(f"output must be below {now.n_outputs_}, the number of outputs, got {output}")
        with one_blas_thread():
            about = (now.row_numbers_, now.columns_, now._is_transformed)
            return explain(now._frozen(), rows, output, n_rows, *about)

    def plot(self, X: Any = None, y: Any = None, **options: Any) -> Any:
        """Draw what the model predicts along its most important inputs; see :class:`spngp.plotting.OverviewDisplay`.

        With rows X and outputs y, which it need not have learnt from, also how well it predicts them.
        """
        from spngp.plotting import OverviewDisplay  # the edges know the estimators, not the other way round

        return OverviewDisplay.from_estimator(self, X, y, **options)

    def _average(self, X: Any, value: prediction.Value) -> Array:
        """Weighted average of a value over the leaves whose boxes hold each row, shape (n, outputs)."""
        with one_blas_thread():
            parts = []
            for part in self._completed(X):
                parts.append(part.averaged(present.averaged_of(self._learnt, part.rows, value, self.n_jobs)))
        return np.concatenate(parts)

    def _completed(self, X: Any) -> list[CompletedRows]:
        """Rows to predict in batches, those that lack something completed by rows of the fit."""
        return [self._complete(rows) for rows in self._rows(X)]

    def _complete(self, rows: Array) -> CompletedRows:
        cut = present.cut_categories_of(self._learnt, self.columns_.level_counts, self.n_jobs)
        return CompletedRows.of(rows, present.donors_of(self._learnt), cut)

    def _rows(self, X: Any) -> list[Array]:
        self._must_be_fitted()
        return self._batches(X, present.units_of(self._learnt))

    def _frozen(self) -> Learnt:
        self._must_be_fitted()
        return present.as_networks(self._learnt, self.n_jobs)

    def _remembered(self) -> tuple[Array, Array]:
        self._must_be_fitted()
        return present.remembered(self._learnt)

    # What was learnt

    @property
    def network_(self) -> Node:
        """The posterior network, in the units of X and y: it predicts and samples what the model does."""
        return self._frozen().network

    @property
    def X_train_(self) -> Array:  # noqa: N802 - as in scikit-learn
        """Rows learnt from, (n, d), in the order in which they came."""
        return self._remembered()[0]

    @property
    def y_train_(self) -> Array:
        """Outputs learnt from, in the form of y; NaN where one was missing."""
        Y = self._remembered()[1]
        return self._shaped(np.stack([of.inverse(Y[:, k]) for k, of in enumerate(self.targets_)], axis=1))

    @property
    def noise_shapes_(self) -> list[NoiseShape]:
        """The learnt shape of each output's noise."""
        self._must_be_fitted()
        return present.noise_shapes_of(self._learnt, self.n_jobs)

    @property
    def outliers_(self) -> Indices:
        """Outputs in doubt, shape (count, 2): the number of the row (:attr:`row_numbers_`) and the output of each."""
        self._must_be_fitted()
        now = self._snapshot()
        if isinstance(now._learnt, Sharded):
            return now._learnt.in_doubt.copy()
        rows, outputs = present.doubted_of(now._learnt)
        found = np.stack([now.row_numbers_[rows], outputs], axis=1)
        return np.unique(found, axis=0) if hasattr(now, "row_repeats_") else found

    @property
    def row_numbers_(self) -> Indices:
        """The number of each row learnt from, counted from 0 in the order in which rows came.

        A row of ``sample_weight`` w is learnt from as w rows, all with its number. For a model made by ``spngp fit`` it
        is the number of the row in the table: rows without any target are not learnt from, but they are counted.
        """
        self._must_be_fitted()
        if isinstance(self._learnt, Sharded):
            raise ValueError("a model in shards does not tell the numbers of its rows; outliers_ has those in doubt")
        left_out = getattr(self, "rows_left_out_", np.empty(0, dtype=np.intp))
        repeats = getattr(self, "row_repeats_", None)
        numbers, n_ever = present.numbers_of(self._learnt)
        n_given = n_ever if repeats is None else repeats.size
        return RowWeights(repeats).of(np.delete(np.arange(n_given + left_out.size), left_out))[numbers]

    @property
    def log_evidence_(self) -> float:
        """log p(y | X) of the training rows, in the units of y, also where a target was transformed."""
        self._must_be_fitted()
        evidence = present.log_evidence_of(self._learnt)
        if self._is_transformed and not isinstance(self._learnt, Sharded):
            Y = self.y_train_.reshape(-1, self.n_outputs_)
            evidence += log_slopes(self.targets_, Y, present.shares_of(self._learnt))
        return evidence

    @property
    def regions_(self) -> list[dict[str, Any]]:
        """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight.

        All in the units of X and y. ``parameters`` are the kernel's, by name. ``identities`` has, in the same order,
        each one's role, input, and place in a sum or product of kernels; ``steps``, input and position of each step.
        """
        self._must_be_fitted()
        return present.records_of(self._learnt, self.n_jobs)
