"""Steps among few rows: two levels, with a border somewhere along one of the inputs.

A smooth kernel has to spend a short length-scale on a single jump, and then expects jumps everywhere. A step is one
more term of the kernel, v·s·sᵀ with s = ±½ on either side of its cut. With C the covariance without it, it gains

    ½ [ v (sᵀC⁻¹y)² / (1 + v sᵀC⁻¹s) − log(1 + v sᵀC⁻¹s) ]

nats of evidence, exactly. Sums over the rows below each cut give all of them, along all inputs, in O(d n²). So nobody
has to choose a cut: each has the same prior probability along its input, and their sum is the evidence of "a step
somewhere".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from spngp._support.types import Array, Indices
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.kernels import KernelSum, Parameter, Step
from spngp.kernels.located import of_kind
from spngp.learning.defaults import VARIANCE_BOUNDS

_FEWEST_ROWS = 3  # on either side of a cut
_LEAST_LOG_PROBABILITY = -9.0  # of all cuts along an input, for draws to look at it


class Cuts(NamedTuple):
    """Where a step may be: gaps between neighbouring rows along inputs, their log prior probabilities, its gain there.

    Rows say nothing about where in a gap it is.
    """

    axes: Indices
    lows: Array
    highs: Array
    log_priors: Array
    gains: Array

    def best(self) -> tuple[int, float]:
        """The most plausible: its input, and the middle of the gap."""
        i = int(np.argmax(self.log_priors + self.gains))
        return int(self.axes[i]), self._within(i, 0.5)

    def drawn(self, rng: np.random.Generator) -> tuple[int, float, float]:
        """Input and position of one drawn by its probability given the rows, and what a step there gains."""
        i = int(rng.choice(self.gains.size, p=np.exp(self.log_priors + self.gains - self.gain_anywhere)))
        return int(self.axes[i]), self._within(i, rng.random()), float(self.gains[i])

    def plausible_inputs(self) -> list[int]:
        """Inputs along which a step has some probability given the rows."""
        log_posterior = self.log_priors + self.gains - self.gain_anywhere
        axes = np.unique(self.axes)
        return [int(axis) for axis in axes if logsumexp(log_posterior[self.axes == axis]) > _LEAST_LOG_PROBABILITY]

    def gain_at(self, step: Step) -> float:
        """What the step gains where it is."""
        here = np.flatnonzero((self.axes == step.axis) & (self.lows <= step.at) & (step.at < self.highs))
        return float(self.gains[here[0]])

    @property
    def gain_anywhere(self) -> float:
        """What a step gains if nobody knows where it is."""
        return float(logsumexp(self.log_priors + self.gains))

    def _within(self, i: int, share: float) -> float:
        low, high = float(self.lows[i]), float(self.highs[i])
        at = low + share * (high - low)
        return at if at < high else low  # a row on the cut is below it


def with_step(gp: ExactGP, axis: int, at: float) -> ExactGP:
    """The prior with a step there as one more term."""
    return gp.with_kernel(gp.kernel + Step(axis, at, Parameter(1.0, VARIANCE_BOUNDS)))


def step_in(gp: ExactGP) -> Step:
    """The step of a kernel that has one."""
    return of_kind(gp.kernel, Step)[0]


def moved(gp: ExactGP, axis: int, at: float) -> ExactGP:
    """The prior with its step elsewhere."""
    assert isinstance(gp.kernel, KernelSum)
    parts = [part.moved(axis, at) if isinstance(part, Step) else part for part in gp.kernel.parts]
    return gp.with_kernel(KernelSum(parts))


def cuts_of(gp: ExactGP, block: Block, inputs: Sequence[int], variance: float = 1.0) -> Cuts | None:
    """All cuts along these inputs, and what a step gains whose height has this variance, or that of the GP's own step.

    The GP's parameters stay as they are, and its own step is left out. None if there is nothing to cut, or if the
    covariance has no inverse.
    """
    if of_kind(gp.kernel, Step):
        assert isinstance(gp.kernel, KernelSum)
        variance = step_in(gp).variance
        gp = gp.with_kernel(KernelSum([part for part in gp.kernel.parts if not isinstance(part, Step)]))
    X, y, known = block
    noise = np.full(y.size, gp.noise_variance)
    if known is not None and known.variances is not None:
        noise = noise + known.variances
    if known is not None and known.shares is not None:
        noise = noise / known.shares
    try:
        precision = np.linalg.inv(gp.kernel.gram(X) + np.diag(noise))
    except np.linalg.LinAlgError:
        return None
    alpha, sums = precision @ y, precision.sum(axis=1)
    found = []
    varying = [axis for axis in inputs if _ends(np.sort(X[:, axis])).size]
    for axis in varying:
        order = np.argsort(X[:, axis], kind="stable")
        values = X[order, axis]
        ends = _ends(values)
        ordered = precision[np.ix_(order, order)]
        within = np.cumsum(2.0 * np.tril(ordered, -1).sum(axis=1) + np.diagonal(ordered))[ends - 1]
        below, across = np.cumsum(alpha[order])[ends - 1], np.cumsum(sums[order])[ends - 1]
        aligned = 0.5 * alpha.sum() - below  # s·C⁻¹y
        stretched = 1.0 + variance * np.maximum(0.25 * sums.sum() - across + within, 0.0)  # 1 + v s·C⁻¹s
        gains = 0.5 * (variance * aligned**2 / stretched - np.log(stretched))
        prior = np.full(ends.size, -np.log(len(varying) * ends.size))
        found.append((np.full(ends.size, axis), values[ends - 1], values[ends], prior, gains))
    if not found:
        return None
    cuts = Cuts(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return cuts if np.isfinite(cuts.gains).all() else None


def _ends(values: Array) -> Indices:
    """Numbers of rows below each cut of ascending values: between different ones, with some rows on either side."""
    ends = np.arange(_FEWEST_ROWS, values.size - _FEWEST_ROWS + 1)
    return ends[values[ends - 1] < values[ends]] if ends.size else ends
