"""Draws from a density by elliptical slice sampling around a Gaussian that is roughly like it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spngp._support.types import Array

_MOST_TRIES = 40  # to find a point on the slice: the bracket has then shrunk to almost nothing


def elliptical_slices(
    log_density: Callable[[Array], float], centre: Array, root: Array, n_steps: int, rng: np.random.Generator
) -> Array:
    """A Markov chain that leaves the density invariant, shape (n_steps, len(centre)); it starts at the centre.

    Parameters
    ----------
    log_density : callable
        Up to a constant; −∞ where the density is zero. At the centre it must be finite.
    centre, root : ndarray
        The Gaussian N(centre, root·rootᵀ). The closer the density is to it, the more a step forgets of the last one;
        the result does not depend on it otherwise.
    n_steps : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.gp.slice_sampling import elliptical_slices
    >>> rng = np.random.default_rng(0)
    >>> draws = elliptical_slices(lambda x: -abs(x[0]), np.zeros(1), np.eye(1), 4000, rng)
    >>> round(float(np.abs(draws).mean()), 1)
    1.0
    """

    def ratio(u: Array) -> float:
        """Log of the density over that of the Gaussian, at a point in the Gaussian's own coordinates."""
        return log_density(centre + root @ u) + 0.5 * float(u @ u)

    u = np.zeros(centre.size)
    value = ratio(u)
    chain = np.empty((n_steps, centre.size))
    for step in range(n_steps):
        direction = rng.standard_normal(centre.size)
        threshold = value + np.log(rng.random())
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        for _ in range(_MOST_TRIES):
            trial = u * np.cos(angle) + direction * np.sin(angle)
            trial_value = ratio(trial)
            if trial_value > threshold:
                u, value = trial, trial_value
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        chain[step] = centre + root @ u
    return chain
