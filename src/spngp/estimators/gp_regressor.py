"""``GPRegressor``: the traditional Gaussian process, to compare with and for a few hundred rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context

from spngp._support.types import RandomState
from spngp.estimators.constraints import Words
from spngp.estimators.network_model import NetworkModel
from spngp.estimators.planning import Request
from spngp.estimators.regressors import SPNGPRegressor
from spngp.kernels import Parameter
from spngp.learning import defaults
from spngp.structure import Compact


class GPRegressor(NetworkModel):
    """The traditional Gaussian process: one exact GP on all rows. Cost grows as n³.

    Parameters
    ----------
    kernel : kernel, optional
        spngp's or scikit-learn's, in the units of X and y. By default a squared exponential with one length-scale per
        input, which is learnt on standardised rows.
    hyperparameters : {"tied", "fixed"}
        "tied": learnt, by maximising the evidence. "fixed": the values that the kernel was given.
    noise_variance, noise_shape, outliers, target, columns, unknown, n_jobs, random_state, verbose
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
        "hyperparameters": [Words("tied", "fixed")],
        "noise_variance": SPNGPRegressor._parameter_constraints["noise_variance"],
        "noise_shape": [Words("learnt", "gaussian")],
        "outliers": [Words("doubt", "trust")],
        "target": "no_validation",
        "columns": [dict, None],
        "unknown": [Words("prior", "error")],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        hyperparameters: str = "tied",
        noise_variance: float | Parameter | None = None,
        noise_shape: str = "learnt",
        outliers: str = "doubt",
        target: Any = None,
        columns: dict[str, Any] | None = None,
        unknown: str = "prior",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.hyperparameters = hyperparameters
        self.noise_variance = noise_variance
        self.noise_shape = noise_shape
        self.outliers = outliers
        self.target = target
        self.columns = columns
        self.unknown = unknown
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, y_variance: Any = None) -> Self:
        """Learn the hyper-parameters and condition on all rows; NaN in y is a missing output.

        ``sample_weight`` and ``y_variance`` are those of :class:`SPNGPRegressor`.
        """
        request = Request(
            kernels=self.kernel,
            default_kernels=defaults.traditional_kernels,
            strategy=Compact(np.iinfo(np.intp).max),
            searches=False,
            chooses_cuts=False,
            hyperparameters=self.hyperparameters,
            overlap=0.0,
            margin=None,
            noise_variance=self.noise_variance,
            noise_shape=self.noise_shape,
            outliers=self.outliers,
            memory_limit=np.inf,
            n_jobs=self.n_jobs,
        )
        return self._fit(X, y, request, sample_weight, y_variance)
