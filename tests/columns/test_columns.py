"""What columns of tables are, and the numbers they become."""

from __future__ import annotations

import datetime
import decimal
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spngp.columns import InputColumns, learn_columns
from spngp.columns.column import MISSING_LEVEL
from spngp.columns.dates import encode, parts_for
from spngp.columns.frames import as_table

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
DAYS = [datetime.date(2023, 1, 1) + datetime.timedelta(days=9 * i) for i in range(80)]
N = len(DAYS)
Y = np.arange(N, dtype=float)[:, np.newaxis]
DATA = {
    "km": [float(i % 7) for i in range(N)],
    "n": list(range(N)),
    "fast": [i % 3 == 0 for i in range(N)],
    "city": [["Graz", "Linz", "Wien"][i % 3] for i in range(N)],
    "when": DAYS,
    "lag": [datetime.timedelta(seconds=i) for i in range(N)],
    "gap": [None if i % 5 == 0 else float(i) for i in range(N)],
    "late": [None if i % 4 == 0 else ["no", "yes"][i % 2] for i in range(N)],
}


@pytest.mark.parametrize("maker", MAKERS)
def test_every_library_gives_the_same_numbers(maker):
    table = MAKERS[maker](DATA)
    columns = learn_columns(table, Y)
    kinds = ["number", "number", "boolean", "category", "date", "duration", "number", "category"]
    assert [column.kind for column in columns.columns] == kinds
    assert [column.gaps for column in columns.columns] == [False] * 6 + [True, True]
    assert columns == learn_columns(pd.DataFrame(DATA), Y)
    np.testing.assert_array_equal(columns.encode(table), columns.encode(pd.DataFrame(DATA)))
    encoded = dict(zip(columns.input_names, columns.encode(table).T, strict=True))
    np.testing.assert_array_equal(encoded["lag"], np.arange(N))
    np.testing.assert_array_equal(encoded["when"][:2], [19358.0, 19367.0])
    np.testing.assert_array_equal(encoded["gap missing"], [float(i % 5 == 0) for i in range(N)])
    assert encoded["gap"][0] == np.median([i for i in range(N) if i % 5])
    assert set(encoded["fast"]) == {0.0, 1.0}
    assert columns.level_counts == (0, 0, 0, 6, *[0] * 5, 0, 0, 2, 6)


def test_values_come_back():
    table = pd.DataFrame(DATA)
    columns = learn_columns(table, Y)
    back = columns.decode(columns.encode(table))
    assert back["city"] == DATA["city"]
    assert back["when"] == [np.datetime64(day) for day in DAYS]
    assert back["gap"][:3] == [None, 1.0, 2.0]
    assert back["fast"][:2] == [True, False]
    assert back["late"][:2] == [MISSING_LEVEL, "yes"]


def test_codes_follow_the_outputs_and_leave_room_for_unseen_levels():
    table = pd.DataFrame({"c": ["high", "low", "middle", "low", "high", "middle"]})
    (column,) = learn_columns(table, np.array([[9.0], [1.0], [5.0], [2.0], [8.0], [4.0]])).columns
    assert column.levels == ("low", "middle", "high")
    columns = InputColumns((column,))
    codes = columns.encode(pd.DataFrame({"c": ["low", "middle", "high", "new", "newer", None]}))[:, 0]
    assert codes[0] < codes[1] < codes[2]
    assert codes[3] == codes[4] == codes[5] == column.unseen
    assert column.unseen not in codes[:3]
    assert [column.level_of(code) for code in codes[:4]] == ["low", "middle", "high", None]
    assert columns.sides_text([codes[0] + 0.1], [np.inf]) == ["c in {middle, high}"]
    with pytest.raises(ValueError, match="column 'c', row 1: 'new' is none of its levels, low, middle, high"):
        InputColumns((column,), unknown="error").encode(pd.DataFrame({"c": ["low", "new"]}))


def test_one_wild_output_does_not_order_the_levels():
    table = pd.DataFrame({"c": ["a"] * 10 + ["b"] * 10})
    outputs = np.concatenate([np.arange(10.0), 10.0 + np.arange(10.0)])
    outputs[0] = 1e9
    assert learn_columns(table, outputs[:, np.newaxis]).columns[0].levels == ("a", "b")


def test_orders():
    sizes = ["S", "L", "M", "S"]
    typed = pd.DataFrame({"size": pd.Categorical(sizes, ["S", "M", "L"], ordered=True)})
    for table, declared in ((typed, None), (pd.DataFrame({"size": sizes}), {"size": ["S", "M", "L"]})):
        columns = learn_columns(table, np.zeros((4, 1)), declared)
        assert columns.encode(table)[:, 0].tolist() == [0.0, 2.0, 1.0, 0.0]
    arrow = pa.table({"size": pa.DictionaryArray.from_arrays([0, 2, 1, 0], ["S", "M", "L"], ordered=True)})
    assert learn_columns(arrow, np.zeros((4, 1))) == columns
    with pytest.raises(ValueError, match="'XL' is none of its levels"):
        columns.encode(pd.DataFrame({"size": ["XL"]}))


def test_declared_levels_and_ignored_columns():
    table = pd.DataFrame({"store": [3, 1, 3, 2], "id": [1, 2, 3, 4]})
    columns = learn_columns(table, np.arange(4.0)[:, np.newaxis], {"store": "category", "id": "ignored"})
    assert columns.names == ["store"]
    assert set(columns.columns[0].levels) == {"1", "2", "3"}
    assert columns.encode(table[["store"]]).shape == (4, 1)


def test_circles_where_the_span_allows():
    assert parts_for(np.arange(700.0)) == ("days", "week", "season")
    assert parts_for(np.arange(0.0, 30.0, 0.25)) == ("days", "time", "week")
    assert parts_for(np.arange(0.0, 700.0, 7.0)) == ("days", "season")  # always the same weekday
    assert parts_for(np.array([5.0])) == ("days",)
    days = np.array([0.0, 7.0, 3.5])
    np.testing.assert_allclose(encode(days, ["week"]), [[1, 0], [1, 0], [-1, 0]], atol=1e-12)
    parts = encode(np.array([19782.5, np.nan]), ["year", "month", "day", "weekday", "dayofyear", "hour"])
    assert parts[0].tolist() == [2024.0, 2.0, 29.0, 3.0, 60.0, 12.0]
    assert np.isnan(parts[1]).all()


def test_the_clock_on_the_wall():
    zone = pd.Series(pd.to_datetime(["2024-05-31 14:00"] * 2)).dt.tz_localize("Europe/Vienna")
    for column in (zone, zone.astype(object)):
        days = as_table(pd.DataFrame({"t": column})).column(0).numbers
        assert days[0] % 1.0 == pytest.approx(14 / 24)


def test_numbers_of_other_types():
    table = pd.DataFrame(
        {
            "a": pd.array([1, None], "Int64"),
            "b": pd.array([True, None], "boolean"),
            "c": [decimal.Decimal("1.5"), None],
            "d": [datetime.time(1, 0, 1), None],
        }
    )
    found = [as_table(table).column(j) for j in range(4)]
    assert [values.kind for values in found] == ["number", "boolean", "number", "duration"]
    np.testing.assert_array_equal([values.numbers[0] for values in found], [1.0, 1.0, 1.5, 3601.0])
    assert all(np.isnan(values.numbers[1]) for values in found)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            [1.0, "x"] * 15,
            "column 'c' mixes numbers (row 0: 1.0) and text (row 1: 'x'); make all its values of one kind",
        ),
        ([None] * 30, "column 'c' has no values; leave it out"),
        ([f"id{i}" for i in range(30)], "column 'c' has 30 levels in 30 rows: it looks like an identifier"),
        (["y" * 2000, "x"] * 15, "column 'c' holds a text of 2,000 characters, a level has at most 1,000"),
        ([np.inf] * 30, "X must not contain infinity, got inf in column 'c', row 0"),
        (
            np.array([0] * 29 + [10**400], dtype=object),
            "X must fit into double precision, got an integer of 401 digits in column 'c'",
        ),
        ([1 + 2j] * 30, "Complex data not supported"),
        (
            ["2024-01-02", "03.04.2024"] * 15,
            "column 'c' holds dates as text, '2024-01-02', '03.04.2024' in several forms; convert it, as by pandas.to_",
        ),
        (["2024-01-02 10:00"] * 30, "column 'c' holds dates as text, '2024-01-02 10:00'; convert it"),
    ],
)
def test_columns_that_cannot_be_used(column, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        learn_columns(pd.DataFrame({"c": column}), np.zeros((30, 1)))
    assert "\n" not in str(caught.value)


def test_dates_that_are_said_to_be_levels():
    texts = ["2024-01-02", "2024-01-03"] * 15
    for table, declared in (
        (pd.DataFrame({"c": texts}), {"c": "category"}),
        (pd.DataFrame({"c": pd.Categorical(texts)}), None),
    ):
        assert learn_columns(table, np.zeros((30, 1)), declared).columns[0].kind == "category"


def test_ten_thousand_levels():
    table = pd.DataFrame({"c": [f"id{i % 10_000}" for i in range(30_000)]})
    with pytest.raises(ValueError, match="column 'c' has 10,000 levels in 30,000 rows"):
        learn_columns(table, np.zeros((30_000, 1)))


def test_what_was_never_missing():
    columns = learn_columns(pd.DataFrame({"km": [1.0, 2.0], "city": ["a", "b"]}), np.zeros((2, 1)))
    encoded = columns.encode(pd.DataFrame({"km": [1.0, None], "city": ["a", None]}))
    assert np.isnan(encoded).tolist() == [[False, False], [True, False]]
    with pytest.raises(ValueError, match="X has no column 'km', which was never missing in the fit; did you mean 'kms"):
        columns.encode(pd.DataFrame({"kms": [1.0], "city": ["a"]}))
    with pytest.raises(ValueError, match="column 'km' must hold a number as in the fit, got text values"):
        columns.encode(pd.DataFrame({"km": ["one"], "city": ["a"]}))
    with pytest.raises(ValueError, match="X has 2 columns 'a'; names must differ"):
        learn_columns(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), np.zeros((1, 1)))
    with pytest.raises(ValueError, match="columns declares 'b', but X has no such column"):
        learn_columns(pd.DataFrame({"a": [1.0]}), np.zeros((1, 1)), {"b": "category"})
