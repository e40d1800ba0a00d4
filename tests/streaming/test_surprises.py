"""How surprising outputs are that come, and what follows: transforms, verdicts, units that no longer fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.network import Leaf, Sum
from spngp.noise import NoiseShape
from spngp.streaming import updating
from spngp.streaming.living import ShapeCell, Shaped
from spngp.streaming.starting import start

FIXED = {"hyperparameters": "fixed", "noise_variance": 0.04, "overlap": 0, "random_state": 0}


def series(n, seed=0, low=0.0, high=4.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("batch", [1, 3, 12])
def test_each_output_is_judged_by_the_mixture_given_the_rows_before_it(batch):
    kernels = [SquaredExponential(0.3), Matern(1.5, 2.0)]
    X, y = series(42)
    model = SPNGPRegressor(kernels, max_leaf_size=100, outliers="trust", **FIXED).fit(X[:30], y[:30])
    for first in range(30, 42, batch):
        model.partial_fit(X[first : first + batch], y[first : first + batch])
    living = model._learnt
    units, prior = living.base.units, Sum([Leaf(kernel, 0.04) for kernel in kernels])
    W, Z = units.inputs.apply(X), units.outputs.apply(y[:, np.newaxis])[:, 0]
    expected = [prior.condition(W[:i], Z[:i]).predict_dist(W[i : i + 1]).cdf(Z[i]) for i in range(30, 42)]
    (region,) = living.regions
    np.testing.assert_allclose(region.surprises[0], np.ravel(expected), rtol=1e-9)


def test_known_variances_make_outputs_less_surprising():
    X, y = series(12)
    model = SPNGPRegressor(SquaredExponential(0.5), max_leaf_size=100, outliers="trust", **FIXED).fit(X[:10], y[:10])
    model.partial_fit(X[10:], y[10:], y_variance=[0.0, 2.0])
    living = model._learnt
    units, gp = living.base.units, Leaf(SquaredExponential(0.5), 0.04)
    W, Z = units.inputs.apply(X), units.outputs.apply(y[:, np.newaxis])[:, 0]
    expected = []
    for i, known in ((10, 0.0), (11, 2.0)):
        given = gp.condition(W[:i], Z[:i]).predict_dist(W[i : i + 1], latent=True)
        expected.append(ndtr((Z[i] - given.mean[0]) / np.sqrt(given.var[0] + 0.04 + known)))
    np.testing.assert_allclose(living.regions[0].surprises[0], expected, rtol=1e-9)


def streaming():
    X, y = series(30)
    return SPNGPRegressor(SquaredExponential(0.5), max_leaf_size=100, outliers="trust", **FIXED).fit(X, y)


def test_noise_of_any_shape_says_how_surprising_an_output_is():
    model = streaming()
    living = start(model._learnt)
    shape = NoiseShape((0.7, 0.3), (0.5, 4.0))
    living = replace(living, shape=ShapeCell(Shaped((shape,), 30, 0)))
    X, y = series(3, seed=1)
    after, _ = updating.add(living, X, y[:, np.newaxis], variances=np.array([[0.0], [0.0], [0.3]]))
    units, gp = living.base.units, Leaf(SquaredExponential(0.5), 0.04)
    W, Z = after.log.W.values, after.log.Z.values[:, 0]
    for i, known, found in zip(range(30, 33), (0.0, 0.0, 0.3), after.regions[0].surprises[0], strict=True):
        given = gp.condition(W[:i], Z[:i]).predict_dist(W[i : i + 1], latent=True)
        variances = given.var[0] + known / units.outputs.scale[0] ** 2 + 0.04 * np.array(shape.factors)
        assert found == pytest.approx(np.array(shape.weights) @ ndtr((Z[i] - given.mean[0]) / np.sqrt(variances)))


def test_no_output_is_beyond_all_surprise():
    model = streaming().partial_fit([[1.0], [1.1]], [900.0, -900.0])
    np.testing.assert_allclose(model._learnt.regions[0].surprises[0], [1.0 - 1e-12, 1e-12], rtol=1e-9)
    model = streaming().partial_fit([[1.0]], [np.nan])
    assert model._learnt.regions[0].surprises[0].size == 0  # nor is one that is missing a surprise


def test_a_region_remembers_its_last_64_surprises():
    X, y = series(100, seed=1)
    before, _ = updating.add(start(streaming()._learnt), X[:40], y[:40, np.newaxis])
    after, _ = updating.add(before, X[40:], y[40:, np.newaxis])
    (first,), (last,) = (living.regions[0].surprises for living in (before, after))
    assert (first.size, last.size) == (40, 64)
    np.testing.assert_array_equal(last[:4], first[-4:])
    assert (before.regions[0].arrived, after.regions[0].arrived) == (40, 100)


def test_only_outputs_that_are_there_are_surprises():
    X, y = series(40)
    Y = np.column_stack([y, -y])
    model = SPNGPRegressor(SquaredExponential(0.5), max_leaf_size=100, outliers="trust", **FIXED).fit(X[:30], Y[:30])
    both, without = start(model._learnt), Y[30:].copy()
    without[3:6, 1] = np.nan
    full, lacking = (updating.add(both, X[30:], given)[0].regions[0].surprises for given in (Y[30:], without))
    np.testing.assert_allclose(lacking[0], full[0], rtol=1e-12)
    assert (full[1].size, lacking[1].size) == (10, 7)
    np.testing.assert_allclose(lacking[1][:3], full[1][:3], rtol=1e-12)


def test_verdicts_in_one_region_leave_those_in_another():
    """One output stays wrong; another is a step that the rows after it bear out. They lie in different regions."""
    settings = {"max_leaf_size": 40, "hyperparameters": "tied", "overlap": 0, "random_state": 0}
    X, y = series(120)
    model = SPNGPRegressor(SquaredExponential(0.5), **settings).fit(X, y)
    assert len(model.regions_) > 2
    model.partial_fit([[0.3]], [np.sin(0.6) + 4.0])
    model.partial_fit([[3.7]], [np.sin(7.4) + 4.0])
    assert model.outliers_[:, 0].tolist() == [120, 121]
    model.partial_fit(np.linspace(0.5, 0.9, 4)[:, np.newaxis], np.sin(np.linspace(1.0, 1.8, 4)))
    assert model.outliers_[:, 0].tolist() == [120, 121]
    at = np.full((8, 1), 3.7)
    for i in range(8):
        model.partial_fit(at[i : i + 1], [np.sin(7.4) + 4.0 + 0.1 * (-1) ** i])
    assert 121 not in model.outliers_[:, 0]
    assert 120 in model.outliers_[:, 0]
    at_once = SPNGPRegressor(SquaredExponential(0.5), **settings).fit(X, y)
    at_once.partial_fit(
        np.concatenate([[[0.3], [3.7]], np.linspace(0.5, 0.9, 4)[:, np.newaxis], at]),
        np.concatenate(
            [
                [np.sin(0.6) + 4.0, np.sin(7.4) + 4.0],
                np.sin(np.linspace(1.0, 1.8, 4)),
                np.sin(7.4) + 4.0 + 0.1 * (-1.0) ** np.arange(8),
            ]
        ),
    )
    assert at_once.outliers_.tolist() == model.outliers_.tolist()


@pytest.mark.filterwarnings("ignore")  # regions of few rows may leave an optimisation unfinished
@pytest.mark.parametrize(("factor", "moved"), [(1.0, False), (12.0, True)])
def test_inputs_that_spread_farther_on_both_sides_change_the_units(factor, moved):
    rng = np.random.default_rng(3)
    model = SPNGPRegressor(max_leaf_size=20, hyperparameters="tied", random_state=0)
    X = rng.standard_normal((400, 2))
    model.fit(X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(400))
    X_new = rng.standard_normal((70, 2)) * [1.0, factor]
    model.partial_fit(X_new, np.sin(X_new[:, 0]) + 0.1 * rng.standard_normal(70))
    told = [event["reason"] for event in model.events_ if event["kind"] == "model"]
    assert any("input 1 has moved" in reason for reason in told) == moved


def test_the_shape_of_the_noise_is_learnt_again_when_rows_have_grown_by_half():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (500, 1))
    noise = 0.1 * rng.standard_normal(500)
    tails = rng.random(200) < 0.15
    noise[300:] = np.where(tails, 0.6, 0.05) * rng.standard_normal(200)
    y = np.sin(2 * X[:, 0]) + noise
    settings = {"max_leaf_size": 50, "hyperparameters": "tied", "outliers": "trust", "overlap": 1, "random_state": 0}
    model = SPNGPRegressor(SquaredExponential(0.5), **settings).fit(X[:300], y[:300])
    first = model.noise_shapes_
    assert model.partial_fit(X[300:400], y[300:400]).noise_shapes_ == first
    (later,) = model.partial_fit(X[400:], y[400:]).noise_shapes_
    assert max(later.factors) > 5.0
    assert not [event for event in model.events_ if event["kind"] == "model"]


@pytest.mark.filterwarnings("ignore")  # regions of few rows may leave an optimisation unfinished
@pytest.mark.parametrize("scale", [0.01, 100.0])
@pytest.mark.parametrize(("shift", "moved"), [(0.0, False), (8.0, True)])
def test_outputs_have_moved_by_their_own_spread_in_any_units(scale, shift, moved):
    """With kernels in the units of the user outputs are not standardised: their own spread says how far they moved."""
    X, y = series(300)
    model = SPNGPRegressor(SquaredExponential(0.5, scale**2), max_leaf_size=20, hyperparameters="tied", random_state=0)
    model.fit(X, scale * y)
    X_new, y_new = series(40, seed=1)
    model.partial_fit(X_new, scale * (y_new + shift * y.std()))
    told = [event["reason"] for event in model.events_ if event["kind"] == "model"]
    assert any("output 0 has moved to" in reason for reason in told) == moved
