"""The scikit-learn face: ``SPNGPRegressor`` and ``GPRegressor``."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spngp import defaults
from spngp._memory import Budget
from spngp._parallel import n_threads, one_blas_thread
from spngp._progress import Progress
from spngp._regressor import Regressor
from spngp._standardise import Standardiser
from spngp._typing import Array, Indices, RandomState
from spngp._validation import as_count, as_floats, as_generator
from spngp.kernels import Parameter
from spngp.learning import Learnt, Plan, StrategyOf, add_rows, learn
from spngp.network import prediction, sampling
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.predictive import GaussianMixture
from spngp.structure import Compact, EqualWidth, RandomAxes

_LARGEST_OUTPUT = 1e150  # in standard units: its square is still a float


class _NetworkRegressor(Regressor):
    """What both estimators share: a network in standardised units, prediction in the user's, and looking inside."""

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
        n_observed = (~np.isnan(self._learnt.Y)).sum(axis=0)
        return float(self.network_.log_evidence - n_observed @ np.log(self._outputs.scale))

    @property
    def regions_(self) -> list[dict[str, Any]]:
        """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight.

        In the units of X and y, but for the kernel's parameters, which are in standardised units.
        """
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


class SPNGPRegressor(_NetworkRegressor):
    """Regression by a sum-product network of Gaussian processes: local experts, exact inference, linear cost.

    Parameters
    ----------
    kernels : kernel or list of kernels, optional
        Alternatives that every region mixes by their evidence; spngp's or scikit-learn's, in standardised units (inputs
        and outputs are brought to standard deviation one). By default two sums of a slow and a fast kernel.
    max_leaf_size : int
        Regions with more rows are cut.
    overlap : float or sequence of float, optional
        How many rows beyond its border an expert sees when it predicts, per row of its own, nearest first in the
        kernel's metric. A sequence gives instead a distance per input, in the units of X. 0 for none. By default 3
        up to 50,000 rows; of more, leaves see fewer in all (:func:`spngp.defaults.overlap`).
    structure : {"compact", "random", "equal-width"} or strategy
        How regions are cut: compact boxes in the kernel's metric; the paper's random axes; equal widths. Or an object
        of :mod:`spngp.structure`, which then decides on sizes and spacings in standardised units.
    n_partitions : int
        Alternative cuts of every region, mixed by their evidence; cost grows quickly with it.
    hyperparameters : {"adaptive", "tied", "independent", "fixed"}
        One set per kernel ("tied"), one per expert ("independent"), one per expert held near the tied values by a
        Gaussian prior ("adaptive"), or the kernels' own values ("fixed").
    noise_variance : float or Parameter, optional
        Variance of the noise in the squared units of y; learnt by default.
    memory_limit : float, optional
        Gigabytes that the model may hold; by default a fifth of the machine's memory, and of that one for Cholesky
        factors. Experts whose factors do not fit keep what the mean needs and make the factor again when a variance is
        asked for: the predictions are the same, and come fastest for many rows at once. To predict row by row from a
        large model, give it a limit that holds them.
    noise_shape : {"learnt", "gaussian"}
        Whether a new observation's noise may have a sharper peak and longer tails than a Gaussian of its variance, as
        leave-one-out residuals tell (:mod:`spngp.noise`). Means and variances are the same either way (but for the
        variance that outliers add). Always Gaussian where the noise or all hyper-parameters are fixed.
    outliers : {"doubt", "trust"}
        Whether an output gets a larger noise of its own if it lies more than five standard deviations off what all
        other rows of its region say, and if these are better predicted without it (``outliers_`` tells which). No row
        is dropped. All are trusted where the noise or all hyper-parameters are fixed, where hardly any noise was found,
        in regions of fewer than 20 or more than 5,000 rows, and when they come by ``partial_fit``; but not a single one
        a hundred times as far off as all others (one in 100,000): it is in doubt before anything is learnt from it.
    n_jobs : int, optional
        Threads over leaves; -1 for one a core. One by default, and where leaves are too small for more to pay.
    random_state : int, Generator or None
        Seed of the random subset and of random structures.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    network_ : Node
        The posterior network.
    log_evidence_ : float
    regions_ : list of dict
        One record per expert.
    kernel_names_ : list of str
        Columns of ``predict_kernel_weights``.

    Examples
    --------
    >>> from spngp import SPNGPRegressor, datasets
    >>> data = datasets.load("motorcycle")
    >>> model = SPNGPRegressor(random_state=0).fit(data.X, data.Y[:, 0])
    >>> mean, std = model.predict([[20.0]], return_std=True)
    >>> low, high = model.predict_dist([[20.0]]).interval(0.95)
    >>> bool(low[0] < mean[0] < high[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernels": "no_validation",
        "max_leaf_size": [Interval(Integral, 1, None, closed="left")],
        "overlap": [Interval(Real, 0, None, closed="left"), "array-like", None],
        "structure": [StrOptions({"compact", "random", "equal-width"}), Compact, EqualWidth, RandomAxes],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "hyperparameters": [StrOptions({"fixed", "tied", "independent", "adaptive"})],
        "noise_variance": [Interval(Real, 0, None, closed="left"), Parameter, None],
        "noise_shape": [StrOptions({"learnt", "gaussian"})],
        "outliers": [StrOptions({"doubt", "trust"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernels: Any = None,
        max_leaf_size: int = 500,
        overlap: Any = None,
        structure: Any = "compact",
        n_partitions: int = 1,
        hyperparameters: str = "adaptive",
        noise_variance: float | Parameter | None = None,
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        noise_shape: str = "learnt",
        outliers: str = "doubt",
    ) -> None:
        self.kernels = kernels
        self.max_leaf_size = max_leaf_size
        self.overlap = overlap
        self.structure = structure
        self.n_partitions = n_partitions
        self.hyperparameters = hyperparameters
        self.noise_variance = noise_variance
        self.noise_shape = noise_shape
        self.outliers = outliers
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn regions, hyper-parameters and the exact posterior from rows X (n, d) and outputs y (n,) or (n, p).

        NaN in y is a missing output: no row is dropped. Weights of rows are not supported.
        """
        return self._fit(X, y)

    def _kernels(self) -> Any:
        return self.kernels

    def _strategy(self) -> StrategyOf:
        size, structure = self.max_leaf_size, self.structure
        if structure == "compact":
            return lambda scales: Compact(size, scales.tolist(), self.n_partitions, whole_size=2 * size)
        if structure == "random":
            return lambda scales: RandomAxes(size, n_cuts=self.n_partitions)
        if structure == "equal-width":
            return lambda scales: EqualWidth(size, n_offsets=self.n_partitions)
        return lambda scales: structure

    def _settings(self, inputs: Standardiser, n_rows: int) -> dict[str, Any]:
        overlap, d = self.overlap, inputs.scale.size
        if overlap is not None and np.ndim(overlap):
            distances = as_floats(overlap, "overlap")
            if distances.shape != (d,) or not (distances >= 0).all():
                raise ValueError(f"overlap must be a number >= 0 or one per input ({d}), got {overlap!r}")
            overlap = distances / inputs.scale
        return {
            "strategy": self._strategy(),
            "hyperparameters": self.hyperparameters,
            "overlap": overlap,
            "block_size": self.max_leaf_size,
            "budget": Budget.of(self.memory_limit, n_threads(self.n_jobs)),
        }

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add rows, exactly: regions and hyper-parameters stay, everything else is as if all rows had come at once.

        The first call is a ``fit``. Later ones keep the standardisation, regions and parameters of the first, its
        outliers and the shape of its noise included: new outputs are trusted, but for those out of all proportion.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        X, y = self._checked(X, y, reset=False)
        Y = y.reshape(X.shape[0], -1)
        self._learnt = add_rows(self._learnt, self._inputs.apply(X), self._in_units(Y, self._outputs), self.n_jobs)
        return self


class GPRegressor(_NetworkRegressor):
    """The traditional Gaussian process: one exact GP on all rows. Cost grows as n³.

    Parameters
    ----------
    kernel : kernel, optional
        spngp's or scikit-learn's, in standardised units. A squared exponential with one length-scale per input by
        default.
    hyperparameters : {"tied", "fixed"}
        Learnt by evidence, or the kernel's own values.
    noise_variance, noise_shape, outliers, n_jobs, random_state, verbose
        As in :class:`SPNGPRegressor`.

    Examples
    --------
    >>> from spngp import GPRegressor, datasets
    >>> data = datasets.load("motorcycle")
    >>> model = GPRegressor(random_state=0).fit(data.X, data.Y[:, 0])
    >>> model.predict([[20.0]]).shape
    (1,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": "no_validation",
        "hyperparameters": [StrOptions({"tied", "fixed"})],
        "noise_variance": SPNGPRegressor._parameter_constraints["noise_variance"],
        "noise_shape": [StrOptions({"learnt", "gaussian"})],
        "outliers": [StrOptions({"doubt", "trust"})],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: Any = None,
        hyperparameters: str = "tied",
        noise_variance: float | Parameter | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        noise_shape: str = "learnt",
        outliers: str = "doubt",
    ) -> None:
        self.kernel = kernel
        self.hyperparameters = hyperparameters
        self.noise_variance = noise_variance
        self.noise_shape = noise_shape
        self.outliers = outliers
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters and condition on all rows; NaN in y is a missing output."""
        return self._fit(X, y)

    def _kernels(self) -> Any:
        return self.kernel if self.kernel is not None else defaults.traditional_kernel(self.n_features_in_)

    def _settings(self, inputs: Standardiser, n_rows: int) -> dict[str, Any]:
        return {
            "strategy": lambda scales: Compact(n_rows),
            "hyperparameters": self.hyperparameters,
            "overlap": 0.0,
            "block_size": n_rows,
        }
