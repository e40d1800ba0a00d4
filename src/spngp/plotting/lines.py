"""Which rows a figure shows: those a model has learnt from, and lines through input space."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from spngp._support.checks import as_count, as_floats, as_rows
from spngp._support.types import Array
from spngp.plotting._style import limits


def training_rows(estimator: Any) -> tuple[Array, Array]:
    """Inputs (n, d) and outputs (n, p) that a fitted model has seen."""
    X = estimator.X_train_
    return X, estimator.y_train_.reshape(X.shape[0], -1)


def input_names(estimator: Any) -> list[str]:
    """Names of the inputs: the columns' if the model was fitted on a table, else x0, x1 and so on."""
    if hasattr(estimator, "columns_"):
        return list(estimator.columns_.input_names)
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def without_names(estimator: Any) -> Any:
    """The same fitted model, which takes plain arrays without warning that their columns have no names."""
    model = copy.copy(estimator)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return model


class Line(NamedTuple):
    """Rows along one input, all other inputs held where they are."""

    feature: int
    x: Array  # positions along the input
    rows: Array  # the same as rows of all inputs


def line(X: Array, feature: int = 0, at: Any = None, grid: Any = None, n_points: int = 400) -> Line:
    """Rows along one input with the other inputs at their medians, or ``at`` a row of all inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.plotting.lines import line
    >>> line(np.array([[0.0, 5.0], [1.0, 7.0], [2.0, 6.0]]), feature=0, grid=[0.0, 1.0]).rows
    array([[0., 6.], [1., 6.]])
    """
    d = X.shape[1]
    feature = as_count(feature, "feature", 0)
    if feature >= d:
        raise ValueError(f"feature must be one of the {d} inputs, 0 to {d - 1}, got {feature}")
    centre = np.median(X, axis=0) if at is None else as_floats(at, "at").ravel()
    if centre.shape != (d,):
        raise ValueError(f"at must have one value per input ({d}), got shape {centre.shape}")
    x = np.linspace(*limits(X[:, feature]), n_points) if grid is None else as_floats(grid, "grid").ravel()
    rows = np.tile(centre, (x.size, 1))
    rows[:, feature] = x
    return Line(feature, x, rows)


def as_line(rows: Any) -> tuple[Array, Array]:
    """Rows of a single input, (m,) or (m, 1), as positions and as rows."""
    checked = as_rows(rows, "grid")
    if checked.shape[1] != 1:
        raise ValueError(f"grid must have one input, got {checked.shape[1]}; use from_estimator for slices")
    return checked[:, 0], checked
