"""What ``predict`` may be asked for besides the mean: standard deviations, intervals, quantiles."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.checks import as_floats
from spngp._support.types import Array


class Answers(tuple[Array, ...]):
    """Several arrays, as ``predict`` returns them: a tuple.

    A wrapper that transforms predictions back, such as scikit-learn's TransformedTargetRegressor, takes what it gets
    for one array; it is told what to use instead.
    """

    @property
    def ndim(self) -> int:
        """Not an array: an error that says so."""
        raise AttributeError(
            f"predict returned {len(self)} arrays, which are not one to be transformed back (a standard deviation has "
            "no inverse under a transformer); give the transformer to the model itself, "
            "SPNGPRegressor(target=transformer), instead of wrapping it in TransformedTargetRegressor"
        )


@dataclass(frozen=True)
class Question:
    """What is asked for.

    Attributes
    ----------
    std : bool
        The standard deviation, after the mean.
    interval : float or None
        Probability of a central interval; its borders come last.
    quantiles : ndarray or None
        Levels; then nothing but quantiles is returned.
    """

    std: bool
    interval: float | None
    quantiles: Array | None

    @staticmethod
    def of(return_std: Any, interval: Any, quantiles: Any) -> Question:
        """Check what a user asks for."""
        if quantiles is not None and (return_std or interval is not None):
            raise ValueError("quantiles are returned alone: ask for the mean, its std or an interval in another call")
        return Question(
            bool(return_std),
            None if interval is None else as_probability(interval, "interval"),
            None if quantiles is None else as_levels(quantiles, "quantiles"),
        )

    @property
    def mean_alone(self) -> bool:
        """Whether nothing but the mean is asked for."""
        return not self.std and self.interval is None and self.quantiles is None

    def of_one(self, mixture: Any) -> tuple[Array, ...]:
        """The answers for a batch of predictive distributions."""
        if self.quantiles is not None:
            return (mixture.quantile(self.quantiles),)
        std = (mixture.std,) if self.std else ()
        return (mixture.mean, *std, *(() if self.interval is None else mixture.interval(self.interval)))

    def of_all(self, mixtures: Sequence[Any]) -> Any:
        """The answers for all batches: one array, or several."""
        columns = [np.concatenate(column) for column in zip(*map(self.of_one, mixtures), strict=True)]
        return columns[0] if len(columns) == 1 else Answers(columns)


def as_probability(value: Any, name: str) -> float:
    """A probability of a central interval, strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1 (0.9 for 90 %), got {value!r}")
    return float(value)


def as_levels(values: Any, name: str) -> Array:
    """Levels of quantiles, one number or a sequence, strictly between 0 and 1."""
    levels = as_floats(values, name)
    if levels.ndim > 1:
        raise ValueError(f"{name} must be a number or a sequence of numbers, got shape {levels.shape}")
    outside = ~((levels > 0) & (levels < 1))
    if outside.any():
        raise ValueError(
            f"{name} must lie strictly between 0 and 1 (0.05 for 5 %), got {np.atleast_1d(levels[outside])[0]:g}"
        )
    return levels
