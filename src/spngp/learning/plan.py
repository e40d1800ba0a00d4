"""What is to be learnt, and within which limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spngp._support.memory import Budget
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.learning.defaults import LEAST_OVERLAP
from spngp.learning.defaults import overlap as default_overlap
from spngp.network.units import Units
from spngp.structure import Strategy

# Given the length-scales of the metric: how to cut.
StrategyOf: TypeAlias = Callable[[Array], Strategy]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work goes into hyper-parameters; all figures are measured defaults (``benchmarks/defaults.md``).

    Attributes
    ----------
    subset_size : int
        Rows of the random subset that tied parameters are first learnt from.
    judged_size : int
        Rows on which evidences of what was learnt from the subset are compared.
    n_sampled_regions : int
        Number of random regions that tied parameters are then learnt from.
    n_rounds : int
        Number of rounds: in each, parameters are learnt from sampled regions and the space is cut anew. The last has
        larger regions where the noise does not differ between them, with as many rows in all.
    prior_std, length_scale_prior_std : float
        Standard deviation of the Gaussian prior on an expert's log-parameters around the tied values; the second for
        length-scales, periods and alpha.
    noise_prior_std : float
        The same for the noise variance.
    freedom : tuple of float
        For experts of a small set that may be cut: standard deviations of the prior on the shift of all log
        length-scales together, of all log variances of the kernel together, and of the log noise variance.
    variance_prior_std : float
        Standard deviation of the Gaussian prior on the log variances of tied kernels around their starts.
    levels_prior_std : float
        The same for the log length-scales along codes of levels.
    short_prior_std : float
        The same for log length-scales below their starts; a long one is simple, and free.
    subset_evaluations, tied_evaluations, larger_evaluations, expert_evaluations : int
        Most evaluations of the evidence: on the subset, in a round, in a last one with larger regions, and for one
        expert.
    tolerance, expert_tolerance : float
        Training of tied parameters ends when a step gained less, an expert's when the next step promises less, both in
        nats per row.
    """

    subset_size: int = 500
    judged_size: int = 1500
    n_sampled_regions: int = 12
    n_rounds: int = 2
    prior_std: float = 0.5
    length_scale_prior_std: float = 0.1
    noise_prior_std: float = 0.5
    freedom: tuple[float, float, float] = (0.85, 1.75, 1.75)
    variance_prior_std: float = 2.0
    levels_prior_std: float = 0.5
    short_prior_std: float = math.inf
    subset_evaluations: int = 80
    tied_evaluations: int = 40
    larger_evaluations: int = 12
    expert_evaluations: int = 15
    tolerance: float = 1e-5
    expert_tolerance: float = 5e-4


# Where a user's kernel starts says little about where it should end, and what it is given for, such as a trend to go on
# by, may hang on a tenth of a nat (``benchmarks/co2.py``): no prior, and training to the end.
FOR_GIVEN_KERNELS = Effort(
    variance_prior_std=math.inf,
    levels_prior_std=math.inf,
    subset_evaluations=200,
    larger_evaluations=20,
    tolerance=1e-7,
)


@dataclass(frozen=True, kw_only=True)
class Plan(Effort):
    """What is to be learnt, and within which limits.

    Attributes
    ----------
    units : Units
        The units that learning works in. Everything below is in these units.
    input_spreads, output_spreads : ndarray
        Standard deviation of each input and output.
    labels : sequence of str
        Names of the alternative kernels.
    templates : sequence of sequence of ExactGP
        For each output, one prior per kernel, from which training starts.
    strategy : callable
        Given the length-scales of the metric, how to cut.
    hyperparameters : {"fixed", "tied", "independent", "adaptive"}
    overlap : float or ndarray, optional
        A number: context rows per own row. An array: a margin per input. None for the default overlap.
    context_share : float
        The share of the default overlap that is used.
    reach : ndarray
        For each output, the distance from zero beyond which it is in doubt before anything is learnt from it.
    block_size : int
        Most rows of a leaf region that enter a block. It is no larger, except where equal rows cannot be cut.
    budget : Budget
        Memory that rows, work space and factors may take.
    learns_noise_shape : bool
        Whether the noise may have another shape than a Gaussian's.
    doubts_outliers : bool
        Whether outputs may come into doubt and get a noise variance of their own.
    chooses_cuts : bool
        Whether a set small enough to be one region may also be cut, at positions that the evidence chooses between, and
        a larger one where its noise changes; to experts that may differ.
    cuts_leaves : bool
        Whether leaf regions are cut once more where the noise changes within them.
    searches : bool
        Whether kernels may get further parts for what residuals show; only default kernels do.
    averages : bool
        Whether a set small enough to be one region is averaged over settings of its hyper-parameters; only with default
        kernels.
    n_jobs : int or None
        Number of threads.
    variances : KnownVariances, optional
        What is known of the noise of the outputs learnt from, (n, p), beside the noise that is learnt.
    input_names : sequence of str
        What inputs are called, for messages; empty if they have no names.
    """

    units: Units
    input_spreads: Array
    output_spreads: Array
    labels: Sequence[str]
    templates: Sequence[Sequence[ExactGP]]
    strategy: StrategyOf
    hyperparameters: str
    overlap: float | Array | None
    reach: Array
    block_size: int
    learns_noise_shape: bool = False
    doubts_outliers: bool = False
    searches: bool = False
    chooses_cuts: bool = False
    cuts_leaves: bool = False
    averages: bool = False
    context_share: float = 1.0
    n_jobs: int | None = None
    budget: Budget = field(default_factory=Budget)
    variances: KnownVariances | None = None
    input_names: Sequence[str] = ()

    def variances_of(self, k: int) -> KnownVariances | None:
        """What is known of the noise of one output, in all rows."""
        return None if self.variances is None else self.variances[:, k]

    def overlap_of(self, n_rows: int, own_rows: float) -> float | Array:
        """The overlap asked for, or the default for ``n_rows`` rows in leaves of ``own_rows`` each on average."""
        if self.overlap is not None:
            return self.overlap
        overlap = default_overlap(n_rows, own_rows, self.block_size)
        return max(self.context_share * overlap, min(LEAST_OVERLAP, overlap))
