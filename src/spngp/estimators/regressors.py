"""``SPNGPRegressor``: the estimator with a mixture of local experts."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from spngp._support.limits import LARGEST_OVERLAP
from spngp._support.locks import lock_of
from spngp._support.row_counts import as_weights
from spngp._support.types import RandomState
from spngp.estimators.constraints import Words
from spngp.estimators.network_model import NetworkModel
from spngp.estimators.planning import Request
from spngp.estimators.present import events_of, numbers_of
from spngp.estimators.rows import is_elsewhere
from spngp.estimators.targets import check_target, transformed
from spngp.estimators.updates import forgotten, updated
from spngp.kernels import Parameter
from spngp.learning import defaults
from spngp.structure import Compact, EqualWidth, RandomAxes, Strategy

# Defaults. Beside a strategy object any other value is an error, as the object has its own.
_MAX_LEAF_SIZE = 500  # rows
_N_PARTITIONS = 1  # ways to cut a region


class SPNGPRegressor(NetworkModel):
    """Regression by a sum-product network of Gaussian processes: local experts, exact inference, linear cost.

    Parameters
    ----------
    kernels : kernel or list of kernels, optional
        Every region has one expert for each kernel and mixes them by their evidence. spngp's or scikit-learn's kernels,
        in the units of X and y. By default two kernels, each the sum of a slow and a fast part, which are learnt on
        standardised rows.
    structure : {"compact", "random", "equal-width"} or strategy
        How regions are cut.

        - "compact": at the median of the widest side, in units of the kernel's length-scales.
        - "random": along random inputs, as in the paper.
        - "equal-width": into parts of equal width along random inputs.
        - An object of :mod:`spngp.structure`, in the units of X. Give ``max_leaf_size`` and ``n_partitions`` to it.
    max_leaf_size : int
        Regions with more rows are cut. A set of up to twice as many is modelled uncut as well, and cut where its noise
        or its roughness changes; the evidence chooses (``structure="compact"``, ``hyperparameters="adaptive"``).
    n_partitions : int
        Number of alternative ways to cut every region, mixed by their evidence. The cost grows as a power of it.
    overlap : float, optional
        Context rows per own row: an expert with n rows in its region also sees the ``overlap * n`` nearest rows outside
        when it predicts; 0 for none. By default 3, or more if an expert would otherwise see fewer rows than 3.2 times
        ``max_leaf_size``; fewer beyond 50,000 training rows (:func:`spngp.learning.defaults.overlap`), and where
        rows that are left out are predicted better, or as well, with a share of them. It is 1 where the evidence
        chooses cuts along the only input.
    margin : float or sequence of float, optional
        Instead of ``overlap``: an expert sees all rows up to this distance beyond the border of its region, in the
        units of X; one distance for all inputs, or one per input.
    hyperparameters : {"adaptive", "tied", "independent", "fixed"}
        - "tied": one set per kernel, for all its experts.
        - "independent": one set per expert.
        - "adaptive": one set per expert, held near the tied values by a Gaussian prior.
        - "fixed": the values that the kernels were given.
    noise_variance : float or Parameter, optional
        Variance of the noise in the squared units of y; learnt by default.
    noise_shape : {"learnt", "gaussian"}
        "learnt": the noise of a new observation may have a sharper peak and longer tails than a Gaussian of the same
        variance, if leave-one-out residuals do (:mod:`spngp.noise`). Means stay the same, and so do variances, unless
        outputs are in doubt: the learnt shape then includes their variance. The noise is Gaussian in any case if the
        noise variance or all hyper-parameters are fixed.
    outliers : {"doubt", "trust"}
        "doubt": an output in doubt gets a larger noise variance, for itself alone; no row is dropped. ``outliers_``
        lists them. An output is in doubt if

        - it is more than 5 standard deviations from what all other rows of its region predict, and
        - those rows are better predicted without it.

        A region with outputs in doubt is searched again, up to three times, for others more than 8 standard deviations
        off. A single output 100 times as far from the median as any other is in doubt from the start; among more than
        100,000 rows, one in 100,000 may be. Nothing is in doubt

        - if the noise variance or all hyper-parameters are fixed,
        - in regions whose noise variance was learnt to be less than 1.5 times its lower bound, or
        - in regions with fewer than 20 or more than 5,000 rows.

        Rows added by ``partial_fit`` are judged in the same way.
    target : {"log", "auto"} or transformer, optional
        Learn another scale of y; predictions are in the units of y, by an exact change of variables.

        - "log": the logarithm, for outputs that are positive, and then so is everything predicted.
        - "auto": the logarithm or y itself, for each output by the evidence.
        - An increasing transformer of scikit-learn's, such as ``PowerTransformer()``; such a model cannot be saved.
    columns : dict, optional
        What the types of a table's columns do not say: ``{"store": "category"}`` for numbers that are levels,
        ``{"size": ["S", "M", "L"]}`` for levels in their order, ``{"when": ["days", "week"]}`` for the parts that a
        date becomes, ``{"row": "ignored"}`` for a column that is no input.
    unknown : {"prior", "error"}
        What to do with a level of a category that no row had so far: predict it as a further level, of which only
        the prior over levels is known, or refuse it.
    memory_limit : float, optional
        Gigabytes that the model may hold; by default a fifth of the machine's memory, with at most one gigabyte of
        Cholesky factors. An expert whose factor does not fit computes it again whenever a variance is asked for. The
        predictions are the same, and fastest for many rows in one call. To predict row by row from a large model,
        give a limit that holds all factors.
    n_jobs : int, optional
        Number of threads, which share the leaves; -1 for one thread per core. One by default. Where
        leaves have fewer than about 120 rows, one thread does all the work, because that is faster.
    random_state : int, Generator or None
        Seed of the random rows that hyper-parameters are learnt from, and of random structures.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    columns_ : InputColumns
        What the columns of X are, and how they become inputs.
    network_ : Node
        The posterior network, in the units of X and y; it predicts what the model predicts.
    log_evidence_ : float
        log p(y | X) of the training rows, in nats.
    regions_ : list of dict
        One record per expert.
    outliers_ : ndarray of shape (count, 2)
        Row and output of every output in doubt.
    kernel_names_ : list of str
        Names of the columns of ``predict_kernel_weights``.
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
        "target": "no_validation",
        "columns": [dict, None],
        "unknown": [Words("prior", "error")],
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
        target: Any = None,
        columns: dict[str, Any] | None = None,
        unknown: str = "prior",
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
        self.target = target
        self.columns = columns
        self.unknown = unknown
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, y_variance: Any = None) -> Self:
        """Learn regions, hyper-parameters and the exact posterior from rows X (n, d) and outputs y (n,) or (n, p).

        NaN in y is a missing output; the row's other outputs are used.

        Parameters
        ----------
        X, y : array-like
            X may be a data set as well: a :class:`pyarrow.dataset.Dataset`, the path of a Parquet file or folder, or an
            iterator of record batches; y is then the name of its column, or a list of names, and ``sample_weight`` and
            ``y_variance`` are names of columns as well. If ``memory_limit`` does not hold its rows, it is fitted out of
            core (:mod:`spngp.outofcore`).
        sample_weight : array-like of shape (n,), optional
            A row of weight w counts as w equal rows, exactly, and takes their time and memory; a row of weight 0 is
            not there. A fraction of a row has the likelihood of a whole one to that power: evidence, means and
            variances change smoothly from one whole number to the next.
        y_variance : float or array-like of shape (n,) or (n, p), optional
            Known variance of the measurement of each output, in the squared units of y. It is added to the noise that
            is learnt. Predictions are of new observations with the learnt noise alone.
        """
        if is_elsewhere(X):
            from spngp.outofcore import fit_dataset  # the edges know the estimators, not the other way round

            return fit_dataset(self, X, y, sample_weight, y_variance)
        return self._fit(X, y, self._request(), sample_weight, y_variance)

    def _request(self) -> Request:
        # what is not learnt cannot be told from noise
        whole_size = math.inf if self.hyperparameters == "fixed" else 2 * self.max_leaf_size
        return Request(
            kernels=self.kernels,
            default_kernels=partial(defaults.default_kernels, whole_size=whole_size),
            strategy=self._strategy(),
            searches=True,
            chooses_cuts=self.structure == "compact" and self.hyperparameters == "adaptive",
            hyperparameters=self.hyperparameters,
            overlap=self.overlap,
            margin=self.margin,
            noise_variance=self.noise_variance,
            noise_shape=self.noise_shape,
            outliers=self.outliers,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
        )

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

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, y_variance: Any = None) -> Self:
        """Add rows, exactly, in milliseconds: as if all rows had come at once, given the structure.

        The first call is a ``fit``, and may bring a single row. Later calls

        - learn the levels of categories that come with them, unless ``unknown`` is "error";
        - add each row to its region; all other regions stay untouched, and learn of it when they next predict;
        - judge all outputs of the regions touched that came after the fit anew, as in a fit. If more than one and more
          than a tenth of them would be in doubt, the data have changed there, and all are trusted;
        - then look after the structure: cut a region that has grown too large, learn a region again that has grown by
          half or that drifts, and everything again while the set is small (:mod:`spngp.streaming.upkeep`).
          ``events_`` lists these changes.

        Evidence, weights and predictions are exact, given the parameters, the regions, how far each region sees, and
        the noise of each row; they do not depend on the order or the batches in which rows came.

        Where rows have fractional weights, regions and parameters stay, and all regions are given their rows anew.

        Several threads may call it: updates are made one after the other, and none is lost. A prediction made meanwhile
        is that of the model before or after an update. If an update fails, the model stays as it was.
        """
        with lock_of(self):
            if not self.__sklearn_is_fitted__():
                if is_elsewhere(X) or self.unknown == "error":  # then all levels come with the first rows
                    return self.fit(X, y, sample_weight, y_variance)
                self._validate_params()
                return self._fit(X, y, self._request(), sample_weight, y_variance, begins=True)
            model = self._snapshot()  # a failure leaves the model as it was
            n_before = numbers_of(model._learnt)[1]
            X, Y, known = model._to_learn(X, y, sample_weight, y_variance, reset=False)
            n_new = len(y)
            check_target(self.target, known)
            model._learnt, labels = updated(model, X, transformed(Y, model.targets_), self._request(), known)
            model._note_counts(as_weights(sample_weight, n_new).counts, n_new, n_before)
            if labels is not None:
                model.kernel_names_ = labels
            learnt = ("_learnt", "columns_", "kernel_names_", "row_repeats_")  # all at once, for other threads
            self.__dict__.update({name: value for name, value in vars(model).items() if name in learnt})
        return self

    def forget(self, *, rows: Any = None, older_than: int | None = None, keep_last: int | None = None) -> Self:
        """Forget rows, exactly: as if they had never come, given the structure.

        Parameters
        ----------
        rows : array-like of int, optional
            Numbers of rows, as in ``row_numbers_``.
        older_than : int, optional
            All rows with a smaller number.
        keep_last : int, optional
            All rows but so many that came last: a sliding window, if it is called after every update.
        """
        self._must_be_fitted()
        with lock_of(self):
            self._learnt = forgotten(self, rows, older_than, keep_last)
        return self

    @property
    def events_(self) -> list[dict[str, Any]]:
        """Changes of the structure since the fit: after how many rows, what was done, why, and to which region."""
        self._must_be_fitted()
        events = events_of(self._learnt)
        return [{"rows": event.rows, "kind": event.kind, "reason": event.reason} for event in events]
