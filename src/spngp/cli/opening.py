"""What the commands open: a model, and tables in the form that it was fitted on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spngp._support.types import Array
from spngp.cli.terminal import note, shortened
from spngp.columns import InputColumns
from spngp.io import load
from spngp.io.shards import is_sharded
from spngp.network.prediction import most_components
from spngp.tables.reading import Source
from spngp.tables.schema import TableSchema, absent_columns, check_targets, columns_of, schema_of, typed_inputs
from spngp.tables.values import Reader

_ROWS = 20_000  # rows of a batch
_ROWS_WITHOUT_FACTORS = 200_000  # rows of a batch, for models that compute factors again for each batch
_NUMBERS = 2**21  # rows times outputs times components of a batch: 17 MB an array, and predicting takes 20 arrays


def open_model(path: str) -> Any:
    """A saved model, every byte of its file checked: a command reads most of it anyway, if it is not in shards."""
    return load(path, verify=not Path(path).is_dir())


def size_of(path: str) -> int:
    """Bytes of a model, a file or a directory."""
    if not Path(path).is_dir():
        return Path(path).stat().st_size
    return sum(part.stat().st_size for part in Path(path).rglob("*") if part.is_file())


def rows_at_a_time(model: Any) -> int:
    """How many rows a batch has that is predicted at once.

    Few, to save memory, but more if experts compute their factors again for each batch. Fewer if mixtures have many
    components; their number is taken from about 1,000 of the training rows. ``benchmarks/predict_memory.py`` measures
    the memory.
    """
    if is_sharded(model):
        return _ROWS_WITHOUT_FACTORS
    if not hasattr(model, "network_"):
        return _ROWS
    kept = all(leaf.gp.has_factor for leaf, _, _ in model.network_.responsibilities() if leaf.gp.n_own)
    X = model.X_train_
    leaves = most_components(model.network_, X[:: -(-X.shape[0] // 1000)])
    components = leaves * max(len(shape.weights) for shape in model.noise_shapes_)
    return min(_ROWS if kept else _ROWS_WITHOUT_FACTORS, max(1, _NUMBERS // (components * model.n_outputs_)))


class Batch(NamedTuple):
    """Some rows of a table: as they stand in it, and as the model's inputs and outputs."""

    rows: Any  # pyarrow.RecordBatch
    inputs: Any  # pyarrow.Table with names, or an array for a model that knows none
    outputs: Array | None


class TableForModel:
    """A table that is read batch by batch for a model.

    Parameters
    ----------
    path : str
        A file, or ``-``.
    model : estimator
    targets : bool
        Whether the targets are needed.

    Attributes
    ----------
    absent : list of str
        Input columns that the table does not have; they count as missing in every row.
    input_columns : list of str
        Names of the input columns in the table.
    """

    def __init__(self, path: str, model: Any, *, targets: bool) -> None:
        self.source = Source(path)
        available, name = self.source.columns, self.source.name
        self.schema, self.input_columns = schema_of(model, available, name, targets)
        self._columns = columns_of(model)
        self.absent = absent_columns(self.input_columns, available, name)
        if targets and len(self.schema.targets) != model.n_outputs_:
            raise ValueError(f"{name} has no column for the model's {model.n_outputs_} outputs")
        if targets:
            check_targets(self.schema, available, name)
        self._targets, self._model = targets, model

    def batches(self, rows: int) -> Iterator[Batch]:
        """The rows in order, at most ``rows`` in a batch."""
        reader = Reader(self.source.name, self.source.decimal)
        for batch in self.source.batches(rows):
            outputs = self.schema.outputs(batch, reader) if self._targets else None
            inputs = typed_inputs(self._columns, batch, reader, self.schema, self.input_columns)
            yield Batch(batch, for_model(self._model, self._columns, inputs), outputs)
            reader.first_row += batch.num_rows
        if reader.first_row == 1:
            raise ValueError(f"{self.source.name} has a header but no rows")


def for_model(model: Any, columns: InputColumns, inputs: Any) -> Any:
    """Typed inputs as a model takes them: a table with names, or an array of numbers if it knows none."""
    named = hasattr(model, "feature_names_in_") or not columns.is_plain
    return inputs if named else np.column_stack([column.to_numpy() for column in inputs.columns])


def tell_absent(table: TableForModel) -> None:
    """Note which input columns a table does not have."""
    if table.absent:
        names = shortened([repr(name) for name in table.absent])
        note(f"spngp: {table.source.name} has no {names}: taken as missing in every row")


def target_names(schema: TableSchema, n_outputs: int) -> list[str]:
    """Names for the model's outputs, known or made up."""
    if len(schema.targets) == n_outputs:
        return list(schema.targets)
    return ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
