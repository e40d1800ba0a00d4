"""Inputs that are not finite numbers: the error names the column, the row and the value."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine

N = 12
Y = np.sin(np.arange(N))
AGE = np.arange(N, dtype=float)
CITY = ["Wien", "Linz", "Wien", "Graz"] * 3
DAYS = [datetime.date(2024, 1, 1 + i) for i in range(N)]


def fitted_error(X, kind=ValueError) -> str:
    # committees take numbers only; regressors take tables as well (tests/estimators/test_table_inputs.py)
    with pytest.raises(kind) as caught:
        RobustBayesianCommitteeMachine(hyperparameters="fixed").fit(X, Y)
    text = str(caught.value)
    assert "\n" not in text
    return text


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_of_frames_are_named(frame):
    make = FRAMES[frame]
    holes = AGE.copy()
    holes[7] = np.nan
    missing = "X must not contain NaN or infinity, got nan in column 'age', row 7"
    assert fitted_error(make({"size": AGE, "age": holes})) == missing
    holes[7] = -np.inf
    infinite = "X must not contain NaN or infinity, got -inf in column 'age', row 7"
    assert fitted_error(make({"size": AGE, "age": holes})) == infinite
    text = "X must be numeric, got text in column 'city' (row 0: 'Wien')"
    assert fitted_error(make({"size": AGE, "city": CITY})) == text
    numerals = ["1", "2", "3", "Graz"] * 3
    assert fitted_error(make({"size": AGE, "city": numerals})).endswith("column 'city' (row 3: 'Graz')")
    dates = "X must be numeric, got dates or times in column 'day' (row 0: 2024-01-01)"
    assert fitted_error(make({"size": AGE, "day": DAYS})) == dates
    assert fitted_error(make({"day": DAYS})) == dates
    stamps = np.array(DAYS, dtype="datetime64[ms]")
    assert "got dates or times in column 'when' (row 0: 2024-01-01" in fitted_error(make({"size": AGE, "when": stamps}))
    assert "got dates or times in column 'when'" in fitted_error(make({"when": stamps}))
    assert "got dates or times in column 'lag'" in fitted_error(make({"size": AGE, "lag": stamps - stamps[0]}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.5, pd.NA] * 6, "X must not contain NaN or infinity, got <NA> in column 'c', row 1"),
        (pd.Categorical(["x", "y"] * 6), "X must be numeric, got text in column 'c' (row 0: 'x')"),
        ([None, "x"] * 6, "X must be numeric, got text in column 'c' (row 1: 'x')"),  # not "missing": text comes first
        ([None] * N, "X must not contain NaN or infinity, got None in column 'c', row 0"),
        ([1 + 2j] * N, "Complex data not supported: X must be real, got complex numbers in column 'c'"),
        (
            pd.Series([0] * 11 + [10**400], dtype=object),
            "X must fit into double precision, got an integer of 401 digits in column 'c', row 11",
        ),
        (["y" * 200] * N, f"X must be numeric, got text in column 'c' (row 0: '{'y' * 56}...)"),
        (pd.date_range("2024-01-01", periods=N, tz="UTC"), "X must be numeric, got dates or times in column 'c'"),
    ],
)
def test_columns_of_pandas_of_other_kinds(column, message):
    assert fitted_error(pd.DataFrame({"size": AGE, "c": column})).startswith(message)


def test_columns_of_arrays_are_numbered():
    X = np.column_stack([AGE, AGE])
    X[7, 1] = np.nan
    assert fitted_error(X) == "X must not contain NaN or infinity, got nan in column 1, row 7"
    assert fitted_error(X.tolist()) == "X must not contain NaN or infinity, got nan in column 1, row 7"
    mixed = np.column_stack([AGE.astype(object), np.array(CITY, dtype=object)])
    assert fitted_error(mixed) == "X must be numeric, got text in column 1 (row 0: 'Wien')"
    mixed[:, 1] = [{"a": 1}] * N
    told = fitted_error(mixed, TypeError)
    assert told.startswith("X must be numeric, got a dict in column 1, row 0: ")
    assert "argument must be a string or a real number, not 'dict'" in told
    days = np.array(DAYS, dtype="datetime64[D]")[:, np.newaxis]
    assert fitted_error(days) == "X must be numeric, got dates or times in column 0 (row 0: 2024-01-01)"


def test_committees_predict_numbers_only():
    model = RobustBayesianCommitteeMachine(hyperparameters="fixed")
    X = pd.DataFrame({"size": AGE, "age": AGE[::-1]})
    model.fit(X, Y)
    X.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match="got nan in column 'age', row 3"):
        model.predict(X)


def test_names_that_do_not_match_come_before_values():
    X = pd.DataFrame({"size": AGE})
    model = GPRegressor(hyperparameters="fixed").fit(X, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.assign(city=CITY))


def test_ordinary_frames_predict_as_before():
    X = np.column_stack([AGE, AGE**2])
    frames = [make({"a": X[:, 0], "b": X[:, 1]}) for make in FRAMES.values()]
    frames.append(pd.DataFrame({"a": X[:, 0].astype(int), "b": X[:, 1] > 3}).astype({"b": bool}))
    wanted = SPNGPRegressor(hyperparameters="fixed").fit(X, Y).predict(X)
    for frame in frames[:3]:
        assert np.array_equal(SPNGPRegressor(hyperparameters="fixed").fit(frame, Y).predict(frame), wanted)
    SPNGPRegressor(hyperparameters="fixed").fit(frames[3], Y)
