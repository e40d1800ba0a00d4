"""What the columns of a table mean to a model: which are inputs and targets, and how each becomes numbers.

A :class:`Declaration` is what a person says; :func:`learn_schema` completes it from the rows of a fit (categories,
values for missing ones). The resulting :class:`TableSchema` is saved with the model, so predictions take raw files.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spngp._support.types import Array
from spngp.tables.undeclared import UndeclaredColumns, guess_role
from spngp.tables.values import MISSING, Reader, quoted

if TYPE_CHECKING:
    import pyarrow as pa

# What a date may be turned into; the first is the default.
DATE_PARTS = ("days", "year", "month", "day", "weekday", "dayofyear", "hour")

_MOST_CATEGORIES = 1000
_LONGEST_CATEGORY = 1000  # characters; it becomes part of an input's name, which tables and plots print


@dataclass(frozen=True)
class TableColumn:
    """One input column and how it becomes numbers.

    Attributes
    ----------
    name : str
    kind : {"number", "one-hot", "ordinal", "date"}
    categories : tuple of str
        Of a one-hot column, sorted; of an ordinal one in the order declared, numbered from 0.
    parts : tuple of str
        What a date is turned into: ``days`` (since 1970, with fractions), ``year``, ``month``, ``day``, ``weekday``
        (Monday is 0), ``dayofyear``, ``hour``.
    date_format : str or None
        As in ``strptime``; ISO 8601 if None.
    fill : tuple of float
        What a missing value is taken for: median or most frequent category, one number per input of the model.
    """

    name: str
    kind: str = "number"
    categories: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    date_format: str | None = None
    fill: tuple[float, ...] = ()

    @property
    def input_names(self) -> list[str]:
        """Names of the model's inputs that come from this column."""
        if self.kind == "one-hot":
            return [f"{self.name}={category}" for category in self.categories]
        if self.kind == "date":
            return [self.name if part == "days" else f"{self.name}.{part}" for part in self.parts]
        return [self.name]


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
    one_hot : sequence of str
        Columns of categories without order: one input of 0 and 1 for each.
    ordinal : mapping of str to sequence of str
        Columns of ordered categories, with their order.
    dates : mapping of str to sequence of str
        Columns of dates, with the parts that become inputs; see :class:`TableColumn`.
    date_format : str or None
    impute : bool
        Whether missing inputs are filled instead of refused.
    """

    targets: Sequence[str]
    features: Sequence[str] | None = None
    ids: Sequence[str] = ()
    one_hot: Sequence[str] = ()
    ordinal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    date_format: str | None = None
    impute: bool = False

    def check(self, available: Sequence[str], source: str) -> None:
        """Raise an error unless all columns named are there, each in one role."""
        declared = [*self.one_hot, *self.ordinal, *self.dates]
        for name in [*self.targets, *self.ids, *(self.features or []), *declared]:
            _check_column(name, available, source)
        inputs = self.inputs(available)
        _check_once([*inputs, *self.targets])
        _check_once(declared)
        if not inputs:
            raise ValueError(f"{source} has no input column beside the target")
        for name in declared:
            if name not in inputs:
                raise ValueError(f"column {name!r} is declared but is not among the inputs")

    def inputs(self, available: Sequence[str]) -> list[str]:
        """The input columns."""
        if self.features is not None:
            return list(self.features)
        return [name for name in available if name not in {*self.targets, *self.ids}]


@dataclass(frozen=True)
class TableSchema:
    """How tables become rows of numbers: settled when a model was fitted, the same ever after."""

    columns: tuple[TableColumn, ...]
    targets: tuple[str, ...]
    impute: bool = False

    @property
    def input_names(self) -> list[str]:
        """Names of the model's inputs."""
        return [name for column in self.columns for name in column.input_names]

    def check(self, available: Sequence[str], source: str, targets: bool) -> None:
        """Raise an error unless the columns needed are there."""
        for name in [column.name for column in self.columns] + (list(self.targets) if targets else []):
            _check_column(name, available, source)

    def inputs(self, batch: Any, reader: Reader) -> pa.Table:
        """The model's inputs as a table of numbers with names."""
        import pyarrow as pa

        parts, missing = [], {}
        for column in self.columns:
            values = _encoded(column, batch, reader)
            absent = np.isnan(values[:, 0])
            if absent.any():
                missing[column.name] = absent
                if column.fill:
                    values[absent] = column.fill
            parts += list(values.T)
        if missing and not self.impute:
            raise _missing_inputs(missing, reader)
        return pa.table(parts, names=self.input_names)

    def outputs(self, batch: Any, reader: Reader) -> Array:
        """The targets, (n, p); NaN where missing."""
        return np.column_stack([reader.numbers(batch, name) for name in self.targets])


def learn_schema(declaration: Declaration, table: Any, reader: Reader) -> TableSchema:
    """Complete a declaration by what the rows of a fit show.

    Raises
    ------
    UndeclaredColumns
        If inputs that are not declared hold no numbers; it lists all of them, with a guess what each is.
    ValueError
        If a value does not fit what its column is declared to be.
    """
    available = list(table.schema.names)
    declaration.check(available, reader.source)
    columns: list[TableColumn] = []
    failures: list[ValueError] = []
    undeclared: dict[str, str] = {}
    for name in declaration.inputs(available):
        column = _declared(name, declaration)
        try:
            columns.append(_learn_column(column, table, reader))
        except ValueError as error:
            role = guess_role(table.column(name), declaration.date_format) if column.kind == "number" else None
            if role is None:
                failures.append(error)
            else:
                undeclared[name] = role
    if undeclared:
        raise UndeclaredColumns(reader.source, undeclared, chosen=declaration.features is not None)
    if failures:
        raise failures[0]
    return TableSchema(tuple(columns), tuple(declaration.targets), declaration.impute)


def schema_of(model: Any, available: Sequence[str], source: str, targets: bool = True) -> TableSchema:
    """The schema saved with a model; for a model that was fitted in Python, numbers under the names it knows.

    It knows no names of outputs: if these are needed (``targets``), they must be the only columns beside its inputs.
    One fitted without names takes the columns of the table as they stand: its inputs, then its outputs.
    """
    schema = getattr(model, "table_", None)
    if isinstance(schema, TableSchema):
        return schema
    names = getattr(model, "feature_names_in_", None)
    d, p = int(model.n_features_in_), int(model.n_outputs_)
    if names is not None:
        columns = tuple(TableColumn(str(name)) for name in names)
        if not targets:
            return TableSchema(columns, ())
        rest = [name for name in available if name not in set(names)]
        if len(rest) > p:
            raise ValueError(
                f"{source} has the columns {', '.join(map(repr, rest))} beside the inputs; a model fitted in Python "
                f"does not know the names of its outputs: leave in only the {p} it predicts"
            )
        return TableSchema(columns, tuple(rest) if len(rest) == p else ())
    if len(available) not in (d, d + p):
        raise ValueError(
            f"{source} has {len(available)} columns; the model was fitted without names and needs its {d} inputs, "
            f"or these and its {p} outputs after them"
        )
    return TableSchema(tuple(TableColumn(name) for name in available[:d]), tuple(available[d:]))


def _declared(name: str, declaration: Declaration) -> TableColumn:
    if name in declaration.one_hot:
        return TableColumn(name, "one-hot")
    if name in declaration.ordinal:
        categories = tuple(declaration.ordinal[name])
        if len(set(categories)) != len(categories) or len(categories) < 2:
            raise ValueError(f"column {name!r} needs two or more different categories in order, got {list(categories)}")
        return TableColumn(name, "ordinal", categories)
    if name in declaration.dates:
        parts = tuple(declaration.dates[name]) or DATE_PARTS[:1]
        unknown = [part for part in parts if part not in DATE_PARTS]
        if unknown:
            raise ValueError(f"a date becomes {', '.join(DATE_PARTS)}; got {unknown[0]!r} for column {name!r}")
        return TableColumn(name, "date", parts=parts, date_format=declaration.date_format)
    return TableColumn(name)


def _learn_column(column: TableColumn, table: Any, reader: Reader) -> TableColumn:
    if column.kind == "one-hot":
        texts = reader.texts(table, column.name)
        for row, text in enumerate(texts):
            if text is not None and len(text) > _LONGEST_CATEGORY:
                raise reader.error(
                    row,
                    column.name,
                    f"{quoted(text)} has {len(text):,} characters, a category at most {_LONGEST_CATEGORY:,}; shorten "
                    "it, or leave the column out",
                )
        counts = Counter(text for text in texts if text is not None)
        if not counts:
            raise ValueError(f"column {column.name!r} has no values")
        if len(counts) > _MOST_CATEGORIES:
            raise ValueError(
                f"column {column.name!r} has {len(counts):,} categories, more than {_MOST_CATEGORIES}: it looks like "
                "an identifier; leave it out"
            )
        column = replace(column, categories=tuple(sorted(counts)))
        usual = max(column.categories, key=lambda category: counts[category])
        return replace(column, fill=tuple(float(category == usual) for category in column.categories))
    values = _encoded(column, table, reader)
    known = values[~np.isnan(values[:, 0])]
    if not known.shape[0]:
        raise ValueError(f"column {column.name!r} has no values")
    middle = known[np.argsort(known[:, 0], kind="stable")[(known.shape[0] - 1) // 2]]  # one that was seen
    return replace(column, fill=tuple(middle.tolist()))


def _encoded(column: TableColumn, batch: Any, reader: Reader) -> Array:
    """The numbers of a column, (n, inputs); NaN in the first where it is missing."""
    if column.kind == "number":
        return reader.numbers(batch, column.name)[:, np.newaxis]
    if column.kind == "date":
        return reader.dates(batch, column.name, column.parts, column.date_format)
    texts = reader.texts(batch, column.name)
    code = {category: i for i, category in enumerate(column.categories)}
    for row, text in enumerate(texts):
        if text is not None and text not in code:
            hint = "; a missing value is an empty field" if text in MISSING else ""
            raise reader.error(
                row, column.name, f"{quoted(text)} is none of its categories, {_listed(column.categories)}{hint}"
            )
    codes = np.array([np.nan if text is None else code[text] for text in texts])
    if column.kind == "ordinal":
        return codes[:, np.newaxis]
    values = (codes[:, np.newaxis] == np.arange(len(column.categories))).astype(np.float64)
    values[np.isnan(codes)] = np.nan
    return values


def _missing_inputs(missing: Mapping[str, NDArray[np.bool_]], reader: Reader) -> ValueError:
    counts = [f"{name!r} ({int(absent.sum()):,})" for name, absent in missing.items()]
    first = min(int(np.argmax(absent)) for absent in missing.values())
    return ValueError(
        f"{reader.source}: missing values in {_listed(counts, 'columns')}, first in row {reader.first_row + first}; "
        "--impute fills them with the median or the most frequent category"
    )


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
