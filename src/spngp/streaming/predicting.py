"""What a living model says about new rows: only the experts that they reach are asked."""

from __future__ import annotations

import math

import numpy as np

from spngp._support.types import Array, Indices
from spngp.learning.learnt import LEAST_WEIGHT
from spngp.network import Leaf
from spngp.network.prediction import Components, Routed, gathered
from spngp.noise import NoiseShape
from spngp.streaming.conditioned import predicted
from spngp.streaming.freezing import frozen_own, frozen_seen
from spngp.streaming.living import Living
from spngp.streaming.shapes import shapes_of_leaves

_LEAST_LOG_WEIGHT = math.log(LEAST_WEIGHT)


def components(living: Living, X: Array, n_jobs: int | None = None) -> Components:
    """The components at each row, given in the units of the user, as of its network."""
    W = living.base.units.inputs.apply(X)
    leaves, rows, log_weights = _reached(living, W)
    outputs, shape_of = living.base.units.outputs, shapes_of_leaves(living, n_jobs)
    columns = [living.expert(leaf)[1].output for leaf in leaves]
    noise: list[tuple[float, NoiseShape]] = []
    for leaf, k in zip(leaves, columns, strict=True):
        variance = living.expert(leaf)[1].prior.noise_variance
        noise.append((variance * float(outputs.scale[k]) ** 2, shape_of(k, variance)))

    def predict(i: int) -> tuple[Array, Array]:
        region, expert = living.expert(leaves[i])
        sees = log_weights[i] >= _LEAST_LOG_WEIGHT and region.sees_beyond
        mean, variance = predicted(living, region, expert, W[rows[i]], sees)
        scale = float(outputs.scale[expert.output])
        return mean * scale + float(outputs.mean[expert.output]), variance * scale**2

    return gathered(rows, columns, log_weights, (X.shape[0], living.n_outputs), noise, predict, n_jobs)


def routed(living: Living, X: Array, n_jobs: int | None = None) -> Routed:
    """The leaves that predict the rows of X, in the units of the user, without their factors."""
    leaves, rows, log_weights = _reached(living, living.base.units.inputs.apply(X))
    shape_of = shapes_of_leaves(living, n_jobs)
    nodes = []
    for leaf, log_weight in zip(leaves, log_weights, strict=True):
        region, expert = living.expert(leaf)
        sees = log_weight >= _LEAST_LOG_WEIGHT and region.sees_beyond
        gp = (frozen_seen if sees else frozen_own)(living, region, expert)
        shape = shape_of(expert.output, gp.noise_variance)
        nodes.append(Leaf.of(gp, expert.output, expert.label, living.base.units, shape))
    return Routed(nodes, rows, [node.output for node in nodes], log_weights, (X.shape[0], living.n_outputs))


def _reached(living: Living, W: Array) -> tuple[list[int], list[Indices], list[float]]:
    """The leaves that rows reach with a probability above zero, these rows, and the logs of the probabilities."""
    reached = living.index.route(W)
    weights = living.index.log_path_weights(reached, living.values)
    leaves = [leaf for leaf in sorted(reached) if weights[leaf] > -np.inf]
    return leaves, [reached[leaf] for leaf in leaves], [weights[leaf] for leaf in leaves]
