"""What a network says about new rows: mixtures at each row, and the covariance between rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spngp._typing import Array, Indices
from spngp._validation import as_rows
from spngp.network.box import Box
from spngp.network.conditioning import check_inputs
from spngp.network.placement import log_path_weights, place, route
from spngp.predictive import GaussianMixture

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf, Node


class PlacedLeaf(NamedTuple):
    """A leaf, the box it stands on, and the probability that an induced tree holds it."""

    leaf: Leaf
    box: Box
    weight: float


def placed_leaves(root: Node) -> list[PlacedLeaf]:
    """Every leaf with its box and weight."""
    placed = place(root)
    log_weights = log_path_weights(placed)
    return [
        PlacedLeaf(cast("Leaf", item.node), item.box, float(np.exp(log_weight)))
        for item, log_weight in zip(placed, log_weights, strict=True)
        if not item.children
    ]


def predict_dist(root: Node, X: Any, latent: bool) -> GaussianMixture:
    """The mixture at each row: every leaf whose box holds the row, with its path weight."""
    X = as_rows(X)
    check_inputs(root, X)
    placed = place(root)
    rows = route(placed, X)
    log_path = log_path_weights(placed)
    column = {output: j for j, output in enumerate(root.outputs)}
    shape = (X.shape[0], len(column))
    leaves = [i for i in range(len(placed)) if not placed[i].children and log_path[i] > -np.inf]

    used = np.zeros(shape, dtype=np.intp)
    for i in leaves:
        used[rows[i], column[cast("Leaf", placed[i].node).output]] += 1
    n_components = int(used.max(initial=1))
    log_weights = np.full((*shape, n_components), -np.inf)
    means, variances = np.zeros((*shape, n_components)), np.ones((*shape, n_components))
    used[:] = 0
    for i in leaves:
        leaf, own = cast("Leaf", placed[i].node), rows[i]
        if own.size:
            place_ = (own, column[leaf.output], used[own, column[leaf.output]])
            means[place_], variances[place_] = leaf.gp.predict(X[own], latent)
            log_weights[place_] = log_path[i]
            used[own, column[leaf.output]] += 1
    if len(column) == 1:
        return GaussianMixture(log_weights[:, 0], means[:, 0], variances[:, 0])
    return GaussianMixture(log_weights, means, variances)


def covariance(root: Node, X: Any, latent: bool) -> Array:
    """Covariance by the law of total covariance at sums and block by block elsewhere, bottom up."""
    X = as_rows(X)
    check_inputs(root, X)
    placed = place(root)
    rows = route(placed, X)
    p = len(root.outputs)
    column = {output: j for j, output in enumerate(root.outputs)}
    moments: list[tuple[Indices, Array, Array]] = []  # positions in the flattened (row, output) grid, mean, covariance
    for i, item in enumerate(placed):
        if not item.children:
            leaf = cast("Leaf", item.node)
            moments.append((rows[i] * p + column[leaf.output], *leaf.gp.joint(X[rows[i]], latent)))
            continue
        below = [moments[child] for child in item.children]
        shares = np.exp(item.node.log_child_weights())
        positions = np.unique(np.concatenate([part[0] for part in below]))
        mixture = positions.size != sum(part[0].size for part in below)  # a sum's children cover the same positions
        mean, total = np.zeros(positions.size), np.zeros((positions.size, positions.size))
        for share, (at, part_mean, _) in zip(shares, below, strict=True):
            mean[np.searchsorted(positions, at)] += share * part_mean
        for share, (at, part_mean, part_covariance) in zip(shares, below, strict=True):
            where = np.searchsorted(positions, at)
            spread = part_mean - mean[where] if mixture else np.zeros(where.size)
            total[np.ix_(where, where)] += share * (part_covariance + np.outer(spread, spread))
        moments.append((positions, mean, total))
    n = X.shape[0]
    result = moments[-1][2]
    return result if p == 1 else result.reshape(n, p, n, p)
