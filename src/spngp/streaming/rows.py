"""The rows of a living model: appended in place, numbered in the order in which they came, forgotten by number."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from spngp._support.types import Array, Indices
from spngp._support.values import with_fields
from spngp.gp.row_weights import KnownVariances
from spngp.network.units import Units

_FIRST_ROOM = 64  # rows that an array has room for at first
_CLAIM = threading.Lock()

S = TypeVar("S", bound=np.generic)


class _Shared(Generic[S]):
    """Memory of several versions of an array, and how many rows of it are in use by any."""

    __slots__ = ("buffer", "filled")

    def __init__(self, buffer: NDArray[S], filled: int) -> None:
        self.buffer, self.filled = buffer, filled


class GrowingArray(Generic[S]):
    """An array that grows at its end and shrinks at its beginning. Immutable; versions share memory.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.streaming.rows import GrowingArray
    >>> before = GrowingArray.of(np.arange(3.0))
    >>> after = before.followed_by(np.array([7.0])).from_position(1)
    >>> before.values, after.values
    (array([0., 1., 2.]), array([1., 2., 7.]))
    """

    __slots__ = ("_shared", "_start", "_stop", "values")

    values: NDArray[S]  # not to be changed

    def __init__(self, shared: _Shared[S], start: int, stop: int) -> None:
        self._shared, self._start, self._stop = shared, start, stop
        self.values = shared.buffer[start:stop]
        self.values.flags.writeable = False

    @staticmethod
    def of(values: NDArray[S]) -> GrowingArray[S]:
        """An array with these values."""
        room = max(_FIRST_ROOM, 2 * values.shape[0])
        buffer = np.empty((room, *values.shape[1:]), dtype=values.dtype)
        buffer[: values.shape[0]] = values
        return GrowingArray(_Shared(buffer, values.shape[0]), 0, values.shape[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return GrowingArray.of, (self.values,)

    def followed_by(self, more: NDArray[S]) -> GrowingArray[S]:
        """With more rows at the end."""
        stop = self._stop + more.shape[0]
        with _CLAIM:
            free = self._shared.filled == self._stop and stop <= self._shared.buffer.shape[0]
            if free:
                self._shared.filled = stop
        if not free:  # another version has rows here, or there is no room: into new memory, what was forgotten left out
            return GrowingArray.of(np.concatenate([self.values, more])) if more.shape[0] else self
        self._shared.buffer[self._stop : stop] = more
        return GrowingArray(self._shared, self._start, stop)

    def from_position(self, start: int) -> GrowingArray[S]:
        """Without the first rows."""
        return GrowingArray(self._shared, self._start + start, self._stop)


def _observed(Y: Array) -> Indices:
    """How many outputs of each column are known."""
    return np.asarray((~np.isnan(Y)).sum(axis=0))


def are_among(numbers: Indices, known: Indices) -> NDArray[np.bool_]:
    """Which numbers are among known ones, which are ascending."""
    if not known.size:
        return np.zeros(numbers.size, dtype=bool)
    places = np.minimum(np.searchsorted(known, numbers), known.size - 1)
    return np.asarray(known[places] == numbers)


@dataclass(frozen=True, eq=False)
class RowLog:
    """All rows that are remembered.

    Attributes
    ----------
    numbers : GrowingArray
        The number of each row, ascending: how many rows came before it, forgotten ones included.
    X, Y : GrowingArray
        In the units of the user; NaN in Y is a missing output.
    W, Z : GrowingArray
        The same in the units of learning.
    noise : GrowingArray
        The variance of the noise as leaves of other regions see it, a column for each kind of noise: that of its region
        when the row came. In the units of learning.
    known : GrowingArray or None
        In the shape of Y, known variances of outputs beside the noise, in the units of learning; None if no row that
        ever came had one.
    n_ever : int
        How many rows have come, forgotten ones included.
    n_observed : ndarray
        For each output, how many rows are remembered that have it.
    """

    numbers: GrowingArray[np.intp]
    X: GrowingArray[np.float64]
    Y: GrowingArray[np.float64]
    W: GrowingArray[np.float64]
    Z: GrowingArray[np.float64]
    noise: GrowingArray[np.float64]
    known: GrowingArray[np.float64] | None
    n_ever: int
    n_observed: Indices

    @staticmethod
    def of(
        numbers: Indices, X: Array, Y: Array, noise: Array, n_ever: int, units: Units, known: Array | None = None
    ) -> RowLog:
        """Of rows in the units of the user."""
        W, Z = units.inputs.apply(X), units.outputs.apply(Y)
        grown = (GrowingArray.of(X), GrowingArray.of(Y), GrowingArray.of(W), GrowingArray.of(Z))
        variances = None if known is None else GrowingArray.of(known)
        return RowLog(GrowingArray.of(numbers), *grown, GrowingArray.of(noise), variances, n_ever, _observed(Y))

    @property
    def n(self) -> int:
        """Number of rows remembered."""
        return self.numbers.values.size

    def followed_by(self, X: Array, Y: Array, W: Array, Z: Array, noise: Array, known: Array | None) -> RowLog:
        """With further rows."""
        fresh = np.arange(self.n_ever, self.n_ever + X.shape[0])
        variances = self.known
        if variances is None and known is not None:
            variances = GrowingArray.of(np.zeros((self.n, Y.shape[1])))
        return RowLog(
            self.numbers.followed_by(fresh),
            self.X.followed_by(X),
            self.Y.followed_by(Y),
            self.W.followed_by(W),
            self.Z.followed_by(Z),
            self.noise.followed_by(noise),
            None if variances is None else variances.followed_by(np.zeros(Y.shape) if known is None else known),
            self.n_ever + X.shape[0],
            self.n_observed + _observed(Y),
        )

    def without(self, gone: Indices) -> RowLog:
        """Without the rows of these numbers, ascending, all of which are remembered."""
        numbers = self.numbers.values
        n_observed = self.n_observed - _observed(self.Y.values[self.positions(gone)])
        return with_fields(self._without(numbers, gone), n_observed=n_observed)

    def _without(self, numbers: Indices, gone: Indices) -> RowLog:
        if gone.size and gone.size == np.searchsorted(numbers, gone[-1], side="right"):  # the oldest ones
            return self._each(lambda part: part.from_position(gone.size))
        kept = np.ones(numbers.size, dtype=bool)
        kept[self.positions(gone)] = False
        return self._each(lambda part: GrowingArray.of(part.values[kept]))

    def _each(self, change: Any) -> RowLog:
        names = ("numbers", "X", "Y", "W", "Z", "noise", *(() if self.known is None else ("known",)))
        return with_fields(self, **{name: change(getattr(self, name)) for name in names})

    def known_variances_at(self, numbers: Indices) -> KnownVariances | None:
        """The same as learning takes it."""
        known = self.known_at(numbers)
        return None if known is None else KnownVariances(known)

    def known_at(self, numbers: Indices) -> Array | None:
        """Known variances of the outputs of these rows, which must be remembered; None if all are zero."""
        if self.known is None:
            return None
        known = self.known.values[self.positions(numbers)]
        return known if known.any() else None

    def positions(self, numbers: Indices) -> Indices:
        """Where the rows of these numbers stand; they must be remembered."""
        known = self.numbers.values
        if known.size and known[-1] - known[0] == known.size - 1:
            return numbers - known[0]
        return np.searchsorted(known, numbers)

    def remembers(self, numbers: Indices) -> NDArray[np.bool_]:
        """Which of these numbers are those of rows that are remembered."""
        return are_among(numbers, self.numbers.values)
