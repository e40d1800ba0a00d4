"""Levels of categories that come with later rows: learnt like the first ones, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import spngp
from naive_streams import Naive
from spngp import SPNGPRegressor

LEVELS = np.array(["Graz", "Linz", "Wien", "Bregenz", "Steyr", "Wels"])
EFFECTS = np.array([0.0, 2.0, -1.0, 1.0, 4.0, -3.0])


def rows(n, seed, n_levels=6):
    rng = np.random.default_rng(seed)
    level, km = rng.integers(0, n_levels, n), rng.uniform(-2, 2, n)
    y = EFFECTS[level] + np.sin(2 * km) + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"city": LEVELS[level], "km": km}), y


def rmse_by_level(model, seed=9):
    X, y = rows(300, seed)
    squares = pd.Series((model.predict(X) - y) ** 2)
    return np.sqrt(squares.groupby(X["city"]).mean())


@pytest.mark.parametrize("batch", [1, 25])
def test_levels_that_come_later_are_learnt(batch):
    model = SPNGPRegressor(random_state=0).fit(*rows(60, 0, n_levels=3))
    X, y = rows(60, 1)
    assert rmse_by_level(model).max() > 1.0
    for start in range(0, len(y), batch):
        model.partial_fit(X[start : start + batch], y[start : start + batch])
    assert set(model.columns_.columns[0].levels) == set(LEVELS)
    assert rmse_by_level(model).max() < 0.2


@pytest.mark.long
def test_from_one_row_as_good_as_a_fit():
    X, y = rows(50, 2)
    model = SPNGPRegressor(random_state=0)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    at_once = SPNGPRegressor(random_state=0).fit(X, y)
    assert rmse_by_level(model).mean() < 1.2 * rmse_by_level(at_once).mean()


def many_levels(n, first, last, seed):
    rng = np.random.default_rng(seed)
    level, km = rng.integers(first, last, n), rng.uniform(-2, 2, n)
    y = (level * 37 % 101) / 10 + np.sin(2 * km) + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"level": [f"l{i}" for i in level], "km": km}), y


@pytest.mark.parametrize("batch", [8, pytest.param(200, marks=pytest.mark.long)])
def test_levels_new_to_many_regions(batch):
    """They are ranked with the others when everything is learnt again, seldom, and old ones are not taken for wrong."""
    settings = {"max_leaf_size": 50, "hyperparameters": "tied", "random_state": 0}
    (X, y), (X_more, y_more) = many_levels(800, 0, 20, 0), many_levels(200, 20, 40, 1)
    model = SPNGPRegressor(**settings).fit(X, y)
    for start in range(0, 200, batch):
        model.partial_fit(X_more[start : start + batch], y_more[start : start + batch])
    at_once = SPNGPRegressor(**settings).fit(pd.concat([X, X_more]), np.concatenate([y, y_more]))
    for first, last in ((0, 20), (20, 40)):
        X_test, y_test = many_levels(300, first, last, 2)
        found, expected = (np.sqrt(np.mean((m.predict(X_test) - y_test) ** 2)) for m in (model, at_once))
        assert found < 1.2 * expected + 0.02
    kinds = [event["kind"] for event in model.events_]
    assert kinds.count("model") <= 2
    assert "past" not in kinds


@pytest.mark.long
def test_codes_of_many_levels_are_no_drift():
    model = SPNGPRegressor(max_leaf_size=50, hyperparameters="tied", random_state=0).fit(*many_levels(600, 0, 20, 0))
    X, y = many_levels(160, 0, 20, 1)
    for start in range(0, 160, 8):
        model.partial_fit(X[start : start + 8], y[start : start + 8])
    assert not [event for event in model.events_ if event["kind"] == "model"]


def test_a_column_that_is_not_there_is_an_error():
    model = SPNGPRegressor(random_state=0).fit(*rows(60, 0))
    X, y = rows(3, 1)
    with pytest.raises(ValueError, match=r"X has no column 'city'.*did you mean 'City'"):
        model.partial_fit(X.rename(columns={"city": "City"}), y)


@pytest.mark.parametrize("wrong", [{"hyperparameters": "foo"}, {"max_leaf_size": -3}, {"unknown": "bogus"}])
def test_a_stream_that_begins_refuses_what_a_fit_refuses(wrong):
    X, y = rows(20, 0)
    for first in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of SPNGPRegressor must be"):
            getattr(SPNGPRegressor(**wrong), first)(X, y)


def test_it_is_exact():
    model = SPNGPRegressor(max_leaf_size=40, random_state=0).fit(*rows(90, 0, n_levels=3))
    X, y = rows(30, 1)
    for start in (0, 10, 20):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
    naive = Naive(model._learnt)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-9)
    codes = model.columns_.encode(X)
    np.testing.assert_allclose(model.predict(codes), naive.moments(codes)[0][:, 0], rtol=1e-8, atol=1e-8)


def test_known_codes_stay_and_missing_ones_are_a_level():
    model = SPNGPRegressor(random_state=0).fit(*rows(60, 0, n_levels=3))
    before, X_before = model.columns_.columns[0], model.X_train_
    X = pd.DataFrame({"city": ["Steyr", None, "Steyr", "Wels"], "km": [0.0, 0.1, 0.2, 0.3]})
    model.partial_fit(X, [4.0, 0.5, 4.3, -2.5])
    column = model.columns_.columns[0]
    assert column.levels == (*before.levels, "Steyr", "(missing)", "Wels")
    assert column.gaps
    assert column.unseen == before.unseen
    np.testing.assert_array_equal(model.X_train_[:60], X_before)
    np.testing.assert_array_equal(model.X_train_[60:, 0], [6.0, 8.0, 6.0, 10.0])
    assert model.columns_.encode(X[1:2])[0, 0] == 8.0


def test_a_failure_and_a_refusal_leave_the_model_as_it_was():
    X, y = rows(60, 0, n_levels=3)
    X_new, _ = rows(4, 3)
    X_new["city"] = "Eisenstadt"
    model = SPNGPRegressor(random_state=0).fit(X, y)
    columns, mean = model.columns_, model.predict(X)
    with pytest.raises(ValueError, match="must be finite or NaN"):
        model.partial_fit(X_new, [1.0, np.inf, 1.0, 1.0])
    with pytest.raises(ValueError, match="column 'city' holds a text of 2,000 characters"):
        model.partial_fit(X_new.assign(city="x" * 2000), np.ones(4))
    assert model.columns_ is columns
    np.testing.assert_array_equal(model.predict(X), mean)
    strict = SPNGPRegressor(random_state=0, unknown="error").fit(X, y)
    with pytest.raises(ValueError, match="column 'city', row 0: 'Eisenstadt' is none of its levels"):
        strict.partial_fit(X_new, np.ones(4))


@pytest.mark.long
def test_saved_between_two_rows(tmp_path):
    X, y = rows(14, 4)
    model, saved = SPNGPRegressor(random_state=0), SPNGPRegressor(random_state=0)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        saved.partial_fit(X[i : i + 1], y[i : i + 1])
        if i in (0, 4, 9):
            saved.save(tmp_path / "model")
            saved = spngp.load(tmp_path / "model")
    assert saved.columns_ == model.columns_
    np.testing.assert_allclose(saved.predict(X), model.predict(X), atol=1e-8)


def test_a_fit_refuses_a_single_level_and_a_stream_begins_with_one():
    X, y = rows(30, 5, n_levels=1)
    with pytest.raises(ValueError, match=r"^column 'city' has one level only, 'Graz': nothing to learn from"):
        SPNGPRegressor(random_state=0).fit(X, y)
    model = SPNGPRegressor(random_state=0).partial_fit(X, y)
    assert model.columns_.columns[0].levels == ("Graz",)
    known, other = (model.predict(pd.DataFrame({"city": [c], "km": [0.0]}), return_std=True)[1] for c in LEVELS[:2])
    assert other[0] > known[0]
