"""Outputs that mislead the others of their region, as leave-one-out residuals of a posterior network tell."""

from __future__ import annotations

from typing import cast

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Mask
from spngp.gp.leave_one_out import misleading_rows
from spngp.network import Box, Leaf, Node
from spngp.network.placement import log_path_weights, place, route

_DOUBTED = 5.0  # standard deviations off what the others of its region say: an output in doubt
_DOUBTED_AGAIN = 8.0  # the same when a region is looked at again without those found
_FEWEST_SCREENED, _LARGEST_SCREENED = 20, 5000  # rows of a region that is looked at
_LEAST_NOISE = 1.5  # times its lower bound: below, a large residual means kernel misfit, not an outlier
_LARGEST_SHARE = 0.1  # of a region's later rows that may be in doubt, one in any case


def outliers(
    own: Node,
    X: Array,
    Y: Array,
    n_jobs: int | None = None,
    near: Mask | None = None,
    among: Mask | None = None,
) -> Array | None:
    """Variance of the noise of outputs that mislead the others of their region, NaN elsewhere; none if there are none.

    It is the squared residual: the most likely variance of noise that is theirs alone. ``own`` is the posterior given
    X and Y, without context. With ``near``, in the shape of Y, only regions that hold one of the outputs marked there
    are looked at, and only for what a larger outlier hid: surprises of ordinary size would go on for ever. With
    ``among``, in the shape of Y, only outputs marked there are judged, of rows that came later (NaN in Y for those that
    were found before). If too large a share of a region's would be outliers, its outputs have become others.
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
            if all(marked is None or marked[rows[i], k].any() for marked in (near, among)):
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
        later = None if among is None else among[observed, leaf.output]
        found, squares = misleading_rows(leaf.gp, _DOUBTED if near is None else _DOUBTED_AGAIN, later)
        if among is not None:
            n_later = int(among[rows[i], leaf.output].sum())
            n_doubted = n_later - int(among[observed, leaf.output].sum()) + found.size
            if n_doubted > max(1.0, _LARGEST_SHARE * n_later):
                return
        own_noise[observed[found], leaf.output] = squares

    map_leaves(doubt, chosen, n_jobs, [rows[i].size for i in chosen])
    return None if np.isnan(own_noise).all() else own_noise
