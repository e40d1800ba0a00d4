"""How much predictions depend on each column: how far they move if its values change places among the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array, Indices
from spngp.plotting.lines import without_names
from spngp.report.columns import Column
from spngp.report.windows import sample

_ROWS, _FEWEST = 600, 80
_EVALUATIONS = 2e8  # of kernels, for all predictions together
_SHUFFLES = 2
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Importance:
    """Of one column for one output: share of the variance of predictions, and its standard error."""

    share: float
    error: float


def importances(model: Any, X: Array, columns: list[Column], n_seen: float = 1000.0) -> list[list[Importance]]:
    """For each output the importance of each column.

    With f the prediction and x' a row whose inputs of the column come from another row, it is E(f(x) − f(x'))² / 2
    Var f: the share of the variance that is lost without the column. Shares add up to more than one where columns act
    together. ``n_seen`` is how many rows a prediction looks at: where these are many, fewer are made.
    """
    rows = X[sample(X.shape[0], int(np.clip(_EVALUATIONS / (n_seen * len(columns) * _SHUFFLES), _FEWEST, _ROWS)))]
    rng, plain = np.random.default_rng(0), without_names(model)
    mean = _predicted(plain, rows)
    variance = mean.var(axis=0)
    found: list[list[Importance]] = [[] for _ in range(mean.shape[1])]
    orders = [rng.permutation(rows.shape[0]) for _ in range(_SHUFFLES)]
    for column in columns:
        changed = np.concatenate([_shuffled(rows, column, order) for order in orders])
        moved = (_predicted(plain, changed) - np.tile(mean, (_SHUFFLES, 1))) ** 2
        for k, spread in enumerate(variance):
            shares = 0.5 * moved[:, k] / spread if spread > 0 else np.zeros(moved.shape[0])
            error = shares.std() / np.sqrt(shares.size)
            found[k].append(Importance(float(shares.mean()), float(error)))
    return found


def rows_seen(records: list[dict[str, Any]]) -> float:
    """How many rows a prediction looks at on average, all experts together; ``records`` are those of ``regions_``."""
    seen = sum(record["rows"] * (record["rows"] + record["context_rows"]) for record in records)
    return seen / max(sum(record["rows"] * record["weight"] for record in records), 1.0)


def _shuffled(rows: Array, column: Column, order: Indices) -> Array:
    changed = rows.copy()
    changed[:, column.inputs] = rows[order][:, column.inputs]
    return changed


def _predicted(model: Any, rows: Array) -> Array:
    parts = [model.predict(rows[i : i + _ROWS_AT_ONCE]) for i in range(0, rows.shape[0], _ROWS_AT_ONCE)]
    mean = np.concatenate(parts)
    return mean if mean.ndim == 2 else mean[:, np.newaxis]
