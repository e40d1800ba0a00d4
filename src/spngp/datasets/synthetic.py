"""Data sets that are made, not measured."""

from __future__ import annotations

import math

import numpy as np

from spngp._support.checks import as_count, as_generator
from spngp._support.types import Array, RandomState
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


def regional(n: int, random_state: RandomState = 0) -> Dataset:
    """Any number of rows in eight inputs whose length-scales and noise differ from region to region.

    A draw from a GP (by random Fourier features, the same for every n and seed) seen through a warp: where x0 > 0 it
    varies twice as fast. The noise's standard deviation is 0.05 where x2 is low and 0.3 where it is high.

    Examples
    --------
    >>> from spngp.datasets import regional
    >>> data = regional(1000, random_state=0)
    >>> data.X.shape, data.noise_std.shape
    ((1000, 8), (1000, 1))
    """
    n = as_count(n, "n", 1)
    rng = as_generator(random_state)
    X = rng.standard_normal((n, 8))
    function = np.concatenate([_regional_function(X[start : start + 50_000]) for start in range(0, n, 50_000)])
    noise_std = 0.05 + 0.25 / (1.0 + np.exp(-4.0 * X[:, 2]))
    y = function + noise_std * rng.standard_normal(n)
    Y, F, S = (column[:, np.newaxis] for column in (y, function, noise_std))
    return Dataset("regional", X, Y, tuple(f"x{i}" for i in range(8)), ("y",), function=F, noise_std=S)


def _regional_function(X: Array) -> Array:
    rng = np.random.default_rng(20_240)
    n_waves, length_scales = 400, np.array([2.0, 2.0, 2.5, 2.5, 3.0, 4.0, 6.0, 10.0])
    frequencies = rng.standard_normal((n_waves, 8)) / length_scales
    phases = rng.uniform(0.0, 2.0 * np.pi, n_waves)
    amplitudes = rng.standard_normal(n_waves) * np.sqrt(2.0 / n_waves)
    warp = np.logaddexp(0.0, 4.0 * X[:, :1]) / 4.0  # slope 0 far below zero, 1 far above
    warped = np.concatenate([X[:, :2] + warp, X[:, 2:]], axis=1)
    return np.cos(warped @ frequencies.T + phases) @ amplitudes
