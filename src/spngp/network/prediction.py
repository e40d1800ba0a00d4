"""What a network says about new rows: mixtures at each row, and the covariance between rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spngp._parallel import map_leaves, one_blas_thread
from spngp._typing import Array, Indices
from spngp._validation import as_rows
from spngp.network.box import Box
from spngp.network.conditioning import check_inputs
from spngp.network.placement import log_path_weights, place, route
from spngp.noise import GAUSSIAN, NoiseShape
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


@dataclass(frozen=True)
class Routed:
    """The leaves that given rows reach: for each its position in the rows, its output's column and its log weight."""

    leaves: list[Leaf]
    rows: list[Indices]
    columns: list[int]
    log_weights: list[float]
    shape: tuple[int, int]


def route_to_leaves(root: Node, X: Array) -> Routed:
    """Which leaves speak for which rows of X, and with what weight."""
    check_inputs(root, X)
    placed = place(root)
    rows = route(placed, X)
    log_weights = log_path_weights(placed)
    used = [i for i, item in enumerate(placed) if not item.children and rows[i].size and log_weights[i] > -np.inf]
    leaves = [cast("Leaf", placed[i].node) for i in used]
    column = {output: j for j, output in enumerate(root.outputs)}
    return Routed(
        leaves,
        [rows[i] for i in used],
        [column[leaf.output] for leaf in leaves],
        [float(log_weights[i]) for i in used],
        (X.shape[0], len(column)),
    )


def most_components(root: Node, X: Array) -> int:
    """How many leaves speak for the row of X, and the output, that most speak for."""
    return _most(_slots(route_to_leaves(root, X)))


def _slots(routed: Routed) -> list[Indices]:
    """For each leaf, which component of each of its rows' mixtures it is."""
    used = np.zeros(routed.shape, dtype=np.intp)
    slots = []
    for rows, column in zip(routed.rows, routed.columns, strict=True):
        slots.append(used[rows, column])
        used[rows, column] += 1
    return slots


def _most(slots: list[Indices]) -> int:
    return max((int(own.max()) + 1 for own in slots), default=1)


class Components(NamedTuple):
    """What every leaf that a row reaches says about it; arrays of shape (rows, outputs, components)."""

    log_weights: Array
    means: Array
    latent_variances: Array
    noise_variances: Array


def components(root: Node, X: Array, n_jobs: int | None) -> Components:
    """Each leaf whose box holds a row is a component there, with its path weight; −inf where there is none."""
    routed = route_to_leaves(root, X)
    slots = _slots(routed)
    shape = (*routed.shape, _most(slots))
    found = Components(np.full(shape, -np.inf), np.zeros(shape), np.ones(shape), np.zeros(shape))

    def predict_leaf(i: int) -> None:
        where, leaf = (routed.rows[i], routed.columns[i], slots[i]), routed.leaves[i]
        found.means[where], found.latent_variances[where] = leaf.gp.predict(X[routed.rows[i]], latent=True)
        found.noise_variances[where] = leaf.noise_variance
        found.log_weights[where] = routed.log_weights[i]

    map_leaves(predict_leaf, range(len(slots)), n_jobs)
    return found


def predict_dist(
    root: Node, X: Any, latent: bool, n_jobs: int | None, noise_shapes: Sequence[NoiseShape] | None = None
) -> GaussianMixture:
    """The mixture at each row, of the function or of an observation with noise: Gaussian, or of a shape per output."""
    log_weights, means, variances, noise = components(root, as_rows(X), n_jobs)
    if not latent:
        shapes = [GAUSSIAN] * means.shape[1] if noise_shapes is None else noise_shapes
        parts = max(len(shape.weights) for shape in shapes)
        weights, factors = np.zeros((len(shapes), 1, parts)), np.ones((len(shapes), 1, parts))
        for j, shape in enumerate(shapes):
            weights[j, 0, : len(shape.weights)], factors[j, 0, : len(shape.weights)] = shape.weights, shape.factors
        flat = (*means.shape[:2], means.shape[2] * parts)
        with np.errstate(divide="ignore"):  # a part that another output needs
            log_weights = (log_weights[..., np.newaxis] + np.log(weights)).reshape(flat)
        variances = (variances[..., np.newaxis] + noise[..., np.newaxis] * factors).reshape(flat)
        means = np.repeat(means, parts, axis=-1)
    if means.shape[1] == 1:
        return GaussianMixture(log_weights[:, 0], means[:, 0], variances[:, 0])
    return GaussianMixture(log_weights, means, variances)


def average(root: Node, X: Array, value: Callable[[Leaf, Array], Array | float], n_jobs: int | None = None) -> Array:
    """Weighted average over the leaves that each row reaches of ``value(leaf, rows)``, shape (n, outputs)."""
    routed = route_to_leaves(root, X)
    parts = map_leaves(lambda i: value(routed.leaves[i], X[routed.rows[i]]), range(len(routed.leaves)), n_jobs)
    total = np.zeros(routed.shape)
    for part, rows, column, log_weight in zip(parts, routed.rows, routed.columns, routed.log_weights, strict=True):
        total[rows, column] += np.exp(log_weight) * part
    return total


@one_blas_thread()
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
