"""How well a posterior network predicts its own outputs, each left out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.gp.leave_one_out import leave_one_out
from spngp.network import Leaf, Node
from spngp.network.placement import log_path_weights, place, route
from spngp.noise import NoiseShape

_NEGLIGIBLE = 1e-6  # weight of a leaf whose density is not asked for


class Score(NamedTuple):
    """How well outputs are predicted that are left out: log densities and errors, (n, outputs), NaN where missing."""

    log_densities: Array
    errors: Array

    @property
    def squared_error(self) -> float:
        """The sum over all outputs."""
        return float(np.nansum(np.square(self.errors)))


def leave_one_out_score(
    network: Node, X: Array, Y: Array, shapes: Sequence[NoiseShape], n_jobs: int | None = None
) -> Score:
    """Of each output, given all others that the leaves it reaches know.

    ``network`` is the posterior given X and Y, with or without context, and ``shapes`` those of the outputs' noise. The
    weights of sums are those given all outputs.
    """
    placed = place(network)
    log_weights, rows = log_path_weights(placed), route(placed, X)
    counting = [i for i, item in enumerate(placed) if not item.children and log_weights[i] > np.log(_NEGLIGIBLE)]

    def of_leaf(i: int) -> tuple[Indices, Array, Array]:
        leaf = cast("Leaf", placed[i].node)
        observed = rows[i][~np.isnan(Y[rows[i], leaf.output])]
        residuals, variances = leave_one_out(leaf.gp, np.arange(observed.size))
        shape = shapes[leaf.output]
        widths = variances + leaf.noise_at(X[observed]) * np.array(shape.factors)[:, np.newaxis]
        parts = np.log(shape.weights)[:, np.newaxis] - 0.5 * np.log(2.0 * np.pi * widths) - 0.5 * residuals**2 / widths
        return observed, np.logaddexp.reduce(parts, axis=0), residuals

    total, error = np.full(Y.shape, -np.inf), np.zeros(Y.shape)
    for i, (observed, density, residuals) in zip(counting, map_leaves(of_leaf, counting, n_jobs), strict=True):
        k = cast("Leaf", placed[i].node).output
        total[observed, k] = np.logaddexp(total[observed, k], log_weights[i] + density)
        error[observed, k] += np.exp(log_weights[i]) * residuals
    return Score(np.where(np.isnan(Y), np.nan, total), np.where(np.isnan(Y), np.nan, error))
