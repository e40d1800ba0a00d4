"""Data sets that are made, not measured."""

from __future__ import annotations

import math

import numpy as np

from spngp._typing import Array, RandomState
from spngp._validation import as_count, as_generator
from spngp.datasets.dataset import Dataset


def nonstationary(n: int = 501, random_state: RandomState = 0) -> Dataset:
    """A series whose smoothness and whose noise change along the input.

    Two waves with silence between them, under noise that swells twice, once in the silence; after the demonstration
    ``demo_epinf`` of GPstuff. The set knows its truth: ``function`` and ``noise_std``.

    Examples
    --------
    >>> from spngp.datasets import nonstationary
    >>> data = nonstationary(random_state=0)
    >>> data.X.shape, float(data.noise_std.min().round(2)), float(data.noise_std.max().round(2))
    ((501, 1), 0.71, 1.92)
    """
    n = as_count(n, "n", 10)
    t = np.linspace(-100.0, 200.0, n)
    f1 = np.zeros(n)
    first, last = math.ceil(0.23 * n), math.ceil(0.85 * n)
    f1[:first] = 5.0 * np.sin(-3.0 + 0.2 * t[:first])
    f1[last:] = 5.0 * np.sin(2.8 + 0.2 * t[last:])
    f2 = 100.0 * (_normal_density(t, 110.0, 20.0) + _normal_density(t, -10.0, 20.0))
    x, f = ((column - column.mean()) / column.std() for column in (t, f1))
    noise_std = np.sqrt(0.5 * np.exp(f2))
    y = f + noise_std * as_generator(random_state).standard_normal(n)
    X, Y, function, noise = (column[:, np.newaxis] for column in (x, y, f, noise_std))
    return Dataset("nonstationary", X, Y, ("x",), ("y",), function=function, noise_std=noise)


def _normal_density(x: Array, mean: float, std: float) -> Array:
    return np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * math.sqrt(2.0 * math.pi))
