"""Verdicts on outputs that came later: after any rows that come and go, those of judging all of them at once."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.learning.doubt import judge, noise_beyond_reach
from spngp.network import Leaf, Product, Sum
from spngp.streaming import doubting
from spngp.streaming.freezing import bare_network
from spngp.streaming.living import next_revision
from spngp.streaming.starting import start

KERNELS = [SquaredExponential(0.7), Matern(1.5, 1.5)]


def rows(n, seed=0, errors=()):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    Y = np.stack([np.sin(2 * X[:, 0]), np.cos(X[:, 0])], axis=1) + 0.1 * rng.standard_normal((n, 2))
    for size in errors:
        Y[rng.integers(n), rng.integers(2)] += size
    return X, Y


@cache
def fitted(**settings):
    given = {"max_leaf_size": 70, "hyperparameters": "tied", "overlap": 0.5, "noise_shape": "gaussian"} | settings
    return SPNGPRegressor(KERNELS, random_state=0, **given).fit(*rows(150, errors=[5.0]))


def judged_at_once(living):
    """Doubts of earlier rows stay; among later ones all are judged, given those out of all proportion."""
    numbers, W, Z = living.log.numbers.values, living.log.W.values, living.log.Z.values
    early, later = numbers < living.first_later, (numbers >= living.first_later)[:, np.newaxis] & ~np.isnan(Z)
    noise = np.full(Z.shape, np.nan)
    beyond = noise_beyond_reach(Z, living.base.reach)
    if beyond is not None:
        noise[~early] = beyond[~early]
    for (number, k), variance in living.doubts.items():
        if number < living.first_later:
            noise[np.flatnonzero(numbers == number)[0], k] = variance
    known = None if np.isnan(noise).all() else noise
    found = judge(bare_network(living), W, Z, known, 1, variances=living.log.known_variances_at(numbers), among=later)
    if found.own_noise is None:
        return {}
    places = np.argwhere(~np.isnan(found.own_noise))
    return {(int(numbers[i]), int(k)): pytest.approx(found.own_noise[i, k], rel=1e-6) for i, k in places}


@pytest.mark.filterwarnings("ignore")  # optimisations of few rows may stop early
@pytest.mark.parametrize(("n_partitions", "seed"), [(1, 0), (1, 1), (1, 2), (2, 2)])
def test_verdicts_are_those_of_all_rows_at_once(seed, n_partitions):
    model = copy.copy(fitted(n_partitions=n_partitions))
    rng = np.random.default_rng(seed)
    ever = set()
    for i in range(8):
        errors = rng.choice([2.0, -4.0, 50.0, 1e5], rng.integers(3)) if i < 6 else ()
        known = {"y_variance": rng.uniform(0, 0.2, (4, 2))} if i == 3 else {}
        model.partial_fit(*rows(4, seed=100 * seed + i, errors=errors), **known)
        living = model._learnt
        if not any(event.rows == living.log.n_ever for event in living.events):  # regions just cut are judged later
            assert dict(living.doubts) == judged_at_once(living)
        ever |= set(living.doubts)
        if i % 2:
            gone = rng.choice(model.row_numbers_, 3, replace=False)
            doubted = [number for number, _ in living.doubts if number >= 150][:1]
            model.forget(rows=np.unique([*gone, *doubted]))
            assert dict(model._learnt.doubts) == judged_at_once(model._learnt)
    assert {number for number, _ in ever if number < 150}
    assert {number for number, _ in ever if number >= 150}


def later_rows(first_later=100):
    """A model without doubts, whose rows from some number on came later."""
    living = start(fitted()._learnt)
    return replace(living, doubts={}, first_later=first_later, revision=next_revision())


def test_a_stream_begins_with_the_doubts_of_the_fit():
    model = fitted()
    living = start(model._learnt)
    assert [list(key) for key in living.doubts] == model.outliers_.tolist()
    assert len(living.doubts) == 1
    content = living.shape.content
    assert (content.n_rows, content.n_doubted) == (150, 1)
    assert start(replace(model._learnt, own_noise=None)).shape.content.n_doubted == 0


def test_where_outputs_may_be_in_doubt():
    living = later_rows()
    for region in living.regions:
        later = region.numbers[region.numbers >= 100]
        early = region.numbers[region.numbers < 100]
        nothing_later = replace(living, first_later=150)
        beyond = {(int(later[0]), 1): 9.0}
        assert not doubting._may_hold_doubts(nothing_later, region, beyond)
        assert doubting._may_hold_doubts(living, region, beyond)
        in_doubt = replace(living, doubts={(int(later[-1]), 0): 4.0})
        assert doubting._may_hold_doubts(in_doubt, region, {})
        elsewhere = replace(living, doubts={(int(early[0]), 0): 4.0, (151, 0): 4.0}, revision=next_revision())
        found = doubting._may_hold_doubts(elsewhere, region, {})
        assert found == any(far_off(elsewhere, region, k) for k in range(2))


def far_off(living, region, k):
    """Whether a later output is five standard deviations from what the most probable expert says, given the others."""
    weights = living.index.log_path_weights([e.leaf for e in region.of_output(k)], living.values)
    expert = max(region.of_output(k), key=lambda e: weights[e.leaf])
    W, z = living.log.W.values[region.numbers], living.log.Z.values[region.numbers, k]
    noise = [living.doubts.get((int(i), k), expert.prior.noise_variance) for i in region.numbers]
    inverse = np.linalg.inv(expert.prior.kernel.gram(W) + np.diag(noise))
    deviations = np.abs(inverse @ z) / np.sqrt(inverse.diagonal())
    return bool((deviations[region.numbers >= living.first_later] > 5.0).any())


@pytest.mark.parametrize("came_later", [False, True])
def test_an_output_far_from_what_the_others_say_is_looked_at_if_it_came_later(came_later):
    ((error, _),) = start(fitted()._learnt).doubts
    living = later_rows(error if came_later else error + 1)
    found = [doubting._may_hold_doubts(living, region, {}) for region in living.regions]
    assert found == [any(far_off(living, region, k) for k in range(2)) for region in living.regions]
    assert any(found) == came_later


def test_outputs_out_of_all_proportion_have_their_square_as_noise():
    living = later_rows()
    reach = living.base.reach
    Z = living.log.Z.values.copy()
    Z[120, 1], Z[30, 0] = 1.5 * reach[1], -2.0 * reach[0]
    log = replace(living.log, Z=type(living.log.Z).of(Z))
    living = replace(living, log=log)
    square = float(Z[120, 1] ** 2)
    assert doubting._beyond_reach(living) == {(120, 1): square}  # the other came before
    for doubts, key, expected in (
        ({(120, 1): square}, (120, 1), True),
        ({(120, 1): square + 1.0}, (120, 1), False),  # it was judged by the others of its region
        ({(121, 0): float(Z[121, 0] ** 2)}, (121, 0), False),
    ):
        assert doubting._is_beyond(replace(living, doubts=doubts), key) == expected
    infinite = replace(living, base=replace(living.base, reach=np.full(2, np.inf)))
    assert doubting._beyond_reach(infinite) == {}


def test_the_experts_of_a_region_as_a_network():
    living = later_rows()
    region = living.regions[0]
    network = doubting._prior(living, region)
    assert isinstance(network, Product)
    for k, part in enumerate(network.children):
        assert isinstance(part, Sum)
        assert [leaf.gp for leaf in part.children] == [expert.prior for expert in region.of_output(k)]
        assert {leaf.output for leaf in part.children} == {k}
        np.testing.assert_allclose(part.log_weights, np.log([0.5, 0.5]))
    one = replace(region, experts=tuple(expert for expert in region.experts if expert.label == region.experts[0].label))
    assert all(isinstance(part, Leaf) for part in doubting._prior(living, one).children)


def test_nothing_is_judged_where_outputs_are_trusted():
    living = later_rows(first_later=0)
    trusting = replace(living, base=replace(living.base, doubts_outliers=False))
    every = range(len(living.regions))
    assert doubting.judged(trusting, every) is trusting
    assert doubting.judged(living, []) is living
    (key,) = doubting.judged(living, every).doubts
    assert key in start(fitted()._learnt).doubts  # the error of the fit
