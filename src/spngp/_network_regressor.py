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

_LARGEST_OUTPUT = 1e150  # in standard units: its square is still a float


class NetworkRegressor(Regressor):
    """A network in standardised units; rows, predictions and records in the user's."""

    _learnt: Learnt
    kernel_names_: list[str]

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
        inputs, outputs = Standardiser.of(X), Standardiser.of(Y)
        plan = self._plan(inputs, outputs, X.shape)
        progress = Progress(bool(self.verbose))
        Z = self._in_units(Y, outputs)
        try:
            learnt = learn(inputs.apply(X), Z, plan, as_generator(self.random_state), progress)
        finally:
            progress.close()
        self._learnt, self._inputs, self._outputs = learnt, inputs, outputs
        self._y_is_flat, self.n_outputs_ = y.ndim == 1, Y.shape[1]
        self.kernel_names_ = list(plan.labels)
        return self

    @staticmethod
    def _in_units(Y: Array, outputs: Standardiser) -> Array:
        Z = outputs.apply(Y)
        if (np.abs(Z) > _LARGEST_OUTPUT).any():
            i, k = np.unravel_index(np.nanargmax(np.abs(Z)), Z.shape)
            raise ValueError(
                f"y holds {Y[i, k]:g}, which is too far from the other values (about {outputs.mean[k]:g} ± "
                f"{outputs.scale[k]:g}) to compute with; correct it or leave it out"
            )
        return Z

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

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row, and with ``return_std`` its standard deviation as well."""
        if return_std:
            parts = [(part.mean, part.std) for part in self._mixtures(X, latent=False)]
            return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        with one_blas_thread():
            means = [
                prediction.average(self.network_, Z, lambda leaf, rows: leaf.gp.predict_mean(rows), self.n_jobs)
                for Z in self._blocks(X)
            ]
        return self._shaped(np.concatenate(means) * self._outputs.scale + self._outputs.mean)

    def predict_dist(self, X: Any, latent: bool = False) -> GaussianMixture:
        """The Gaussian mixture at each row: of a new observation, or with ``latent`` of the function without noise."""
        return GaussianMixture.concatenate(self._mixtures(X, latent))

    def _mixtures(self, X: Any, latent: bool) -> list[GaussianMixture]:
        mixtures = []
        for Z in self._blocks(X):
            with one_blas_thread():
                mixture = prediction.predict_dist(self.network_, Z, latent, self.n_jobs, self._noise_shapes())
            mixtures.append(self._in_units_of_y(mixture))
        return mixtures

    def sample_y(self, X: Any, n_samples: int = 1, random_state: RandomState = 0, latent: bool = False) -> Array:
        """Exact joint samples of new observations at all rows, shape (n, n_samples) or (n, outputs, n_samples)."""
        n_samples = as_count(n_samples, "n_samples", 0)
        Z = np.concatenate(self._blocks(X))
        draws = sampling.sample(self.network_, Z, n_samples, random_state, latent, self._noise_shapes())
        draws = draws.reshape(Z.shape[0], self.n_outputs_, n_samples)
        draws = draws * self._outputs.scale[:, np.newaxis] + self._outputs.mean[:, np.newaxis]
        return draws[:, 0] if self._y_is_flat else draws

    def predict_noise(self, X: Any) -> Array:
        """Learnt standard deviation of the noise at each row, in the units of y."""
        parts = [
            prediction.average(self.network_, Z, lambda leaf, rows: leaf.noise_variance, self.n_jobs)
            for Z in self._blocks(X)
        ]
        shapes = np.sqrt([shape.variance for shape in self.noise_shapes_])
        return self._shaped(np.sqrt(np.concatenate(parts)) * shapes * self._outputs.scale)

    def predict_kernel_weights(self, X: Any) -> Array:
        """Posterior plausibility of each kernel at each row, shape (n, kernels), or (n, outputs, kernels)."""
        Z = np.concatenate(self._blocks(X))
        weights = [
            prediction.average(self.network_, Z, lambda leaf, rows: float(leaf.label == name))  # noqa: B023
            for name in self.kernel_names_
        ]
        stacked = np.stack(weights, axis=-1)
        return stacked[:, 0] if self._y_is_flat else stacked

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
        """Outputs in doubt: an array of shape (count, 2) with the row and the output of each."""
        check_is_fitted(self)
        own_noise = self._learnt.own_noise
        return np.empty((0, 2), dtype=np.intp) if own_noise is None else np.argwhere(~np.isnan(own_noise))

    @property
    def log_evidence_(self) -> float:
        """log p(y | X) of the training rows, in the units of y."""
        check_is_fitted(self)
        n_observed = (~np.isnan(self._learnt.Y)).sum(axis=0)
        return float(self.network_.log_evidence - n_observed @ np.log(self._outputs.scale))

    @property
    def regions_(self) -> list[dict[str, Any]]:
        """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight.

        In the units of X and y, but for the kernel's parameters, which are in standardised units.
        """
        check_is_fitted(self)
        records = []
        noise_scales = self._outputs.scale * np.sqrt([shape.variance for shape in self.noise_shapes_])
        for leaf, box, weight in self.network_.responsibilities():
            low, high = np.full(self.n_features_in_, -np.inf), np.full(self.n_features_in_, np.inf)
            for axis, start, stop in box.sides:
                low[axis] = start * self._inputs.scale[axis] + self._inputs.mean[axis]
                high[axis] = stop * self._inputs.scale[axis] + self._inputs.mean[axis]
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
                    "log_evidence": leaf.log_evidence - leaf.gp.n_own * float(np.log(self._outputs.scale[leaf.output])),
                    "weight": weight,
                }
            )
        return records
