"""What estimators with a network share: the fit, predictions, and properties that show what was learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spngp._support.checks import as_count, as_generator
from spngp._support.progress import Progress
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices, RandomState
from spngp.estimators.base import Regressor
from spngp.estimators.planning import Request
from spngp.estimators.scaling import Scaling, check_outputs
from spngp.learning import Learnt, learn
from spngp.network import Leaf, Node, prediction
from spngp.network.placement import distinct_nodes
from spngp.noise import NoiseShape
from spngp.predictive import GaussianMixture
from spngp.streaming import Living, components, current_shapes, frozen, routed


class NetworkModel(Regressor):
    """An estimator whose model is a posterior network. Concrete estimators turn their parameters into a request."""

    _learnt: Learnt | Living
    kernel_names_: list[str]

    def _fit(self, X: Any, y: Any, request: Request) -> Self:
        """Check, standardise, plan, learn, store."""
        with self._being_fitted() as model:
            X, Y = model._checked(X, y, reset=True)
            scaling = Scaling.of(X, Y, standardised=request.kernels is None)
            check_outputs(Y, scaling.units, scaling.output_spreads)
            plan = request.plan(scaling)
            with Progress(bool(self.verbose)) as progress:
                learnt = learn(X, Y, plan, as_generator(self.random_state), progress)
            model._learnt, model.kernel_names_ = learnt, kernel_names(plan.labels, learnt.prior)
        return self

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
        mixtures = [self._mixture(rows, latent) for rows in self._rows(X)]
        with_axis = self.y_ndim_ == 2 and self.n_outputs_ == 1
        return [mixture.with_outputs_axis() for mixture in mixtures] if with_axis else mixtures

    def _mixture(self, rows: Array, latent: bool) -> GaussianMixture:
        if isinstance(self._learnt, Living):
            return prediction.mixture_of(components(self._learnt, rows, self.n_jobs), latent)
        return self._learnt.network.predict_dist(rows, latent, n_jobs=self.n_jobs)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: RandomState = 0, latent: bool = False) -> Array:
        """Exact joint samples of new observations at all rows, shape (n, n_samples) or (n, outputs, n_samples)."""
        now, n_samples = self._snapshot(), as_count(n_samples, "n_samples", 0)
        rows = np.concatenate(now._rows(X))
        draws = now.network_.sample(rows, n_samples, random_state, latent)
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

    def _average(self, X: Any, value: prediction.Value) -> Array:
        """Weighted average of a value over the leaves whose boxes hold each row, shape (n, outputs)."""
        with one_blas_thread():
            parts = [prediction.averaged(self._routed(rows), rows, value, self.n_jobs) for rows in self._rows(X)]
        return np.concatenate(parts)

    def _routed(self, rows: Array) -> prediction.Routed:
        if isinstance(self._learnt, Living):
            return routed(self._learnt, rows, self.n_jobs)
        return prediction.route_to_leaves(self._learnt.network, rows)

    def _rows(self, X: Any) -> list[Array]:
        check_is_fitted(self)
        return self._batches(X, (self._learnt.base if isinstance(self._learnt, Living) else self._learnt).units)

    def _frozen(self) -> Learnt:
        """What was learnt as networks, with all rows."""
        check_is_fitted(self)
        return frozen(self._learnt, self.n_jobs) if isinstance(self._learnt, Living) else self._learnt

    def _remembered(self) -> tuple[Array, Array]:
        """Rows and outputs learnt from, without making networks."""
        check_is_fitted(self)
        now = self._learnt
        return (now.log.X.values, now.log.Y.values) if isinstance(now, Living) else (now.X, now.Y)

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
        return self._shaped(self._remembered()[1])

    @property
    def noise_shapes_(self) -> list[NoiseShape]:
        """The learnt shape of each output's noise."""
        check_is_fitted(self)
        now = self._learnt
        return list(current_shapes(now, self.n_jobs)) if isinstance(now, Living) else now.noise_shapes

    @property
    def outliers_(self) -> Indices:
        """Outputs in doubt, shape (count, 2): the number of the row (:attr:`row_numbers_`) and the output of each."""
        check_is_fitted(self)
        now = self._snapshot()
        learnt = now._learnt
        own_noise = learnt.own_noise(learnt.log.numbers.values) if isinstance(learnt, Living) else learnt.own_noise
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
        now = self._learnt
        if isinstance(now, Living):
            numbers, n_ever = now.log.numbers.values, now.log.n_ever
        elif now.upkeep is not None:
            numbers, n_ever = now.upkeep.numbers, now.upkeep.n_ever
        else:
            numbers, n_ever = np.arange(now.X.shape[0]), now.X.shape[0]
        return np.delete(np.arange(n_ever + left_out.size), left_out)[numbers]

    @property
    def log_evidence_(self) -> float:
        """log p(y | X) of the training rows, in the units of y."""
        check_is_fitted(self)
        now = self._learnt
        return now.log_evidence if isinstance(now, Living) else float(now.network.log_evidence)

    @property
    def regions_(self) -> list[dict[str, Any]]:
        """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight.

        All in the units of X and y. ``parameters`` are the kernel's, by name. ``identities`` has, in the same order,
        what each parameter is: its role, its input, and its place in a sum or product of kernels.
        """
        records = []
        for leaf, box, weight in self.network_.responsibilities():
            low, high = box.corners(self.n_features_in_)
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


def kernel_names(labels: Sequence[str], prior: Node) -> list[str]:
    """Labels of the kernels asked for, then of simpler ones that experts of a small set have."""
    used = [node.label for node in distinct_nodes(prior) if isinstance(node, Leaf)]
    return list(dict.fromkeys([*labels, *used]))
