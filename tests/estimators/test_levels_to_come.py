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
    X, y = rows(90, 1)
    assert rmse_by_level(model).max() > 1.0
    for start in range(0, len(y), batch):
        model.partial_fit(X[start : start + batch], y[start : start + batch])
    assert set(model.columns_.columns[0].levels) == set(LEVELS)
    assert rmse_by_level(model).max() < 0.2


def test_from_one_row_as_good_as_a_fit():
    X, y = rows(70, 2)
    model = SPNGPRegressor(random_state=0)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    at_once = SPNGPRegressor(random_state=0).fit(X, y)
    assert rmse_by_level(model).mean() < 1.2 * rmse_by_level(at_once).mean()


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


def test_saved_between_two_rows(tmp_path):
    X, y = rows(26, 4)
    model, saved = SPNGPRegressor(random_state=0), SPNGPRegressor(random_state=0)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        saved.partial_fit(X[i : i + 1], y[i : i + 1])
        if i in (0, 7, 21):
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
