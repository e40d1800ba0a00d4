"""From a table and its outputs to the description of its columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from spngp._support.checks import shown
from spngp._support.types import Array, Indices
from spngp.columns import dates
from spngp.columns.column import MISSING_LEVEL, Column
from spngp.columns.description import InputColumns, as_levels, never_missing
from spngp.columns.frames import Table, Values, as_table

MOST_COLUMNS = 10_000  # a length-scale for each: more cannot be learnt, and take more memory than rows do
MOST_LEVELS = 5000
FEW_LEVELS = 20  # up to this number they are levels in any table; of more, rows must repeat them
_LONGEST_LEVEL = 1000  # characters; tables and plots print levels

_DATE = re.compile(r"\s*(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](\d\d){1,2})([T ]\d\d?:\d\d.*)?\s*")
_MOSTLY = 0.9  # share of texts that are dates, for the column to hold dates

IGNORED = "ignored"


def learn_columns(X: Any, Y: Array, declared: Mapping[str, Any] | None = None, unknown: str = "prior") -> InputColumns:
    """What the columns of a table are, and what missing values are replaced by.

    Parameters
    ----------
    X : table of pandas, polars or Arrow
    Y : ndarray of shape (n, p)
        Outputs; NaN where missing. They decide only in which order the levels of categories get their codes.
    declared : mapping of str to str or sequence of str, optional
        What the types of columns do not say: ``"category"`` for numbers that are levels, ``"ignored"`` for a column
        that is no input, a list of all levels in their order, or for a date the list of its parts
        (:data:`spngp.columns.dates.DATE_PARTS`).
    unknown : {"prior", "error"}
        See :class:`InputColumns`.
    """
    table = as_table(X)
    assert table is not None
    declared = {} if declared is None else declared
    absent = [name for name in declared if name not in table.names]
    if absent:
        raise ValueError(f"columns declares {absent[0]!r}, but X has no such column")
    check_names(table)
    ranks = _mean_ranks(Y)
    inputs = [
        (str(name), table.column(j), declared.get(name))
        for j, name in enumerate(table.names)
        if declared.get(name) != IGNORED
    ]
    if not inputs:
        raise ValueError("X has no input column: all of them are ignored")
    return InputColumns(tuple(learn_column(*given, ranks) for given in inputs), unknown)


def refuse_single_levels(columns: InputColumns) -> None:
    """Raise an error if a category has one level only, where no further rows are to come that may have others."""
    for column in columns.columns:
        if column.kind == "category" and len(column.levels) < 2:
            known = f"column {column.name!r} has one level only, {column.levels[0]!r}"
            raise ValueError(f"{known}: nothing to learn from; leave it out")


def with_further_levels(columns: InputColumns, X: Any) -> InputColumns:
    """The same columns, where categories also have the levels that further rows to learn from bring.

    Their codes come after the others, which stay what they are. A missing value of a category is a level as well. If
    there are :data:`MOST_LEVELS` already, further ones count as levels not seen.
    """
    table = as_table(X)
    if table is None or columns.unknown == "error" or not any(column.kind == "category" for column in columns.columns):
        return columns
    for column in columns.columns:
        if column.name not in table.names and not column.gaps:
            raise never_missing(column, table)
    grown = tuple(
        _with_levels_of(column, columns.values(column, table)) if column.kind == "category" else column
        for column in columns.columns
    )
    return columns if grown == columns.columns else replace(columns, columns=grown)


def _with_levels_of(column: Column, values: Values) -> Column:
    given = dict.fromkeys(MISSING_LEVEL if text is None else text for text in values.texts)
    known = set(column.levels)
    further = [level for level in given if level not in known][: max(0, MOST_LEVELS - len(known))]
    for level in further:
        _refuse_long(column.name, level)
    levels = (*column.levels, *further)
    return replace(column, levels=levels, gaps=column.gaps or (None in values.texts and MISSING_LEVEL in levels))


def ranked_again(columns: InputColumns, X: Array, Y: Array) -> tuple[InputColumns, Array]:
    """The columns with levels in the order that these rows of inputs and outputs give them, and rows of their codes.

    Levels that came later stand after the others until everything is learnt again.
    """
    if not any(column.kind == "category" for column in columns.columns):
        return columns, X
    X, ranks, found = X.copy(), _mean_ranks(Y), []
    for column in columns.columns:
        if column.kind == "category":
            j = columns.inputs_of(column.name).start
            known = X[:, j] % 2.0 == 0.0
            places = (X[known, j] / 2.0).astype(np.intp)
            order, unseen = _order(places, ranks[known], len(column.levels))
            X[~known, j] = unseen
            X[known, j] = 2.0 * np.argsort(order)[places]
            column = replace(column, levels=tuple(column.levels[i] for i in order), unseen=unseen)
        found.append(column)
    return replace(columns, columns=tuple(found)), X


def too_many_columns(source: str, count: int) -> ValueError:
    """The error for a table with more columns than can be learnt from."""
    return ValueError(f"{source} has {count:,} columns, {MOST_COLUMNS:,} at most can be learnt from; leave some out")


def check_names(table: Table) -> None:
    """Raise an error unless every column has a name of its own."""
    counts = Counter(map(str, table.names))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ValueError(f"X has {counts[twice[0]]} columns {twice[0]!r}; names must differ")


def learn_column(name: str, values: Values, declared: Any, ranks: Array) -> Column:
    """What one column is; ``ranks`` has the mean rank of each row's outputs."""
    missing = values.missing
    if missing.all():
        raise ValueError(f"column {name!r} has no values; leave it out")
    if values.kind == "date" and not isinstance(declared, str):
        return _date(Column(name, "date"), values, declared)
    if isinstance(declared, str) and declared not in ("category", "number"):
        allowed = "'category', 'number', 'ignored' or a list of levels"
        raise ValueError(f"column {name!r} must be declared as {allowed} in columns, got {declared!r}")
    if declared is not None and not isinstance(declared, str):
        return _ordinal(name, as_levels(values), tuple(map(str, declared)))
    if values.order and declared is None:
        return _ordinal(name, values, values.order)
    if values.kind == "text" and declared == "number":
        raise ValueError(f"column {name!r} is declared as numbers, but holds text")
    if values.kind == "text" and declared is None and not values.are_levels:
        _refuse_dates(name, values)
    if values.kind == "text" or declared == "category" or (values.kind == "boolean" and missing.any()):
        return _category(name, as_levels(values), ranks)
    fill = (float(np.nanmedian(values.numbers)),) if missing.any() else ()
    kind = "number" if declared == "number" else values.kind
    return Column(name, kind, gaps=bool(missing.any()), fill=fill)


def _date(column: Column, values: Values, parts: Sequence[str] | None) -> Column:
    known = values.numbers[~np.isnan(values.numbers)]
    unknown = [part for part in parts or () if part not in dates.DATE_PARTS]
    if unknown:
        raise ValueError(f"a date becomes {', '.join(dates.DATE_PARTS)}; got {unknown[0]!r} for column {column.name!r}")
    column = replace(column, parts=tuple(parts) if parts else dates.parts_for(known))
    gaps = known.size < values.numbers.size
    return replace(column, gaps=gaps, fill=tuple(np.median(dates.encode(known, column.parts), axis=0)) if gaps else ())


def _refuse_dates(name: str, values: Values) -> None:
    """Raise an error if texts are dates: as levels they would have no order, and new days would be unseen."""
    known = [text for text in values.texts if text is not None]
    dated = [text for text in known if _DATE.fullmatch(text)]
    if len(dated) < _MOSTLY * len(known):
        return
    forms = {re.sub(r"\d", "0", text): shown(text) for text in reversed(dated)}
    written = f"{', '.join(list(forms.values())[::-1][:3])}{' in several forms' if len(forms) > 1 else ''}"
    raise ValueError(
        f"column {name!r} holds dates as text, {written}; convert it, as by pandas.to_datetime, or declare it as "
        "'category' in columns"
    )


def _ordinal(name: str, values: Values, order: tuple[str, ...]) -> Column:
    if len(set(order)) != len(order) or len(order) < 2:
        raise ValueError(f"column {name!r} needs two or more different levels in order, got {list(order)}")
    column = Column(name, "ordinal", levels=order)
    places = column.encode(values)
    missing = np.isnan(places[:, 0])
    fill = (float(np.median(places[~missing, 0])),) if missing.any() else ()
    return replace(column, gaps=bool(missing.any()), fill=fill)


def _category(name: str, values: Values, ranks: Array) -> Column:
    texts = [MISSING_LEVEL if text is None else text for text in values.texts]
    distinct, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
    check_levels(name, [level for level in distinct if level != MISSING_LEVEL], len(texts))
    order, unseen = _order(codes, ranks, distinct.size)
    return Column(
        name,
        "category",
        levels=tuple(str(level) for level in distinct[order]),
        unseen=unseen,
        gaps=any(text is None for text in values.texts),
    )


def _order(codes: Indices, ranks: Array, count: int) -> tuple[Indices, int]:
    """Levels by the mean rank of their outputs, and the code of unseen ones, which half of the rows are below."""
    # mean ranks shrunk towards the middle, so that a level of one row is not the first or last
    sums = np.bincount(codes, np.where(np.isnan(ranks), 0.5, ranks) - 0.5, count)
    counts = np.bincount(codes, minlength=count)
    order = np.argsort(sums / (counts + 1.0), kind="stable")
    return order, 2 * int(np.searchsorted(np.cumsum(counts[order]), 0.5 * codes.size, side="left")) + 1


def check_levels(name: str, levels: Sequence[str], n_rows: int) -> None:
    """Raise an error if these are no levels of a category: too many, too long, or hardly ever repeated."""
    _refuse_long(name, max(levels, key=len, default=""))
    if len(levels) > MOST_LEVELS or is_identifier(len(levels), n_rows):
        raise ValueError(
            f"column {name!r} has {len(levels):,} levels in {n_rows:,} rows: it looks like an identifier, or like "
            "dates or numbers in text; leave it out, convert it, or join rare levels"
        )


def _refuse_long(name: str, level: str) -> None:
    if len(level) > _LONGEST_LEVEL:
        raise ValueError(
            f"column {name!r} holds a text of {len(level):,} characters, a level has at most {_LONGEST_LEVEL:,}; "
            "shorten it, or leave the column out"
        )


def is_identifier(n_levels: int, n_rows: int) -> bool:
    """Whether so many different texts are names of rows rather than levels."""
    return n_levels > max(FEW_LEVELS, n_rows // 2)


def _mean_ranks(Y: Array) -> Array:
    """For each row the mean rank of its outputs, from 0 to 1; NaN without any. Ranks, so that no outlier decides."""
    ranks = np.full(Y.shape, np.nan)
    for k in range(Y.shape[1]):
        known = ~np.isnan(Y[:, k])
        ranks[known, k] = (rankdata(Y[known, k]) - 0.5) / max(1, known.sum())
    counts = (~np.isnan(ranks)).sum(axis=1)
    return np.where(counts > 0, np.nansum(ranks, axis=1) / np.maximum(counts, 1), np.nan)
