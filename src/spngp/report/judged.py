"""The rows a report judges a model by: held-out ones if there are any, else some of those it has learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.checks import as_floats, as_outputs, as_rows
from spngp._support.outputs import one_output
from spngp._support.types import Array, Indices
from spngp.estimators.table_inputs import encoded, takes_numbers
from spngp.plotting.lines import training_rows, without_names
from spngp.predictive import GaussianMixture

_TRAINING_ROWS = 2_000  # rows learnt from that are judged if none were held out, at most
_HELD_OUT_ROWS = 20_000


class RowNames(list[str]):
    """Names of rows, and what they are called together: the name of a column of identifiers."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(names)
        self.name = name


@dataclass(frozen=True)
class Judged:
    """Rows with what was observed and predicted.

    Attributes
    ----------
    X, Y : ndarray of shape (n, d) and (n, p)
    mixtures : list of GaussianMixture
        One per output.
    labels : list of str
        How to call each row.
    positions : ndarray of int
        The place of each row in the table it comes from, counted from 0.
    called : str
        What the labels are: the name of a column of identifiers, or "row".
    held_out : bool
        Whether the model has not seen them.
    n_given : int
        How many there were; more than here if a random sample was drawn.
    n_learnt : int
        How many of the rows here are equal, output included, to rows that the model was learnt from.
    """

    X: Array
    Y: Array
    mixtures: list[GaussianMixture]
    labels: list[str]
    positions: Indices
    called: str
    held_out: bool
    n_given: int
    n_learnt: int = 0

    def observed(self, output: int) -> tuple[Indices, GaussianMixture, Array]:
        """Positions, mixtures and values of the rows whose output is not missing."""
        rows = np.flatnonzero(~np.isnan(self.Y[:, output]))
        return rows, self.mixtures[output][rows], self.Y[rows, output]


def training_range(X: Array) -> tuple[Array, Array]:
    """Lowest and highest value of each input, a rounding error allowed for."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 1e-9 * (high - low) + 1e-12 * np.abs(high)
    return low - margin, high + margin


def judged_rows(model: Any, X: Any, y: Any, row_names: Sequence[Any] | None) -> Judged:
    """The held-out rows X and y, or without them a sample of the training rows; samples are always the same.

    Rows without names are counted from 1.
    """
    if (X is None) != (y is None):
        raise ValueError(f"X and y must be given together, got {'no X' if X is None else 'no y'}")
    held_out = X is not None
    if held_out:
        columns = getattr(X, "columns", None)
        names = getattr(X, "index", None) if row_names is None and columns is not None else row_names
        expected = getattr(model, "feature_names_in_", None)
        described = getattr(model, "columns_", None)  # a committee has none
        plain = described is None or takes_numbers(model)
        if plain and columns is not None and expected is not None and list(columns) != list(expected):
            raise ValueError(f"X must have the columns {list(expected)} the model was fitted on, got {list(columns)}")
        X = as_rows(X, "X") if described is None or plain else encoded(X, described, complete=False)
        Y = as_outputs(y, X.shape[0], "y", missing=True)
        if Y.shape[1] != model.n_outputs_:
            raise ValueError(f"y must have the model's {model.n_outputs_} outputs, got {Y.shape[1]}")
        n_inputs = model.n_features_in_ if described is None or plain else len(described.input_names)
        if X.shape[1] != n_inputs:
            raise ValueError(f"X must have the model's {n_inputs} inputs, got {X.shape[1]}")
        if X.shape[0] == 0 or np.isnan(Y).all():
            raise ValueError(f"y must have at least one value that is not missing, got {X.shape[0]} rows without any")
    else:
        X, Y = training_rows(model)
        names = row_numbers(model) + 1
    labels = [str(name) for name in names] if names is not None else None
    if labels is not None and len(labels) != X.shape[0]:
        raise ValueError(f"row_names must have one name per row ({X.shape[0]}), got {len(labels)}")
    n_given, most = X.shape[0], _HELD_OUT_ROWS if held_out else _TRAINING_ROWS
    if n_given > most:
        sample = np.sort(np.random.default_rng(0).choice(n_given, most, replace=False))
    else:
        sample = np.arange(n_given)
    labels = [str(i + 1) for i in sample] if labels is None else [labels[i] for i in sample]
    X, Y = as_floats(X[sample], "X"), Y[sample]
    mixture = without_names(model).predict_dist(X)
    mixtures = [one_output(mixture, k) for k in range(model.n_outputs_)]
    positions = sample if held_out else row_numbers(model)[sample]
    called = str(getattr(names, "name", None) or "row")
    n_learnt = _n_learnt(model, X, Y) if held_out else 0
    return Judged(X, Y, mixtures, labels, positions, called, held_out, n_given, n_learnt)


def _n_learnt(model: Any, X: Array, Y: Array) -> int:
    """How many rows are equal to rows that the model was learnt from; 0 if it keeps none."""
    try:
        learnt = training_rows(model)
    except (AttributeError, ValueError):  # a committee, a model in shards
        return 0
    # in single precision: outputs come back from a transform with rounding errors
    rows, known = (np.column_stack(each).astype(np.float32) + np.float32(0.0) for each in ((X, Y), learnt))
    as_one = f"V{rows.itemsize * rows.shape[1]}"
    return int(np.isin(rows.view(as_one), known.view(as_one)).sum())


def row_numbers(model: Any) -> Indices:
    """The number of each row learnt from in the table of the fit, counted from 0."""
    known = getattr(model, "row_numbers_", None)
    return np.arange(training_rows(model)[0].shape[0]) if known is None else np.asarray(known)
