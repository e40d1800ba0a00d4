"""What estimators with a network share: the fit, predictions, and properties that show what was learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from spngp._support.checks import as_count, as_generator
from spngp._support.progress import Progress
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices, RandomState
from spngp.columns import InputColumns
from spngp.columns.frames import as_table
from spngp.estimators.base import Regressor
from spngp.estimators.completion import CompletedRows, completed_once
from spngp.estimators.explanation import Explanation, explain
from spngp.estimators.importance import Importance, importance_of
from spngp.estimators.planning import Request
from spngp.estimators.scaling import Scaling, check_outputs
from spngp.estimators.table_inputs import dense, described, encoded, refuse_lacking
from spngp.learning import Learnt, learn
from spngp.network import Leaf, Node, prediction
from spngp.network.placement import distinct_nodes
from spngp.noise import NoiseShape
from spngp.predictive import GaussianMixture


class NetworkModel(Regressor):
    """An estimator whose model is a posterior network. Concrete estimators turn their parameters into a request."""

    _learnt: Learnt
    kernel_names_: list[str]
    columns_: InputColumns

    def _fit(self, X: Any, y: Any, request: Request) -> Self:
        """Check, standardise, plan, learn, store."""
        with self._being_fitted() as model:
            X, Y = model._checked(X, y, reset=True)
            levels = model.columns_.level_counts
            scaling = Scaling.of(X, Y, standardised=request.kernels is None, levels=levels)
            check_outputs(Y, scaling.units, scaling.output_spreads)
            plan = request.plan(scaling)
            with Progress(bool(self.verbose)) as progress:
                learnt = learn(X, Y, plan, as_generator(self.random_state), progress)
            model._learnt, model.kernel_names_ = learnt, _kernel_names(plan.labels, learnt.prior)
        return self

    def _checked_inputs(self, X: Any, reset: bool, y: Any = None) -> Array:
        """Rows of inputs: of a table the numbers that its columns become, of an array the array.

        Rows to learn from, which come with ``y``, lack no input that was never missing in the fit.
        """
        X = dense(X)
        if reset:
            columns = described(X, y, self.columns, self.unknown)
            if columns is not None and not columns.is_plain:
                validate_data(self, X, reset=True, skip_check_array=True)  # names and number of columns
                self.columns_ = columns
                return columns.encode(X)
            X = super()._checked_inputs(X, reset=True)
            self.columns_ = columns or InputColumns.of_numbers([f"x{j}" for j in range(X.shape[1])])
            return X
        named = as_table(X) is not None and hasattr(self, "feature_names_in_")
        if self.columns_.is_plain and named:
            validate_data(self, X, reset=False, skip_check_array=True)
        elif self.columns_.is_plain:
            return super()._checked_inputs(X, reset=False)
        rows = encoded(X, self.columns_)
        if y is not None:
            refuse_lacking(rows, self.columns_)
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learnt")

    # Prediction. Each method begins with a snapshot, so that an update in another thread changes the next call and not
    # half of this one.

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row, and with ``return_std`` its standard deviation as well."""
        now = self._snapshot()
        if return_std:
            parts = [(part.mean, part.std) for part in now._mixtures(X, latent=False)]
            return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        return now._shaped(now._average(X, lambda leaf, rows: leaf.predict_mean(rows)))

    def predict_dist(self, X: Any, latent: bool = False) -> GaussianMixture:
        """The Gaussian mixture at each row: of a new observation, or with ``latent`` of the function without noise."""
        return GaussianMixture.concatenate(self._snapshot()._mixtures(X, latent))

    def _mixtures(self, X: Any, latent: bool) -> list[GaussianMixture]:
        """One for each batch of rows."""
        return [self._mixture(part, latent) for part in self._completed(X)]

    def _mixture(self, part: CompletedRows, latent: bool) -> GaussianMixture:
        """Of checked rows."""
        mixture = part.merged(self.network_.predict_dist(part.rows, latent, n_jobs=self.n_jobs))
        return mixture.with_outputs_axis() if self.y_ndim_ == 2 and self.n_outputs_ == 1 else mixture

    def sample_y(self, X: Any, n_samples: int = 1, random_state: RandomState = 0, latent: bool = False) -> Array:
        """Exact joint samples of new observations at all rows, shape (n, n_samples) or (n, outputs, n_samples)."""
        now, n_samples = self._snapshot(), as_count(n_samples, "n_samples", 0)
        rng = as_generator(random_state)
        rows = completed_once(np.concatenate(now._rows(X)), now.X_train_, rng)
        draws = now.network_.sample(rows, n_samples, rng, latent)
        return now._shaped(draws.reshape(rows.shape[0], now.n_outputs_, n_samples))

    def predict_noise(self, X: Any) -> Array:
        """Learnt standard deviation of the noise at each row, in the units of y."""
        now = self._snapshot()
        variance = now._average(X, lambda leaf, rows: leaf.noise_variance * leaf.noise_shape.variance)
        return now._shaped(np.sqrt(variance))

    def predict_kernel_weights(self, X: Any) -> Array:
        """Posterior probability of each kernel at each row, shape (n, kernels), or (n, outputs, kernels)."""
        now = self._snapshot()
        weights = [
            now._average(X, lambda leaf, rows: float(leaf.label == name))  # noqa: B023
            for name in now.kernel_names_
        ]
        return now._shaped(np.stack(weights, axis=-1))

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
        names = getattr(now, "feature_names_in_", [f"input {j}" for j in range(rows.shape[1])])

        def predict(some: Array) -> Array:
            mixture = now._mixture(CompletedRows.of(some, now.X_train_), latent=False)
            moments = np.stack([mixture.mean, np.log(np.maximum(mixture.std, np.finfo(np.float64).tiny))], axis=-1)
            return moments.reshape(some.shape[0], now.n_outputs_, 2)

        rng, most_rows = as_generator(random_state), as_count(most_rows, "most_rows", 2)
        found = importance_of(predict, rows, names, most_rows, rng)
        return found if now.y_ndim_ == 2 else found.of_one_output()

    def explain(self, x: Any, *, output: int = 0, n_rows: int = 5) -> Explanation:
        """Why the prediction at one row is what it is: experts, nearest rows, and their weights in the mean.

        Parameters
        ----------
        x : array-like
            One row, shape (d,) or (1, d).
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
            return explain(now._learnt, rows, output, n_rows, now.row_numbers_)

    def _average(self, X: Any, value: prediction.Value) -> Array:
        """Weighted average of a value over the leaves whose boxes hold each row, shape (n, outputs)."""
        with one_blas_thread():
            completed = self._completed(X)
            parts = [
                part.averaged(prediction.average(self.network_, part.rows, value, self.n_jobs)) for part in completed
            ]
        return np.concatenate(parts)

    def _completed(self, X: Any) -> list[CompletedRows]:
        """Rows to predict in batches, those that lack something completed by rows of the fit."""
        categories = [j for j, count in enumerate(self.columns_.level_counts) if count > 2]
        if categories:
            cut = {axis for _, box, _ in self.network_.responsibilities() for axis, _, _ in box.sides}
            categories = [j for j in categories if j in cut]
        return [CompletedRows.of(rows, self.X_train_, categories) for rows in self._rows(X)]

    def _rows(self, X: Any) -> list[Array]:
        check_is_fitted(self)
        return self._batches(X, self._learnt.units)

    # What was learnt

    @property
    def network_(self) -> Node:
        """The posterior network, in the units of X and y: it predicts and samples what the model does."""
        check_is_fitted(self)
        return self._learnt.network

    @property
    def X_train_(self) -> Array:  # noqa: N802 - as in scikit-learn
        """Rows learnt from, (n, d), in the order in which they came."""
        check_is_fitted(self)
        return self._learnt.X

    @property
    def y_train_(self) -> Array:
        """Outputs learnt from, in the form of y; NaN where one was missing."""
        check_is_fitted(self)
        return self._shaped(self._learnt.Y)

    @property
    def noise_shapes_(self) -> list[NoiseShape]:
        """The learnt shape of each output's noise."""
        check_is_fitted(self)
        return self._learnt.noise_shapes

    @property
    def outliers_(self) -> Indices:
        """Outputs in doubt, shape (count, 2): the number of the row (:attr:`row_numbers_`) and the output of each."""
        check_is_fitted(self)
        now = self._snapshot()
        own_noise = now._learnt.own_noise
        if own_noise is None:
            return np.empty((0, 2), dtype=np.intp)
        rows, outputs = np.nonzero(~np.isnan(own_noise))
        return np.stack([now.row_numbers_[rows], outputs], axis=1)

    @property
    def row_numbers_(self) -> Indices:
        """The number of each row learnt from, counted from 0 in the order in which rows came.

        For a model made by ``spngp fit`` it is the number of the row in the table: rows without any target are not
        learnt from, but they are counted.
        """
        check_is_fitted(self)
        left_out = getattr(self, "rows_left_out_", np.empty(0, dtype=np.intp))
        return np.delete(np.arange(self.X_train_.shape[0] + left_out.size), left_out)

    @property
    def log_evidence_(self) -> float:
        """log p(y | X) of the training rows, in the units of y."""
        return float(self.network_.log_evidence)

    @property
    def regions_(self) -> list[dict[str, Any]]:
        """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight.

        All in the units of X and y. ``parameters`` are the kernel's, by name. ``identities`` has, in the same order,
        what each parameter is: its role, its input, and its place in a sum or product of kernels.
        """
        records = []
        for leaf, box, weight in self.network_.responsibilities():
            low, high = box.corners(self.X_train_.shape[1])
            table = leaf.kernel.parameters
            records.append(
                {
                    "low": low.tolist(),
                    "high": high.tolist(),
                    "output": leaf.output,
                    "rows": leaf.gp.n_own,
                    "context_rows": leaf.gp.n_context,
                    "kernel": leaf.label,
                    "parameters": dict(zip(table.names, table.values.tolist(), strict=True)),
                    "identities": [asdict(identity) for identity in table.identities],
                    "noise_std": float(np.sqrt(leaf.noise_variance * leaf.noise_shape.variance)),
                    "log_evidence": leaf.log_evidence,
                    "weight": weight,
                }
            )
        return records


def _kernel_names(labels: Sequence[str], prior: Node) -> list[str]:
    """Labels of the kernels asked for, then of simpler ones that experts of a small set have."""
    used = [node.label for node in distinct_nodes(prior) if isinstance(node, Leaf)]
    return list(dict.fromkeys([*labels, *used]))
