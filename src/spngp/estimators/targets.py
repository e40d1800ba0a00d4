"""Which scale of the target is learnt: its own, its logarithm, or that of a transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from spngp._support.threads import one_blas_thread
from spngp._support.types import Array
from spngp.estimators.rows import canonical_order
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out
from spngp.gp.optimisation import fit_gp
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import SquaredExponential
from spngp.learning import defaults
from spngp.learning.proportion import most_errors
from spngp.transformed import Fitted, Log, Transform, Unchanged

_JUDGED_ROWS = 300  # rows by which "auto" chooses
_EVALUATIONS = 30  # of the evidence, to learn the GPs that are compared, in every search for errors
_SEARCHES = 2  # for outputs that the others contradict
_FAR = 4.0  # standard deviations from what the others predict
_ERRORS, _WIDE = 0.01, 100.0  # probability of an error, and how many times as far off it is


def check_target(target: Any, known: KnownVariances | None) -> None:
    """Raise an error unless the parameter can be used."""
    named = target is None or (isinstance(target, str) and target in ("log", "auto"))
    if not named and not all(hasattr(target, name) for name in ("fit", "transform", "inverse_transform")):
        raise ValueError(
            "target must be None, 'log', 'auto' or a transformer with fit, transform and inverse_transform, got "
            f"{target!r}"
        )
    if target is not None and known is not None and known.variances is not None:
        raise ValueError(
            f"y_variance is in the units of y and goes without a target, got target={target!r}; transform y and its "
            "variance before the fit"
        )


def transforms_for(target: Any, X: Array, Y: Array, owner: str) -> list[Any]:
    """The transform of each output, fitted to its values."""
    if target is None:
        return [Unchanged()] * Y.shape[1]
    if isinstance(target, str) and target == "log":
        for k in range(Y.shape[1]):
            _check_positive(Y, k)
        return [Log()] * Y.shape[1]
    if isinstance(target, str):
        return [_likelier(X, Y[:, k]) for k in range(Y.shape[1])]
    return [Fitted.to(clone(target), Y[:, k]) for k in range(Y.shape[1])]


def log_slopes(targets: Sequence[Any], Y: Array, shares: Array | None) -> float:
    """What a change of units adds to the log evidence of outputs Y (n, p); rows may count as shares of one."""
    counted = 1.0 if shares is None else shares
    return float(sum(np.nansum(counted * of.log_slope(Y[:, k])) for k, of in enumerate(targets)))


def _check_positive(Y: Array, k: int) -> None:
    bad = np.flatnonzero(Y[:, k] <= 0)
    if bad.size:
        where = f" of output {k}" if Y.shape[1] > 1 else ""
        raise ValueError(
            f"y must be positive under target='log', got {Y[bad[0], k]:g} in row {bad[0]}{where}; use "
            "target=PowerTransformer() or 'auto', or add a constant to y"
        )


def transformed(Y: Array, transforms: Sequence[Transform]) -> Array:
    """Outputs in the units of learning; an output that has no value there is an error."""
    found = np.empty(Y.shape)
    for k, of in enumerate(transforms):
        if isinstance(of, Log):
            _check_positive(Y, k)
        found[:, k] = of.forward(Y[:, k])
        bad = np.flatnonzero(np.isinf(found[:, k]))
        if bad.size:
            raise ValueError(
                f"y must be in the range of the target's transformer, got {Y[bad[0], k]:g} in row {bad[0]}"
            )
    return found


def _likelier(X: Array, y: Array) -> Any:
    """The logarithm if GPs of some rows predict y better on its scale, in the units of y; else y itself."""
    rows = np.flatnonzero(~np.isnan(y))
    if not (y[rows] > 0).all() or rows.size < 3 or np.ptp(y[rows]) == 0:
        return Unchanged()
    rows = rows[canonical_order(X[rows], y[rows, np.newaxis])][:: -(-rows.size // _JUDGED_ROWS)]
    spread = X[rows].std(axis=0)
    inputs = (X[rows] - X[rows].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    with one_blas_thread():
        values = [_log_density(inputs, y[rows], of) for of in (Unchanged(), Log())]
    return Log() if values[1] > values[0] else Unchanged()


def _log_density(X: Array, y: Array, of: Transform) -> float:
    """Log density of every output given the others, under a GP of the transformed values.

    The GP is learnt without outputs that the others contradict, a fortieth of them at most, which may be errors; and
    any output may be one, with a small probability. Else a few errors, which lie nearer on the one scale than on the
    other, would decide alone.
    """
    z = of.forward(y)
    sound = np.ones(y.size, dtype=bool)
    gp = ExactGP(SquaredExponential([1.0] * X.shape[1]), defaults.noise_parameter(1.0, y.size))
    for searches_left in reversed(range(_SEARCHES + 1)):
        centre, scale = float(z[sound].mean()), float(z[sound].std()) or 1.0
        values = (z - centre) / scale
        gp = fit_gp(gp, X[sound], values[sound], _EVALUATIONS)
        known = gp.condition(X[sound], values[sound])
        residuals, variances = values.copy(), np.empty(y.size)
        residuals[sound], variances[sound] = leave_one_out(known, np.arange(known.n_own))
        if not sound.all():
            mean, variances[~sound] = known.predict(X[~sound], latent=True)
            residuals[~sound] -= mean
        variances += known.noise_variance
        distances = residuals**2 / variances
        far = distances > max(_FAR**2, float(np.sort(distances)[-most_errors(y.size) - 1]))
        if not searches_left or (far == ~sound).all():
            break
        sound = ~far
    usual = -0.5 * distances - 0.5 * np.log(2.0 * np.pi * variances * scale**2)
    error = -0.5 * distances / _WIDE**2 - 0.5 * np.log(2.0 * np.pi * variances * (scale * _WIDE) ** 2)
    density = np.logaddexp(np.log1p(-_ERRORS) + usual, np.log(_ERRORS) + error)
    return float(density.sum() + of.log_slope(y).sum())
