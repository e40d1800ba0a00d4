"""Memory that belongs to a thread: fresh memory is slow to get, above all for several threads at once."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator

import numpy as np

from spngp._support.types import Array

# Largest scratch matrix that a thread keeps: 64 MB, about 2,900 rows.
_LARGEST_SCRATCH = 2**23


class _Scratch(threading.local):
    """Memory of one thread: for a matrix (:meth:`Square.scratch`), and for arrays lent while it works on one leaf."""

    def __init__(self) -> None:
        self.memory = np.empty(0)
        self.lent = np.empty(0)
        self.next: int | None = None  # where the next array begins; None outside lent_memory


_scratch = _Scratch()


@contextlib.contextmanager
def lent_memory() -> Iterator[None]:
    """Inside, :func:`empty` lends arrays from memory of this thread; afterwards the next leaf gets the same memory.

    So the arrays must not be used afterwards. Getting fresh memory from the system for every leaf would take a tenth of
    its training.
    """
    _scratch.next = 0
    try:
        yield
    finally:
        asked, _scratch.next = _scratch.next or 0, None
        if _scratch.lent.size < asked <= _LARGEST_SCRATCH:
            _scratch.lent = np.empty(asked)  # enough for the next leaf of this size


def empty(*shape: int) -> Array:
    """A Fortran-ordered array of any content, lent inside :func:`lent_memory` if there is room for it."""
    if _scratch.next is None:
        return np.empty(shape, order="F")
    start = _scratch.next
    stop = start + math.prod(shape)
    _scratch.next = stop + -stop % 8  # keeps every array on a cache line of its own
    if stop > _scratch.lent.size:
        return np.empty(shape, order="F")
    return _scratch.lent[start:stop].reshape(shape, order="F")


def scratch(size: int) -> Array:
    """A vector in memory that belongs to the calling thread until it asks for the next one; not cleared."""
    if size > _LARGEST_SCRATCH:
        return np.empty(size)
    if _scratch.memory.size < size:
        _scratch.memory = np.empty(size)
    return _scratch.memory[:size]
