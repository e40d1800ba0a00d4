"""A stream that goes on from a fit: one that kept no factors, and one whose equal rows differ in what is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.streaming.freezing import freeze
from spngp.streaming.starting import start

KERNELS = [SquaredExponential([1.0, 1.0]), Matern(1.5, [1.5, 1.5])]
SETTINGS = {"max_leaf_size": 30, "overlap": 1, "noise_shape": "gaussian", "random_state": 0}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


def assert_exact(model, X):
    naive = Naive(model._learnt)
    assert model.log_evidence_ == pytest.approx(naive.total(), rel=1e-9)
    np.testing.assert_allclose(model.predict(X), naive.moments(X)[0][:, 0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_more", [1, 7])
@pytest.mark.parametrize("asked_before", [False, True])
def test_from_a_fit_without_room_for_factors(n_more, asked_before):
    X, y = rows(90 + n_more)
    models = []
    for limit in (None, 4e-4):
        model = SPNGPRegressor(KERNELS, memory_limit=limit, **SETTINGS).fit(X[:90], y[:90])
        if asked_before:
            model.predict(X[:5], return_std=True)
        models.append(model.partial_fit(X[90:], y[90:]))
    assert_exact(models[1], X[:20] + 0.05)
    with_room, without = (model.predict(X + 0.01, return_std=True) for model in models)
    np.testing.assert_allclose(without, with_room, rtol=1e-8)


@pytest.mark.parametrize("hyperparameters", ["fixed", "tied"])
def test_equal_rows_whose_known_variances_differ(hyperparameters):
    X, y = rows(60)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    variances = np.where(np.arange(120) % 2, 0.0, np.random.default_rng(1).uniform(0.1, 2.0, 120))
    order = np.random.default_rng(2).permutation(120)
    settings = {**SETTINGS, "hyperparameters": hyperparameters}
    model = SPNGPRegressor(KERNELS, **settings).fit(X[order], y[order], y_variance=variances[order])
    model.partial_fit(X[:3] + 0.02, y[:3])
    assert_exact(model, X[:20] + 0.05)
    gone = np.sort(np.random.default_rng(3).choice(120, 40, replace=False))
    model.forget(rows=gone)
    assert_exact(model, X[:20] + 0.05)


@pytest.mark.parametrize(("overlap", "sees"), [(0, False), (1, True)])
def test_what_regions_of_a_fit_have(overlap, sees):
    X, y = rows(90)
    model = SPNGPRegressor(KERNELS, **SETTINGS | {"overlap": overlap, "hyperparameters": "fixed"}).fit(X, y)
    living = start(model._learnt)
    assert (living.arrived, living.n_learnt, living.since, living.events) == (0, 90, 0, ())
    assert living.base.X.size == living.base.Y.size == 0  # rows are in the log alone
    assert sorted(number for region in living.regions for number in region.numbers) == list(range(90))
    assert [leaf for region in living.regions for leaf in (e.leaf for e in region.experts)] == list(living.where)
    for region in living.regions:
        assert (region.n_learnt, region.arrived) == (region.numbers.size, 0)
        assert region.sees_beyond == sees
        seen = region.reach.sees(region.box, living.log.W.values, living.base.scales)
        assert region.n_wanted == seen.size - region.numbers.size == (region.numbers.size if sees else 0)
        assert [scores.size for scores in region.surprises] == [0]


def test_a_model_that_is_frozen_goes_on_where_it_was():
    X, y = rows(130)
    y_variance = np.linspace(0.0, 0.3, 25)
    model = SPNGPRegressor(KERNELS, **SETTINGS).fit(X[:90], y[:90])
    model.partial_fit(X[90:105], y[90:105]).partial_fit(X[105:], y[105:], y_variance=y_variance).forget(rows=[3, 95])
    before = model._learnt
    frozen = freeze(before)
    after = start(frozen)
    for name in ("first_later", "n_learnt", "arrived", "since", "log_prior", "tiling", "tied_noise", "doubts"):
        assert getattr(after, name) == getattr(before, name)
    assert after.first_later == 90
    assert after.events == before.events
    assert after.log_evidence == pytest.approx(before.log_evidence, rel=1e-10)
    for name in ("numbers", "X", "Y", "W", "Z", "noise", "known"):
        np.testing.assert_allclose(getattr(after.log, name).values, getattr(before.log, name).values, rtol=1e-12)
    assert after.log.n_ever == before.log.n_ever == 130
    for one, other in zip(after.regions, before.regions, strict=True):
        assert (one.box, one.reach) == (other.box, other.reach)
        assert (one.n_learnt, one.arrived, one.n_wanted) == (other.n_learnt, other.arrived, other.n_wanted)
        np.testing.assert_array_equal(one.numbers, other.numbers)
        np.testing.assert_array_equal(one.noise, other.noise)
        np.testing.assert_array_equal(one.surprises[0], other.surprises[0])
        for a, b in zip(one.experts, other.experts, strict=True):
            assert (a.output, a.label, a.tied_noise) == (b.output, b.label, b.tied_noise)
            assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-10)
    assert frozen.n_fitted == 89
    assert start(replace(frozen, n_fitted=128)).first_later == 130  # if no row that is left came later
