"""Why a prediction is what it is: the experts that made it, and what each row learnt from contributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array, Indices
from spngp.columns import InputColumns
from spngp.gp.influence import influence
from spngp.learning import Learnt
from spngp.network import Leaf
from spngp.network.placement import log_path_weights, place, route

_SHOWN = 5  # experts that are printed


@dataclass(frozen=True)
class ExpertShare:
    """One expert whose region holds the row.

    Attributes
    ----------
    weight : float
        Its probability: its share of the prediction.
    kernel : str
    low, high : tuple of float
        Corners of its region, in the units of X.
    rows, context_rows : int
        Rows inside its region, and rows outside that it sees.
    mean, std : float
        What it predicts for a new observation, in the units of y.
    """

    weight: float
    kernel: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    rows: int
    context_rows: int
    mean: float
    std: float


@dataclass(frozen=True)
class RowShare:
    """One row learnt from.

    Attributes
    ----------
    row : int
        Its number (``row_numbers_``).
    x : tuple of float
    y : float
    weight : float
        Its weight in the predicted mean: by how much the mean moves if y rises by one. Far rows may have negative ones.
    distance : float
        How far it is from x, in length-scales of the model.
    """

    row: int
    x: tuple[float, ...]
    y: float
    weight: float
    distance: float


@dataclass(frozen=True)
class Explanation:
    """How a prediction at one row comes about: mean = constant + Σ weight · y over all rows learnt from.

    Attributes
    ----------
    x : tuple of float
    mean, std : float
        The prediction of a new observation.
    constant : float
        What the rows do not contribute: the mean of y, weighted by one minus the sum of all rows' weights.
    experts : list of ExpertShare
        The experts whose regions hold the row, the most probable first.
    nearest, heaviest : list of RowShare
        The rows nearest to x, nearest first, and those of largest weight, largest first.
    weights : ndarray
        The weight of every row learnt from, in the order of ``X_train_``.
    columns : InputColumns
        What the numbers of x and of rows mean, where they come from a table.
    transformed : bool
        Whether outputs are those of a transformed target.
    """

    x: tuple[float, ...]
    mean: float
    std: float
    constant: float
    experts: list[ExpertShare]
    nearest: list[RowShare]
    heaviest: list[RowShare]
    weights: Array
    columns: InputColumns
    transformed: bool = False

    def __repr__(self) -> str:
        scale = " on the scale of the transformed target" if self.transformed else ""
        lines = [f"{self.mean:.6g} ± {self.std:.3g}{scale} at {self._row(self.x)}", "experts, by their share:"]
        lines += [
            f"  {100 * item.weight:5.1f} %  {item.mean:.6g} ± {item.std:.3g}  {item.kernel}, {item.rows} rows and "
            f"{item.context_rows} around"
            for item in self.experts[:_SHOWN]
        ]
        lines += [f"  … and {len(self.experts) - _SHOWN} more"] if len(self.experts) > _SHOWN else []
        for title, rows in (("nearest rows", self.nearest), ("rows of largest weight", self.heaviest)):
            lines.append(f"{title}:")
            lines += [
                f"  row {item.row}: weight {item.weight:+.3f}, y = {item.y:.6g}, distance {item.distance:.2g}, "
                f"{self._row(item.x)}"
                for item in rows
            ]
        return "\n".join(lines)

    def _row(self, x: Sequence[float]) -> str:
        """A row of inputs, by the names and values of its columns if it comes from a table that is not all numbers."""
        if self.columns.is_plain:
            return "x = (" + ", ".join(f"{value:.6g}" for value in x) + ")"
        found = self.columns.decode(np.array([x]))
        units = {column.name: " s" for column in self.columns.columns if column.kind == "duration"}
        return ", ".join(f"{name} = {_value(values[0])}{units.get(name, '')}" for name, values in found.items())


def _value(value: Any) -> str:
    if value is None:
        return "(missing or not seen)"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def explain(
    learnt: Learnt,
    x: Array,
    output: int,
    n_rows: int,
    row_numbers: Indices,
    columns: InputColumns,
    transformed: bool = False,
) -> Explanation:
    """The explanation of the prediction of one output at ``x``, shape (1, d), in the units of the user."""
    experts, constant, weights = [], 0.0, np.zeros(learnt.X.shape[0])
    for leaf, box, weight in _reached(learnt, x, output):
        low, high = box.corners(x.shape[1])
        mean, variance = leaf.predict(x)
        std = float(np.sqrt(variance[0] + leaf.noise_shape.variance_at(leaf.noise_at(x), leaf.noise_variance)[0]))
        corners = tuple(low.tolist()), tuple(high.tolist())
        sizes = leaf.gp.n_own, leaf.gp.n_context
        experts.append(ExpertShare(weight, leaf.label, *corners, *sizes, float(mean[0]), std))
        given = _weights(learnt, leaf, x)
        weights += weight * given
        constant += weight * (float(mean[0]) - float(given @ np.nan_to_num(learnt.Y[:, output])))
    experts.sort(key=lambda item: -item.weight)
    shares, means = np.array([item.weight for item in experts]), np.array([item.mean for item in experts])
    mean, second = float(shares @ means), float(shares @ [item.std**2 + item.mean**2 for item in experts])
    distances = np.sqrt((((learnt.X - x) / (learnt.scales * learnt.units.inputs.scale)) ** 2).sum(axis=1))
    observed = np.flatnonzero(~np.isnan(learnt.Y[:, output]))

    def share(i: int) -> RowShare:
        at, y = tuple(learnt.X[i].tolist()), float(learnt.Y[i, output])
        return RowShare(int(row_numbers[i]), at, y, float(weights[i]), float(distances[i]))

    near = observed[np.argsort(distances[observed], kind="stable")[:n_rows]]
    heavy = observed[np.argsort(-np.abs(weights[observed]), kind="stable")[:n_rows]]
    std = float(np.sqrt(max(second - mean**2, 0.0)))
    return Explanation(
        *(tuple(x[0].tolist()), mean, std, constant, experts),
        *([share(i) for i in near.tolist()], [share(i) for i in heavy.tolist()], weights),
        columns=columns,
        transformed=transformed,
    )


def _reached(learnt: Learnt, x: Array, output: int) -> list[Any]:
    """The leaves of one output whose boxes hold x, with their boxes and weights."""
    placed = place(learnt.network)
    log_weights = log_path_weights(placed)
    return [
        (item.node, item.box, float(np.exp(log_weight)))
        for item, inside, log_weight in zip(placed, route(placed, x), log_weights, strict=True)
        if isinstance(item.node, Leaf) and item.node.output == output and inside.size and log_weight > -np.inf
    ]


def _weights(learnt: Learnt, leaf: Leaf, x: Array) -> Array:
    """The weight of every row learnt from in a leaf's mean at x.

    Rows that the leaf sees are found by their values. Equal rows share a weight by the precision of their outputs, as
    merged rows do.
    """
    y = leaf.outputs_of(learnt.Y[:, leaf.output])
    inputs = leaf.inputs(learnt.X)
    seen, outputs, weights = influence(leaf.gp, leaf.inputs(x))
    precision = np.ones(y.size)
    if learnt.own_noise is not None:
        noise = learnt.own_noise[:, leaf.output]
        usual = leaf.gp.noise_at(inputs)
        precision = np.where(noise > usual, usual / noise, 1.0)
    precision[np.isnan(y)] = 0.0
    numbers = np.unique(np.concatenate([inputs, seen]), axis=0, return_inverse=True)[1].reshape(-1)
    of_row, of_seen = numbers[: y.size], numbers[y.size :]
    # where several rows seen have equal inputs, they were not merged, and their outputs tell which is which
    several = np.bincount(of_seen, minlength=numbers.max() + 1)[numbers] > 1
    told = np.where(several, np.concatenate([np.nan_to_num(y), outputs]), 0.0)
    numbers = np.unique(np.stack([numbers, told], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    of_row, of_seen = numbers[: y.size], numbers[y.size :]
    total = np.bincount(of_seen, weights, numbers.max() + 1)
    among = np.bincount(of_row, precision, total.size)
    return np.asarray(total[of_row] * precision / np.where(among[of_row] > 0, among[of_row], 1.0))
