"""What leave-one-out residuals of a posterior network say about the noise: outputs in doubt, and its shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from spngp._parallel import map_leaves
from spngp._typing import Array, Indices, Mask
from spngp.network import Box, Leaf, Node
from spngp.network.placement import log_path_weights, place, route
from spngp.network.prediction import PlacedLeaf
from spngp.noise import GAUSSIAN, NoiseShape, gaussian_noise, learn_noise_shape

# Outputs are in doubt if they lie so many standard deviations off what the others of their region say, and if without
# them the others are better predicted. Regions of fewer or more rows are not looked at; nor are those whose noise is
# below so many times its lower bound: where there is none, a surprise is a kernel's that does not fit.
DOUBTED, _DOUBTED_AGAIN = 5.0, 8.0  # at first, and when regions are looked at again without those found
_FEWEST_SCREENED, _LARGEST_SCREENED = 20, 5000
_LEAST_NOISE = 1.5
# The shape of the noise is learnt from so many experts, each at least so plausible, and so many rows of each at most.
_EXPERTS, _COUNTING_WEIGHT, _ROWS = 12, 0.05, 2000
_NEGLIGIBLE = 1e-6  # weight of a leaf whose density is not asked for


def outliers(own: Node, X: Array, Y: Array, n_jobs: int | None = None, near: Mask | None = None) -> Array | None:
    """Variance of the noise of outputs that mislead the others of their region, NaN elsewhere; none if there are none.

    It is the squared residual: the most likely variance of noise that is theirs alone. ``own`` is the posterior given
    X and Y, without context. With ``near``, in the shape of Y, only regions that hold one of the outputs marked there
    are looked at, and only for what a larger outlier hid: surprises of ordinary size would go on for ever.
    """
    placed = place(own)
    log_weights, rows = log_path_weights(placed), route(placed, X)
    regions: dict[tuple[Box, int], list[int]] = {}
    for i, item in enumerate(placed):
        if not item.children:
            regions.setdefault((item.box, cast("Leaf", item.node).output), []).append(i)
    # every row is looked at once, by the likeliest expert of the likeliest region
    seen, chosen = np.zeros(Y.shape, dtype=bool), []
    for (_, k), experts in sorted(regions.items(), key=lambda item: -float(np.logaddexp.reduce(log_weights[item[1]]))):
        i = max(experts, key=lambda expert: log_weights[expert])
        fresh = ~seen[rows[i], k] & ~np.isnan(Y[rows[i], k])
        if 2 * int(fresh.sum()) > rows[i].size and rows[i].size <= _LARGEST_SCREENED:
            seen[rows[i], k] = True
            if near is None or near[rows[i], k].any():
                chosen.append(i)
    own_noise = np.full(Y.shape, np.nan)

    def doubt(i: int) -> None:
        leaf = cast("Leaf", placed[i].node)
        observed = rows[i][~np.isnan(Y[rows[i], leaf.output])]
        least_noise = _LEAST_NOISE * float(np.exp(leaf.gp.bounds[-1, 0]))
        if observed.size < _FEWEST_SCREENED or leaf.noise_variance < least_noise:
            return
        if leaf.gp.rows_seen_once.size != observed.size:
            return  # some were taken together
        found, squares = leaf.gp.outliers(DOUBTED if near is None else _DOUBTED_AGAIN)
        own_noise[observed[found], leaf.output] = squares

    map_leaves(doubt, chosen, n_jobs, [rows[i].size for i in chosen])
    return None if np.isnan(own_noise).all() else own_noise


def leave_one_out_log_density(
    network: Node, X: Array, Y: Array, shapes: Sequence[NoiseShape], n_jobs: int | None = None
) -> float:
    """Sum over the outputs of the log density of each, given all others that the leaves it reaches know.

    ``network`` is the posterior given X and Y, with or without context, and ``shapes`` those of the outputs' noise. The
    weights of sums are those given all outputs.
    """
    placed = place(network)
    log_weights, rows = log_path_weights(placed), route(placed, X)
    counting = [i for i, item in enumerate(placed) if not item.children and log_weights[i] > np.log(_NEGLIGIBLE)]

    def of_leaf(i: int) -> tuple[Indices, Array]:
        leaf = cast("Leaf", placed[i].node)
        observed = rows[i][~np.isnan(Y[rows[i], leaf.output])]
        residuals, variances = leaf.gp.leave_one_out(np.arange(observed.size))
        shape = shapes[leaf.output]
        widths = variances + leaf.noise_variance * np.array(shape.factors)[:, np.newaxis]
        parts = np.log(shape.weights)[:, np.newaxis] - 0.5 * np.log(2.0 * np.pi * widths) - 0.5 * residuals**2 / widths
        return observed, np.logaddexp.reduce(parts, axis=0)

    total = np.full(Y.shape, -np.inf)
    for i, (observed, density) in zip(counting, map_leaves(of_leaf, counting, n_jobs), strict=True):
        k = cast("Leaf", placed[i].node).output
        total[observed, k] = np.logaddexp(total[observed, k], log_weights[i] + density)
    return float(total[~np.isnan(Y)].sum())


def noise_shapes(
    network: Node,
    n_outputs: int,
    doubted: Array | None,
    reach: Array,
    learns: bool,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[NoiseShape]:
    """The shape of each output's noise, from the residuals of some leaves that count; Gaussian unless it ``learns``.

    Where outputs are ``doubted`` (not NaN) the noise is that of the others, and the shape adds the variance of all, but
    for residuals beyond ``reach``, one number per output: they are no noise of any shape.
    """
    shapes = []
    leaves = [item for item in network.responsibilities() if item.leaf.gp.rows_seen_once.size]

    def residuals(task: tuple[PlacedLeaf, Indices]) -> Array:
        (leaf, _, weight), rows = task
        residual, latent_variance = leaf.gp.leave_one_out(rows)
        return np.stack(np.broadcast_arrays(residual, latent_variance, leaf.noise_variance, weight))

    for k in range(n_outputs):
        adds_variance = doubted is not None and not bool(np.isnan(doubted[:, k]).all())
        weights = np.array([item.weight if item.leaf.output == k else 0.0 for item in leaves])
        counting = np.flatnonzero(weights >= max(min(_COUNTING_WEIGHT, weights.max(initial=0.0)), np.finfo(float).tiny))
        tasks = []
        for i in rng.permutation(counting)[:_EXPERTS]:
            rows = leaves[i].leaf.gp.rows_seen_once
            tasks.append((leaves[i], rng.choice(rows, min(rows.size, _ROWS), replace=False)))
        if not tasks or not (learns or adds_variance):
            shapes.append(GAUSSIAN)
            continue
        found = np.concatenate(map_leaves(residuals, tasks, n_jobs), axis=1)
        found = found[:, np.abs(found[0]) <= reach[k]]
        shapes.append(learn_noise_shape(found, keeps_variance=not adds_variance) if learns else gaussian_noise(found))
    return shapes
