"""Units that learning works in: standardised for default kernels, else those of X and y with y centred."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spngp._support.types import Array
from spngp.gp.row_weights import KnownVariances
from spngp.learning.proportion import FEWEST_ROWS, PROPORTION, gross_errors, in_proportion, in_units
from spngp.network.units import Affine, Units

_LARGEST_INPUT = 1e300  # in the units of X: the difference of two inputs is still a float
_SMALLEST_SPREAD = 1e-150  # standard deviation of y: the smallest variances are still floats
_LARGEST_SPREAD = 1e151  # standard deviation of y: the largest variances are still floats
_LARGEST_OUTPUT = 1e153  # in the units of learning: its square is still a float
_FARTHEST_OUTPUT = 1e150  # in spreads of y: its square over the noise variance is still a float
_REACH = 3.0  # times as far as any output learnt from: from there on an output is in doubt at once


@dataclass(frozen=True, eq=False)
class Columns:
    """Mean and standard deviation of each column, without values out of all proportion.

    One such value, a slip of the pen or a placeholder, would set the scale alone and make all other values look equal.
    A constant column has a scale of one.

    Attributes
    ----------
    mean, scale : ndarray
        Mean and standard deviation.
    reach : ndarray
        Values further from the mean than this number of scales are out of all proportion.
    """

    mean: Array
    scale: Array
    reach: Array

    @staticmethod
    def of(A: Array, farthest_ratio: float = 0.5 * PROPORTION, shares: Array | None = None) -> Columns:
        """Learn from the rows of A, where NaN is missing; sizes up to the largest float do not overflow.

        ``farthest_ratio`` is the reach as a multiple of the largest distance from the mean. By default it is half the
        distance that is out of proportion, so that noise or a slightly different mean changes no verdict. Rows may
        count as ``shares`` of one.
        """
        unit, size = in_units(in_proportion(A))
        mean, scale = _moments(unit, shares)
        constant = scale <= 1e-14 * np.maximum(np.abs(mean), 1e-300)
        farthest = np.nanmax(np.abs(unit - mean), axis=0)
        unknown = constant | (A.shape[0] < FEWEST_ROWS)
        reach = np.where(unknown, np.inf, farthest_ratio * farthest / np.where(constant, 1.0, scale))
        spread = np.where(constant, 1.0, scale * size)
        return Columns(mean * size, np.where(spread == 0.0, 1.0, spread), reach)  # 0: less than the smallest float


def _moments(A: Array, shares: Array | None) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; NaN is missing."""
    if shares is None:
        return np.nanmean(A, axis=0), np.nanstd(A, axis=0)
    weights = np.where(np.isnan(A), 0.0, shares[:, np.newaxis])
    weights /= weights.sum(axis=0)
    mean: Array = np.nansum(weights * A, axis=0)
    return mean, np.sqrt(np.nansum(weights * (A - mean) ** 2, axis=0))


@dataclass(frozen=True, eq=False)
class Scaling:
    """The units that learning works in, and how far inputs and outputs spread in them.

    Attributes
    ----------
    units : Units
    input_spreads, output_spreads : ndarray
        Standard deviation of each column in these units: one where they are standardised.
    reach : ndarray
        For each output, the distance from zero beyond which it is out of all proportion.
    n_rows : int
        Number of rows.
    levels : tuple of int
        For each input of codes the number of its levels, 0 for numbers; empty if all inputs are numbers.
    """

    units: Units
    input_spreads: Array
    output_spreads: Array
    reach: Array
    n_rows: int
    levels: tuple[int, ...] = ()

    @staticmethod
    def of(
        X: Array,
        Y: Array,
        standardised: bool,
        levels: tuple[int, ...] = (),
        known: KnownVariances | None = None,
    ) -> Scaling:
        """From rows in the units of the user; values too large or too small to compute with raise an error."""
        _check_sizes(X)
        shares = None if known is None or known.shares is None else known.shares[:, 0]
        inputs, outputs = _inputs(X, levels, shares), _outputs(X, Y, shares)
        _check_spreads(outputs)
        if standardised:
            units = Units(Affine(inputs.mean, inputs.scale), Affine(outputs.mean, outputs.scale))
            return Scaling(units, np.ones(X.shape[1]), np.ones(Y.shape[1]), outputs.reach, X.shape[0], levels)
        _check_input_spreads(inputs.scale)
        units = Units(Affine.shifted(np.zeros(X.shape[1])), Affine.shifted(outputs.mean))
        return Scaling(units, inputs.scale, outputs.scale, outputs.reach * outputs.scale, X.shape[0], levels)


def _inputs(X: Array, levels: tuple[int, ...], shares: Array | None) -> Columns:
    """Codes of levels stay as they are."""
    columns = Columns.of(X, shares=shares)
    if not levels:
        return columns
    coded = np.array(levels) > 0
    return replace(columns, mean=np.where(coded, 0.0, columns.mean), scale=np.where(coded, 1.0, columns.scale))


def _outputs(X: Array, Y: Array, shares: Array | None) -> Columns:
    """Without gross errors; where there are some, half way to the nearest of them is the reach."""
    errors = gross_errors(X, Y)
    columns = Columns.of(np.where(errors, np.nan, Y), _REACH, shares)
    distances = np.abs(Y / columns.scale - columns.mean / columns.scale)
    nearest = np.where(errors, distances, np.inf).min(axis=0)
    return replace(
        columns, reach=np.where(errors.any(axis=0), np.sqrt(nearest * columns.reach / _REACH), columns.reach)
    )


def _check_sizes(X: Array) -> None:
    sizes = np.abs(X).max(axis=0)
    if (sizes > _LARGEST_INPUT).any():
        j = int(np.argmax(sizes))
        largest = X[np.argmax(np.abs(X[:, j])), j]
        raise ValueError(f"X must be at most 1e300 in size, got {largest:.3g} in column {j}; rescale X")


def _check_input_spreads(spreads: Array) -> None:
    # so that squares of length-scales and of their inverses are floats, also after learning
    outside = np.flatnonzero((spreads < 1e-140) | (spreads > 1e140))
    if outside.size:
        raise ValueError(
            f"X must have spreads between 1e-140 and 1e140 with given kernels, got {spreads[outside[0]]:.3g} in column "
            f"{outside[0]}; rescale X"
        )


def _check_spreads(outputs: Columns) -> None:
    for k, (mean, scale) in enumerate(zip(outputs.mean.tolist(), outputs.scale.tolist(), strict=True)):
        where = f" in output {k}" if outputs.mean.size > 1 else ""
        if not _SMALLEST_SPREAD <= scale <= _LARGEST_SPREAD:
            raise ValueError(f"y must have a spread between 1e-150 and 1e151, got {scale:.3g}{where}; rescale y")
        if abs(mean) > _LARGEST_SPREAD:
            raise ValueError(f"y must be about 1e151 in size at most, got {mean:.3g}{where}; rescale y")


def check_inputs(X: Array, units: Units) -> None:
    """Raise an error if the distance of an input from the rows learnt from overflows."""
    with np.errstate(over="ignore"):
        Z = units.inputs.apply(X)
    if np.isfinite(Z).all():
        return
    too_far = ~np.isfinite(Z) & ~np.isnan(X)  # a missing input is no distance
    if too_far.any():
        i, j = np.argwhere(too_far)[0]
        raise ValueError(
            f"X holds {X[i, j]:g} in row {i}, column {j}, which is too far from the rows learnt from (about "
            f"{units.inputs.mean[j]:g} ± {units.inputs.scale[j]:g}) to compute with"
        )


def check_outputs(Y: Array, units: Units, spreads: Array) -> None:
    """Raise an error if some output is so far from the others that its square overflows.

    ``spreads`` are the outputs' standard deviations in these units.
    """
    with np.errstate(over="ignore"):
        Z = np.abs(units.outputs.apply(Y))
        distances = Z / spreads
    if ((distances > _FARTHEST_OUTPUT) | (Z > _LARGEST_OUTPUT)).any():
        i, k = np.unravel_index(np.nanargmax(distances), Z.shape)
        raise ValueError(
            f"y holds {Y[i, k]:g}, which is too far from the other values (about {units.outputs.mean[k]:g} ± "
            f"{units.outputs.scale[k] * spreads[k]:g}) to compute with; correct it or leave it out"
        )
