"""Lines that come one by one: each is predicted, the prediction is printed at once, and then it is learnt from."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.cli.opening import for_model, target_names
from spngp.columns import Column, InputColumns
from spngp.tables.dialect import find_dialect
from spngp.tables.schema import Declaration, TableSchema, absent_columns, columns_of, schema_of, typed_inputs
from spngp.tables.values import Reader


@dataclass
class Lines:
    """Rows of CSV with a header, or of JSON objects, as they come.

    Attributes
    ----------
    name : str
        For messages.
    json : bool
    columns : list of str
        Of the header, or of the first object.
    decimal : str
        The decimal mark.
    """

    name: str
    json: bool
    columns: list[str]
    decimal: str
    _rest: Iterator[Mapping[str, str | None]]

    @staticmethod
    def of(path: str) -> Lines:
        """Lines of a file, or of standard input."""
        name = "standard input" if path == "-" else path
        stream = sys.stdin if path == "-" else open(path, encoding="utf-8")  # noqa: SIM115 - read to its end
        first = stream.readline().removeprefix("\ufeff")
        if not first.strip():
            raise ValueError(f"{name} is empty: a header or a first row was expected")
        if first.lstrip().startswith("{"):
            columns = list(_object(first, 1, name))
            return Lines(name, True, columns, ".", _objects(first, stream, name))
        dialect = find_dialect(first.encode(), name)
        columns = next(csv.reader([first], delimiter=dialect.delimiter))
        return Lines(name, False, columns, dialect.decimal, _fields(columns, stream, dialect.delimiter, name))

    def __iter__(self) -> Iterator[Mapping[str, str | None]]:
        return self._rest


def _fields(columns: Sequence[str], stream: Any, delimiter: str, name: str) -> Iterator[Mapping[str, str | None]]:
    for i, fields in enumerate(csv.reader(iter(stream.readline, ""), delimiter=delimiter), 1):
        if not fields:
            continue
        if len(fields) != len(columns):
            raise ValueError(f"{name}, row {i}: {len(columns)} fields are expected, got {len(fields)}")
        yield dict(zip(columns, (field or None for field in fields), strict=True))


def _objects(first: str, stream: Any, name: str) -> Iterator[Mapping[str, str | None]]:
    line, i = first, 1
    while line:
        if line.strip():
            yield {key: None if value is None else str(value) for key, value in _object(line, i, name).items()}
        line, i = stream.readline(), i + 1


def _object(line: str, i: int, name: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        found = line.strip()[:60]
        raise ValueError(f'{name}, row {i}: an object such as {{"x": 1.5, "y": 2}} is expected, got {found}')
    return value


class Printer:
    """Prints predictions, in the form of the lines."""

    def __init__(self, names: Sequence[str], as_json: bool) -> None:
        self._json = as_json
        self._columns = [f"{name}_{what}" for name in names for what in ("mean", "std")]
        if not as_json:
            self._print(",".join(self._columns))

    def show(self, mean: Array, std: Array) -> None:
        """One prediction, a mean and a standard deviation for each target; empty where nothing is known yet."""
        values = [float(value) for pair in zip(mean, std, strict=True) for value in pair]
        if self._json:
            known = {c: v if np.isfinite(v) else None for c, v in zip(self._columns, values, strict=True)}
            self._print(json.dumps(known))
        else:
            self._print(",".join(repr(value) if np.isfinite(value) else "" for value in values))

    @staticmethod
    def _print(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def follow_lines(estimator: Any, lines: Lines, keep_last: int | None = None) -> int:
    """Predict and add every line; returns how many were added."""
    schema, names = schema_of(estimator, lines.columns, lines.name, False)
    for name in absent_columns(names, lines.columns, lines.name):
        raise ValueError(f"{lines.name} has no column {name!r}, which the model needs line by line")
    columns = columns_of(estimator)

    def prepared(batch: Any, reader: Reader) -> Any:
        return for_model(estimator, columns, typed_inputs(columns, batch, reader, schema, names))

    return _follow(estimator, lines, target_names(schema, estimator.n_outputs_), names, prepared, keep_last)


def follow_from_nothing(estimator: Any, lines: Lines, declaration: Declaration) -> tuple[TableSchema, int]:
    """The same for a model that has learnt nothing; returns the schema as well. Inputs are numbers unless declared."""
    declaration.check(lines.columns, lines.name)
    schema = TableSchema(tuple(declaration.targets), declaration.date_format)
    names = declaration.inputs(lines.columns)
    columns = InputColumns(tuple(Column(name, declaration.role(name) or "number") for name in names))

    def prepared(batch: Any, reader: Reader) -> Any:
        return typed_inputs(columns, batch, reader, schema, names)

    n_rows = _follow(estimator, lines, list(schema.targets), names, prepared)
    if not estimator.__sklearn_is_fitted__() and not n_rows:
        raise ValueError(f"{lines.name} has no row with a target")
    return schema, n_rows


def _follow(
    estimator: Any,
    lines: Lines,
    targets: Sequence[str],
    inputs: Sequence[str],
    prepared: Callable[[Any, Reader], Any],
    keep_last: int | None = None,
) -> int:
    """Predict and add every line; ``prepared`` turns a table of texts into inputs."""
    printer, reader, n_rows = Printer(targets, lines.json), Reader(lines.name, lines.decimal), 0
    for row in lines:
        batch = texts(row, [*inputs, *targets])
        X = prepared(batch, reader)
        Y = np.column_stack([reader.numbers(batch, name) for name in targets])
        mean = std = np.full(len(targets), np.nan)
        if estimator.__sklearn_is_fitted__():
            mean, std = estimator.predict(X, return_std=True)
        printer.show(np.ravel(mean), np.ravel(std))
        if not np.isnan(Y).all():
            estimator.partial_fit(X, Y[:, 0] if len(targets) == 1 else Y)
            n_rows += 1
            if keep_last is not None and estimator.row_numbers_.size > keep_last:
                estimator.forget(keep_last=keep_last)
        reader.first_row += 1
    return n_rows


def texts(row: Mapping[str, str | None], columns: Sequence[str]) -> Any:
    """A line as a table of one row; what it does not have is missing."""
    import pyarrow as pa

    return pa.Table.from_pydict(
        {column: [row.get(column)] for column in columns}, schema=pa.schema([(c, pa.string()) for c in columns])
    )
