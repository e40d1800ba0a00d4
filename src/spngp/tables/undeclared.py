"""Input columns that hold no numbers and were not declared: all of them in one message, with a guess what each is."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from spngp.tables.decimals import has_comma
from spngp.tables.values import is_number, without_missing

_JUDGED = 1000  # values looked at to tell a column of numbers with a typing error from a column of text
_FEW = 10  # distinct values: up to this number they are categories in any table
_MANY = 100  # distinct values: beyond this number they are categories in no table


class UndeclaredColumns(ValueError):  # noqa: N818 - it says which, and what to do
    """Input columns hold no numbers and are not declared.

    Parameters
    ----------
    source : str
        The table's name.
    roles : mapping of str to str
        For each column what its values look like: ``"one-hot"``, ``"date"`` or ``"id"``.
    chosen : bool
        Whether the inputs were listed (``features``), so that an identifier must be taken from that list.

    Attributes
    ----------
    roles : dict of str to str
    """

    def __init__(self, source: str, roles: Mapping[str, str], chosen: bool = False) -> None:
        self.roles = dict(roles)
        listed = ", ".join(map(repr, roles))
        ids = [name for name, role in roles.items() if role == "id"] if chosen else []
        declared = {name: role for name, role in roles.items() if name not in ids}
        advice = []
        if declared:
            advice.append(f"declare {'them' if len(roles) > 1 else 'it'}: {_options(declared)}")
        if ids:
            advice.append(f"leave out of the features: {', '.join(map(repr, ids))}")
        noun = f"columns {listed} do" if len(roles) > 1 else f"column {listed} does"
        super().__init__(f"{source}: {noun} not hold numbers; {'; '.join(advice)} (guessed from the values)")


def guess_role(column: Any, date_format: str | None) -> str | None:
    """What a column that could not be read as numbers looks like; None if most of it are numbers after all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return "date"
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return "id" if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) else None
    texts = pc.drop_null(without_missing(column))
    sample = texts[:_JUDGED].to_pylist()
    if 2 * sum(is_number(text) or has_comma(text) for text in sample) >= len(sample):
        return None
    if _are_dates(texts, date_format):
        return "date"
    distinct = len(pc.unique(texts))
    few = distinct < len(texts) and distinct <= min(_MANY, max(_FEW, len(texts) // 2))
    return "one-hot" if few else "id"


def _are_dates(texts: Any, date_format: str | None) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if date_format is not None:
        try:
            return int(pc.strptime(texts, format=date_format, unit="us", error_is_null=True).null_count) == 0
        except pa.ArrowInvalid:  # the format cannot be used; whoever declares a date with it will be told
            return False
    for zone in (None, "UTC"):
        try:
            texts.cast(pa.timestamp("us", zone))
            return True
        except pa.ArrowInvalid:
            continue
    return False


def _options(roles: Mapping[str, str]) -> str:
    """Options of ``spngp fit`` to paste; lines of a TOML file where a name holds what separates names."""
    named = {role: [name for name, other in roles.items() if other == role] for role in dict.fromkeys(roles.values())}
    if any(re.search(r"[,=]|^\s|\s$", name) for name in roles):
        lists = {role: json.dumps(names, ensure_ascii=False) for role, names in named.items()}
        if "date" in named:
            days = (f'{json.dumps(name, ensure_ascii=False)} = ["days"]' for name in named["date"])
            lists["date"] = f"{{ {', '.join(days)} }}"
        return "in a file for --config, " + ", ".join(f"{role} = {listed}" for role, listed in lists.items())
    options = []
    for role, names in named.items():
        values = names if role == "date" else [",".join(names)]
        options += [f"--{role} {shlex.quote(value)}" for value in values]
    return " ".join(options)
