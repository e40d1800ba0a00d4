"""Slices for the page: what the model believes along each input, for several places of the other inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.plotting._style import limits, widened
from spngp.plotting.lines import line, without_names
from spngp.predictive import GaussianMixture
from spngp.report.text import number, packed

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_SHOWN = 24  # inputs shown, at most
_POINTS, _LEVELS = 72, 72
_ROWS = 400  # rows of the data shown, as points or as a rug, at most


def slices(model: Any, X: Array, y: Array, output: int, inputs: list[str]) -> dict[str, Any]:
    """For each input, largest effect first: density, mean, interval, kernel weights and noise along it.

    The other inputs stand together at their 5, 25, 50, 75 or 95 % quantile.
    """
    d = X.shape[1]
    quantiles = QUANTILES if d > 1 else (0.5,)
    places = np.quantile(X, quantiles, axis=0)
    lowest, highest = (float(value) for value in np.nanquantile(y, [0.002, 0.998]))
    levels = np.linspace(*widened(lowest, highest, 0.25), _LEVELS)
    shown = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:_ROWS])
    found: list[tuple[float, int, dict[str, Any]]] = []
    for feature in range(d):
        if d > 1 and np.ptp(X[:, feature]) == 0:
            continue  # nothing to see along a constant
        effect, item = _along(without_names(model), X, feature, places, levels, output)
        item["input"] = inputs[feature]
        item["rows"] = packed(X[shown, feature], "f8")
        item["others"] = [_others(place, feature, inputs) for place in places] if d > 1 else [""]
        found.append((effect, feature, item))
    found.sort(key=lambda pair: -pair[0])
    return {
        "quantiles": [round(100 * q) for q in quantiles],
        "levels": packed(levels, "f8"),
        "range": levels[[0, -1]].tolist(),
        "items": [item for _, _, item in found[:_SHOWN]],
        "order": [feature for _, feature, _ in found],
        "left": len(found[_SHOWN:]),
        "y": packed(y[shown], "f8") if d == 1 else None,
    }


def _along(
    model: Any, X: Array, feature: int, places: Array, levels: Array, output: int
) -> tuple[float, dict[str, Any]]:
    """The prediction along one input, the other inputs at each of the places, and how much the mean changes."""
    grid = np.linspace(*limits(X[:, feature]), _POINTS)
    rows = np.concatenate([line(X, feature, place, grid).rows for place in places])
    mixture = one_output(model.predict_dist(rows), output)
    mean, (low, high) = mixture.mean, mixture.interval(0.95)
    weights = model.predict_kernel_weights(rows)
    weights = weights if weights.ndim == 2 else weights[:, output]
    noise = one_output(model.predict_noise(rows), output)
    shade = _shade(mixture, levels)
    parts = [slice(i * _POINTS, (i + 1) * _POINTS) for i in range(len(places))]
    steps = [
        {
            "density": packed(shade[part].T, "u1"),
            "mean": packed(mean[part]),
            "low": packed(low[part]),
            "high": packed(high[part]),
            "weights": [packed(column) for column in weights[part].T],
            "noise": packed(noise[part]),
        }
        for part in parts
    ]
    effect = float(np.ptp(mean.reshape(len(places), _POINTS), axis=1).max())
    return effect, {
        "x": packed(grid, "f8"),
        "steps": steps,
        "range": grid[[0, -1]].tolist(),
        "effect": number(effect),
        "noiseTop": float(noise.max()),
    }


def _shade(mixture: GaussianMixture, levels: Array) -> Array:
    """Grey values, relative to the highest density at the same position; the root lets tails show."""
    density = mixture.density(levels)
    top = density.max(axis=1, keepdims=True)
    return np.round(255 * np.sqrt(density / np.where(top > 0, top, 1.0))).astype(np.uint8)


def _others(place: Array, feature: int, inputs: list[str]) -> str:
    """Where the other inputs stand, the first few of them."""
    texts = [
        f"{name} = {number(value)}" for i, (name, value) in enumerate(zip(inputs, place, strict=True)) if i != feature
    ]
    return ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")
