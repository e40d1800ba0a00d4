"""From a prior network and data to the exact posterior network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spngp._linalg import NotPositiveDefiniteError
from spngp._parallel import map_leaves
from spngp._typing import Array, Indices
from spngp._validation import as_floats, as_outputs, as_rows
from spngp.leaf import ExactGP
from spngp.network.box import Box
from spngp.network.placement import Placed, place, route

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf, Node


def condition(root: Node, X: Any, Y: Any, *, overlap: Any = None, n_jobs: int | None = None) -> Node:
    """Posterior of the network: leaves on their own rows, then Bayes' rule at every sum, bottom up."""
    X = as_rows(X)
    Y = as_outputs(Y, X.shape[0], "Y", missing=True)
    check_outputs(root, Y)
    check_inputs(root, X)
    if X.shape[0] == 0:
        raise ValueError("X must have at least one row, got 0")
    margins = None if overlap is None else _margins(overlap, X.shape[1])
    placed = place(root)
    rows = route(placed, X)
    leaves = [i for i in range(len(placed)) if not placed[i].children]

    def condition_leaf(i: int) -> Leaf:
        context = None if margins is None else _rows_around(placed[i].box, X, margins)
        return _condition_leaf(placed[i], X, Y, rows[i], context)

    posterior: list[Node | None] = [None] * len(placed)
    for i, leaf in zip(leaves, map_leaves(condition_leaf, leaves, n_jobs), strict=True):
        posterior[i] = leaf
    for i, (node, _, children) in enumerate((item.node, item.box, item.children) for item in placed):
        if children:
            conditioned = [cast("Node", posterior[child]) for child in children]
            gains = [new.log_evidence - old.log_evidence for new, old in zip(conditioned, node.children, strict=True)]
            posterior[i] = node.with_children(conditioned, np.array(gains))
    return cast("Node", posterior[-1])


def _condition_leaf(placed: Placed, X: Array, Y: Array, rows: Indices, context: Indices | None) -> Leaf:
    leaf = cast("Leaf", placed.node)
    y = Y[:, leaf.output]
    own = rows[~np.isnan(y[rows])]
    around = None if context is None else context[~np.isnan(y[context])]
    if own.size == 0 and (around is None or around.size == 0):
        return leaf  # no data: the prior stands
    try:
        gp: ExactGP = leaf.gp.condition(
            X[own],
            y[own],
            None if around is None else X[around],
            None if around is None else y[around],
        )
    except (NotPositiveDefiniteError, ValueError) as error:
        raise type(error)(f"leaf on {placed.box!r}, output {leaf.output}: {error}") from None
    return leaf.with_gp(gp)


def _rows_around(box: Box, X: Array, margins: Array) -> Indices:
    """Rows outside the box but within its margins along every axis."""
    near = Box(tuple((axis, low - margins[axis], high + margins[axis]) for axis, low, high in box.sides))
    return np.flatnonzero(near.contains(X) & ~box.contains(X))


def _margins(overlap: Any, d: int) -> Array:
    margins = as_floats(overlap, "overlap")
    if margins.shape not in ((), (1,), (d,)):
        raise ValueError(f"overlap must be a number or one per input ({d}), got {overlap!r}")
    if not (margins >= 0).all():
        raise ValueError(f"overlap must be >= 0, got {overlap!r}")
    return np.broadcast_to(margins, (d,))


def check_inputs(root: Node, X: Array) -> None:
    """X must have the columns that the splits cut."""
    needed = max(root.cut_ranges, default=0) + 1
    if X.shape[1] < needed:
        raise ValueError(f"X must have at least {needed} columns, as a Split cuts axis {needed - 1}; got {X.shape[1]}")


def check_outputs(root: Node, Y: Array) -> None:
    """The network must model each column of Y, and no other."""
    columns = tuple(range(Y.shape[1]))
    if root.outputs != columns:
        raise ValueError(f"Y has columns {list(columns)}, but the network models outputs {list(root.outputs)}")
