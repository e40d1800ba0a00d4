"""Rows that come and go after a fit: ``partial_fit`` and ``forget`` of an estimator with a network."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spngp._support.checks import as_count
from spngp._support.types import Array, Indices
from spngp.columns.learning import ranked_again
from spngp.estimators.fitting import learn_rows
from spngp.estimators.names import kernel_names
from spngp.estimators.planning import Request
from spngp.estimators.scaling import Scaling, check_inputs, check_outputs
from spngp.gp.row_weights import KnownVariances
from spngp.learning import Learnt, Plan, add_rows
from spngp.learning.sharded import Sharded
from spngp.streaming import Learner, Living, forget, start, update

if TYPE_CHECKING:
    from spngp.estimators.network_model import NetworkModel


class Relearning:
    """How a model is learnt as rows come: again as a whole, or one region after the other.

    Attributes
    ----------
    labels : list of str or None
        Names of the kernels, if the whole model was learnt again.
    """

    def __init__(self, model: NetworkModel, request: Request, living: Living) -> None:
        self._model, self._request, self._living = model, request, living
        self.labels: list[str] | None = None

    def learn_all(self, X: Array, Y: Array, variances: Array | None) -> Learnt:
        """Everything anew, units and the order of levels included."""
        self._model.columns_, X = ranked_again(self._model.columns_, X, Y)
        known = KnownVariances.of(variances, None, Y.shape[1])
        plan, learnt = learn_rows(self._model, X, Y, self._request, known)
        self.labels = kernel_names(plan.labels, learnt.prior)
        return learnt

    def plan(self) -> Plan:
        """The plan in the units of learning that the model has."""
        base, levels = self._living.base, self._model.columns_.level_counts
        spreads = np.ones(base.units.inputs.scale.size)
        n_rows = self._living.log.n
        plan = self._request.plan(Scaling(base.units, spreads, base.output_spreads, base.reach, n_rows, levels))
        return replace(plan, noise_prior_std=base.noise_prior_std)


def living_of(learnt: Learnt | Living) -> Living:
    """What was learnt, as a model that rows can be added to."""
    return learnt if isinstance(learnt, Living) else start(learnt)


def _in_memory(model: NetworkModel) -> Learnt | Living:
    """What a model has learnt; an error for one in shards."""
    if isinstance(model._learnt, Sharded):
        raise ValueError("rows cannot come to or leave a model in shards; fit it again with all rows")
    return model._learnt


def updated(
    model: NetworkModel, X: Array, Y: Array, request: Request, known: KnownVariances | None
) -> tuple[Learnt | Living, list[str] | None]:
    """What the model will have learnt after further, checked rows; names of kernels if all was learnt again."""
    now = _in_memory(model)
    base = now.base if isinstance(now, Living) else now
    check_inputs(X, base.units)
    check_outputs(Y, base.units, base.output_spreads)
    if base.shares is not None or (known is not None and known.shares is not None):
        return _with_shares(now, X, Y, known, model.n_jobs), None
    living = living_of(now)
    relearning = Relearning(model, request, living)
    learner = Learner(relearning.learn_all, relearning.plan)
    variances = None if known is None else known.variances
    return update(living, X, Y, learner, model.n_jobs, variances), relearning.labels


def _with_shares(now: Learnt | Living, X: Array, Y: Array, known: KnownVariances | None, n_jobs: int | None) -> Learnt:
    """Rows of fractional weights are conditioned on anew; they cannot follow rows added without."""
    if isinstance(now, Living) or now.upkeep is not None:
        what = "fractions of sample_weight"
        raise ValueError(f"{what} must be given with the first rows that are added after a fit, got them later")
    # the noise shape is learnt from random leaves: always the same ones, however the rows were batched
    return add_rows(now, X, Y, np.random.default_rng(0), n_jobs, known)


def forgotten(model: NetworkModel, rows: Any, older_than: Any, keep_last: Any) -> Living:
    """What the model will have learnt after some rows are forgotten."""
    now = _in_memory(model)
    if isinstance(now, Learnt) and now.shares is not None:
        raise ValueError("rows of a model with fractional weights cannot be forgotten yet; fit anew")
    living = living_of(now)
    remembered = model.row_numbers_
    gone = _chosen(remembered, rows, older_than, keep_last)
    if gone.all():
        raise ValueError(f"at least one row must remain, got {remembered.size} of {remembered.size} rows to forget")
    return forget(living, np.array(living.log.numbers.values[gone]), model.n_jobs)


def _chosen(remembered: Indices, rows: Any, older_than: Any, keep_last: Any) -> Any:
    """Which of the rows remembered, given by their numbers, are to be forgotten."""
    given = {"rows": rows, "older_than": older_than, "keep_last": keep_last}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(f"forget takes one of rows, older_than and keep_last, got {' and '.join(named) or 'none'}")
    if keep_last is not None:
        n = as_count(keep_last, "keep_last", 1)
        return np.arange(remembered.size) < remembered.size - n
    if older_than is not None:
        return remembered < as_count(older_than, "older_than", 0)
    numbers = np.asarray(rows)
    if numbers.dtype.kind not in "iu" and numbers.size:
        if numbers.dtype.kind == "b":
            raise ValueError("rows must be numbers of rows, got a mask; give row_numbers_[mask]")
        raise ValueError(f"rows must be numbers of rows, as in row_numbers_, got {numbers.ravel().tolist()[0]!r}")
    unknown = np.setdiff1d(numbers, remembered)
    if unknown.size:
        shown = ", ".join(str(number) for number in unknown[:5].tolist())
        raise ValueError(f"rows must be remembered (see row_numbers_), got {shown}, which are not")
    return np.isin(remembered, numbers)
