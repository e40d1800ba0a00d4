"""Counts in words."""

from __future__ import annotations


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number of things.

    Parameters
    ----------
    n : int
    one : str
        What one of them is called.
    many : str, optional
        What several are called; ``one`` with an s by default.

    Examples
    --------
    >>> from spngp._support.wording import counted
    >>> [counted(1, "row"), counted(2_000, "row"), counted(0, "leaf", "leaves")]
    ['1 row', '2,000 rows', '0 leaves']
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
