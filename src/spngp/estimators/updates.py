"""Rows that come and go after a fit: ``partial_fit`` and ``forget`` of an estimator with a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spngp._support.checks import as_count, as_generator
from spngp._support.progress import Progress
from spngp._support.types import Array, Indices
from spngp.estimators.planning import Request
from spngp.estimators.scaling import Scaling, check_inputs, check_outputs
from spngp.learning import Learnt, Plan, learn
from spngp.streaming import Learner, Living, forget, start, update

if TYPE_CHECKING:
    from spngp.estimators.network_model import NetworkModel


class Relearning:
    """How a model is learnt as rows come: again as a whole, or one region after the other.

    Attributes
    ----------
    labels : sequence of str or None
        Names of the kernels, if the whole model was learnt again.
    """

    def __init__(self, model: NetworkModel, request: Request, learnt: Learnt) -> None:
        self._model, self._request, self._learnt = model, request, learnt
        self.whole: tuple[Plan, Learnt] | None = None

    def learn_all(self, X: Array, Y: Array) -> Learnt:
        """Everything anew, units included."""
        scaling = Scaling.of(X, Y, standardised=self._request.kernels is None)
        check_outputs(Y, scaling.units, scaling.output_spreads)
        plan = self._request.plan(scaling)
        with Progress(bool(self._model.verbose)) as progress:
            learnt = learn(X, Y, plan, as_generator(self._model.random_state), progress)
        self.whole = plan, learnt
        return learnt

    def plan(self) -> Plan:
        """The plan in the units of learning that the model has."""
        learnt = self._learnt
        spreads = np.ones(learnt.units.inputs.scale.size)
        return self._request.plan(Scaling(learnt.units, spreads, learnt.output_spreads, learnt.reach))


def living_of(learnt: Learnt | Living) -> Living:
    """What was learnt, as a model that rows can be added to."""
    return learnt if isinstance(learnt, Living) else start(learnt)


def updated(model: NetworkModel, X: Array, Y: Array, request: Request) -> tuple[Living, Relearning]:
    """What the model will have learnt after further, checked rows."""
    living = living_of(model._learnt)
    base = living.base
    check_inputs(X, base.units)
    check_outputs(Y, base.units, base.output_spreads)
    relearning = Relearning(model, request, base)
    learner = Learner(relearning.learn_all, relearning.plan)
    return update(living, X, Y, learner, model.n_jobs), relearning


def forgotten(model: NetworkModel, rows: Any, older_than: Any, keep_last: Any) -> Living:
    """What the model will have learnt after some rows are forgotten."""
    living = living_of(model._learnt)
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
        raise ValueError(f"rows must be numbers of rows, as in row_numbers_, got {rows!r}")
    unknown = np.setdiff1d(numbers, remembered)
    if unknown.size:
        shown = ", ".join(str(number) for number in unknown[:5].tolist())
        raise ValueError(f"rows must be remembered (see row_numbers_), got {shown}, which are not")
    return np.isin(remembered, numbers)
