"""Committees of Gaussian processes: rows are shared out to experts, whose predictions are multiplied.

The older way to many rows, and the one that the paper compares with. All experts share one kernel and one noise. With
latent means μ_m and variances v_m of M experts, and the prior variance v₀, all at one point,

    1/v = Σ_m β_m/v_m + rest/v₀        μ = v · Σ_m β_m μ_m/v_m

==================================  ======================  ==========
rule                                β_m                     rest
==================================  ======================  ==========
product of experts                  1                       0
generalised product of experts      1/M                     0
Bayesian committee machine          1                       1 − M
robust Bayesian committee machine   ½ (log v₀ − log v_m)    1 − Σ β_m
==================================  ======================  ==========

Noise is added once, to v. Formulas of Hinton (2002), Cao and Fleet (2014), Tresp (2000), Deisenroth and Ng (2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spngp import defaults
from spngp._parallel import map_leaves, one_blas_thread
from spngp._progress import Progress
from spngp._regressor import Regressor
from spngp._standardise import Standardiser
from spngp._typing import Array, Indices, RandomState
from spngp._validation import as_generator
from spngp.kernels import Parameter
from spngp.leaf import ExactGP
from spngp.learning import metric
from spngp.predictive import GaussianMixture
from spngp.training import Block, Convergence, GaussianPrior, fit_tied

__all__ = [
    "BayesianCommitteeMachine",
    "GeneralizedProductOfExperts",
    "ProductOfExperts",
    "RobustBayesianCommitteeMachine",
]

_EXPERT_SIZE = 500  # rows per expert if their number is not given
_SUBSET_SIZE = 500
_SUBSET_EVALUATIONS, _TIED_EVALUATIONS = 80, 40
_TRAINING_COST = 12 * 500.0**3  # of one evaluation of the evidence: Σ rows³ over the experts that take part
_VARIANCE_PRIOR_STD = 2.0  # of a Gaussian on the log variances, as for a single GP
_PREDICTED = 4_000_000  # experts times rows predicted at a time, which bounds the memory

# From means and variances of the experts, shape (M, n), and the prior variance (n,) to one mean and one variance (n,).
Rule: TypeAlias = Callable[[Array, Array, Array], tuple[Array, Array]]


def _sharpness(variances: Array, prior: Array) -> Array:
    """v₀/v_m: how much sharper than the prior each expert is, 1 for one that knows nothing.

    Rules are computed with it, for then nothing depends on the units, and Σ β_m (v₀/v_m − 1) cannot turn negative by
    rounding as Σ β_m/v_m + rest/v₀ can. An expert without noise at its own row is 1/eps times as sharp, not infinitely.
    """
    least = np.finfo(np.float64).eps * prior
    return np.maximum(prior / np.maximum(variances, least), 1.0)


def _product(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    sharp = _sharpness(variances, prior)
    total = sharp.sum(axis=0)
    return (sharp * means).sum(axis=0) / total, prior / total


def _generalized_product(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    mean, variance = _product(means, variances, prior)
    return mean, variance * len(means)


def _bayesian_committee(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    sharp = _sharpness(variances, prior)
    total = 1.0 + (sharp - 1.0).sum(axis=0)
    return (sharp * means).sum(axis=0) / total, prior / total


def _robust_bayesian_committee(means: Array, variances: Array, prior: Array) -> tuple[Array, Array]:
    sharp = _sharpness(variances, prior)
    beta = 0.5 * np.log(sharp)
    total = 1.0 + (beta * (sharp - 1.0)).sum(axis=0)
    return (beta * sharp * means).sum(axis=0) / total, prior / total


RULES: dict[str, Rule] = {
    "PoE": _product,
    "gPoE": _generalized_product,
    "BCM": _bayesian_committee,
    "rBCM": _robust_bayesian_committee,
}


def _random_groups(n_rows: int, n_groups: int, rng: np.random.Generator) -> list[Indices]:
    return [np.sort(group) for group in np.array_split(rng.permutation(n_rows), n_groups)]


def _compact_groups(X: Array, n_groups: int) -> list[Indices]:
    """Groups of equal size, give or take one, that lie close together: the widest side is cut, again and again."""
    groups, stack = [], [(np.arange(X.shape[0]), n_groups)]
    while stack:
        rows, count = stack.pop()
        if count == 1:
            groups.append(np.sort(rows))
            continue
        axis = int(np.argmax(np.ptp(X[rows], axis=0)))
        ordered = rows[np.argsort(X[rows, axis], kind="stable")]
        lower = count // 2
        at = rows.size * lower // count
        stack += [(ordered[at:], count - lower), (ordered[:at], lower)]
    return groups


def _train(
    gp: ExactGP, start: ExactGP, blocks: Sequence[Block], evaluations: int, n_jobs: int | None, runs: Convergence
) -> ExactGP:
    """Free parameters moved to a maximum of the sum of the blocks' evidences, variances not far from their start."""
    blocks = [block for block in blocks if block[1].size > 1]
    if not blocks:
        return gp
    prior = GaussianPrior.of(start, lambda name: _VARIANCE_PRIOR_STD if name.split(".")[-1] == "variance" else np.inf)
    return fit_tied([gp], blocks, evaluations, priors=[prior], n_jobs=n_jobs, convergence=runs)[0]


def _affordable(groups: Sequence[Indices], rng: np.random.Generator) -> list[Indices]:
    """As many experts, at random, as can be trained at a bounded cost; one at least."""
    chosen, cost = [], 0.0
    for i in rng.permutation(len(groups)):
        chosen.append(groups[i])
        cost += float(groups[i].size) ** 3
        if cost >= _TRAINING_COST:
            break
    return chosen


def _block(X: Array, y: Array, rows: Indices) -> Block:
    observed = rows[~np.isnan(y[rows])]
    return np.ascontiguousarray(X[observed]), y[observed]


class _Committee(Regressor):
    """All but the rule, a name in ``RULES``."""

    _rule: ClassVar[str]

    experts_: list[list[ExactGP]]
    expert_rows_: list[Indices]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": "no_validation",
        "n_experts": [Interval(Integral, 1, None, closed="left"), None],
        "assignment": [StrOptions({"random", "regions"})],
        "hyperparameters": [StrOptions({"tied", "fixed"})],
        "noise_variance": [Interval(Real, 0, None, closed="left"), Parameter, None],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: Any = None,
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
    def fit(self, X: Any, y: Any) -> Self:
        """Share out the rows X (n, d), learn the hyper-parameters and condition every expert on its outputs y.

        y has shape (n,) or (n, p); several outputs have a committee each, over the same groups of rows. NaN in y is a
        missing output.
        """
        return self._fit(X, y)

    def _learn(self, X: Any, y: Any) -> Self:
        X, y = self._checked(X, y, reset=True)
        Y = y.reshape(X.shape[0], -1)
        n_rows, n_experts = X.shape[0], self.n_experts or -(-X.shape[0] // _EXPERT_SIZE)
        if n_experts > n_rows:
            raise ValueError(f"n_experts must be at most the number of rows ({n_rows}), got {n_experts}")
        inputs, outputs = Standardiser.of(X), Standardiser.of(Y)
        kernel = self.kernel if self.kernel is not None else defaults.traditional_kernel(X.shape[1])
        templates = self._templates(kernel, X.shape[1], outputs)
        if len(templates[0]) != 1:
            raise ValueError(f"kernel must be one kernel, got a list of {len(templates[0])}")
        rng, progress = as_generator(self.random_state), Progress(bool(self.verbose))
        try:
            with one_blas_thread():
                starts = [gp for (gp,) in templates]
                rows, experts = self._experts(inputs.apply(X), outputs.apply(Y), starts, n_experts, rng, progress)
        finally:
            progress.close()
        self._inputs, self._outputs = inputs, outputs
        self._y_is_flat, self.n_outputs_ = y.ndim == 1, Y.shape[1]
        self.experts_, self.expert_rows_ = experts, rows
        return self

    def _experts(
        self,
        X: Array,
        Y: Array,
        starts: Sequence[ExactGP],
        n_experts: int,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[list[Indices], list[list[ExactGP]]]:
        """From standardised rows to groups of rows and, for each output, conditioned experts."""
        n_rows, outputs, priors = X.shape[0], range(Y.shape[1]), list(starts)
        convergence = Convergence()
        learns = self.hyperparameters == "tied"

        def train(groups: Sequence[Indices], evaluations: int) -> None:
            progress.stage("tied parameters", Y.shape[1])
            for k in outputs:
                blocks = [_block(X, Y[:, k], group) for group in groups]
                priors[k] = _train(priors[k], starts[k], blocks, evaluations, self.n_jobs, convergence)
                progress.advance()

        if n_experts == 1:
            groups = [np.arange(n_rows)]
            if learns:
                train(groups, _SUBSET_EVALUATIONS)
        else:
            if learns:  # a first idea, cheap and good enough to say what is near
                train([np.sort(rng.permutation(n_rows)[:_SUBSET_SIZE])], _SUBSET_EVALUATIONS)
            if self.assignment == "random":
                groups = _random_groups(n_rows, n_experts, rng)
            else:
                groups = _compact_groups(X / metric([[gp] for gp in priors], X.shape[1]), n_experts)
            if learns:
                train(_affordable(groups, rng), _TIED_EVALUATIONS)
        tasks = [(k, _block(X, Y[:, k], group)) for k in outputs for group in groups]
        tasks = [(k, block) for k, block in tasks if block[1].size]  # an expert that saw nothing has no say
        progress.stage("experts", len(tasks))

        def condition(task: tuple[int, Block]) -> ExactGP:
            expert = priors[task[0]].condition(*task[1])
            progress.advance()
            return expert

        conditioned = map_leaves(condition, tasks, self.n_jobs)
        convergence.warn()
        experts = [[gp for (j, _), gp in zip(tasks, conditioned, strict=True) if j == k] for k in outputs]
        return groups, experts

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "experts_")

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row, and with ``return_std`` its standard deviation as well."""
        mixture = self.predict_dist(X)
        return (mixture.mean, mixture.std) if return_std else mixture.mean

    def predict_dist(self, X: Any, latent: bool = False) -> GaussianMixture:
        """The Gaussian at each row, of a new observation or with ``latent`` of the function without noise.

        A mixture of one component, so that committees and networks are scored alike.
        """
        return self._predict(X, latent, [self._rule])[self._rule]

    def predict_dist_by_rule(self, X: Any, latent: bool = False) -> dict[str, GaussianMixture]:
        """What each rule makes of the same experts: "PoE", "gPoE", "BCM" and "rBCM", for little more than one of them.

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
        return self._predict(X, latent, list(RULES))

    def _predict(self, X: Any, latent: bool, rules: Sequence[str]) -> dict[str, GaussianMixture]:
        check_is_fitted(self)
        most = max(len(experts) for experts in self.experts_)
        parts: dict[str, list[GaussianMixture]] = {rule: [] for rule in rules}
        for Z in self._blocks(X, min(20_000, max(256, _PREDICTED // most))):
            with one_blas_thread():
                found = [self._combined(experts, Z, latent, rules) for experts in self.experts_]
            for i, rule in enumerate(rules):
                mean, variance = np.stack([by_rule[i] for by_rule in found], axis=-1)
                if self.n_outputs_ > 1:
                    mean, variance = mean[..., np.newaxis], variance[..., np.newaxis]
                parts[rule].append(self._in_units_of_y(GaussianMixture(np.zeros(mean.shape), mean, variance)))
        return {rule: GaussianMixture.concatenate(mixtures) for rule, mixtures in parts.items()}

    def _combined(
        self, experts: Sequence[ExactGP], Z: Array, latent: bool, rules: Sequence[str]
    ) -> list[tuple[Array, Array]]:
        """Mean and variance of one output by each rule, in standardised units."""
        found = map_leaves(lambda gp: gp.predict(Z, latent=True), experts, self.n_jobs)
        means, variances = (np.stack(column) for column in zip(*found, strict=True))
        # the prior of a linear kernel has no variance at the origin
        prior = np.maximum(experts[0].kernel.diagonal(Z), 1e-200)
        noise = 0.0 if latent else experts[0].noise_variance
        combined = (RULES[rule](means, variances, prior) for rule in rules)
        return [(mean, variance + noise) for mean, variance in combined]

    @property
    def kernel_(self) -> Any:
        """The kernel of all experts, in standardised units; a list of them for several outputs."""
        check_is_fitted(self)
        kernels = [experts[0].kernel for experts in self.experts_]
        return kernels[0] if self._y_is_flat else kernels

    @property
    def noise_std_(self) -> Any:
        """Standard deviation of the noise in the units of y; an array for several outputs."""
        check_is_fitted(self)
        variances = np.array([experts[0].noise_variance for experts in self.experts_])
        stds = np.sqrt(variances) * self._outputs.scale
        return float(stds[0]) if self._y_is_flat else stds

    @property
    def log_evidence_(self) -> float:
        """Sum of the experts' log evidences, in the units of y: what tied hyper-parameters maximise."""
        check_is_fitted(self)
        return float(
            sum(
                gp.log_evidence - gp.n_own * np.log(scale)
                for experts, scale in zip(self.experts_, self._outputs.scale, strict=True)
                for gp in experts
            )
        )


class ProductOfExperts(_Committee):
    """Product of experts: precisions add up.

    Every expert counts as an independent witness, even one that knows no more than the prior, so the variance collapses
    as experts become many.

    Parameters
    ----------
    kernel : kernel, optional
        spngp's or scikit-learn's, in standardised units (inputs and outputs are brought to standard deviation one), as
        in :class:`spngp.GPRegressor`. A squared exponential with one length-scale per input by default.
    n_experts : int, optional
        How many experts share the rows, evenly. By default one for every 500 rows.
    assignment : {"random", "regions"}
        Rows go to experts at random, or to compact regions in the kernel's metric.
    hyperparameters : {"tied", "fixed"}
        One set for all experts, learnt by the sum of their log evidences (of a random few if there are many); or the
        kernel's own values.
    noise_variance : float or Parameter, optional
        Variance of the noise in the squared units of y; learnt by default.
    n_jobs : int, optional
        Threads over experts; -1 for one a core. One by default.
    random_state : int, Generator or None
        Seed of the assignment and of the rows that hyper-parameters are learnt from.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    experts_ : list of list of ExactGP
        For each output, the experts that have rows, in standardised units.
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
    """Robust Bayesian committee machine: an expert counts by how much it learnt, β = ½ (log prior − log own variance).

    It is no full GP even with one expert. Parameters and attributes are those of :class:`ProductOfExperts`.
    """

    _rule = "rBCM"
