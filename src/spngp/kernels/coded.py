"""Base of kernels with a length-scale per input, where some inputs may hold codes of levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from spngp._support.types import Array
from spngp.kernels import level_codes
from spngp.kernels.base import Kernel


class CodedKernel(Kernel):
    """A kernel with a variance and a length-scale for each input, or one for all."""

    length_scale: float | Array
    variance: float
    levels: tuple[int, ...] = ()  # number of levels of each input of codes, 0 for numbers; see level_codes

    def _set_levels(self, levels: Sequence[int]) -> None:
        place = self._places["length_scale"]
        n_length_scales = place.stop - place.start if isinstance(place, slice) else None
        self.levels = level_codes.as_levels(levels, n_length_scales, type(self).__name__)

    def with_levels(self, levels: Sequence[int]) -> Self:
        """The same kernel for inputs with these numbers of levels."""
        kernel = self._with_table(self.parameters)
        assert isinstance(kernel, type(self))
        kernel._set_levels(levels)
        return kernel

    def check_inputs(self, d: int) -> None:
        """Raise an error unless the parameters fit d inputs."""
        super().check_inputs(d)
        if self.levels and len(self.levels) != d:
            raise ValueError(f"levels of {type(self).__name__} are for {len(self.levels)} inputs, got {d}")

    def slope_variances(self, d: int) -> Array:
        """Prior variance of the slope along each input."""
        slopes = np.broadcast_to(self.variance / np.square(self.length_scale), (d,))
        return slopes * level_codes.slope_factors(self.levels) if self.levels else slopes

    def _rescaled(self, input_scales: Array, output_scale: float) -> Kernel:
        return self._scaled_by({"length_scale": input_scales, "variance": output_scale**2})

    def _accumulate(self, gradient: Array, name: str, per_input: Array) -> None:
        place = self._places[name]
        gradient[place] += per_input if isinstance(place, slice) else per_input.sum()
