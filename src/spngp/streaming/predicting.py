"""What a living model says about new rows: only the experts that they reach are asked."""

from __future__ import annotations

import math

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.learning.learnt import LEAST_WEIGHT
from spngp.network import Leaf
from spngp.network.prediction import Components, LeafNoise, Routed, gathered
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
    groups: dict[tuple[int, int, bool], list[int]] = {}  # by region, output, and whether it has context
    experts, columns, noise = [], [], []
    for i, leaf in enumerate(leaves):
        region, expert = living.expert(leaf)
        k = expert.output
        sees = log_weights[i] >= _LEAST_LOG_WEIGHT and region.sees_beyond
        groups.setdefault((living.where[leaf][0], k, sees), []).append(i)
        experts.append(expert)
        columns.append(k)
        usual, squared = expert.prior.noise_variance, float(outputs.scale[k]) ** 2
        noise.append(LeafNoise(expert.prior.noise_at(W[rows[i]]) * squared, usual * squared, shape_of(k, usual)))
    found: dict[int, tuple[Array, Array]] = {}

    def predict(group: tuple[int, int, bool]) -> None:
        i, k, sees = group
        members = groups[group]
        asked = W[rows[members[0]]]  # leaves of a region have the same rows
        means, variances = predicted(living, living.regions[i], [experts[j] for j in members], asked, sees)
        scale = float(outputs.scale[k])
        means, variances = means * scale + float(outputs.mean[k]), variances * scale**2
        for j, mean, variance in zip(members, means, variances, strict=True):
            found[j] = (mean, variance)

    if X.shape[0] == 1:
        for group in groups:
            predict(group)
    else:
        map_leaves(predict, list(groups), n_jobs)
    return gathered(rows, columns, log_weights, (X.shape[0], living.n_outputs), noise, found.__getitem__, None)


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
