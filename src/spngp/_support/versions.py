"""Sequences of which many versions are made, each with few items changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_ITEMS = 32  # of a piece


class VersionedSequence(Generic[T]):
    """An immutable sequence. A version with other items shares all pieces that have none of them.

    Copying a tuple counts a reference to every item: with thousands of items scattered in memory, changing one takes
    longer than what is done with it.

    Examples
    --------
    >>> from spngp._support.versions import VersionedSequence
    >>> before = VersionedSequence("abc")
    >>> after = before.with_items({1: "x"}).followed_by("d")
    >>> list(before), list(after), after[3], len(after)
    (['a', 'b', 'c'], ['a', 'x', 'c', 'd'], 'd', 4)
    """

    __slots__ = ("_pieces", "_size")

    def __init__(self, items: Iterable[T] = ()) -> None:
        every = tuple(items)
        self._pieces = tuple(every[i : i + _ITEMS] for i in range(0, len(every), _ITEMS))
        self._size = len(every)

    def __reduce__(self) -> tuple[Any, ...]:
        return VersionedSequence, (tuple(self),)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i: int) -> T:
        if not 0 <= i < self._size:
            raise IndexError(f"position must be between 0 and {self._size - 1}, got {i}")
        return self._pieces[i // _ITEMS][i % _ITEMS]

    def __iter__(self) -> Iterator[T]:
        return (item for piece in self._pieces for item in piece)

    def with_items(self, items: Mapping[int, T]) -> VersionedSequence[T]:
        """With other items at some positions."""
        pieces = list(self._pieces)
        for i, item in items.items():
            place, inside = divmod(i, _ITEMS)
            piece = pieces[place]
            pieces[place] = (*piece[:inside], item, *piece[inside + 1 :])
        return self._of(tuple(pieces), self._size)

    def followed_by(self, items: Iterable[T]) -> VersionedSequence[T]:
        """With further items at the end."""
        full = self._size // _ITEMS
        last = VersionedSequence((*(self._pieces[full] if full < len(self._pieces) else ()), *items))
        return self._of((*self._pieces[:full], *last._pieces), full * _ITEMS + last._size)

    @staticmethod
    def _of(pieces: tuple[tuple[T, ...], ...], size: int) -> VersionedSequence[T]:
        made: VersionedSequence[T] = VersionedSequence()
        made._pieces, made._size = pieces, size
        return made
