"""Levels of categories that came later: told by their codes, and no surprise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.streaming.levels import code_limits, with_new_levels
from spngp.streaming.starting import start

CITIES = np.array(["Graz", "Linz", "Wien", "Steyr"])


def rows(n, n_levels, seed=0):
    rng = np.random.default_rng(seed)
    level, km = rng.integers(0, n_levels, n), rng.uniform(-2, 2, n)
    return pd.DataFrame({"city": CITIES[level], "km": km}), level + np.sin(km) + 0.1 * rng.standard_normal(n)


@cache
def fitted():
    X, y = rows(40, 3)
    return SPNGPRegressor(random_state=0, hyperparameters="tied", outliers="trust").fit(X, y)


def test_codes_that_kernels_do_not_know_of():
    living = start(fitted()._learnt)
    known = living.log.W.values[:, 0].max()
    limit, number = code_limits(living)
    assert known < limit <= known + 2
    assert number == np.inf  # kilometres are no levels
    assert not with_new_levels(living, np.arange(40)).any()


def test_rows_with_a_level_that_came_later():
    model = fitted()
    X, y = rows(12, 4, seed=1)
    assert 0 < (X["city"] == "Steyr").sum() < 12
    living = start(model._learnt)
    codes = model.columns_.encode(X)  # what is unknown has a code of its own, between those of known levels
    codes[(X["city"] == "Steyr").to_numpy(), 0] = code_limits(living)[0]
    n = living.log.n
    W = living.base.units.inputs.apply(codes)
    log = living.log.followed_by(codes, y[:, np.newaxis], W, y[:, np.newaxis], np.zeros((12, 1)), None)
    after = replace(living, log=log)
    numbers = np.arange(n - 3, n + 12)
    expected = [False] * 3 + (X["city"] == "Steyr").tolist()
    assert with_new_levels(after, numbers).tolist() == expected


def test_numbers_have_no_levels():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    model = SPNGPRegressor(SquaredExponential(0.7), hyperparameters="fixed", random_state=0).fit(X, X[:, 0])
    living = start(model._learnt)
    assert code_limits(living) is None
    assert with_new_levels(living, np.arange(40)) is None
