"""Versions of a living model: which numbers their rows get, what they share, and what each says of its rows."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum
from spngp.network.placement import place
from spngp.network.row_noise import RowNoise, averages
from spngp.streaming import predicting, updating
from spngp.streaming.index import Index
from spngp.streaming.living import Lineage, located, tiles
from spngp.streaming.predicting import components
from spngp.streaming.starting import start

KERNELS = [SquaredExponential([1.0, 1.0]), Matern(1.5, [1.5, 1.5])]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 1])], axis=1)
    return X, Y + 0.2 * rng.standard_normal((n, 2))


@cache
def learnt(hyperparameters="fixed"):
    settings = {"max_leaf_size": 30, "overlap": 1, "noise_shape": "gaussian"}
    model = SPNGPRegressor(KERNELS, random_state=0, outliers="trust", hyperparameters=hyperparameters, **settings)
    return model.fit(*rows(90))._learnt


def test_numbers_are_given_to_one_version():
    lineage = Lineage(5)
    assert lineage.claim(5, 2)
    assert not lineage.claim(5, 1)
    assert lineage.claim(7, 1)
    assert not pickle.loads(pickle.dumps(lineage)).claim(8, 1)  # a copy goes its own way


def test_versions_that_part_have_rows_and_gps_of_their_own():
    living = start(learnt())
    (X, Y), (other_X, other_Y) = rows(4, seed=1), rows(4, seed=2)
    one, _ = updating.add(living, X, Y)
    other, _ = updating.add(living, other_X, other_Y)
    assert one.lineage is living.lineage
    assert other.lineage is not living.lineage
    for version, given in ((one, X), (other, other_X), (living, X[:0])):
        np.testing.assert_array_equal(version.log.X.values[90:], given)
        assert version.log_evidence == pytest.approx(Naive(version).total(), rel=1e-9)
    shared = {id(expert.own) for region in one.regions for expert in region.experts}
    assert not shared & {id(expert.own) for region in other.regions for expert in region.experts}
    further, _ = updating.add(other, X, Y)
    assert further.lineage is other.lineage
    assert further.log_evidence == pytest.approx(Naive(further).total(), rel=1e-9)


def test_doubts_go_with_their_rows():
    living = replace(start(learnt()), doubts={(3, 0): 2.0, (7, 1): 3.0})
    noise = living.own_noise(np.array([7, 3, 5]))
    np.testing.assert_array_equal(noise, [[np.nan, 3.0], [2.0, np.nan], [np.nan, np.nan]])
    after = updating.forget(living, np.array([3, 4]))
    assert after.doubts == {(7, 1): 3.0}
    assert after.log.n == 88
    assert after.revision != living.revision
    assert updating.forget(living, np.empty(0, dtype=int)) is living


def test_a_region_may_forget_all_its_rows():
    living = start(learnt())
    region = living.regions[0]
    after = updating.forget(living, region.numbers)
    assert after.regions[0].numbers.size == 0
    assert [expert.log_evidence for expert in after.regions[0].experts] == [0.0] * len(region.experts)
    naive = Naive(after)
    assert after.log_evidence == pytest.approx(naive.total(), rel=1e-9)
    inside = living.log.X.values[region.numbers[:3]]
    found = components(after, inside)
    mean = (np.exp(found.log_weights) * found.means).sum(axis=-1)
    np.testing.assert_allclose(mean, naive.moments(inside)[0], rtol=1e-8)


def test_a_single_row_is_asked_about_without_threads(monkeypatch):
    living, asked = start(learnt()), []

    def noted(predict, groups, _):
        asked.extend(groups)
        return [predict(group) for group in groups]

    monkeypatch.setattr(predicting, "map_leaves", noted)
    components(living, living.log.X.values[:1])
    assert asked == []
    components(living, living.log.X.values[:2])
    reached = {living.where[leaf][0] for leaf in living.index.route(living.log.W.values[:2])}
    assert sorted(asked) == [(i, k, True) for i in sorted(reached) for k in range(2)]


def test_where_leaves_are():
    living = start(learnt())
    assert located(living.regions) == living.where
    for leaf in living.where:
        region, expert = living.expert(leaf)
        assert expert.leaf == leaf
        assert region.box == living.index.entries[leaf].box


LEAVES = [Leaf(SquaredExponential()), Leaf(Matern(1.5))]


@pytest.mark.parametrize(
    ("prior", "tiling"),
    [
        (LEAVES[0], True),
        (Sum(LEAVES), True),
        (Split(0, [0.0], [Sum(LEAVES), LEAVES[0]]), True),
        (Sum([Split(0, [0.0], LEAVES), LEAVES[0]]), False),
        (Split(0, [0.0], [LEAVES[0], Sum([Split(1, [0.0], LEAVES), LEAVES[1]])]), False),
        (Product([Split(0, [0.0], LEAVES), Leaf(Matern(1.5), output=1)]), True),
    ],
)
def test_regions_tile_the_space_unless_cuts_are_alternatives(prior, tiling):
    assert tiles(Index.of(prior)) == tiling


@pytest.mark.parametrize("hyperparameters", ["fixed", "independent"])
def test_rows_have_the_noise_of_each_expert_of_their_region(hyperparameters):
    living = start(learnt(hyperparameters))
    assert len(living.noise_kinds) == 4
    for region in living.regions:
        for i, (k, label) in enumerate(living.noise_kinds):
            (expert,) = (one for one in region.of_output(k) if one.label == label)
            assert region.noise[i] == expert.prior.noise_variance
            assert (living.log.noise.values[region.numbers, i] == expert.prior.noise_variance).all()
            assert expert.tied_noise == (hyperparameters == "fixed")
    after, _ = updating.add(living, *rows(6, seed=3))
    for region in after.regions:
        new = region.numbers[region.numbers >= 90]
        np.testing.assert_array_equal(after.log.noise.values[new], np.tile(region.noise, (new.size, 1)))


def test_a_model_of_an_earlier_schema_is_updated_with_the_noise_it_was_fitted_with():
    """Up to schema 5 leaves saw other rows with the average of all experts' noise, and files did not say so."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 1.0, (600, 1))
    y = np.where(X[:, 0] > 0.5, np.sin(60.0 * X[:, 0]), X[:, 0]) + 0.02 * rng.standard_normal(600)
    kernels = [SquaredExponential(0.5), Matern(0.5)]
    model = SPNGPRegressor(kernels, max_leaf_size=150, overlap=1.0, random_state=0).fit(X, y)
    now = model._learnt
    assert len(now.noise_kinds) == 2
    before = replace(now, noise_kinds=[])
    noise = RowNoise.of(place(before.seeing), before.units.inputs.apply(now.X), None, averages(1))
    np.testing.assert_array_equal(start(before).log.noise.values, noise.local)
