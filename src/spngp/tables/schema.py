"""What the columns of a file are: declared by a person or guessed from the values, and read accordingly.

How typed columns become inputs of a model is not decided here but by :mod:`spngp.columns`, as in Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spngp._support.types import Array
from spngp.columns import InputColumns
from spngp.columns.dates import DATE_PARTS
from spngp.columns.learning import MOST_COLUMNS, too_many_columns
from spngp.tables.guessing import guess_role
from spngp.tables.values import Reader

if TYPE_CHECKING:
    import pyarrow as pa

_ROLES = {"category": "category", "ordinal": "category", "date": "date"}  # of kinds of columns; of all others "number"


@dataclass(frozen=True)
class Declaration:
    """What a person says about a table; names must be columns of it.

    Attributes
    ----------
    targets : sequence of str
    features : sequence of str or None
        Input columns; by default all but the targets and ``ids``.
    ids : sequence of str
        Columns that are no inputs.
    numbers, categories : sequence of str
        Columns of numbers, and of levels without order.
    ordinal : mapping of str to sequence of str
        Columns of levels with an order, and the order.
    dates : mapping of str to sequence of str
        Columns of dates, with the parts that become inputs; those that their span allows if there are none.
    date_format : str or None
        As in ``strptime``; ISO 8601 if None.
    """

    targets: Sequence[str]
    features: Sequence[str] | None = None
    ids: Sequence[str] = ()
    numbers: Sequence[str] = ()
    categories: Sequence[str] = ()
    ordinal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    date_format: str | None = None

    def check(self, available: Sequence[str], source: str) -> None:
        """Raise an error unless all columns named are there, each in one role."""
        inputs = self.inputs(available)
        if len(inputs) > MOST_COLUMNS:
            raise too_many_columns(source, len(inputs))
        declared = [*self.numbers, *self.categories, *self.ordinal, *self.dates]
        for name in [*self.targets, *self.ids, *(self.features or []), *declared]:
            _check_column(name, available, source)
        for name in self.targets:
            if name in [*inputs, *declared]:
                raise ValueError(f"column {name!r} is the target and no input; leave it out of the features")
        _check_once([*inputs, *self.targets])
        _check_once(declared)
        if not inputs:
            raise ValueError(f"{source} has no input column beside the target")
        for name in declared:
            if name not in inputs:
                raise ValueError(f"column {name!r} is declared but is not among the inputs")
        for name, parts in self.dates.items():
            unknown = [part for part in parts if part not in DATE_PARTS]
            if unknown:
                raise ValueError(f"a date becomes {', '.join(DATE_PARTS)}; got {unknown[0]!r} for column {name!r}")

    def inputs(self, available: Sequence[str]) -> list[str]:
        """The input columns."""
        if self.features is not None:
            return list(self.features)
        return [name for name in available if name not in {*self.targets, *self.ids}]

    def role(self, name: str) -> str | None:
        """What a column was declared to be; None if it was not declared."""
        if name in self.categories or name in self.ordinal:
            return "category"
        if name in self.dates:
            return "date"
        return "number" if name in self.numbers else None

    @property
    def orders_and_parts(self) -> dict[str, list[str]]:
        """What an estimator takes as ``columns``: orders of levels, and parts of dates."""
        given = {**self.ordinal, **self.dates}
        return {name: list(listed) for name, listed in given.items() if listed}


@dataclass(frozen=True)
class TableSchema:
    """What a model must know of the file it was fitted from, beside its columns.

    Attributes
    ----------
    targets : tuple of str
    date_format : str or None
        As in ``strptime``; ISO 8601 if None.
    """

    targets: tuple[str, ...] = ()
    date_format: str | None = None

    def outputs(self, batch: Any, reader: Reader) -> Array:
        """The targets, (n, p); NaN where missing."""
        return np.column_stack([reader.numbers(batch, name) for name in self.targets])


class Learnt(NamedTuple):
    """A table for a fit.

    Attributes
    ----------
    inputs : pyarrow.Table
        Typed columns.
    guessed : dict of str to str
        What columns that were not declared are taken for, but for numbers: ``"category"``, ``"date"`` or ``"id"``; the
        last are no inputs.
    """

    inputs: Any
    guessed: dict[str, str]


def learn_table(declaration: Declaration, table: Any, reader: Reader) -> Learnt:
    """The typed input columns of a table, as declared or as their values look.

    Raises
    ------
    ValueError
        If values do not fit what their columns are; it names all such columns.
    """
    import pyarrow as pa

    available = list(table.schema.names)
    declaration.check(available, reader.source)
    typed: dict[str, Any] = {}
    guessed: dict[str, str] = {}
    failures: list[str] = []
    for name in declaration.inputs(available):
        role = declaration.role(name)
        if role is None:
            role = guess_role(name, table.column(name), declaration.date_format)
            if role == "id" and declaration.features is not None:
                role = "category"  # asked for by name
            if role != "number":
                guessed[name] = role
        try:
            if role != "id":
                typed[name] = _typed(name, role, table, reader, declaration.date_format)
        except ValueError as error:
            failures.append(str(error))
    if failures:
        raise ValueError("; ".join(failures))
    if not typed:
        raise ValueError(f"{reader.source} has no input column: all look like identifiers; declare one, as --category")
    return Learnt(pa.table(typed), guessed)


def _typed(name: str, role: str, batch: Any, reader: Reader, date_format: str | None) -> Any:
    import pyarrow as pa

    if role == "category":
        return pa.array(reader.texts(batch, name), pa.string()).dictionary_encode()
    if role == "date":
        return reader.moments(batch, name, date_format)
    return pa.array(reader.numbers(batch, name), from_pandas=True)


def typed_inputs(
    columns: InputColumns, batch: Any, reader: Reader, schema: TableSchema, names: Sequence[str]
) -> pa.Table:
    """The columns of a batch as a model knows them; ``names`` has the name of each in the batch.

    A column that is not there is missing in every row.
    """
    import pyarrow as pa

    typed: dict[str, Any] = {}
    for column, name in zip(columns.columns, names, strict=True):
        if name not in batch.schema.names:
            typed[column.name] = pa.nulls(batch.num_rows)
            continue
        typed[column.name] = _typed(name, _ROLES.get(column.kind, "number"), batch, reader, schema.date_format)
    return pa.table(typed)


def schema_of(model: Any, available: Sequence[str], source: str, targets: bool = True) -> tuple[TableSchema, list[str]]:
    """The schema saved with a model, and the names of its input columns in a table.

    A model that was fitted in Python knows no names of outputs: if these are needed (``targets``), they must be the
    only columns beside its inputs. One fitted without names takes the columns of the table as they stand: its inputs,
    then its outputs.
    """
    schema = getattr(model, "table_", None)
    columns, p = columns_of(model), int(model.n_outputs_)
    if isinstance(schema, TableSchema):
        return schema, columns.names
    if hasattr(model, "feature_names_in_"):
        known = {*model.feature_names_in_, *columns.names}
        rest = [name for name in available if name not in known]
        if targets and len(rest) > p:
            raise ValueError(
                f"{source} has the columns {', '.join(map(repr, rest))} beside the inputs; a model fitted in Python "
                f"does not know the names of its outputs: leave in only the {p} it predicts"
            )
        return TableSchema(tuple(rest) if targets and len(rest) == p else ()), columns.names
    d = int(model.n_features_in_)
    if len(available) not in (d, d + p):
        raise ValueError(
            f"{source} has {len(available)} columns; the model was fitted without names and needs its {d} inputs, "
            f"or these and its {p} outputs after them"
        )
    return TableSchema(tuple(available[d:])), list(available[:d])


def columns_of(model: Any) -> InputColumns:
    """What the columns of a model are; those of a committee are numbers."""
    if hasattr(model, "columns_"):
        columns: InputColumns = model.columns_
        return columns
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(int(model.n_features_in_))])
    return InputColumns.of_numbers(names)


def absent_columns(names: Sequence[str], available: Sequence[str], source: str) -> list[str]:
    """Input columns that are not there and count as missing; an error if none is there, or one under a like name."""
    absent = [name for name in names if name not in available]
    for name in absent:
        if len(absent) == len(names) or difflib.get_close_matches(name, [*{*available} - {*names}], 1):
            _check_column(name, available, source)
    return absent


def check_targets(schema: TableSchema, available: Sequence[str], source: str) -> None:
    """Raise an error unless the targets are there."""
    for name in schema.targets:
        _check_column(name, available, source)


def _check_column(name: str, available: Sequence[str], source: str) -> None:
    if name in available:
        return
    close = difflib.get_close_matches(name, available, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {_listed([repr(n) for n in available], 'columns')}"
    raise ValueError(f"{source} has no column {name!r}; {hint}")


def _check_once(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"column {name!r} is given two roles, or twice")


def _listed(items: Sequence[str], noun: str = "values") -> str:
    shown = ", ".join(items[:8])
    return shown if len(items) <= 8 else f"{shown} and {len(items) - 8} more {noun}"
