"""How the attributes of columns must agree."""

from __future__ import annotations

from spngp._support.consistency import must, must_be_finite
from spngp.columns.column import KINDS, Column
from spngp.columns.dates import DATE_PARTS
from spngp.columns.description import InputColumns


def check_column(column: Column) -> None:
    """Raise an error unless kind, levels, parts and values to fill with agree."""
    name = column.name
    must(column.kind in KINDS, f"column {name!r} must be of a known kind", column.kind)
    must(len(set(column.levels)) == len(column.levels), f"levels of {name!r} must differ", "equal ones")
    fewest = {"ordinal": 2, "category": 1}.get(column.kind, 0)  # a category may begin with one
    must(len(column.levels) >= fewest if fewest else not column.levels, f"levels of {name!r} must fit", column.kind)
    odd = column.unseen % 2 == 1 and 0 < column.unseen < 2 * len(column.levels)
    must(odd or column.kind != "category", f"{name!r} must have an odd code for unseen levels", column.unseen)
    must(set(column.parts) <= set(DATE_PARTS), f"a date becomes {', '.join(DATE_PARTS)}", column.parts)
    must(bool(column.parts) == (column.kind == "date"), f"parts of {name!r} must be those of a date", column.parts)
    needed = len(column.input_names) - 1 if column.gaps and column.kind != "category" else 0
    must(len(column.fill) == needed, f"column {name!r} must be filled by {needed} numbers", len(column.fill))
    must_be_finite(column.fill, f"what fills column {name!r}")


def check_columns(columns: InputColumns) -> None:
    """Raise an error unless the columns of a table differ in their names."""
    must(columns.columns, "a table must have columns", "none")
    must(len(set(columns.names)) == len(columns.names), "columns must differ in their names", columns.names)
    must(columns.unknown in ("prior", "error"), "unknown must be prior or error", columns.unknown)
