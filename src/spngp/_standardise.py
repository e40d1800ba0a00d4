"""Columns brought to mean zero and standard deviation one, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._typing import Array


@dataclass(frozen=True)
class Standardiser:
    """z = (x − mean)/scale, column by column; a constant column keeps a scale of one. NaN stays NaN."""

    mean: Array
    scale: Array

    @staticmethod
    def of(A: Array) -> Standardiser:
        """Learn from the rows of A; sizes up to the largest float do not overflow."""
        size = np.nanmax(np.abs(A), axis=0)
        size[size == 0] = 1.0
        unit = A / size
        mean, scale = np.nanmean(unit, axis=0), np.nanstd(unit, axis=0)
        constant = scale <= 1e-14 * np.maximum(np.abs(mean), 1e-300)
        return Standardiser(mean * size, np.where(constant, 1.0, scale) * np.where(constant, 1.0, size))

    def apply(self, A: Array) -> Array:
        """Into standard units."""
        return (A - self.mean) / self.scale
