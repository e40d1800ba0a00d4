"""The fit of an estimator with a network: rows in a canonical order, their units, a plan, and what is learnt by it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spngp._support.checks import as_generator
from spngp._support.progress import Progress
from spngp._support.types import Array
from spngp.estimators.planning import Request
from spngp.estimators.rows import canonical_order
from spngp.estimators.scaling import Scaling, check_outputs
from spngp.gp.row_weights import KnownVariances
from spngp.learning import Learnt, Plan, learn

if TYPE_CHECKING:
    from spngp.estimators.network_model import NetworkModel


def learn_rows(
    model: NetworkModel, X: Array, Y: Array, request: Request, known: KnownVariances | None = None
) -> tuple[Plan, Learnt]:
    """The plan, and what was learnt from checked rows; ``known`` is what is known of the noise of Y."""
    order = canonical_order(X, Y)
    known, levels = None if known is None else known[order], model.columns_.level_counts
    scaling = Scaling.of(X[order], Y[order], standardised=request.kernels is None, levels=levels, known=known)
    check_outputs(Y, scaling.units, scaling.output_spreads)
    plan = request.plan(scaling)
    if hasattr(model, "feature_names_in_"):
        plan = replace(plan, input_names=tuple(model.columns_.input_names))
    if known is not None:
        plan = replace(plan, variances=known.divided_by(scaling.units.outputs.scale))
    with Progress(bool(model.verbose)) as progress:
        learnt = learn(X[order], Y[order], plan, as_generator(model.random_state), progress)
    return plan, learnt.with_rows_in(np.argsort(order))
