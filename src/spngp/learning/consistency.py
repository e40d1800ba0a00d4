"""How the attributes of what was learnt must agree."""

from __future__ import annotations

from typing import cast

import numpy as np

from spngp._support.consistency import must, must_be_finite, must_be_positive, must_have_shape
from spngp._support.memory import Budget
from spngp.gp.consistency import check_inputs_of
from spngp.learning.learnt import Learnt
from spngp.learning.sharded import Sharded
from spngp.learning.upkeep import Upkeep
from spngp.network import Leaf
from spngp.network.consistency import check_network
from spngp.network.placement import distinct_nodes, place
from spngp.structure.cells import CellTree

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
        (learnt.shares, (n,), "shares of rows"),
        (learnt.overlap, (d,), "overlap"),
    ):
        if isinstance(array, np.ndarray):
            must_have_shape(array, shape, what)
    must(not (np.isinf(learnt.X).any() or np.isinf(learnt.Y).any()), "rows must be finite, or missing", "infinite ones")
    must_be_finite(learnt.scales, "scales")
    must_be_positive(learnt.scales, "scales")
    must_be_positive(learnt.reach, "reach")
    if learnt.own_noise is not None:
        must_be_positive(learnt.own_noise[~np.isnan(learnt.own_noise)], "own_noise")
    if learnt.shares is not None:
        must_be_finite(learnt.shares, "shares of rows")
        must_be_positive(learnt.shares, "shares of rows")
    if learnt.variances is not None:
        must_be_finite(learnt.variances, "variances")
        must_be_positive(learnt.variances, "variances", ">= 0")
    must_be_positive(learnt.overlap, "overlap", ">= 0")
    must((np.asarray(learnt.overlap) <= _LARGEST_OVERLAP).all(), f"overlap must be <= {_LARGEST_OVERLAP}", "more")
    must_be_positive(learnt.block_size, "block_size")
    must(len(learnt.noise_shapes) == p, f"{p} outputs must have as many noise shapes", len(learnt.noise_shapes))
    must_have_shape(learnt.units.inputs.mean, (d,), "means of the inputs")
    must_have_shape(learnt.units.outputs.mean, (p,), "means of the outputs")
    fewest = 1 if learnt.upkeep is None else 0  # they may be forgotten
    must(fewest <= learnt.n_fitted <= n, f"the number of rows fitted must be {fewest} to {n}", learnt.n_fitted)
    boxes = check_network(learnt.own, d, p)
    for network in (learnt.prior, learnt.seeing, learnt.network):
        if network is not learnt.own:
            check_network(network, d, p)
    for tile in learnt.tiles:
        must(tile in boxes, "a tile must be a box of the network", tile)
    must(len(learnt.tied) in (0, p), f"{p} outputs must have tied parameters each, or none", len(learnt.tied))
    check_inputs_of((gp for gps in learnt.tied for gp in gps), d)
    as_many = [len(gps) for gps in learnt.tied] == [len(labels) for labels in learnt.labels]
    must(as_many, "tied parameters must have labels, one per kernel", learnt.labels)
    must_be_positive(learnt.noise_prior_std, "noise_prior_std")
    _check_kinds(learnt)
    if learnt.upkeep is not None:
        _check_upkeep(learnt, learnt.upkeep)


def _check_kinds(learnt: Learnt) -> None:
    """Raise an error unless every expert that there is or may come to be has a kind of noise."""
    leaves = [cast("Leaf", node) for node in distinct_nodes(learnt.prior) if not node.children]
    experts = {(leaf.output, leaf.label) for leaf in leaves}
    experts |= {(k, label) for k, labels in enumerate(learnt.labels) for label in labels}
    for k, label in experts:
        known = {(k, label), (k, "")}.intersection(learnt.kinds)
        must(bool(known), f"kinds of noise must have one for {label!r} of output {k}", "none")


def check_tree(tree: CellTree) -> None:
    """Raise an error unless cuts make a tree of cells."""
    cuts, below = tree.axes.size, tree.children
    for array, shape, what in (
        (tree.axes, (cuts,), "axes"),
        (tree.at, (cuts,), "cuts"),
        (below, (cuts, 2), "children"),
    ):
        must_have_shape(array, shape, what)
    must(tree.axes.dtype == below.dtype == np.intp, "axes and children of cuts must be integers", tree.axes.dtype)
    must_be_finite(tree.at, "cuts")
    must((tree.axes >= 0).all(), "axes of cuts must be >= 0", "others")
    named = not cuts or np.array_equal(np.sort(below.ravel()), [*range(-cuts - 1, 0), *range(1, cuts)])
    later = ((below < 0) | (below > np.arange(cuts)[:, np.newaxis])).all()
    must(named and later, "cuts must make a tree", "others")


def check_sharded(sharded: Sharded) -> None:
    """Raise an error unless the tree, the cells and the units of a model in shards fit each other."""
    d, p, cuts = sharded.units.inputs.mean.size, sharded.units.outputs.mean.size, sharded.axes.size
    check_tree(sharded.tree)
    must((sharded.axes < d).all(), f"cuts must be along {d} inputs", "others")
    for array, shape, what in (
        (sharded.rows, (cuts + 1,), "rows of cells"),
        (sharded.sizes, (cuts + 1,), "sizes of shards"),
        (sharded.counts, (p,), "counts of outputs"),
        (sharded.in_doubt, (sharded.in_doubt.shape[0], 2), "outputs in doubt"),
        (sharded.donors, (sharded.donors.shape[0], d), "donors"),
    ):
        must_have_shape(array, shape, what)
    must(len(sharded.noise_shapes) == p, f"{p} outputs must have as many noise shapes", len(sharded.noise_shapes))
    must_be_positive(sharded.rows, "rows of cells", ">= 0")


def _check_upkeep(learnt: Learnt, upkeep: Upkeep) -> None:
    """Raise an error unless what has happened since the fit fits the rows and the regions."""
    (n, p), count = learnt.Y.shape, len(upkeep.boxes)
    kinds = learnt.kinds
    for array, shape, what in (
        (upkeep.numbers, (n,), "numbers of rows"),
        (upkeep.seen_noise, (n, len(kinds)), "noise of rows"),
        (upkeep.reaches, (count, 2), "reaches"),
        (upkeep.noise, (count, len(kinds)), "noise of regions"),
        (upkeep.counts, (count, 3), "counts"),
    ):
        must_have_shape(array, shape, what)
    numbers = upkeep.numbers  # compared, since differences may overflow
    ascending = numbers[0] >= 0 and (numbers[1:] > numbers[:-1]).all() and numbers[-1] < upkeep.n_ever
    must(ascending, f"numbers of rows must ascend from 0 to {upkeep.n_ever}", "others")
    must(not np.isnan(upkeep.reaches).any(), "a reach must be a distance", "NaN")
    must_be_positive(upkeep.seen_noise, "noise of rows", ">= 0")
    must_be_positive(upkeep.noise, "noise of regions", ">= 0")
    must_be_positive(upkeep.counts, "counts", ">= 0")
    must_be_positive([upkeep.n_learnt, *upkeep.shaped], "counts of rows", ">= 0")
    leaves = {item.box for item in place(learnt.prior) if not item.children}
    must(set(upkeep.boxes) == leaves and len(leaves) == count, "regions must be the boxes of leaves", count)
    as_many = len(upkeep.surprises) == count and all(len(scores) == p for scores in upkeep.surprises)
    must(as_many, "regions must have surprises, one list per output", len(upkeep.surprises))
    within = all(((s > 0) & (s < 1)).all() and s.ndim == 1 for scores in upkeep.surprises for s in scores)
    must(within, "surprises must be between 0 and 1", "others")
    sizes = [[(gp.theta.size,) * 2 for gp in gps] for gps in learnt.tied]
    known = [[curvature.shape for curvature in gps] for gps in upkeep.curvatures]
    must(known in ([], sizes), "curvatures must be those of the tied parameters", known)
