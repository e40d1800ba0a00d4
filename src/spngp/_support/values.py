"""Changed copies of frozen dataclasses."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def with_fields(value: T, **fields: Any) -> T:
    """As :func:`dataclasses.replace`, in a fraction of its time, for a class without slots and ``__post_init__``.

    Examples
    --------
    >>> from spngp._support.values import with_fields
    >>> from spngp.structure.context import Reach
    >>> with_fields(Reach(4.0), squared=9.0)
    Reach(squared=9.0, key=1.0)
    """
    new = object.__new__(type(value))
    new.__dict__.update(value.__dict__)
    new.__dict__.update(fields)
    return new
