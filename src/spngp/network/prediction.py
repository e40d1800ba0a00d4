"""What a network says about new rows: mixtures at each row, and the covariance between rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from spngp._support.checks import as_rows
from spngp._support.threads import map_leaves, one_blas_thread
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.network.conditioning import check_inputs
from spngp.network.placement import log_path_weights, place, route
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.predictive import GaussianMixture

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf, Node


# ``value(leaf, rows)``: a number for each row, or one for all rows.
Value: TypeAlias = Callable[["Leaf", Array], Array | float]


class PlacedLeaf(NamedTuple):
    """A leaf, its box, and the probability that an induced tree holds it."""

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
    """The leaves whose boxes hold some of the given rows.

    Attributes
    ----------
    leaves : list of Leaf
    rows : list of ndarray
        For each leaf, the positions of the rows in its box.
    columns : list of int
        For each leaf, the column of its output in the result.
    log_weights : list of float
        For each leaf, the log probability that an induced tree holds it.
    shape : (int, int)
        Number of rows and of outputs.
    """

    leaves: list[Leaf]
    rows: list[Indices]
    columns: list[int]
    log_weights: list[float]
    shape: tuple[int, int]


def route_to_leaves(root: Node, X: Array) -> Routed:
    """The leaves that predict the rows of X, and with what weight."""
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
    """The largest number of leaves that predict one row of X and one output."""
    routed = route_to_leaves(root, X)
    return _most(_slots(routed.rows, routed.columns, routed.shape))


def _slots(rows: Sequence[Indices], columns: Sequence[int], shape: tuple[int, int]) -> list[Indices]:
    """For each leaf, its place among the components of the mixture at each of its rows."""
    used = np.zeros(shape, dtype=np.intp)
    slots = []
    for own, column in zip(rows, columns, strict=True):
        slots.append(used[own, column])
        used[own, column] += 1
    return slots


def _most(slots: list[Indices]) -> int:
    return max((int(places.max()) + 1 for places in slots), default=1)


class Components(NamedTuple):
    """The prediction of every leaf whose box holds a row; arrays of shape (rows, outputs, components)."""

    log_weights: Array
    means: Array
    latent_variances: Array
    noise_variances: Array
    usual_noise: Array  # of each leaf: where its noise does not change with the inputs, the same
    noise_shapes: Indices  # positions in ``shapes``
    shapes: tuple[NoiseShape, ...]

    def observed(self) -> tuple[Array, Array, Array]:
        """Log weights, means and variances of a new observation: one component per part of each noise's shape."""
        parts = max(len(shape.weights) for shape in self.shapes)
        weights, factors = np.zeros((len(self.shapes), parts)), np.ones((len(self.shapes), parts))
        surprises = np.zeros(weights.shape, dtype=bool)
        for k, shape in enumerate(self.shapes):
            weights[k, : len(shape.weights)], factors[k, : len(shape.weights)] = shape.weights, shape.factors
            surprises[k, len(shape.weights) - 1] = shape.surprises
        with np.errstate(divide="ignore"):  # shapes with fewer parts than another have parts of weight zero
            log_shares = np.log(weights)
        which = 0 if len(self.shapes) == 1 else self.noise_shapes
        flat = (*self.means.shape[:2], self.means.shape[2] * parts)
        log_weights = (self.log_weights[..., np.newaxis] + log_shares[which]).reshape(flat)
        noise = self.noise_variances[..., np.newaxis] * factors[which]
        if not np.array_equal(self.noise_variances, self.usual_noise):
            least = np.where(surprises[which], self.usual_noise[..., np.newaxis] * factors[which], 0.0)
            noise = np.maximum(noise, least)
        variances = (self.latent_variances[..., np.newaxis] + noise).reshape(flat)
        return log_weights, np.repeat(self.means, parts, axis=-1), variances


class LeafNoise(NamedTuple):
    """The noise of a leaf: its variance at the rows asked for, the usual one, and its shape."""

    at_rows: Array
    usual: float
    shape: NoiseShape


def components(root: Node, X: Array, n_jobs: int | None) -> Components:
    """The components at each row: one per leaf whose box holds it; a log weight of −inf marks an empty place."""
    routed = route_to_leaves(root, X)

    def predict(i: int) -> tuple[Array, Array]:
        return routed.leaves[i].predict(X[routed.rows[i]])

    noise = [
        LeafNoise(leaf.noise_at(X[rows]), leaf.noise_variance, leaf.noise_shape)
        for leaf, rows in zip(routed.leaves, routed.rows, strict=True)
    ]
    return gathered(routed.rows, routed.columns, routed.log_weights, routed.shape, noise, predict, n_jobs)


def _empty(shape: tuple[int, int, int], shapes: tuple[NoiseShape, ...]) -> Components:
    """Components to be filled in, all of whose places are empty."""
    return Components(
        log_weights=np.full(shape, -np.inf),
        means=np.zeros(shape),
        latent_variances=np.ones(shape),
        noise_variances=np.zeros(shape),
        usual_noise=np.zeros(shape),
        noise_shapes=np.zeros(shape, dtype=np.intp),
        shapes=shapes,
    )


def gathered(
    rows: Sequence[Indices],
    columns: Sequence[int],
    log_weights: Sequence[float],
    shape: tuple[int, int],
    noise: Sequence[LeafNoise],
    predict: Callable[[int], tuple[Array, Array]],
    n_jobs: int | None,
) -> Components:
    """The components at each row, from leaves that are known by their place in these lists.

    ``rows``, ``columns``, ``log_weights`` and ``shape`` are those of :class:`Routed`, ``noise`` is that of each
    leaf, and ``predict(i)`` gives mean and latent variance of leaf i at its rows.
    """
    shapes = {shape: k for k, shape in enumerate(dict.fromkeys(of_leaf.shape for of_leaf in noise))}
    if shape == (1, 1) and rows:  # one row, one output: a component for each leaf, in their order
        means, variances = zip(*[predict(i) for i in range(len(rows))], strict=True)
        return Components(
            log_weights=np.array([[log_weights]]),
            means=np.concatenate(means).reshape(1, 1, -1),
            latent_variances=np.concatenate(variances).reshape(1, 1, -1),
            noise_variances=np.concatenate([of_leaf.at_rows for of_leaf in noise]).reshape(1, 1, -1),
            usual_noise=np.array([[[of_leaf.usual for of_leaf in noise]]]),
            noise_shapes=np.array([[[shapes[of_leaf.shape] for of_leaf in noise]]]),
            shapes=tuple(shapes),
        )
    slots = _slots(rows, columns, shape)
    filled = (*shape, _most(slots))
    found = _empty(filled, tuple(shapes) or (GAUSSIAN,))

    def predict_leaf(i: int) -> None:
        where = (rows[i], columns[i], slots[i])
        found.means[where], found.latent_variances[where] = predict(i)
        found.noise_variances[where], found.usual_noise[where] = noise[i].at_rows, noise[i].usual
        found.log_weights[where] = log_weights[i]
        found.noise_shapes[where] = shapes[noise[i].shape]

    map_leaves(predict_leaf, range(len(slots)), n_jobs)
    return found


def joined(parts: Sequence[tuple[Indices, Components]]) -> Components:
    """The components of all rows, from those of groups of them, given with the positions of their rows."""
    shapes = {shape: k for k, shape in enumerate(dict.fromkeys(shape for _, part in parts for shape in part.shapes))}
    n_rows = sum(rows.size for rows, _ in parts)
    filled = (n_rows, parts[0][1].means.shape[1], max(part.means.shape[2] for _, part in parts))
    found = _empty(filled, tuple(shapes))
    for rows, part in parts:
        places = slice(0, part.means.shape[2])
        for whole, own in zip(found[:5], part[:5], strict=True):
            whole[rows, :, places] = own
        found.noise_shapes[rows, :, places] = np.array([shapes[shape] for shape in part.shapes])[part.noise_shapes]
    return found


def predict_dist(root: Node, X: Any, latent: bool, n_jobs: int | None) -> GaussianMixture:
    """The mixture at each row, of the function or of a new observation."""
    return mixture_of(components(root, as_rows(X), n_jobs), latent)


def mixture_of(found: Components, latent: bool) -> GaussianMixture:
    """The mixture that components make, of the function or of a new observation."""
    return _mixture(*(found[:3] if latent else found.observed()))


def _mixture(*parts: Array) -> GaussianMixture:
    """Of log weights, means and variances with an axis of outputs, which is dropped if there is one."""
    return GaussianMixture(*(part[:, 0] if parts[1].shape[1] == 1 else part for part in parts))


def plain_mixture_of(found: Components, latent: bool) -> GaussianMixture:
    """The same with Gaussian noise of the variance that the GPs learnt: without outputs in doubt and surprises."""
    noise = 0.0 if latent else found.noise_variances
    return _mixture(found.log_weights, found.means, found.latent_variances + noise)


def average(root: Node, X: Array, value: Value, n_jobs: int | None = None) -> Array:
    """Average of ``value(leaf, rows)`` over the leaves whose boxes hold each row, by weight; shape (n, outputs)."""
    return averaged(route_to_leaves(root, X), X, value, n_jobs)


def averaged(routed: Routed, X: Array, value: Value, n_jobs: int | None = None) -> Array:
    """The same over leaves that are known already."""
    parts = map_leaves(lambda i: value(routed.leaves[i], X[routed.rows[i]]), range(len(routed.leaves)), n_jobs)
    total = np.zeros(routed.shape)
    for part, rows, column, log_weight in zip(parts, routed.rows, routed.columns, routed.log_weights, strict=True):
        total[rows, column] += np.exp(log_weight) * part
    return total


@one_blas_thread()
def covariance(root: Node, X: Any, latent: bool) -> Array:
    """Covariance, bottom up: by the law of total covariance at sums; elsewhere children are independent."""
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
            moments.append((rows[i] * p + column[leaf.output], *leaf.joint(X[rows[i]], latent)))
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
            with np.errstate(over="ignore", invalid="ignore"):
                total[np.ix_(where, where)] += share * (part_covariance + np.outer(spread, spread))
        moments.append((positions, mean, total))
    n = X.shape[0]
    result = moments[-1][2]
    if not np.isfinite(result).all():
        raise ValueError("the covariance overflows: alternative experts differ by more than 1e154; rescale y")
    return result if p == 1 else result.reshape(n, p, n, p)
