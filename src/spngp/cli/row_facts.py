"""Columns of a table that say something about its rows: how often each counts, and the variance of its target."""

from __future__ import annotations

from typing import Any

from spngp._support.row_counts import as_weights


def fact_columns(settings: Any) -> list[str]:
    """Columns that are no inputs because they hold facts about rows."""
    return [name for name in (settings.weight, settings.variance) if name is not None]


def row_facts(table: Any, reader: Any, settings: Any) -> dict[str, Any]:
    """What ``fit`` is told about the rows of a table, by its names; wrong values are errors that name the column."""
    import numpy as np

    found: dict[str, Any] = {}
    if settings.weight is not None:
        weights = reader.numbers(table, settings.weight)
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if bad.size:
            value = "no value" if np.isnan(weights[bad[0]]) else f"{weights[bad[0]]:g}"
            raise reader.error(int(bad[0]), settings.weight, f"a weight must be >= 0, got {value}; 0 leaves a row out")
        as_weights(weights, weights.size, f"{reader.source}: weights in column {settings.weight!r}")
        found["sample_weight"] = weights
    if settings.variance is not None:
        variances = reader.numbers(table, settings.variance)
        bad = np.flatnonzero(~(np.isfinite(variances) & (variances >= 0)))
        if bad.size:
            raise reader.error(int(bad[0]), settings.variance, f"a variance must be >= 0, got {variances[bad[0]]:g}")
        found["y_variance"] = variances
    return found
