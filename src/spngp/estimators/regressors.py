"""The estimators with a network: ``SPNGPRegressor`` and ``GPRegressor``."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from spngp._support.limits import LARGEST_OVERLAP
from spngp._support.locks import lock_of
from spngp._support.types import RandomState
from spngp.estimators.constraints import Words
from spngp.estimators.network_model import NetworkModel
from spngp.estimators.planning import Request
from spngp.estimators.scaling import check_inputs, check_outputs
from spngp.kernels import Parameter
from spngp.learning import add_rows, defaults
from spngp.structure import Compact, EqualWidth, RandomAxes, Strategy

_MAX_LEAF_SIZE, _N_PARTITIONS = 500, 1  # defaults; a strategy object goes with no others


class SPNGPRegressor(NetworkModel):
    """Regression by a sum-product network of Gaussian processes: local experts, exact inference, linear cost.

    Parameters
    ----------
    kernels : kernel or list of kernels, optional
        Alternatives that every region mixes by their evidence; spngp's or scikit-learn's, in the units of X and y. By
        default two sums of a slow and a fast kernel, which are learnt on standardised rows.
    structure : {"compact", "random", "equal-width"} or strategy
        How regions are cut: compact boxes in the kernel's metric; the paper's random axes; equal widths. Or an object
        of :mod:`spngp.structure`, in the units of X, which then decides on sizes and alternatives by itself.
    max_leaf_size : int
        Regions with more rows are cut.
    n_partitions : int
        Alternative cuts of every region, mixed by their evidence; cost grows quickly with it.
    overlap : float, optional
        Number of rows beyond its border that an expert sees when it predicts, per row of its own, nearest first in the
        kernel's metric. 0 for none. By default 3 up to 50,000 rows; with more rows, leaves see fewer in all
        (:func:`spngp.learning.defaults.overlap`).
    margin : float or sequence of float, optional
        Instead of ``overlap``: an expert sees the rows up to this distance beyond its border, in the units of X; one
        distance for all inputs, or one per input.
    hyperparameters : {"adaptive", "tied", "independent", "fixed"}
        One set per kernel ("tied"), one per expert ("independent"), one per expert held near the tied values by a
        Gaussian prior ("adaptive"), or the kernels' own values ("fixed").
    noise_variance : float or Parameter, optional
        Variance of the noise in the squared units of y; learnt by default.
    noise_shape : {"learnt", "gaussian"}
        Whether a new observation's noise may have a sharper peak and longer tails than a Gaussian of its variance, as
        leave-one-out residuals tell (:mod:`spngp.noise`). Means and variances are the same either way, but for the
        variance that outliers add. Always Gaussian where the noise or all hyper-parameters are fixed.
    outliers : {"doubt", "trust"}
        Whether an output may be in doubt (``outliers_`` tells which): then it gets a larger noise of its own. No row is
        dropped. An output is in doubt if

        - it lies more than 5 standard deviations off what all other rows of its region say, and
        - these are better predicted without it.

        The region is then looked at again for outputs 8 standard deviations off, which others hid. A single output
        a hundred times as far off as all others (one in 100,000) is in doubt before anything is learnt from it. Nothing
        is doubted where the noise or all hyper-parameters are fixed, where hardly any noise was found, and in regions
        of fewer than 20 or more than 5,000 rows. Rows that come by ``partial_fit`` are judged alike.
    memory_limit : float, optional
        Gigabytes that the model may hold; by default a fifth of the machine's memory, and of that one for Cholesky
        factors. Experts whose factors do not fit keep what the mean needs and make the factor again when a variance is
        asked for: the predictions are the same, and come fastest for many rows at once. To predict row by row from a
        large model, give it a limit that holds them.
    n_jobs : int, optional
        Threads over leaves; -1 for one a core. One by default, and where leaves are too small for more to pay.
    random_state : int, Generator or None
        Seed of the random subset and of random structures.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    network_ : Node
        The posterior network, in the units of X and y; it predicts what the model predicts.
    log_evidence_ : float
    regions_ : list of dict
        One record per expert.
    kernel_names_ : list of str
        Columns of ``predict_kernel_weights``.
    X_train_, y_train_ : ndarray
        The rows learnt from.

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
        "structure": [
            Words(
                *("compact", "random", "equal-width"),
                instances=(Compact, EqualWidth, RandomAxes),
                called="a strategy of spngp.structure",
            )
        ],
        "max_leaf_size": [Interval(Integral, 1, None, closed="left")],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "overlap": [Interval(Real, 0, LARGEST_OVERLAP, closed="both"), None],
        "margin": [Interval(Real, 0, None, closed="left"), "array-like", None],
        "hyperparameters": [Words("adaptive", "tied", "independent", "fixed")],
        "noise_variance": [Interval(Real, 0, None, closed="left"), Parameter, None],
        "noise_shape": [Words("learnt", "gaussian")],
        "outliers": [Words("doubt", "trust")],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        structure: Any = "compact",
        max_leaf_size: int = _MAX_LEAF_SIZE,
        n_partitions: int = _N_PARTITIONS,
        overlap: float | None = None,
        margin: Any = None,
        hyperparameters: str = "adaptive",
        noise_variance: float | Parameter | None = None,
        noise_shape: str = "learnt",
        outliers: str = "doubt",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.structure = structure
        self.max_leaf_size = max_leaf_size
        self.n_partitions = n_partitions
        self.overlap = overlap
        self.margin = margin
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
        request = Request(
            kernels=self.kernels,
            default_kernels=defaults.default_kernels,
            strategy=self._strategy(),
            hyperparameters=self.hyperparameters,
            overlap=self.overlap,
            margin=self.margin,
            noise_variance=self.noise_variance,
            noise_shape=self.noise_shape,
            outliers=self.outliers,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
        )
        return self._fit(X, y, request)

    def _strategy(self) -> Strategy:
        size, structure = self.max_leaf_size, self.structure
        if structure == "compact":
            return Compact(size, n_partitions=self.n_partitions, whole_size=2 * size)
        if structure == "random":
            return RandomAxes(size, n_partitions=self.n_partitions)
        if structure == "equal-width":
            return EqualWidth(size, n_partitions=self.n_partitions)
        if (size, self.n_partitions) != (_MAX_LEAF_SIZE, _N_PARTITIONS):
            raise ValueError(
                "a strategy object decides on leaf size and partitions by itself: give max_leaf_size and n_partitions "
                f"to it, not beside it; got structure={structure!r}, max_leaf_size={size}, "
                f"n_partitions={self.n_partitions}"
            )
        return structure

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add rows, exactly: regions and hyper-parameters stay, everything else is as if all rows had come at once.

        The first call is a ``fit``. Later ones keep its units, regions and parameters, and the outliers that it found
        among its own rows. All rows that came later are judged after each call, as in a fit, by what the rows of their
        region now say (but where more than one, and more than a tenth, of a region's later rows would be outliers, its
        outputs have become others and are trusted). The shape of the noise is learnt again from all rows. So the model
        is the same in whatever batches the rows came; evidence, weights and predictions are exact given the parameters,
        the regions and the noise of each row.

        Several threads may call it: the updates follow one another, and none is lost. A prediction made meanwhile is
        that of the model before or after an update.
        """
        with lock_of(self):
            if not self.__sklearn_is_fitted__():
                return self.fit(X, y)
            X, Y = self._checked(X, y, reset=False)
            check_inputs(X, self._learnt.units)
            check_outputs(Y, self._learnt.units, self._learnt.output_spreads)
            # which leaves tell the shape of the noise must not depend on batches
            rng = np.random.default_rng(0)
            self._learnt = add_rows(self._learnt, X, Y, rng, self.n_jobs)
        return self


class GPRegressor(NetworkModel):
    """The traditional Gaussian process: one exact GP on all rows. Cost grows as n³.

    Parameters
    ----------
    kernel : kernel, optional
        spngp's or scikit-learn's, in the units of X and y. By default a squared exponential with one length-scale per
        input, which is learnt on standardised rows.
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
        "hyperparameters": [Words("tied", "fixed")],
        "noise_variance": SPNGPRegressor._parameter_constraints["noise_variance"],
        "noise_shape": [Words("learnt", "gaussian")],
        "outliers": [Words("doubt", "trust")],
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
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
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
        request = Request(
            kernels=self.kernel,
            default_kernels=lambda d: [defaults.traditional_kernel(d)],
            strategy=Compact(np.iinfo(np.intp).max),
            hyperparameters=self.hyperparameters,
            overlap=0.0,
            margin=None,
            noise_variance=self.noise_variance,
            noise_shape=self.noise_shape,
            outliers=self.outliers,
            memory_limit=np.inf,
            n_jobs=self.n_jobs,
        )
        return self._fit(X, y, request)
