"""The scikit-learn face: ``SPNGPRegressor`` and ``GPRegressor``."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from spngp import defaults
from spngp._memory import Budget
from spngp._network_regressor import NetworkRegressor
from spngp._parallel import n_threads
from spngp._standardise import Standardiser
from spngp._typing import RandomState
from spngp._validation import as_floats
from spngp.kernels import Parameter
from spngp.learning import StrategyOf, add_rows
from spngp.structure import Compact, EqualWidth, RandomAxes


class SPNGPRegressor(NetworkRegressor):
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
        other rows of its region say, and if these are better predicted without it (``outliers_`` tells which); its
        region is then looked at again for others that it hid, eight standard deviations off. No row is dropped. All are
        trusted where the noise or all hyper-parameters are fixed, where hardly any noise was found, in regions of fewer
        than 20 or more than 5,000 rows, and when they come by ``partial_fit``; but not a single one a hundred times as
        far off as all others (one in 100,000): it is in doubt before anything is learnt from it.
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
            "chooses_cuts": self.structure == "compact" and self.hyperparameters == "adaptive",
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


class GPRegressor(NetworkRegressor):
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
