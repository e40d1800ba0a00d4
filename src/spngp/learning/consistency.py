"""How the attributes of what was learnt must agree."""

from __future__ import annotations

import numpy as np

from spngp._support.consistency import must, must_be_finite, must_be_positive, must_have_shape
from spngp._support.memory import Budget
from spngp.learning.learnt import Learnt
from spngp.network.consistency import check_network

_LARGEST_OVERLAP = 1e200  # context rows per own row: times any number of rows it is still a float


def check_budget(budget: Budget) -> None:
    """Raise an error unless all limits are positive."""
    must_be_positive([budget.limit, budget.threads, budget.factors], "limit, threads and factors of a budget")


def check_learnt(learnt: Learnt) -> None:
    """Raise an error unless rows, networks, units and noise variances fit each other."""
    must(learnt.X.ndim == learnt.Y.ndim == 2, "X and Y must be matrices", (learnt.X.ndim, learnt.Y.ndim))
    (n, d), p = learnt.X.shape, learnt.Y.shape[1]
    for array, shape, what in (
        (learnt.Y, (n, p), "Y"),
        (learnt.scales, (d,), "scales"),
        (learnt.reach, (p,), "reach"),
        (learnt.own_noise, (n, p), "own_noise"),
        (learnt.variances, (n, p), "variances"),
        (learnt.overlap, (d,), "overlap"),
    ):
        if isinstance(array, np.ndarray):
            must_have_shape(array, shape, what)
    must_be_finite(learnt.scales, "scales")
    must_be_positive(learnt.scales, "scales")
    must_be_positive(learnt.reach, "reach")
    if learnt.own_noise is not None:
        must_be_positive(learnt.own_noise[~np.isnan(learnt.own_noise)], "own_noise")
    if learnt.variances is not None:
        must_be_finite(learnt.variances, "variances")
        must_be_positive(learnt.variances, "variances", ">= 0")
    must_be_positive(learnt.overlap, "overlap", ">= 0")
    must((np.asarray(learnt.overlap) <= _LARGEST_OVERLAP).all(), f"overlap must be <= {_LARGEST_OVERLAP}", "more")
    must_be_positive(learnt.block_size, "block_size")
    must(len(learnt.noise_shapes) == p, f"{p} outputs must have as many noise shapes", len(learnt.noise_shapes))
    must_have_shape(learnt.units.inputs.mean, (d,), "means of the inputs")
    must_have_shape(learnt.units.outputs.mean, (p,), "means of the outputs")
    must(0 < learnt.n_fitted <= n, f"the number of rows fitted must be 1 to {n}", learnt.n_fitted)
    boxes = check_network(learnt.own, d, p)
    for network in (learnt.prior, learnt.seeing, learnt.network):
        if network is not learnt.own:
            check_network(network, d, p)
    for tile in learnt.tiles:
        must(tile in boxes, "a tile must be a box of the network", tile)
