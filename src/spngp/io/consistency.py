"""How the attributes of one object in a model file must agree, so that all that a model can be asked for has an answer.

Types are known to be right (:mod:`spngp.io.fields`), and so are the parts of an object. Contents of arrays that are
read later (:mod:`spngp.io.deferred`) are not looked at, only their shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._memory import Budget
from spngp._repeated import Repeats
from spngp._standardise import Standardiser
from spngp.io.classes import ESTIMATORS
from spngp.io.deferred import StoredGP
from spngp.kernels import Kernel, KernelProduct, KernelSum, Parameter
from spngp.kernels.parameter import ParameterTable, declare
from spngp.leaf import ExactGP
from spngp.learning import Learnt
from spngp.network import Box, Leaf, Node, Product, Split, Sum
from spngp.network.placement import distinct_nodes
from spngp.noise import NoiseShape
from spngp.tables.schema import DATE_PARTS, Column, TableSchema

_LARGEST_SHARE = 1e200  # of context rows: times any number of rows it is still a float


def check(name: str, value: Any) -> None:
    """Raise an error unless an object of the class of this name can be used."""
    if name in ESTIMATORS:
        _estimator(value)
    elif name in _CHECKS:
        _CHECKS[name](value)
    elif isinstance(value, Kernel):
        _kernel(value)


def _must(holds: Any, what: str, seen: Any) -> None:
    if not holds:
        raise ValueError(f"{what}, got {seen}")


def _finite(values: Any, what: str) -> None:
    _must(np.isfinite(values).all(), f"{what} must be finite", "another")


def _positive(values: Any, what: str, least: str = "> 0") -> None:
    array = np.asarray(values)
    _must((array > 0).all() if least == "> 0" else (array >= 0).all(), f"{what} must be {least}", "another")


def _shape(array: NDArray[Any], shape: tuple[int, ...], what: str) -> None:
    if array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, got {array.shape}")


# Kernels and GPs


def _parameter(parameter: Parameter) -> None:
    declare("a parameter", {"value": parameter}, may_be_zero=("value",))


def _table(table: ParameterTable) -> None:
    n = len(table.names)
    for array, shape in ((table.values, (n,)), (table.free, (n,)), (table.log_bounds, (n, 2))):
        _shape(array, shape, f"each part of a table of {n} parameters")
    free = table.free.tolist()  # tables are many and short: NumPy would take longer
    for value, is_free, (low, high) in zip(table.values.tolist(), free, table.log_bounds.tolist(), strict=True):
        _must(0.0 <= value < math.inf, "parameters must be finite and >= 0", value)
        _must(value > 0.0 or not is_free, "free parameters must be > 0", value)
        _must(-math.inf < low <= high < math.inf, "bounds must be finite and ascend", (low, high))
    _must(table.n_free == sum(free), "n_free must be the number of free parameters", table.n_free)


def _kernel(kernel: Kernel) -> None:
    name, table, places = type(kernel).__name__, kernel._table, kernel._places
    sizes = []
    for label, place in places.items():
        size = place.stop - place.start if isinstance(place, slice) else None
        _must(size is None or 0 < size <= table.values.size, f"{label} of {name} must be in its table", place)
        sizes.append((label, size))
    names, expected, may_be_zero = _kernel_layout(type(kernel), tuple(kernel._structure().items()), tuple(sizes))
    _must((table.names, places) == (names, expected), f"{name} must have the parameters {names}", table.names)
    _must((may_be_zero | (table.values > 0)).all(), "parameters must be > 0", name)


@cache
def _kernel_layout(
    kind: Callable[..., Kernel], structure: tuple[tuple[str, Any], ...], sizes: tuple[tuple[str, int | None], ...]
) -> tuple[tuple[str, ...], dict[str, int | slice], NDArray[np.bool_]]:
    """Names and places of a kernel's parameters, and which may be zero, as its constructor has them."""
    given = {name: 1.0 if size is None else [1.0] * size for name, size in sizes}
    kernel = kind(**dict(structure), **given)
    may_be_zero = np.zeros(kernel._table.values.size, dtype=bool)
    for name in given:
        try:
            kind(**dict(structure), **{**given, name: 0.0})
        except ValueError:
            continue
        may_be_zero[kernel._places[name]] = True
    return kernel._table.names, kernel._places, may_be_zero


def _combination(kernel: KernelSum | KernelProduct) -> None:
    _must(kernel.parts, f"{type(kernel).__name__} needs at least one kernel", "none")
    joined = ParameterTable.join([part._table for part in kernel.parts])
    agrees = kernel._places == {} and kernel._table.key() == joined.key()
    _must(agrees, f"{type(kernel).__name__} must have its parts' parameters", kernel._table.names)


def _repeats(repeats: Repeats) -> None:
    _must(repeats.counts.ndim == 1, "weights of rows must be a vector", repeats.counts.shape)
    _finite([*repeats.counts, repeats.scatter, repeats.log_weights], "weights of rows and their sums")
    _positive(repeats.counts, "weights of rows")
    _positive(repeats.scatter, "scatter", ">= 0")
    _must(repeats.n_rows >= repeats.counts.size, f"n_rows must be >= {repeats.counts.size}", repeats.n_rows)


def _gp(gp: ExactGP) -> None:
    n = gp._y.size
    _shape(gp._y, (n,), "outputs of a GP")
    _shape(gp._alpha, (n,), "alpha of a GP")
    _must(gp._X.ndim == 2 and gp._X.shape[0] == n, "a GP must have as many rows as outputs", gp._X.shape)
    _must(gp._L is None or (n and gp._L.n == n), "a factor must be of the size of its rows", gp._L)
    _must(gp._noise.names == ("noise_variance",), "a GP must have one noise", gp._noise.names)
    _must(math.isfinite(gp.log_evidence), "the log evidence of a GP must be finite", gp.log_evidence)
    _must(0.0 <= gp._jitter < math.inf, "the jitter of a GP must be finite and >= 0", gp._jitter)
    _must(gp.n_own >= 0, "a GP must have own rows, or none", gp.n_own)
    if gp._repeats is not None:
        _must(gp._repeats.n_rows == gp.n_own, "a GP must have the weights of its own rows", gp._repeats.n_rows)
    _must(gp.n_context >= 0, "a GP must have no more own rows than rows", gp._n_first)
    if gp._context_weights is not None:
        _shape(gp._context_weights, (gp.n_context,), "weights of context rows")
        _finite(gp._context_weights, "weights of context rows")
        _positive(gp._context_weights, "weights of context rows")
    if n:
        gp.kernel._check_inputs(gp._X.shape[1])


def _have_inputs(gps: Iterable[ExactGP], n_inputs: int) -> None:
    for gp in gps:
        n_rows, n_columns = gp.shape_of_rows if isinstance(gp, StoredGP) else gp._X.shape
        _must(n_columns == n_inputs or not n_rows, "a GP must have the inputs of its model", n_columns)
        gp.kernel._check_inputs(n_inputs)


# Networks: what the constructors say, but for the evidence, which they cannot know of posteriors.


def _leaf(leaf: Leaf) -> None:
    _must(leaf.output >= 0, "output of Leaf must be >= 0", leaf.output)
    _as_built(leaf, Leaf.of(leaf.gp, leaf.output, leaf.label))


def _sum(node: Sum) -> None:
    _must((node.log_weights <= 1e-6).all(), "log weights of Sum must be <= 0", "others")  # and none is NaN
    _as_built(node, Sum(node.children, np.exp(node.log_weights)))


def _split(node: Split) -> None:
    _as_built(node, Split(node.axis, node.at, node.children))


def _product(node: Product) -> None:
    _as_built(node, Product(node.children))


def _as_built(node: Node, built: Node) -> None:
    _must(node.children == built.children, "a leaf must have no children", node.children)
    _must(node.outputs == built.outputs, "a node must have the outputs of its children", node.outputs)
    _must(node.cut_ranges == built.cut_ranges, "a node must know the cuts below it", node.cut_ranges)
    _must(math.isfinite(node.log_evidence), "the log evidence of a node must be finite", node.log_evidence)


def _box(box: Box) -> None:
    for axis, low, high in box.sides:
        _must(axis >= 0 and low <= high, "a box must have low <= high along an axis", (axis, low, high))


def _noise_shape(shape: NoiseShape) -> None:
    weights, factors = np.array(shape.weights, dtype=float), np.array(shape.factors, dtype=float)
    _must(
        weights.size and weights.size == factors.size, "a noise shape must have a weight for each factor", weights.size
    )
    _finite([*weights, *factors], "weights and factors of noise")
    _positive(factors, "factors of noise")
    _positive(weights, "weights of noise", ">= 0")
    _must(abs(weights.sum() - 1.0) < 1e-9, "weights of noise must sum to 1", weights.sum())


def _budget(budget: Budget) -> None:
    _positive([budget.limit, budget.threads, budget.factors], "limit, threads and factors of a budget")


def _learnt(learnt: Learnt) -> None:
    _must(learnt.X.ndim == learnt.Y.ndim == 2, "X and Y must be matrices", (learnt.X.ndim, learnt.Y.ndim))
    (n, d), p = learnt.X.shape, learnt.Y.shape[1]
    for array, shape, what in (
        (learnt.Y, (n, p), "Y"),
        (learnt.scales, (d,), "scales"),
        (learnt.reach, (p,), "reach"),
        (learnt.own_noise, (n, p), "own_noise"),
        (learnt.overlap, (d,), "overlap"),
    ):
        if isinstance(array, np.ndarray):
            _shape(array, shape, what)
    _finite(learnt.scales, "scales")
    _positive(learnt.scales, "scales")
    _positive(learnt.reach, "reach")
    if learnt.own_noise is not None:
        _positive(learnt.own_noise[~np.isnan(learnt.own_noise)], "own_noise")
    _positive(learnt.overlap, "overlap", ">= 0")
    _must((np.asarray(learnt.overlap) <= _LARGEST_SHARE).all(), f"overlap must be <= {_LARGEST_SHARE}", "more")
    _positive(learnt.block_size, "block_size")
    _must(len(learnt.noise_shapes) == p, f"{p} outputs must have as many noise shapes", len(learnt.noise_shapes))
    boxes = _network(learnt.own, d, p)
    if learnt.network is not learnt.own:
        _network(learnt.network, d, p)
    for tile in learnt.tiles:
        _must(tile in boxes, "a tile must be a box of the network", tile)


def _network(root: Node, n_inputs: int, n_outputs: int) -> set[Box]:
    """The boxes of a network, which must fit a model."""
    outputs = tuple(range(n_outputs))
    _must(root.outputs == outputs, f"a network of {n_outputs} outputs must model them", root.outputs)
    _must(max(root.cut_ranges, default=0) < n_inputs, f"cuts must be along {n_inputs} inputs", list(root.cut_ranges))
    nodes = distinct_nodes(root)
    _have_inputs((node.gp for node in nodes if isinstance(node, Leaf)), n_inputs)
    boxes = {id(root): Box.EVERYWHERE}
    for node in reversed(nodes):
        for child, box in zip(node.children, node.child_boxes(boxes[id(node)]), strict=True):
            # so in every fitted network; in one made by hand a node can stand for many, more than can be counted
            _must(boxes.setdefault(id(child), box) == box, "a node must stand in one box", box)
    return set(boxes.values())


# Tables and estimators


def _column(column: Column) -> None:
    name = column.name
    _must(
        column.kind in ("number", "one-hot", "ordinal", "date"), f"column {name!r} must be of a known kind", column.kind
    )
    n_inputs = len(column.input_names)
    _must(n_inputs, f"column {name!r} must give inputs", "none")
    _must(len(set(column.categories)) == len(column.categories), f"categories of {name!r} must differ", "equal ones")
    _must(set(column.parts) <= set(DATE_PARTS), f"a date becomes {', '.join(DATE_PARTS)}", column.parts)
    _must(len(column.fill) in (0, n_inputs), f"column {name!r} must be filled by {n_inputs} numbers", len(column.fill))
    _finite(column.fill, f"what fills column {name!r}")


def _standardiser(scaling: Standardiser) -> None:
    _must(scaling.mean.ndim == 1 and scaling.mean.size, "there must be columns to scale", scaling.mean.shape)
    for array in (scaling.scale, scaling.reach):
        _shape(array, scaling.mean.shape, "scale and reach")
    _finite([scaling.mean, scaling.scale], "mean and scale")
    _positive(scaling.scale, "scale")
    _positive(scaling.reach, "reach")


def _estimator(model: Any) -> None:
    d, p = model.n_features_in_, model.n_outputs_
    model._validate_params()
    random_state = model.random_state
    known = random_state is None or isinstance(
        random_state, int | np.integer | np.random.Generator | np.random.RandomState
    )
    _must(known, "random_state must be None, an integer or a generator", type(random_state).__name__)
    _shape(model._inputs.mean, (d,), "means of the inputs")
    _shape(model._outputs.mean, (p,), "means of the outputs")
    _must(p == 1 or not model._y_is_flat, "several outputs must be columns", "one vector")
    model._templates(model.kernels if hasattr(model, "kernels") else model.kernel, d, model._outputs)
    if hasattr(model, "experts_"):
        _experts(model.experts_, d, p)
    else:
        _must(model.kernel_names_, "a model must have kernels", "none")
        _shape(model._learnt.X, (model._learnt.X.shape[0], d), "X")
        _shape(model._learnt.Y, (model._learnt.Y.shape[0], p), "Y")
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        is_text = isinstance(names, np.ndarray) and names.dtype == object and all(type(name) is str for name in names)
        _must(is_text and names.shape == (d,), f"{d} inputs must have as many names", type(names).__name__)
    if hasattr(model, "table_"):
        _must(isinstance(model.table_, TableSchema), "table_ must be a TableSchema", type(model.table_).__name__)
        _must(len(model.table_.targets) in (0, p), f"{p} outputs must have as many names", model.table_.targets)
        _must(names is None or model.table_.input_names == list(names), f"inputs must be {names}", "others")
        _must(len(model.table_.input_names) == d, f"a table must have {d} inputs", len(model.table_.input_names))


def _experts(experts: Sequence[Sequence[ExactGP]], n_inputs: int, n_outputs: int) -> None:
    _must(len(experts) == n_outputs, f"{n_outputs} outputs must have experts each", len(experts))
    for own in experts:
        _must(own, "an output must have experts", "none")
        _have_inputs(own, n_inputs)


_CHECKS: dict[str, Callable[[Any], None]] = {
    "Parameter": _parameter,
    "ParameterTable": _table,
    "KernelSum": _combination,
    "KernelProduct": _combination,
    "Repeats": _repeats,
    "ExactGP": _gp,
    "Leaf": _leaf,
    "Sum": _sum,
    "Split": _split,
    "Product": _product,
    "Box": _box,
    "NoiseShape": _noise_shape,
    "Budget": _budget,
    "Learnt": _learnt,
    "Column": _column,
    "Standardiser": _standardiser,
}
