"""What is to be learnt, and within which limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spngp._memory import Budget
from spngp._typing import Array
from spngp.leaf import ExactGP
from spngp.structure import Strategy

# Given length-scales: how to cut.
StrategyOf: TypeAlias = Callable[[Array], Strategy]


@dataclass(frozen=True)
class Plan:
    """What is to be learnt, and within which limits. Units are standardised; the figures are measured defaults.

    Attributes
    ----------
    labels : sequence of str
        Names of the alternative kernels.
    templates : sequence of sequence of ExactGP
        For each output, the kernels with their noise: where training starts.
    strategy : callable
        Given length-scales, how to cut.
    hyperparameters : {"fixed", "tied", "independent", "adaptive"}
    overlap : float or ndarray, optional
        Context rows per own row, or a distance per input; by default as many as leaves of their size need.
    reach : ndarray
        Outputs of a larger size are out of all proportion: in doubt before anything is learnt from them.
    block_size : int
        Rows that one region gives to training at most; more remain only where rows coincide.
    budget : Budget
        Memory that experts may fill with their factors.
    prior_std, length_scale_prior_std, noise_prior_std : float
        Of the Gaussian prior on an expert's log-parameters around the tied values.
    chooses_cuts : bool
        Whether a set small enough to be one region is also offered cut, at positions that the evidence chooses between,
        to experts that may differ.
    freedom : tuple of float
        How far such experts may go: the prior's standard deviations of the log length-scales, which move together, of
        the log variances of the kernel, likewise, and of the log noise variance.
    variance_prior_std : float
        Of the Gaussian prior on the log variances of tied kernels around their starts.
    learns_noise_shape : bool
        Whether the noise may have another shape than a Gaussian's.
    doubts_outliers : bool
        Whether outputs far from what all others say get a larger noise of their own.
    """

    labels: Sequence[str]
    templates: Sequence[Sequence[ExactGP]]
    strategy: StrategyOf
    hyperparameters: str
    overlap: float | Array | None
    reach: Array
    block_size: int
    learns_noise_shape: bool = False
    doubts_outliers: bool = False
    chooses_cuts: bool = False
    n_jobs: int | None = None
    budget: Budget = field(default_factory=Budget)
    subset_size: int = 500
    n_sampled_regions: int = 12
    n_rounds: int = 2
    prior_std: float = 0.5
    length_scale_prior_std: float = 0.1
    noise_prior_std: float = 0.5
    variance_prior_std: float = 2.0
    subset_evaluations: int = 80
    tied_evaluations: int = 40
    expert_evaluations: int = 15
    expert_tolerance: float = 5e-4  # nats per row
    freedom: tuple[float, float, float] = (0.85, 1.75, 1.75)
