"""What columns that nobody declared look like: numbers, levels, dates or identifiers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from spngp.columns.learning import MOST_LEVELS, is_identifier
from spngp.tables.decimals import has_comma
from spngp.tables.values import is_number, without_missing

_JUDGED = 1000  # values looked at to tell a column of numbers with a typing error from a column of text
_FEWEST_ROWS = 20  # of a table in which whole numbers that never repeat may be those of rows
_NAMES_OF_IDS = re.compile(r"(^|[^a-z])(id|ids|key|uuid|guid|index|rownum|row|nr)$|^unnamed: 0$|[a-z]Id$|ID$", re.ASCII)


_LIKE_DATES = r"^\s*(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4})\b"


def guess_role(name: str, column: Any, date_format: str | None) -> str:
    """``"number"``, ``"category"``, ``"date"`` or ``"id"``; a column of which half are numbers is one of numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return "id"
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return "id" if pa.types.is_integer(kind) and _are_row_names(name, column) else "number"
    texts = pc.drop_null(without_missing(column))
    sample = texts[:_JUDGED].to_pylist()
    if 2 * sum(is_number(text) or has_comma(text) for text in sample) >= len(sample):
        return "id" if _are_row_names(name, texts) else "number"
    looks = pc.sum(pc.match_substring_regex(texts[:_JUDGED], _LIKE_DATES)).as_py() or 0
    if _are_dates(texts, date_format) or 2 * looks > len(sample):
        return "date"  # one that cannot be read says which row, and how to declare the format
    distinct = len(pc.unique(texts))
    unique = distinct == len(texts) and distinct > 2
    return "id" if unique or distinct > MOST_LEVELS or is_identifier(distinct, len(texts)) else "category"


def _are_row_names(name: str, values: Any) -> bool:
    """Whether a column is called an identifier and has another whole number in every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(values) < _FEWEST_ROWS or not _NAMES_OF_IDS.search(name if name.isupper() else _spaced(name)):
        return False
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        whole = pc.all(pc.match_substring_regex(values, r"^\d+$")).as_py()
    else:
        whole = values.null_count == 0
    return bool(whole) and len(pc.unique(values)) == len(values)


def _spaced(name: str) -> str:
    """orderId as order_id, in small letters."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


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


def options(roles: Mapping[str, str]) -> str:
    """Options of ``spngp fit`` to paste; lines of a TOML file where a name holds what separates names."""
    named = {role: [name for name, other in roles.items() if other == role] for role in dict.fromkeys(roles.values())}
    if any(re.search(r"[,=]|^\s|\s$", name) for name in roles):
        lists = {role: json.dumps(names, ensure_ascii=False) for role, names in named.items()}
        if "date" in named:
            every = (f"{json.dumps(name, ensure_ascii=False)} = []" for name in named["date"])
            lists["date"] = f"{{ {', '.join(every)} }}"
        return "in a file for --config, " + ", ".join(f"{role} = {listed}" for role, listed in lists.items())
    found = []
    for role, names in named.items():
        values = names if role == "date" else [",".join(names)]
        found += [f"--{role} {shlex.quote(value)}" for value in values]
    return " ".join(found)
