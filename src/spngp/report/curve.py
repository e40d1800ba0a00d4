"""The prediction along the only input of a model: density, mean, interval, kernel weights and noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.plotting._style import limits, widened
from spngp.plotting.lines import without_names
from spngp.plotting.names import short_names
from spngp.predictive import GaussianMixture
from spngp.report.columns import Column
from spngp.report.text import packed
from spngp.report.windows import sample

_POINTS, _LEVELS = 160, 96
_VISIBLE = 0.01  # share of a kernel somewhere along the input
_ROWS = 600  # rows of the data shown, at most


def curve(model: Any, X: Array, y: Array, output: int, column: Column) -> dict[str, Any]:
    """What the chart of a single input shows."""
    lowest, highest = (float(value) for value in np.nanquantile(y, [0.002, 0.998]))
    levels = np.linspace(*widened(lowest, highest, 0.25), _LEVELS)
    shown = sample(X.shape[0], _ROWS)
    grid = np.linspace(*limits(X[:, 0]), _POINTS)
    rows, plain = grid[:, np.newaxis], without_names(model)
    mixture = one_output(plain.predict_dist(rows), output)
    low, high = mixture.interval(0.95)
    weights, noise = np.empty((_POINTS, 0)), None
    if hasattr(plain, "predict_kernel_weights"):
        weights = plain.predict_kernel_weights(rows)
        weights = weights if weights.ndim == 2 else weights[:, output]
        noise = one_output(plain.predict_noise(rows), output)
    used = [k for k in range(weights.shape[1]) if weights[:, k].max() >= _VISIBLE]
    names = list(short_names(model).values()) if used else []
    return {
        "title": column.title,
        "name": column.name,
        "kernels": [names[k] for k in used],
        "kind": column.kind,
        "x": column.axis(grid),
        "levels": packed(levels, "f8"),
        "range": levels[[0, -1]].tolist(),
        "density": packed(_shade(mixture, levels).T, "u1"),
        "mean": packed(mixture.mean),
        "low": packed(low),
        "high": packed(high),
        "weights": [packed(weights[:, k]) for k in used],
        "noise": None if noise is None else packed(noise),
        "noiseTop": 0.0 if noise is None else float(noise.max()),
        "rows": column.axis(X[shown, 0]),
        "y": packed(y[shown], "f8"),
    }


def _shade(mixture: GaussianMixture, levels: Array) -> Array:
    """Grey values, relative to the highest density at the same position; the root lets tails show."""
    density = mixture.density(levels)
    top = density.max(axis=1, keepdims=True)
    return np.round(255 * np.sqrt(density / np.where(top > 0, top, 1.0))).astype(np.uint8)
