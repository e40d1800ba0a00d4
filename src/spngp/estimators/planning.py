"""From what a user asks of an estimator to a plan for learning, in the units that learning works in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from spngp._support.checks import as_floats
from spngp._support.memory import Budget
from spngp._support.threads import n_threads
from spngp._support.types import Array
from spngp.estimators.scaling import Scaling
from spngp.gp import ExactGP
from spngp.kernels import Kernel, Parameter
from spngp.kernels.coding import with_levels
from spngp.kernels.names import labels
from spngp.learning import FOR_GIVEN_KERNELS, Effort, Plan, defaults
from spngp.structure import Strategy

# Given the number of inputs, for each input of codes the number of its levels (empty if there are none), and the rows.
DefaultKernels: TypeAlias = Callable[[int, tuple[int, ...], int], list[Kernel]]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for: the parameters of an estimator, as they are.

    Attributes
    ----------
    kernels : kernel, list of kernels or None
        In the units of X and y; None for ``default_kernels``, which are learnt on standardised rows.
    default_kernels : callable
        Given the number of inputs d, the levels of inputs of codes and the number of rows: the kernels for d
        standardised inputs.
    strategy : Strategy
        How to cut, in the units of X.
    searches : bool
        Whether default kernels may get further parts for what residuals show.
    chooses_cuts : bool
        Whether evidence may choose cuts where parts of a set differ.
    overlap, margin : optional
        Context rows per own row, or a distance in the units of X. Giving both is an error; with neither, the default
        overlap is used.
    noise_variance : float, Parameter or None
        In the squared units of y; None to learn it.
    hyperparameters, noise_shape, outliers, memory_limit, n_jobs
        As in :class:`~spngp.SPNGPRegressor`.
    """

    kernels: Any
    default_kernels: DefaultKernels
    strategy: Strategy
    searches: bool
    chooses_cuts: bool
    hyperparameters: str
    overlap: float | None
    margin: Any
    noise_variance: float | Parameter | None
    noise_shape: str
    outliers: str
    memory_limit: float | None
    n_jobs: int | None

    def plan(self, scaling: Scaling) -> Plan:
        """The plan for learning, in the units of ``scaling``."""
        starts = templates(self.kernels, self.default_kernels, self.noise_variance, scaling)
        noise_is_learnt = not any(gp.noise_is_fixed for experts in starts for gp in experts)
        inputs = scaling.units.inputs
        return Plan(
            units=scaling.units,
            input_spreads=scaling.input_spreads,
            output_spreads=scaling.output_spreads,
            labels=labels([gp.kernel for gp in starts[0]]),
            templates=starts,
            strategy=_InMetric(self.strategy, inputs.scale),
            hyperparameters=self.hyperparameters,
            overlap=self.overlap if self.margin is None else _margins(self.margin, self.overlap, inputs.scale),
            reach=scaling.reach,
            block_size=self.strategy.max_leaf_size,
            budget=Budget.of(self.memory_limit, n_threads(self.n_jobs)),
            learns_noise_shape=self.noise_shape == "learnt" and noise_is_learnt,
            searches=self.kernels is None and self.searches,
            chooses_cuts=self.chooses_cuts,
            averages=self.kernels is None and self.searches and self.hyperparameters == "adaptive",
            doubts_outliers=self.outliers == "doubt" and noise_is_learnt,
            n_jobs=self.n_jobs,
            **asdict(effort_for(self.kernels)),
        )


@dataclass(frozen=True, eq=False)
class _InMetric:
    """A strategy in the units of learning, given length-scales; an object, so that a plan can be sent elsewhere."""

    strategy: Strategy
    scale: Array

    def __call__(self, length_scales: Array) -> Strategy:
        return self.strategy.in_metric(length_scales, self.scale)


def effort_for(kernels: Any) -> Effort:
    """How much work goes into the hyper-parameters of the kernels that a user gave, or of default kernels (None)."""
    return Effort() if kernels is None else FOR_GIVEN_KERNELS


def templates(
    kernels: Any,
    default_kernels: DefaultKernels,
    noise_variance: float | Parameter | None,
    scaling: Scaling,
) -> list[list[ExactGP]]:
    """For each output, the kernels with their noise, in the units that learning works in."""
    d = scaling.input_spreads.size
    given: list[tuple[Kernel, Parameter | None]]
    if kernels is None:
        given = [(kernel, None) for kernel in default_kernels(d, scaling.levels, scaling.n_rows)]
    else:
        given = [(with_levels(kernel, scaling.levels), noise) for kernel, noise in defaults.as_kernels(kernels)]
    for kernel, noise in given:
        kernel.check_inputs(d)
        if noise is not None and noise_variance is not None:
            given_here = f"noise_variance={noise_variance!r}"
            raise ValueError(f"noise is given twice, by {given_here} and by a WhiteKernel; give one of them")

    def usual_noise(scale: float, spread: float) -> Parameter:
        if noise_variance is None:
            return defaults.noise_parameter(spread, scaling.n_rows)
        return defaults.given_noise(noise_variance, scale)

    def with_noise(scale: float, spread: float) -> list[ExactGP]:
        return [ExactGP(kernel, usual_noise(scale, spread) if noise is None else noise) for kernel, noise in given]

    scales, spreads = scaling.units.outputs.scale.tolist(), scaling.output_spreads.tolist()
    return [with_noise(scale, spread) for scale, spread in zip(scales, spreads, strict=True)]


def _margins(margin: Any, overlap: float | None, scale: Array) -> Array:
    if overlap is not None:
        raise ValueError(f"overlap and margin exclude each other, got overlap={overlap!r} and margin={margin!r}")
    distances = as_floats(margin, "margin")
    if distances.shape not in ((), scale.shape) or not (np.isfinite(distances) & (distances >= 0)).all():
        raise ValueError(f"margin must be a number >= 0 or one per input ({scale.size}), got {margin!r}")
    return np.broadcast_to(distances, scale.shape) / scale
