"""How what is known of a file must agree with its model."""

from __future__ import annotations

from typing import Any

from spngp._support.consistency import must
from spngp.tables.schema import TableSchema


def check_table_of(model: Any) -> None:
    """The table that a model was fitted from must have its targets."""
    if not hasattr(model, "table_"):
        return
    table = model.table_
    must(isinstance(table, TableSchema), "table_ must be a TableSchema", type(table).__name__)
    must(len(table.targets) in (0, model.n_outputs_), "there must be a name for each output", table.targets)
