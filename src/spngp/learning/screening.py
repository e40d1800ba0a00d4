"""The search for outliers: outputs whose leave-one-out residuals show that they mislead the rest of their region."""

from __future__ import annotations

from typing import cast

import numpy as np

from spngp._support.threads import map_leaves
from spngp._support.types import Array, Mask
from spngp.gp.leave_one_out import misleading_rows
from spngp.network import Box, Leaf, Node
from spngp.network.placement import log_path_weights, place, route

DOUBTED = 5.0  # standard deviations from what the rest of the region predicts: an output comes into doubt
_DOUBTED_AGAIN = 8.0  # the same, when a region is searched again without the outputs found before
_FEWEST_SCREENED, _FEWEST_BEFORE_LATER = 10, 20  # rows of a region that is searched, at least; for rows that came later
_LARGEST_SCREENED = 5000  # rows of a region that is searched, at most
_LEAST_NOISE = (
    1.5  # times the noise variance's lower bound: below, a large residual means kernel misfit, not an outlier
)
_LARGEST_SHARE = 0.1  # share of a region's later rows that may be in doubt; one row may be in any case


def outliers(
    own: Node,
    X: Array,
    Y: Array,
    n_jobs: int | None = None,
    near: Mask | None = None,
    among: Mask | None = None,
    suspects: Mask | None = None,
) -> Array | None:
    """Noise variances for outputs that mislead the rest of their region, in the shape of Y; NaN for all other outputs.

    None if there are no such outputs. The variance is the squared leave-one-out residual: the most likely one for a
    noise that this output has alone.

    Parameters
    ----------
    own : Node
        The posterior given X and Y, without context.
    X, Y : ndarray
        NaN in Y for outputs that are missing or in doubt already.
    n_jobs : int, optional
    near : ndarray of bool, optional
        In the shape of Y. Only regions that hold an output marked here are searched, with the higher threshold: with
        the lower one, each search would find some more.
    among : ndarray of bool, optional
        In the shape of Y, the outputs that were added after the fit; only these are judged. A region where too large a
        share of them would be outliers has none: its data have changed.
    suspects : ndarray of bool, optional
        In the shape of Y, outputs that the GPs were learnt without. In a region with hardly any noise, only these are
        judged.
    """
    placed = place(own)
    log_weights, rows = log_path_weights(placed), route(placed, X)
    regions: dict[tuple[Box, int], list[int]] = {}
    for i, item in enumerate(placed):
        if not item.children:
            regions.setdefault((item.box, cast("Leaf", item.node).output), []).append(i)
    # every row is judged once, in the most probable region that holds it, by the most probable expert there
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
        fewest = _FEWEST_SCREENED if among is None else _FEWEST_BEFORE_LATER
        if observed.size < fewest:
            return
        if leaf.gp.rows_seen_once.size != observed.size:
            return  # equal rows were merged: they have no residuals of their own
        candidates = None if among is None else among[observed, leaf.output]
        if leaf.noise_variance < least_noise:
            candidates = None if suspects is None else suspects[observed, leaf.output]
            if candidates is None or not candidates.any():
                return
        found, squares = misleading_rows(leaf.gp, DOUBTED if near is None else _DOUBTED_AGAIN, candidates)
        if among is not None:
            n_later = int(among[rows[i], leaf.output].sum())
            n_doubted = n_later - int(among[observed, leaf.output].sum()) + found.size
            if n_doubted > max(1.0, _LARGEST_SHARE * n_later):
                return
        own_noise[observed[found], leaf.output] = squares

    map_leaves(doubt, chosen, n_jobs, [rows[i].size for i in chosen])
    return None if np.isnan(own_noise).all() else own_noise
