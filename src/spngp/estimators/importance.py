"""Which inputs matter: how much of what varies in the predictions is explained by each input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from spngp._support.types import Array, Indices

_ROWS_AT_ONCE = 20_000  # rows predicted in one call: bounds the memory
_GROUPS = 20  # groups of rows that are left out one after the other, for standard errors
_NEIGHBOURS = 0.01  # share of the rows that are neighbours of a row along one input
_NOTHING = 1e-10  # spread of a prediction, relative to its size, from which on it counts as varying

# Given rows: values (n, p, 2), the mean and the log standard deviation of each output.
Predict: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of a variance that are explained by each input; arrays of shape (inputs,) or (inputs, outputs).

    Attributes
    ----------
    first : ndarray
        First order: the share explained by the input alone, Var(E[f given the input]) / Var(f), on the rows as they
        are. So inputs that move together each count what they have in common.
    total : ndarray
        Total: the share that is lost if the input's values are shuffled among the rows, interactions with other inputs
        included, E[(f − f shuffled)²] / (2 Var(f)).
    first_error, total_error : ndarray
        Their standard errors.
    variance : float or ndarray
        The variance whose shares they are; of each output. Where it is zero, so are all shares.
    """

    first: Array
    first_error: Array
    total: Array
    total_error: Array
    variance: Any

    def of_output(self, output: int) -> Shares:
        """The shares of one output, arrays of shape (inputs,)."""
        if self.first.ndim == 1:
            if output != 0:
                raise ValueError(f"output must be 0, as there is one, got {output}")
            return self
        parts = (self.first, self.first_error, self.total, self.total_error)
        first, first_error, total, total_error = (part[:, output] for part in parts)
        return Shares(first, first_error, total, total_error, float(self.variance[output]))


@dataclass(frozen=True, eq=False)
class Importance:
    """How much each input matters to a model's predictions.

    Attributes
    ----------
    names : tuple of str
        Names of the inputs.
    mean, log_std : Shares
        Of the variance of the predicted mean, and of that of the log of the predicted standard deviation.
    n_rows : int
        Number of rows that it was measured on.
    """

    names: tuple[str, ...]
    mean: Shares
    log_std: Shares
    n_rows: int

    def of_one_output(self) -> Importance:
        """The same with arrays of shape (inputs,) instead of (inputs, 1)."""
        return replace(self, mean=self.mean.of_output(0), log_std=self.log_std.of_output(0))

    def records(self, output: int = 0) -> list[dict[str, Any]]:
        """One plain record per input, the most important first, ready for a DataFrame."""
        of_mean, of_log_std = self.mean.of_output(output), self.log_std.of_output(output)
        return [
            {"input": self.names[j]}
            | {f"mean_{name}": float(getattr(of_mean, name)[j]) for name in _COLUMNS}
            | {f"log_std_{name}": float(getattr(of_log_std, name)[j]) for name in _COLUMNS}
            for j in np.argsort(-of_mean.total, kind="stable")
        ]

    def __repr__(self) -> str:
        several = self.mean.first.ndim == 2
        lines = []
        for output in range(self.mean.first.shape[1] if several else 1):
            title = f"share of the variance of … (%, {self.n_rows} rows)" + (f", output {output}" * several)
            lines += [title, f"{'':24s} {'the mean':>25s} {'the log std':>25s}"]
            lines += [f"{'input':24s} " + " ".join([f"{'first':>12s} {'total':>12s}"] * 2)]
            for row in self.records(output):
                cells = [
                    f"{100 * row[f'{of}_{which}']:6.1f} ± {100 * row[f'{of}_{which}_error']:3.1f}"
                    for of in ("mean", "log_std")
                    for which in ("first", "total")
                ]
                lines.append(f"{row['input'][:24]:24s} " + " ".join(f"{cell:>12s}" for cell in cells))
        return "\n".join(lines)


_COLUMNS = ("first", "first_error", "total", "total_error")


def importance_of(
    predict: Predict, X: Array, names: Sequence[str], most_rows: int, rng: np.random.Generator
) -> Importance:
    """The importance of each column of X.

    Predictions for up to ``most_rows`` rows are compared with those for the same rows with one input shuffled; fewer
    rows are shuffled more than once.
    """
    n = X.shape[0]
    rows = X if n <= most_rows else X[np.sort(rng.choice(n, most_rows, replace=False))]
    repeats = max(1, -(-most_rows // (2 * rows.shape[0])))
    shuffled = [_shuffled(rows, j, rng) for j in range(rows.shape[1]) for _ in range(repeats)]
    values = _predicted(predict, [rows, *shuffled])
    original, changed = values[0], values[1:].reshape(rows.shape[1], repeats, *values.shape[1:])
    lost = 0.5 * ((changed - original) ** 2).mean(axis=1)  # (inputs, rows, outputs, 2)
    orders = [_order(rows[:, j], rng) for j in range(rows.shape[1])]
    groups = rng.permutation(rows.shape[0]) % min(_GROUPS, rows.shape[0])
    of_mean, of_log_std = (_shares(original[..., k], lost[..., k], orders, groups) for k in (0, 1))
    return Importance(tuple(names), of_mean, of_log_std, rows.shape[0])


def _shuffled(rows: Array, j: int, rng: np.random.Generator) -> Array:
    """The rows with the values of input j shuffled such that, but for one row alone, each has another row's."""
    changed, order = rows.copy(), rng.permutation(rows.shape[0])
    changed[order, j] = rows[np.roll(order, 1), j]
    return changed


def _order(values: Array, rng: np.random.Generator) -> Indices:
    """Rows by increasing value, equal ones in random order."""
    shuffled = rng.permutation(values.size)
    return shuffled[np.argsort(values[shuffled], kind="stable")]


def _predicted(predict: Predict, tables: Sequence[Array]) -> Array:
    """The predictions for several tables of the same size, few of them at once."""
    n = tables[0].shape[0]
    step = max(1, _ROWS_AT_ONCE // n)
    parts = [predict(np.concatenate(tables[start : start + step])) for start in range(0, len(tables), step)]
    found = np.concatenate(parts)
    return found.reshape(len(tables), n, *found.shape[1:])


def _shares(values: Array, lost: Array, orders: Sequence[Indices], groups: Indices) -> Shares:
    """Shares with the standard errors of a jackknife that leaves out one group of rows after the other.

    ``values`` has the predictions (rows, outputs), ``lost`` what shuffling each input changes (inputs, rows, outputs).
    """
    first, total, variance = _estimates(values, lost, orders, np.ones(groups.size, dtype=bool))
    n_groups = int(groups.max()) + 1
    without = [_estimates(values, lost, orders, groups != g) for g in range(n_groups)]
    first_error, total_error = (np.std([found[k] for found in without], axis=0) * np.sqrt(n_groups - 1) for k in (0, 1))
    # a first-order share may be estimated to be outside what is possible, by a standard error or so
    return Shares(np.clip(first, 0.0, 1.0), first_error, total, total_error, variance)


def _estimates(values: Array, lost: Array, orders: Sequence[Indices], kept: Any) -> tuple[Array, Array, Array]:
    """First-order and total shares (inputs, outputs) on the rows that are kept, and the variance (outputs,)."""
    size = np.abs(values).max(axis=0)
    centred = values - values[kept].mean(axis=0)
    variance = (centred[kept] ** 2).mean(axis=0)
    varies = variance > (_NOTHING * size) ** 2
    divisor = np.where(varies, variance, 1.0)
    first = np.array([_first_order(centred[order[kept[order]]]) for order in orders])
    total = lost[:, kept].mean(axis=1)
    return np.where(varies, first / divisor, 0.0), np.where(varies, total / divisor, 0.0), variance


def _first_order(ordered: Array) -> Array:
    """Var(E[f given the input]) of each output, for centred predictions in the order of that input.

    Two rows with (nearly) the same value of the input differ by what the input does not explain: half their mean
    squared difference is E[Var(f given the input)].
    """
    n = ordered.shape[0]
    if n < 2:
        return np.zeros(ordered.shape[1])
    lags = range(1, max(1, round(_NEIGHBOURS * n)) + 1)
    left = [0.5 * ((ordered[lag:] - ordered[:-lag]) ** 2).mean(axis=0) for lag in lags]
    return np.asarray((ordered**2).mean(axis=0) - np.mean(left, axis=0))
