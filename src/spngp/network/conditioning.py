"""From a prior network and data to the exact posterior network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.checks import as_floats, as_outputs, as_rows
from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.gp.row_weights import KnownVariances
from spngp.network.placement import Placed, log_path_weights, place, route
from spngp.network.row_noise import RowNoise, averages

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf, Node

_LEAST_SEEN = 1e-8  # noise variance of a context row, in units of the leaf's own: rounding errors need some

# ``context(box)``: the context rows of a leaf on this box, in a fixed order.
Context: TypeAlias = Callable[[Box], Indices]

# ``keep(sizes)``: given the number of rows of each leaf, which leaves keep their factors in memory.
Keep: TypeAlias = Callable[[list[int]], list[bool]]


def all_factors(sizes: list[int]) -> list[bool]:
    """Keep every factor."""
    return [True] * len(sizes)


def no_factors(sizes: list[int]) -> list[bool]:
    """Keep none: for a posterior of which only evidence, weights and means are wanted."""
    return [False] * len(sizes)


def condition(
    root: Node,
    X: Any,
    Y: Any,
    *,
    own_noise: Array | None = None,
    variances: KnownVariances | None = None,
    known: Node | None = None,
    n_jobs: int | None = None,
    keep: Keep = all_factors,
) -> Node:
    """Posterior of the network: leaves on their own rows, then Bayes' rule at every sum, bottom up.

    Parameters
    ----------
    root : Node
    X, Y : array-like
        Rows and their outputs; NaN in Y is a missing output.
    own_noise : ndarray, optional
        In the shape of Y, the noise variance of outputs in doubt; NaN for outputs with the noise of their leaf.
    variances : KnownVariances, optional
        In the shape of Y, what is known of the noise of outputs.
    known : Node, optional
        An earlier posterior of a network of the same shape, on all of these rows or the first of them. Leaves that have
        the same rows there and here, none with a noise of its own, are taken from it.
    n_jobs : int, optional
    keep : callable
        Which leaves keep their factors.
    """
    X = as_rows(X)
    Y = as_outputs(Y, X.shape[0], "Y", missing=True)
    check_outputs(root, Y)
    check_inputs(root, X)
    if X.shape[0] == 0:
        raise ValueError("X must have at least one row, got 0")
    placed = place(root)
    rows = route(placed, X)
    leaves = [i for i in range(len(placed)) if not placed[i].children]

    # a GP with the same rows in several places is computed once
    def key(i: int) -> tuple[int, bytes]:
        return id(cast("Leaf", placed[i].node).gp), rows[i].tobytes()

    first = {key(i): i for i in reversed(leaves)}
    posterior: list[Node | None] = [None] * len(placed)
    if known is not None:
        for i, earlier in zip(leaves, (node.node for node in place(known) if not node.children), strict=True):
            if _is_known(cast("Leaf", placed[i].node), cast("Leaf", earlier), rows[i], Y, own_noise):
                posterior[i] = earlier
    distinct = sorted(i for i in first.values() if posterior[i] is None)
    sizes = [cast("Leaf", placed[i].node).gp.n_own + rows[i].size for i in distinct]
    tasks = list(zip(distinct, keep(sizes), strict=True))

    def condition_leaf(task: tuple[int, bool]) -> Leaf:
        i, keep_factor = task
        return _condition_leaf(placed[i], X, Y, rows[i], keep_factor, own_noise, variances)

    for i, leaf in zip(distinct, map_leaves(condition_leaf, tasks, n_jobs, sizes), strict=True):
        posterior[i] = leaf
    for i in leaves:
        found = cast("Leaf", posterior[first[key(i)]])
        posterior[i] = found if i == first[key(i)] else cast("Leaf", placed[i].node).with_gp(found.gp)
    for i, item in enumerate(placed):
        if item.children:
            conditioned = [cast("Node", posterior[child]) for child in item.children]
            before = np.array([child.log_evidence for child in item.node.children])
            gains = np.array([child.log_evidence for child in conditioned]) - before
            posterior[i] = item.node.with_children(conditioned, gains)
    return cast("Node", posterior[-1])


def _is_known(prior: Leaf, known: Leaf, rows: Indices, Y: Array, own_noise: Array | None) -> bool:
    """Whether a leaf's posterior is ``known``: the same prior, as many rows, none with a noise of its own."""
    if own_noise is not None and not np.isnan(own_noise[rows, prior.output]).all():
        return False
    same_rows = known.gp.n_own == int((~np.isnan(Y[rows, prior.output])).sum()) and known.gp.noise_is_even
    return same_rows and known.gp.has_prior_of(prior.gp)


def _condition_leaf(
    placed: Placed,
    X: Array,
    Y: Array,
    rows: Indices,
    keep_factor: bool,
    own_noise: Array | None,
    variances: KnownVariances | None,
) -> Leaf:
    """The leaf given its own rows."""
    leaf = cast("Leaf", placed.node)
    y = Y[:, leaf.output]
    own = rows[~np.isnan(y[rows])]
    weights = None
    if own_noise is not None:
        variance, usual = own_noise[own, leaf.output], leaf.noise_at(X[own])
        weights = np.where(variance > usual, usual / variance, 1.0)  # NaN compares as false
    if own.size == 0 and not leaf.gp.n_own:
        return leaf  # no data: the posterior is the prior
    with _naming(placed):
        X_own, y_own = leaf.inputs(X[own]), leaf.outputs_of(y[own])
        known = leaf.variances_of(variances, own)
        gp = leaf.gp.condition(X_own, y_own, weights=weights, known=known, keep_factor=keep_factor)
        return leaf.with_gp(gp)


def _widen_leaf(
    placed: Placed,
    X: Array,
    Y: Array,
    context: Indices,
    keep_factor: bool,
    row_noise: RowNoise,
    variances: KnownVariances | None,
) -> Leaf:
    """The leaf with context rows, each with its own noise."""
    leaf = cast("Leaf", placed.node)
    y = Y[:, leaf.output]
    context = context[~np.isnan(y[context])]
    if context.size == 0 and not leaf.gp.n_own:
        return leaf
    variance, weights = row_noise.seen_by(leaf, context), None
    if variance is not None and leaf.noise_variance > 0:  # a leaf without noise has no multiples of it
        usual = leaf.noise_at(X[context])
        variance = np.maximum(variance, _LEAST_SEEN * usual)
        same = np.isclose(variance, usual, rtol=1e-12, atol=0.0)  # averages of one value round
        weights = None if same.all() else np.where(same, 1.0, usual / variance)
    nothing, seen = leaf.inputs(X[:0]), (leaf.inputs(X[context]), leaf.outputs_of(y[context]))
    with _naming(placed):
        known = leaf.variances_of(variances, context)
        gp = leaf.gp.condition(
            nothing, y[:0], *seen, context_weights=weights, context_known=known, keep_factor=keep_factor
        )
    return leaf.with_gp(gp)


@contextmanager
def _naming(placed: Placed) -> Iterator[None]:
    """Errors of a leaf say where it stands."""
    try:
        yield
    except (NotPositiveDefiniteError, ValueError) as error:
        output = cast("Leaf", placed.node).output
        raise type(error)(f"leaf on {placed.box!r}, output {output}: {error}") from None


def add_context(
    root: Node,
    X: Array,
    Y: Array,
    context: Context,
    *,
    least_weight: float,
    own_noise: Array | None = None,
    variances: KnownVariances | None = None,
    n_jobs: int | None = None,
    keep: Keep = all_factors,
    row_noise: RowNoise | None = None,
) -> Node:
    """The same posterior with leaves that also see context rows; evidence and weights stay as they are.

    Context rows keep the noise of their own region: ``row_noise``, by default what this network says of all rows.
    Leaves with a probability below ``least_weight`` get none, because they hardly change a prediction.
    """
    placed = place(root)
    log_weights = log_path_weights(placed)
    leaves = [i for i, item in enumerate(placed) if not item.children]
    seeing = {i for i in leaves if np.exp(log_weights[i]) >= least_weight}
    boxes = list(dict.fromkeys(placed[i].box for i in leaves if i in seeing))  # experts of one region share its context
    own = [cast("Leaf", placed[i].node).gp.n_own for i in leaves]
    found = dict(zip(boxes, map_leaves(context, boxes, n_jobs, own), strict=True))
    nothing = np.empty(0, dtype=np.intp)
    around = [found[placed[i].box] if i in seeing else nothing for i in leaves]
    sizes = [n_own + rows.size for n_own, rows in zip(own, around, strict=True)]
    tasks = list(zip(leaves, around, keep(sizes), strict=True))

    noise = RowNoise.of(placed, X, own_noise, averages(Y.shape[1])) if row_noise is None else row_noise

    def widen(task: tuple[int, Indices, bool]) -> Leaf:
        i, rows, keep_factor = task
        return _widen_leaf(placed[i], X, Y, rows, keep_factor, noise, variances)

    widened: list[Node] = [item.node for item in placed]
    for i, leaf in zip(leaves, map_leaves(widen, tasks, n_jobs, sizes), strict=True):
        widened[i] = leaf
    for i, item in enumerate(placed):
        if item.children:
            widened[i] = item.node.with_children(
                [widened[child] for child in item.children], np.zeros(len(item.children))
            )
    return widened[-1]


def within_margin(X: Array, margin: Any) -> Context:
    """Context by distance: rows outside the box but within ``margin`` of it along every axis."""
    margins = as_floats(margin, "margin")
    if margins.shape not in ((), (1,), (X.shape[1],)):
        raise ValueError(f"margin must be a number or one per input ({X.shape[1]}), got {margin!r}")
    if not (margins >= 0).all():
        raise ValueError(f"margin must be >= 0, got {margin!r}")
    margins = np.broadcast_to(margins, (X.shape[1],))

    def context(box: Box) -> Indices:
        near = Box(tuple((axis, low - margins[axis], high + margins[axis]) for axis, low, high in box.sides))
        return np.flatnonzero(near.contains(X) & ~box.contains(X))

    return context


def check_inputs(root: Node, X: Array) -> None:
    """Raise an error unless X has all columns that the splits cut."""
    needed = max(root.cut_ranges, default=0) + 1
    if X.shape[1] < needed:
        raise ValueError(f"X must have at least {needed} columns, as a Split cuts axis {needed - 1}; got {X.shape[1]}")


def check_outputs(root: Node, Y: Array) -> None:
    """Raise an error unless the network models exactly the columns of Y."""
    columns = tuple(range(Y.shape[1]))
    if root.outputs != columns:
        raise ValueError(f"Y has columns {list(columns)}, but the network models outputs {list(root.outputs)}")
