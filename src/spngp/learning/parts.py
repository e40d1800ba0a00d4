"""GPs whose kernel is a sum, with one part more or less."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.kernels import Kernel, KernelSum, Matern, Parameter, SquaredExponential
from spngp.kernels.coded import CodedKernel
from spngp.learning.defaults import LENGTH_SCALE_BOUNDS, VARIANCE_BOUNDS
from spngp.learning.structure_left import Finding

_LONG = 6.0  # length-scales of a further part along all other inputs, in units of √d: all but irrelevant
_ROUGHER = 2.0  # times the length-scale: there a Matérn-1/2 varies about as much as a smoother kernel in one
_LEAST_LEFT = 0.1  # of the noise, when a further part begins to explain the rest


def parts_of(gp: ExactGP) -> list[Kernel]:
    """Parts of a sum, or the only one."""
    return list(gp.kernel.parts) if isinstance(gp.kernel, KernelSum) else [gp.kernel]


def of_parts(gp: ExactGP, parts: Sequence[Kernel]) -> ExactGP:
    """The same GP with a kernel of these parts."""
    return gp.with_kernel(parts[0] if len(parts) == 1 else KernelSum(parts))


def levels_of(gp: ExactGP) -> tuple[int, ...]:
    """For each input of codes the number of its levels, 0 for numbers; empty if all inputs are numbers."""
    known = [part.levels for part in parts_of(gp) if isinstance(part, CodedKernel)]
    return known[0] if known else ()


def with_part(gp: ExactGP, d: int, finding: Finding, variance: float) -> ExactGP:
    """One more part, as smooth as the last: short along the inputs of the finding, long along all others."""
    scales = np.full(d, _LONG * np.sqrt(d))
    scales[list(finding.inputs)] = finding.widths
    levels = levels_of(gp)
    for j, count in enumerate(levels):
        if count and j in finding.inputs:
            scales[j] = 1.0  # codes that differ are one unit apart, however wide the cells were
    last = parts_of(gp)[-1]
    return of_parts(gp, [*parts_of(gp), _part(last.nu if isinstance(last, Matern) else None, scales, variance, levels)])


def with_less_noise(gp: ExactGP, share: float) -> ExactGP:
    """The noise without a share that something else explains."""
    return with_noise(gp, gp.noise_variance * max(1.0 - share, _LEAST_LEFT))


def with_noise(gp: ExactGP, variance: float) -> ExactGP:
    """The noise of this variance, within its bounds, unless it is fixed."""
    if gp.noise_is_fixed:
        return gp
    theta = gp.theta
    theta[-1] = np.clip(np.log(variance), *gp.bounds[-1])
    return gp.with_theta(theta)


def with_rougher_parts(gp: ExactGP, count: int) -> ExactGP:
    """The last parts replaced by Matérn-1/2: for jumps."""
    parts, levels = parts_of(gp), levels_of(gp)
    last = len(parts) - count
    return of_parts(gp, [*parts[:last], *(rougher(part, levels) for part in parts[last:])])


def rougher(part: Kernel, levels: tuple[int, ...]) -> Kernel:
    """A Matérn-1/2 instead of a part."""
    return _part(0.5, _ROUGHER * np.atleast_1d(part.length_scale), part.variance, levels)


def without_part(gp: ExactGP, index: int) -> ExactGP:
    """All parts but one."""
    parts = parts_of(gp)
    return of_parts(gp, parts[:index] + parts[index + 1 :])


def _part(nu: float | None, scales: Array, variance: float, levels: tuple[int, ...]) -> Kernel:
    """A squared exponential, or a Matérn kernel of this smoothness, within the bounds of default kernels."""
    lengths = Parameter(np.clip(scales, *LENGTH_SCALE_BOUNDS).tolist(), LENGTH_SCALE_BOUNDS)
    size = Parameter(float(np.clip(variance, *VARIANCE_BOUNDS)), VARIANCE_BOUNDS)
    return SquaredExponential(lengths, size, levels) if nu is None else Matern(nu, lengths, size, levels)
