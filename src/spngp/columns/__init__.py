"""What the columns of a table mean to a model: how each becomes numbers, learnt once and saved with the model."""

from spngp.columns.column import Column
from spngp.columns.description import InputColumns
from spngp.columns.learning import learn_columns

__all__ = ["Column", "InputColumns", "learn_columns"]
