"""Fits whose rows are elsewhere, on a disk or in other processes: what they need of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from spngp._support.types import Array
from spngp.columns.learning import refuse_single_levels
from spngp.estimators.completion import CompletedRows
from spngp.estimators.network_model import Distribution, NetworkModel
from spngp.estimators.regressors import SPNGPRegressor
from spngp.estimators.scaling import Scaling, check_outputs
from spngp.gp.row_weights import KnownVariances
from spngp.learning import Plan
from spngp.learning.sharded import Sharded, Shelf
from spngp.transformed import Log, Unchanged

M = TypeVar("M")


def describe(model: SPNGPRegressor, X: Any, y: Any) -> Array:
    """Let an estimator know its columns and scales from a sample of rows; returns inputs (n, d)."""
    X, Y = model._checked(X, y, reset=True)
    refuse_single_levels(model.columns_)
    model.targets_ = [Unchanged() if model.target is None else Log() for _ in range(Y.shape[1])]
    return X


def plan_for(model: SPNGPRegressor, X: Array, Y: Array, n_rows: int, known: KnownVariances | None = None) -> Plan:
    """The plan for learning from ``n_rows`` rows of which these are a sample; outputs are on the scale learnt."""
    request, levels = model._request(), model.columns_.level_counts
    scaling = Scaling.of(X, Y, standardised=request.kernels is None, levels=levels, known=known)
    check_outputs(Y, scaling.units, scaling.output_spreads)
    plan = request.plan(replace(scaling, n_rows=n_rows))
    return plan if known is None else replace(plan, variances=known.divided_by(scaling.units.outputs.scale))


def check_supported(model: SPNGPRegressor, knows_variances: bool) -> None:
    """Raise an error unless what an estimator is asked for can be learnt from rows that are elsewhere."""
    for name, allowed in (("structure", "compact"), ("n_partitions", 1), ("margin", None)):
        value = getattr(model, name)
        if value is not allowed and not (isinstance(value, type(allowed)) and value == allowed):
            raise ValueError(f"out of core {name} must be {allowed!r}, got {value!r}")
    if model.target is not None and not (isinstance(model.target, str) and model.target == "log"):
        raise ValueError(f"out of core target must be None or 'log', got {model.target!r}")
    if model.target is not None and knows_variances:
        raise ValueError(f"known variances are in the units of y and go without a target, got target={model.target!r}")


def become(model: SPNGPRegressor, fitted: SPNGPRegressor) -> SPNGPRegressor:
    """The model, with what another one of its class has learnt."""
    model.__dict__.update({name: value for name, value in vars(fitted).items() if name not in fitted.get_params()})
    return model


def learnt_in_shards(model: SPNGPRegressor, sharded: Sharded, labels: Sequence[str]) -> SPNGPRegressor:
    """The model, fitted."""
    model._learnt, model.kernel_names_ = sharded, list(labels)
    return model


def checked_rows(model: SPNGPRegressor, X: Any) -> Array:
    """Inputs (n, d) of rows to predict; NaN for what was never missing in the fit."""
    return np.concatenate(model._rows(X))


def completed_rows(model: SPNGPRegressor, X: Array) -> CompletedRows:
    """Which of checked rows lack inputs, and what may take their place."""
    return model._complete(X)


def predicted(model: SPNGPRegressor, X: Array) -> Distribution:
    """The predictive distribution at checked rows."""
    return model._mixture(model._complete(X), latent=False)


def sharded_of(model: Any) -> Sharded | None:
    """What a model in shards has learnt; None for all others."""
    learnt = model._learnt if isinstance(model, NetworkModel) and hasattr(model, "_learnt") else None
    return learnt if isinstance(learnt, Sharded) else None


def with_shelf(model: M, shelf: Shelf | None) -> M:
    """The same model with its shards on another shelf."""
    sharded = sharded_of(model)
    assert sharded is not None
    assert isinstance(model, NetworkModel)
    now = model._snapshot()
    now._learnt = replace(sharded, shelf=shelf)
    return now
