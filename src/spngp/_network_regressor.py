"""What the estimators with a network share: prediction in the user's units, and looking inside."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spngp import defaults
from spngp._parallel import one_blas_thread
from spngp._progress import Progress
from spngp._regressor import Regressor
from spngp._standardise import Standardiser
from spngp._typing import Array, Indices, RandomState
from spngp._validation import as_count, as_generator
from spngp.learning import Learnt, Plan, learn
from spngp.network import prediction, sampling
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.predictive import GaussianMixture


class NetworkRegressor(Regressor):
    """A network in standardised units; rows, predictions and records in the user's."""

    _learnt: Learnt

    def _settings(self, inputs: Standardiser, n_rows: int) -> dict[str, Any]:
        """What the estimator's own parameters say about the plan."""
        raise NotImplementedError

    def _kernels(self) -> Any:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learnt")

    def _learn(self, X: Any, y: Any) -> Self:
        X, y = self._checked(X, y, reset=True)
        Y = y.reshape(X.shape[0], -1)
        inputs, outputs = self._units(X, Y)
        plan = self._plan(inputs, outputs, X.shape)
        progress = Progress(bool(self.verbose))
        W, Z = self._inputs_in_units(X, inputs), self._outputs_in_units(Y, outputs)
        try:
            learnt = learn(W, Z, plan, as_generator(self.random_state), progress)
        finally:
            progress.close()
        self._learnt, self._inputs, self._outputs = learnt, inputs, outputs
        self._y_is_flat, self.n_outputs_ = y.ndim == 1, Y.shape[1]
        self.kernel_names_ = list(plan.labels)
        return self

    def _plan(self, inputs: Standardiser, outputs: Standardiser, shape: tuple[int, int]) -> Plan:
        templates = self._templates(self._kernels(), shape[1], outputs)
        labels = defaults.labels([gp.kernel for gp in templates[0]])
        noise_is_learnt = not any(gp.noise_is_fixed for experts in templates for gp in experts)
        return Plan(
            labels=labels,
            templates=templates,
            reach=outputs.reach,
            learns_noise_shape=self.noise_shape == "learnt" and noise_is_learnt,
            doubts_outliers=self.outliers == "doubt" and noise_is_learnt,
            n_jobs=self.n_jobs,
            **self._settings(inputs, shape[0]),
        )

    # Prediction

    # Each begins with a snapshot: an update in another thread shows from the next call on, not in the middle of one.

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row, and with ``return_std`` its standard deviation as well."""
        now = self._snapshot()
        if return_std:
            parts = [(part.mean, part.std) for part in now._mixtures(X, latent=False)]
            return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        with one_blas_thread():
            means = [
                prediction.average(now.network_, Z, lambda leaf, rows: leaf.gp.predict_mean(rows), now.n_jobs)
                for Z in now._blocks(X)
            ]
        return now._shaped(np.concatenate(means) * now._outputs.scale + now._outputs.mean)

    def predict_dist(self, X: Any, latent: bool = False) -> GaussianMixture:
        """The Gaussian mixture at each row: of a new observation, or with ``latent`` of the function without noise."""
        return GaussianMixture.concatenate(self._snapshot()._mixtures(X, latent))

    def _mixtures(self, X: Any, latent: bool) -> list[GaussianMixture]:
        mixtures = []
        for Z in self._blocks(X):
            with one_blas_thread():
                mixture = prediction.predict_dist(self.network_, Z, latent, self.n_jobs, self._noise_shapes())
            mixtures.append(self._in_units_of_y(mixture))
        return mixtures

    def sample_y(self, X: Any, n_samples: int = 1, random_state: RandomState = 0, latent: bool = False) -> Array:
        """Exact joint samples of new observations at all rows, shape (n, n_samples) or (n, outputs, n_samples)."""
        now, n_samples = self._snapshot(), as_count(n_samples, "n_samples", 0)
        Z = np.concatenate(now._blocks(X))
        draws = sampling.sample(now.network_, Z, n_samples, random_state, latent, now._noise_shapes())
        draws = draws.reshape(Z.shape[0], now.n_outputs_, n_samples)
        draws = draws * now._outputs.scale[:, np.newaxis] + now._outputs.mean[:, np.newaxis]
        return draws[:, 0] if now._y_is_flat else draws

    def predict_noise(self, X: Any) -> Array:
        """Learnt standard deviation of the noise at each row, in the units of y."""
        now = self._snapshot()
        parts = [
            prediction.average(now.network_, Z, lambda leaf, rows: leaf.noise_variance, now.n_jobs)
            for Z in now._blocks(X)
        ]
        shapes = np.sqrt([shape.variance for shape in now.noise_shapes_])
        return now._shaped(np.sqrt(np.concatenate(parts)) * shapes * now._outputs.scale)

    def predict_kernel_weights(self, X: Any) -> Array:
        """Posterior plausibility of each kernel at each row, shape (n, kernels), or (n, outputs, kernels)."""
        now = self._snapshot()
        Z = np.concatenate(now._blocks(X))
        weights = [
            prediction.average(now.network_, Z, lambda leaf, rows: float(leaf.label == name))  # noqa: B023
            for name in now.kernel_names_
        ]
        stacked = np.stack(weights, axis=-1)
        return stacked[:, 0] if now._y_is_flat else stacked

    def _noise_shapes(self) -> list[NoiseShape] | None:
        return None if all(shape == GAUSSIAN for shape in self.noise_shapes_) else self.noise_shapes_

    # Looking inside

    @property
    def network_(self) -> Any:
        """The posterior network, in standardised units, to walk and draw."""
        check_is_fitted(self)
        return self._learnt.network

    @property
    def noise_shapes_(self) -> list[NoiseShape]:
        """The learnt shape of each output's noise; the network has Gaussian noise, that of outputs not in doubt."""
        check_is_fitted(self)
        return self._learnt.noise_shapes

    @property
    def outliers_(self) -> Indices:
        """Outputs in doubt: an array of shape (count, 2) with the row (:attr:`row_numbers_`) and the output of each."""
        check_is_fitted(self)
        now = self._snapshot()
        own_noise = now._learnt.own_noise
        if own_noise is None:
            return np.empty((0, 2), dtype=np.intp)
        rows, outputs = np.nonzero(~np.isnan(own_noise))
        return np.stack([now.row_numbers_[rows], outputs], axis=1)

    @property
    def row_numbers_(self) -> Indices:
        """Number of each row learnt from, counted from 0 as rows came; in a model made by ``spngp fit``, of its table.

        Rows of the table without any target were left out, but they count.
        """
        check_is_fitted(self)
        left_out = getattr(self, "rows_left_out_", np.empty(0, dtype=np.intp))
        return np.delete(np.arange(self._learnt.X.shape[0] + left_out.size), left_out)

    @property
    def log_evidence_(self) -> float:
        """log p(y | X) of the training rows, in the units of y."""
        check_is_fitted(self)
        now = self._snapshot()
        n_observed = (~np.isnan(now._learnt.Y)).sum(axis=0)
        return float(now.network_.log_evidence - n_observed @ np.log(now._outputs.scale))

    @property
    def regions_(self) -> list[dict[str, Any]]:
        """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight.

        In the units of X and y, but for the kernel's parameters, which are in standardised units.
        """
        check_is_fitted(self)
        now, records = self._snapshot(), []
        noise_scales = now._outputs.scale * np.sqrt([shape.variance for shape in now.noise_shapes_])
        for leaf, box, weight in now.network_.responsibilities():
            low, high = np.full(now.n_features_in_, -np.inf), np.full(now.n_features_in_, np.inf)
            for axis, start, stop in box.sides:
                low[axis] = start * now._inputs.scale[axis] + now._inputs.mean[axis]
                high[axis] = stop * now._inputs.scale[axis] + now._inputs.mean[axis]
            records.append(
                {
                    "low": low.tolist(),
                    "high": high.tolist(),
                    "output": leaf.output,
                    "rows": leaf.gp.n_own,
                    "context_rows": leaf.gp.n_context,
                    "kernel": leaf.label,
                    "parameters": dict(zip(leaf.kernel._table.names, leaf.kernel._table.values.tolist(), strict=True)),
                    "noise_std": float(noise_scales[leaf.output] * np.sqrt(leaf.noise_variance)),
                    "log_evidence": leaf.log_evidence - leaf.gp.n_own * float(np.log(now._outputs.scale[leaf.output])),
                    "weight": weight,
                }
            )
        return records
