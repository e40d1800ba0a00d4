"""What all our scikit-learn estimators share: checks, standardisation, units, and a fit that is whole or not at all."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from spngp import defaults
from spngp._input_faults import fault_of, holds_times
from spngp._standardise import Standardiser
from spngp._typing import Array
from spngp._validation import as_outputs, refuse_masked
from spngp.leaf import ExactGP
from spngp.predictive import GaussianMixture

# Rows predicted at a time, so that memory does not grow with the number asked for; many, because a leaf that did not
# keep its factor makes it again for each block.
_BLOCK = 200_000


class Regressor(RegressorMixin, BaseEstimator):
    """Rows in, rows out, in the units of the user; inside, inputs and outputs are standardised."""

    _inputs: Standardiser
    _outputs: Standardiser
    _y_is_flat: bool
    n_outputs_: int

    def _learn(self, X: Any, y: Any) -> Self:
        raise NotImplementedError

    def _fit(self, X: Any, y: Any) -> Self:
        """Learn from the rows, or leave the model as it was."""
        before = dict(self.__dict__)
        self.__dict__.pop("table_", None)  # what the command line noted about other data
        try:
            return self._learn(X, y)
        except BaseException:  # an interrupted or failed fit leaves the model as it was, names of inputs included
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _templates(self, kernels: Any, d: int, outputs: Standardiser) -> list[list[ExactGP]]:
        """For each output, the kernels with their noise, in standardised units."""
        given = defaults.as_kernels(kernels, d)
        for kernel, noise in given:
            kernel._check_inputs(d)
            if noise is not None and self.noise_variance is not None:
                given_here = f"noise_variance={self.noise_variance!r}"
                raise ValueError(f"noise is given twice, by {given_here} and by a WhiteKernel; give one of them")
        return [
            [
                ExactGP(kernel, defaults.noise_parameter(self.noise_variance, float(scale)) if noise is None else noise)
                for kernel, noise in given
            ]
            for scale in outputs.scale
        ]

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        X = self._checked_inputs(X, reset)
        return np.ascontiguousarray(X), np.ascontiguousarray(self._checked_outputs(y, X.shape[0], reset))

    def _checked_inputs(self, X: Any, reset: bool) -> Array:
        refuse_masked(X, "X")
        try:
            checked = np.asarray(validate_data(self, X, dtype=np.float64, reset=reset))
        except (TypeError, ValueError, OverflowError) as error:
            # names that do not match say more than the values of a column that should not be there
            fault = None if "feature names" in str(error) else fault_of(X)
            if fault is None:
                raise
            raise fault from None
        if holds_times(X) and (fault := fault_of(X)) is not None:
            raise fault
        return checked

    def _checked_outputs(self, y: Any, n_rows: int, reset: bool) -> Array:
        if y is None:
            # scikit-learn's wording, which its checks look for
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if getattr(y, "dtype", None) == np.complex128:
            raise ValueError("Complex data not supported: y must be real")
        Y = as_outputs(y, n_rows, "Input y", missing=True)
        flat = np.asarray(y).ndim == 1
        if not reset:
            if (flat, Y.shape[1]) != (self._y_is_flat, self.n_outputs_):
                expected = "(n,)" if self._y_is_flat else f"(n, {self.n_outputs_})"
                raise ValueError(f"y must have shape {expected} as before, got {np.asarray(y).shape}")
        elif np.isnan(Y).all(axis=0).any():
            output = int(np.argmax(np.isnan(Y).all(axis=0)))
            raise ValueError(f"Input y contains NaN only, in output {output}: nothing to learn from")
        return Y[:, 0] if flat else Y

    def _blocks(self, X: Any, size: int | None = None) -> list[Array]:
        """Checked rows to predict, in standardised units, so many at a time."""
        check_is_fitted(self)
        X = self._checked_inputs(X, reset=False)
        Z = self._inputs.apply(np.ascontiguousarray(X))
        size = size or _BLOCK
        return [Z[start : start + size] for start in range(0, Z.shape[0], size)]

    def _shaped(self, Y: Array) -> Array:
        """As y was given: (n,) or (n, p)."""
        return Y[:, 0] if self._y_is_flat else Y

    def _in_units_of_y(self, mixture: GaussianMixture) -> GaussianMixture:
        """A mixture in standardised units, (n,) for one output or (n, p), in the units and the shape of y."""
        if self.n_outputs_ > 1:
            return mixture.scaled(self._outputs.scale, self._outputs.mean)
        mixture = mixture.scaled(self._outputs.scale[0], self._outputs.mean[0])
        return mixture if self._y_is_flat else mixture.with_outputs_axis()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, to be opened by :func:`spngp.load`; see :mod:`spngp.io`."""
        from spngp.io import save  # the edges know the estimators, not the other way round

        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
