"""Predictions of one output or of several: the axis of outputs is there or not."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar


class _Indexed(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, index: Any, /) -> Any: ...


Values = TypeVar("Values", bound=_Indexed)


def one_output(values: Values, output: int) -> Values:
    """What belongs to one output, shape (n,): of an array or mixture of shape (n,), or (n, outputs).

    Examples
    --------
    >>> import numpy as np
    >>> from spngp._support.outputs import one_output
    >>> one_output(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([2., 4.])
    """
    taken: Values = values if len(values.shape) == 1 else values[:, output]
    return taken
