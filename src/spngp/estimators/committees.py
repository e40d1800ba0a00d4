"""Committees of Gaussian processes: rows are shared out to experts, whose predictions are multiplied.

The older way to many rows, and the one that the paper compares with. All experts share one kernel and one noise.
:mod:`spngp.estimators.committee_rules` has the formulas. Noise is added once, to the combined variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from spngp._support.checks import as_generator
from spngp._support.progress import Progress
from spngp._support.threads import map_leaves, one_blas_thread
from spngp._support.types import Array, Indices, RandomState
from spngp.estimators.answers import Question
from spngp.estimators.base import Regressor
from spngp.estimators.committee_rules import RULES
from spngp.estimators.constraints import Words
from spngp.estimators.expert_groups import affordable, compact_groups, random_groups
from spngp.estimators.planning import effort_for, templates
from spngp.estimators.rows import canonical_order
from spngp.estimators.scaling import Scaling, check_outputs
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, Convergence
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Parameter
from spngp.learning import Effort, defaults, metric
from spngp.learning.blocks import blocks_of, observed
from spngp.learning.tied_evidence import fit_tied, tied_prior
from spngp.network.units import Units
from spngp.predictive import GaussianMixture

__all__ = [
    "BayesianCommitteeMachine",
    "GeneralizedProductOfExperts",
    "ProductOfExperts",
    "RobustBayesianCommitteeMachine",
]

_EXPERT_SIZE = 500  # rows per expert, if the number of experts is not given
_PREDICTED = 4_000_000  # experts times rows of a batch: bounds the memory
_FEWEST_AT_ONCE = 256  # rows of a batch
_MOST_AT_ONCE = 20_000  # rows of a batch


def _train(
    gp: ExactGP,
    start: ExactGP,
    blocks: Sequence[Block],
    evaluations: int,
    effort: Effort,
    n_jobs: int | None,
    convergence: Convergence,
) -> ExactGP:
    """Free parameters moved to a maximum of the sum of the blocks' evidences."""
    if not blocks:
        return gp
    around, tolerance = tied_prior(start, effort), effort.tolerance
    return fit_tied(
        [gp], blocks, evaluations, priors=[around], tolerance=tolerance, n_jobs=n_jobs, convergence=convergence
    )[0]


class _Committee(Regressor):
    """A committee whose rule, a key of ``RULES``, is set by its subclass."""

    _rule: ClassVar[str]

    units_: Units
    experts_: list[list[ExactGP]]
    expert_rows_: list[Indices]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": "no_validation",
        "n_experts": [Interval(Integral, 1, None, closed="left"), None],
        "assignment": [Words("random", "regions")],
        "hyperparameters": [Words("tied", "fixed")],
        "noise_variance": [Interval(Real, 0, None, closed="left"), Parameter, None],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_experts: int | None = None,
        assignment: str = "random",
        hyperparameters: str = "tied",
        noise_variance: float | Parameter | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_experts = n_experts
        self.assignment = assignment
        self.hyperparameters = hyperparameters
        self.noise_variance = noise_variance
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, y_variance: Any = None) -> Self:
        """Share out the rows X (n, d), learn the hyper-parameters and condition every expert on its outputs y.

        y has shape (n,) or (n, p); several outputs have a committee each, over the same groups of rows. NaN in y is a
        missing output. ``sample_weight`` and ``y_variance`` are as in :class:`spngp.SPNGPRegressor`.
        """
        with self._being_fitted() as model:
            X, Y, known = model._to_learn(X, y, sample_weight, y_variance)
            n_rows, n_experts = X.shape[0], self.n_experts or -(-X.shape[0] // _EXPERT_SIZE)
            if n_experts > n_rows:
                raise ValueError(f"n_experts must be at most the number of rows ({n_rows}), got {n_experts}")
            X, Y, known = X[order := canonical_order(X, Y)], Y[order], None if known is None else known[order]
            scaling = Scaling.of(X, Y, standardised=self.kernel is None, known=known)
            check_outputs(Y, scaling.units, scaling.output_spreads)
            starts = templates(self.kernel, defaults.traditional_kernels, self.noise_variance, scaling)
            if len(starts[0]) != 1:
                raise ValueError(f"kernel must be one kernel, got a list of {len(starts[0])}")
            rng = as_generator(self.random_state)
            with Progress(bool(self.verbose)) as progress, one_blas_thread():
                groups, experts = model._experts(X, Y, known, scaling, starts, n_experts, rng, progress)
            model.units_, model.experts_ = scaling.units, experts
            model.expert_rows_ = [np.sort(order[group]) for group in groups]
        return self

    def _experts(
        self,
        X: Array,
        Y: Array,
        known: KnownVariances | None,
        scaling: Scaling,
        templates: Sequence[Sequence[ExactGP]],
        n_experts: int,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[list[Indices], list[list[ExactGP]]]:
        """From rows in the units of the user to groups of rows and, for each output, conditioned experts."""
        X, Y = scaling.units.inputs.apply(X), scaling.units.outputs.apply(Y)
        n_rows, outputs, starts = X.shape[0], range(Y.shape[1]), [gp for (gp,) in templates]
        priors, units = list(starts), scaling.units.outputs.scale
        of_output = [None if known is None else known[:, k].divided_by(units[k]) for k in outputs]
        convergence, effort = Convergence(), effort_for(self.kernel)
        learns = self.hyperparameters == "tied"

        def train(groups: Sequence[Indices], evaluations: int) -> None:
            progress.stage("tied parameters", Y.shape[1])
            for k in outputs:
                blocks = blocks_of(groups, X, Y[:, k], of_output[k])
                priors[k] = _train(priors[k], starts[k], blocks, evaluations, effort, self.n_jobs, convergence)
                progress.advance()

        if n_experts == 1:
            groups = [np.arange(n_rows)]
            if learns:
                train(groups, effort.subset_evaluations)
        else:
            if learns:  # length-scales from a random subset: good enough to tell which rows are near each other
                train([np.sort(rng.permutation(n_rows)[: effort.subset_size])], effort.subset_evaluations)
            if self.assignment == "random":
                groups = random_groups(n_rows, n_experts, rng)
            else:
                groups = compact_groups(X / metric([[gp] for gp in priors], scaling.input_spreads), n_experts)
            if learns:
                train(affordable(groups, rng), effort.tied_evaluations)
        tasks = [(k, observed(group, X, Y[:, k], of_output[k])) for k in outputs for group in groups]
        tasks = [(k, block) for k, block in tasks if block[1].size]  # an expert without a known output stays out
        progress.stage("experts", len(tasks))

        def condition(task: tuple[int, Block]) -> ExactGP:
            expert = task[1].given_to(priors[task[0]])
            progress.advance()
            return expert

        conditioned = map_leaves(condition, tasks, self.n_jobs)
        convergence.warn()
        experts = [[gp for (j, _), gp in zip(tasks, conditioned, strict=True) if j == k] for k in outputs]
        return groups, experts

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "experts_")

    def predict(self, X: Any, return_std: bool = False, *, interval: Any = None, quantiles: Any = None) -> Any:
        """Mean of a new observation at each row; std, interval and quantiles as in :class:`spngp.SPNGPRegressor`."""
        return Question.of(return_std, interval, quantiles).of_all([self.predict_dist(X)])

    def predict_dist(self, X: Any, latent: bool = False) -> GaussianMixture:
        """The Gaussian at each row, as a mixture of one: of a new observation, or with ``latent`` without noise."""
        return self._snapshot()._predict(X, latent, [self._rule])[self._rule]

    def predict_dist_by_rule(self, X: Any, latent: bool = False) -> dict[str, GaussianMixture]:
        """The prediction of the same experts by each rule, for little more than one: "PoE", "gPoE", "BCM" and "rBCM".

        Examples
        --------
        >>> from spngp import datasets
        >>> from spngp.committees import ProductOfExperts
        >>> data = datasets.load("motorcycle")
        >>> model = ProductOfExperts(n_experts=20, random_state=0).fit(data.X, data.Y[:, 0])
        >>> found = model.predict_dist_by_rule([[20.0]], latent=True)
        >>> bool(found["PoE"].std < found["gPoE"].std)
        True
        """
        return self._snapshot()._predict(X, latent, list(RULES))

    def _predict(self, X: Any, latent: bool, rules: Sequence[str]) -> dict[str, GaussianMixture]:
        self._must_be_fitted()
        most = max(len(experts) for experts in self.experts_)
        parts: dict[str, list[GaussianMixture]] = {rule: [] for rule in rules}
        for rows in self._batches(X, self.units_, min(_MOST_AT_ONCE, max(_FEWEST_AT_ONCE, _PREDICTED // most))):
            Z = self.units_.inputs.apply(rows)
            with one_blas_thread():
                found = [self._combined(experts, Z, latent, rules) for experts in self.experts_]
            for i, rule in enumerate(rules):
                mean, variance = np.stack([by_rule[i] for by_rule in found], axis=-1)
                mean, std = self.units_.outputs.invert(mean), np.sqrt(variance) * self.units_.outputs.scale
                mean, std = (self._shaped(values)[..., np.newaxis] for values in (mean, std))
                parts[rule].append(GaussianMixture(np.zeros(mean.shape), mean, std**2))
        return {rule: GaussianMixture.concatenate(mixtures) for rule, mixtures in parts.items()}

    def _combined(
        self, experts: Sequence[ExactGP], Z: Array, latent: bool, rules: Sequence[str]
    ) -> list[tuple[Array, Array]]:
        """Mean and variance of one output by each rule, in the units of learning."""
        found = map_leaves(lambda gp: gp.predict(Z, latent=True), experts, self.n_jobs)
        means, variances = (np.stack(column) for column in zip(*found, strict=True))
        # a linear kernel has a prior variance of zero at the origin, and the rules divide by it
        prior = np.maximum(experts[0].kernel.diagonal(Z), 1e-200)
        noise = 0.0 if latent else experts[0].noise_variance
        combined = (RULES[rule](means, variances, prior) for rule in rules)
        return [(mean, variance + noise) for mean, variance in combined]

    @property
    def kernel_(self) -> Any:
        """The kernel of all experts, in the units of X and y; a list of them for several outputs."""
        self._must_be_fitted()
        kernels = [
            experts[0].kernel.rescaled(self.units_.inputs.scale, float(scale))
            for experts, scale in zip(self.experts_, self.units_.outputs.scale, strict=True)
        ]
        return kernels[0] if self.y_ndim_ == 1 else kernels

    @property
    def noise_std_(self) -> Any:
        """Standard deviation of the noise in the units of y; an array for several outputs."""
        self._must_be_fitted()
        variances = np.array([experts[0].noise_variance for experts in self.experts_])
        stds = np.sqrt(variances) * self.units_.outputs.scale
        return float(stds[0]) if self.y_ndim_ == 1 else stds

    @property
    def log_evidence_(self) -> float:
        """Sum of the experts' log evidences, in the units of y: what tied hyper-parameters maximise."""
        self._must_be_fitted()
        outputs = zip(self.experts_, self.units_.outputs.scale, strict=True)
        evidences = (gp.log_evidence - gp.n_counted * np.log(scale) for experts, scale in outputs for gp in experts)
        return float(sum(evidences))


class ProductOfExperts(_Committee):
    """Product of experts: precisions add up.

    Every expert adds its precision, even one that knows no more than the prior, so the variance tends to zero as the
    number of experts grows.

    Parameters
    ----------
    kernel : kernel, optional
        spngp's or scikit-learn's, in the units of X and y, as in :class:`spngp.GPRegressor`. By default a squared
        exponential with one length-scale per input, which is learnt on standardised rows.
    n_experts : int, optional
        How many experts share the rows, evenly. By default one for every 500 rows.
    assignment : {"random", "regions"}
        Rows go to experts at random, or to compact regions in the kernel's metric.
    hyperparameters : {"tied", "fixed"}
        "tied": one set for all experts, which maximises the sum of their log evidences. Where there are many experts,
        a random few of them stand for all. "fixed": the values that the kernel was given.
    noise_variance : float or Parameter, optional
        Variance of the noise in the squared units of y; learnt by default.
    n_jobs : int, optional
        Number of threads, which share the experts; -1 for one thread per core. One by default.
    random_state : int, Generator or None
        Seed of the assignment and of the rows that hyper-parameters are learnt from.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    experts_ : list of list of ExactGP
        For each output, the experts that have rows, in the units that they were learnt in (``units_``).
    expert_rows_ : list of ndarray
        The training rows of each expert.
    kernel_, noise_std_, log_evidence_
        What was learnt.

    Examples
    --------
    >>> from spngp import datasets
    >>> from spngp.committees import ProductOfExperts
    >>> data = datasets.load("motorcycle")
    >>> model = ProductOfExperts(n_experts=4, random_state=0).fit(data.X, data.Y[:, 0])
    >>> mean, std = model.predict([[20.0]], return_std=True)
    >>> [rows.size for rows in model.expert_rows_]
    [34, 33, 33, 33]
    """

    _rule = "PoE"


class GeneralizedProductOfExperts(_Committee):
    """Generalised product of experts: precisions are averaged (β = 1/M).

    With weights that add up to one, the variance returns to the prior's far from all rows, but it is too large near
    them. Parameters and attributes are those of :class:`ProductOfExperts`.
    """

    _rule = "gPoE"


class BayesianCommitteeMachine(_Committee):
    """Bayesian committee machine: precisions add up, and the prior, which all experts share, is counted once.

    Parameters and attributes are those of :class:`ProductOfExperts`.
    """

    _rule = "BCM"


class RobustBayesianCommitteeMachine(_Committee):
    """Robust Bayesian committee machine: an expert's weight grows with what it has learnt, β = ½ (log v₀ − log v).

    v₀ is the prior variance and v the expert's. Even with one expert it differs from that expert's GP.
    Parameters and attributes are those of :class:`ProductOfExperts`.
    """

    _rule = "rBCM"
