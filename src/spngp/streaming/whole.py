"""A whole update: rows added, outputs judged, regions looked after; or rows forgotten."""

from __future__ import annotations

import numpy as np

from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices
from spngp.streaming import updating
from spngp.streaming.doubting import judged
from spngp.streaming.living import Living
from spngp.streaming.upkeep import Learner, look_after


def update(
    living: Living,
    X: Array,
    Y: Array,
    learner: Learner,
    n_jobs: int | None = None,
    variances: Array | None = None,
) -> Living:
    """The model with further rows, in the units of the user; ``variances`` are known ones of Y."""
    with one_blas_thread():
        living, touched = updating.add(living, X, Y, n_jobs, variances)
        living = judged(living, touched, n_jobs, X.shape[0])
        return look_after(living, touched, X.shape[0], learner)


def forget(living: Living, numbers: Indices, n_jobs: int | None = None) -> Living:
    """The model without the rows of these numbers, ascending, all of which are remembered."""
    with one_blas_thread():
        touched = regions_of(living, living.log.X.values[living.log.positions(numbers)])
        return judged(updating.forget(living, numbers, n_jobs), touched, n_jobs)


def regions_of(living: Living, X: Array) -> set[int]:
    """The regions that rows lie in."""
    reached = living.index.route(living.base.units.inputs.apply(np.asarray(X)))
    return {living.where[leaf][0] for leaf in reached}
