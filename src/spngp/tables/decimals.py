"""Decimal marks of numbers in text: guessed from the first lines of a file, then checked in every row.

``1,000`` is a thousand to some and one to others, so is ``1.000``. A mark that contradicts the file's own numbers is an
error that says so, never a number a thousand times too large or small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_COMMA = r"[+-]?\d+,\d+"
_THOUSANDS = r"[+-]?[1-9]\d{0,2},\d{3}"
_WHOLE = r"[+-]?\d{1,3}"
_POINT = r"[+-]?\d*\.\d+"
_MARKED = re.compile(r"[+-]?\d[\d.,]*,[\d.,]*")


def decimal_mark(fields: Iterable[str]) -> str:
    """A comma if some fields are numbers with one and none is a number with a point; else a point."""
    fields = list(fields)
    commas = any(re.fullmatch(_COMMA, field) for field in fields)
    return "," if commas and not any(re.fullmatch(_POINT, field) for field in fields) else "."


def has_comma(text: str) -> bool:
    """Whether a text would be a number if commas were allowed in it."""
    return bool(_MARKED.fullmatch(text))


class Contradiction(NamedTuple):
    """A value whose mark cannot be what the file's first lines suggest."""

    row: int  # in the batch, from 0
    problem: str


class DecimalCommas:
    """Looks at all numbers of a file with decimal commas, column by column and batch by batch.

    Commas may separate thousands as long as all of them could, as in ``1,250``. One that cannot, as in ``0,5``, settles
    the question for the whole file; until then a column with ``1,250`` and ``999`` is an error.
    """

    def __init__(self) -> None:
        self._settled = False
        self._seen: dict[tuple[str, str], str] = {}  # (column, form): an example

    def check(self, batch: Any, name: str, texts: Any) -> Contradiction | None:
        """What is wrong with a column of numbers, if anything.

        Parameters
        ----------
        batch : pyarrow.RecordBatch or pyarrow.Table
        name : str
        texts : pyarrow.StringArray
            The column ``name`` of the batch, trimmed, null where missing.
        """
        import pyarrow.compute as pc

        row = pc.index(pc.match_substring(texts, "."), True).as_py()
        if row >= 0:
            return Contradiction(
                row,
                f"{texts[row].as_py()!r} has a point, and other numbers of this file have decimal commas; write "
                "thousands without a mark, or all decimals with the same one",
            )
        if self._settled or self._settles(texts):
            return None
        for form in (_WHOLE, _THOUSANDS):
            if (name, form) not in self._seen:
                found = pc.index(_matches(texts, form), True).as_py()
                if found >= 0:
                    row, self._seen[name, form] = max(row, found), texts[found].as_py()
        if row < 0 or (name, _WHOLE) not in self._seen or (name, _THOUSANDS) not in self._seen:
            return None
        if any(self._settles(column) for column in batch.columns):
            return None
        return Contradiction(
            row,
            f"the column holds {self._seen[name, _WHOLE]!r} and {self._seen[name, _THOUSANDS]!r}, whose comma may "
            "stand for decimals or thousands; write thousands without a comma, or decimals with a point",
        )

    def _settles(self, column: Any) -> bool:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_string(column.type):
            return False
        texts = pc.utf8_trim_whitespace(column)
        decimal = pc.and_not(_matches(texts, _COMMA), _matches(texts, _THOUSANDS))
        self._settled = pc.index(decimal, True).as_py() >= 0
        return self._settled


def _matches(texts: Any, form: str) -> Any:
    import pyarrow.compute as pc

    return pc.match_substring_regex(texts, f"^(?:{form})$")
