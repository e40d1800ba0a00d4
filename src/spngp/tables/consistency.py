"""How the attributes of a column, and of a table with its model, must agree."""

from __future__ import annotations

from typing import Any

from spngp._support.consistency import must, must_be_finite
from spngp.tables.schema import DATE_PARTS, TableColumn, TableSchema


def check_column(column: TableColumn) -> None:
    """Kind, categories, parts and values to fill with must agree."""
    name = column.name
    must(
        column.kind in ("number", "one-hot", "ordinal", "date"), f"column {name!r} must be of a known kind", column.kind
    )
    n_inputs = len(column.input_names)
    must(n_inputs, f"column {name!r} must give inputs", "none")
    must(len(set(column.categories)) == len(column.categories), f"categories of {name!r} must differ", "equal ones")
    must(set(column.parts) <= set(DATE_PARTS), f"a date becomes {', '.join(DATE_PARTS)}", column.parts)
    must(len(column.fill) in (0, n_inputs), f"column {name!r} must be filled by {n_inputs} numbers", len(column.fill))
    must_be_finite(column.fill, f"what fills column {name!r}")


def check_table_of(model: Any) -> None:
    """The table that a model was fitted from must have its inputs and targets."""
    if not hasattr(model, "table_"):
        return
    table, names = model.table_, getattr(model, "feature_names_in_", None)
    must(isinstance(table, TableSchema), "table_ must be a TableSchema", type(table).__name__)
    must(len(table.targets) in (0, model.n_outputs_), "there must be a name for each output", table.targets)
    must(names is None or table.input_names == list(names), f"inputs must be {names}", "others")
    must(len(table.input_names) == model.n_features_in_, "a table must have the model's inputs", table.input_names)
