"""A smooth truth in eight inputs whose length-scales and noise differ from region to region, at any number of rows."""

from __future__ import annotations

import numpy as np

D = 8
_N_WAVES = 400
_BLOCK = 50_000


def truth(X: np.ndarray) -> np.ndarray:
    """A draw from a GP (by random Fourier features) seen through a warp: where x0 > 0 it varies twice as fast."""
    rng = np.random.default_rng(20_240)
    length_scales = np.array([2.0, 2.0, 2.5, 2.5, 3.0, 4.0, 6.0, 10.0])
    frequencies = rng.standard_normal((_N_WAVES, D)) / length_scales
    phases = rng.uniform(0.0, 2.0 * np.pi, _N_WAVES)
    amplitudes = rng.standard_normal(_N_WAVES) * np.sqrt(2.0 / _N_WAVES)
    parts = []
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK].copy()
        # slope 1 far below zero, 2 far above: the integral of 1 + sigmoid(4 x0)
        block[:, 0] += np.logaddexp(0.0, 4.0 * block[:, 0]) / 4.0
        block[:, 1] += np.logaddexp(0.0, 4.0 * X[start : start + _BLOCK, 0]) / 4.0
        parts.append(np.cos(block @ frequencies.T + phases) @ amplitudes)
    return np.concatenate(parts)


def noise_std(X: np.ndarray) -> np.ndarray:
    """Standard deviation of the noise: 0.05 where x2 is low, 0.3 where it is high."""
    return 0.05 + 0.25 / (1.0 + np.exp(-4.0 * X[:, 2]))


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``n`` rows with normal inputs, and their outputs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return X, truth(X) + noise_std(X) * rng.standard_normal(n)
