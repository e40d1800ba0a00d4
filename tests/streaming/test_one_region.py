"""One region cut, learnt again or made to see less far: what it then has, and that all others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.box import Box
from spngp.estimators.updates import Relearning
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block, mean_curvature
from spngp.kernels import Matern, SquaredExponential
from spngp.learning.laplace import FreeExpert
from spngp.network.row_noise import averages
from spngp.streaming import local, updating
from spngp.streaming.conditioned import given_seen, seen_numbers
from spngp.streaming.predicting import components, routed
from spngp.streaming.regions import Cell, Margin
from spngp.streaming.rows import GrowingArray
from spngp.streaming.starting import start
from spngp.structure import Region
from spngp.structure.context import Reach, nearest, squared_distances

KERNELS = [SquaredExponential([1.0, 1.0]), Matern(1.5, [1.5, 1.5])]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2)).round(1)  # equal distances
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 1])], axis=1)
    return X, Y + 0.2 * rng.standard_normal(Y.shape)


@cache
def settled(hyperparameters="adaptive", **settings):
    """A model of 150 rows and two outputs that 40 more rows have come to, and the plan for its regions."""
    given = {"max_leaf_size": 30, "overlap": 1, "outliers": "trust", "noise_shape": "gaussian", "random_state": 0}
    model = SPNGPRegressor(KERNELS, hyperparameters=hyperparameters, **given | settings).fit(*rows(150))
    living, _ = updating.add(start(model._learnt), *rows(40, seed=1))
    return living, Relearning(model, model._request(), living).plan()


def same_elsewhere(before, after, i):
    return all(a is b for j, (a, b) in enumerate(zip(before.regions, after.regions, strict=False)) if j != i)


def nearest_by_hand(living, box, wanted):
    """The rows nearest to a box, of all that there are."""
    W = living.log.W.values
    outside = np.flatnonzero(~box.contains(W))
    chosen, reach = nearest(squared_distances(box, W[outside], living.base.scales), W[outside], wanted)
    return outside[chosen], reach


@pytest.mark.parametrize("squared", [-1.0, 1e-9, 0.01, 0.1, 1.0, np.inf])
@pytest.mark.parametrize("asked", [False, True])
def test_a_part_sees_the_nearest_rows_whatever_the_region_saw(squared, asked):
    """As many as it has own rows; ``asked``: GPs of the region know what it sees."""
    living, _ = settled()
    for region in living.regions:
        experts = tuple(replace(expert, seen=Cell()) for expert in region.experts)
        old = replace(region, reach=Reach(squared), experts=experts)
        if asked:
            given_seen(living, old, experts[1])
        for box in (old.box, old.box.cut(0, [float(np.median(living.log.W.values[old.numbers, 0]))])[0]):
            numbers = old.numbers[box.contains(living.log.W.values[old.numbers])]
            reach, count, sight = local._reach(living, box, numbers, old)
            expected, expected_reach = nearest_by_hand(living, box, numbers.size)
            assert (reach, count) == (expected_reach, expected.size)
            if sight is not None:
                assert sight.numbers.tolist() == sorted([*numbers, *expected])
                assert sight.told == living.log.n_ever


def test_context_rows_are_at_most_as_many_as_the_overlap_allows():
    living, _ = settled()
    region = living.regions[0]
    for overlap, block, expected in ((0.5, 30, round(0.5 * region.numbers.size)), (2.0, 4, 8), (0.5, 3, 1)):
        base = replace(living.base, overlap=overlap, block_size=block)
        assert local._reach(replace(living, base=base), region.box, region.numbers, region)[1] == expected
    nothing = (Reach(-1.0), 0, None)
    none = replace(living, base=replace(living.base, overlap=0.0))
    assert local._reach(none, region.box, region.numbers, region) == nothing
    assert local._reach(living, Box.EVERYWHERE, region.numbers, region) == nothing
    margin = Margin(np.array([0.1, 0.1]))
    assert local._reach(living, region.box, region.numbers, replace(region, reach=margin)) == (margin, 0, None)


@pytest.mark.parametrize(
    ("reach", "sees"),
    [(Reach(-1.0), False), (Reach(0.0), True), (Reach(0.3), True), (Reach(np.inf), True), (Margin(np.zeros(2)), True)],
)
def test_a_region_sees_beyond_its_border_if_rows_on_it_are_in_reach(reach, sees):
    assert replace(settled()[0].regions[0], reach=reach).sees_beyond == sees


def test_a_region_sees_as_much_as_a_fit_would_give_it():
    living, _ = settled()
    far = replace(living.regions[2], reach=Reach(np.inf), n_wanted=99)
    before = replace(living, regions=living.regions.with_items({2: far}))
    after = local.see_less(before, 2)
    region = after.regions[2]
    expected, reach = nearest_by_hand(living, far.box, far.numbers.size)
    assert (region.reach, region.n_wanted) == (reach, expected.size)
    assert all(expert.seen.content is None for expert in region.experts)
    assert [(e.kind, e.reason, e.box) for e in after.events] == [("reach", "it saw too much", far.box)]
    assert same_elsewhere(before, after, 2)
    np.testing.assert_array_equal(
        np.sort(seen_numbers(after, region)), np.sort(np.concatenate([far.numbers, expected]))
    )
    assert local.see_less(after, 2) is after  # nothing is left to do
    margin = replace(far, reach=Margin(np.array([9.0, 9.0])))
    before = replace(living, regions=living.regions.with_items({2: margin}))
    assert local.see_less(before, 2) is before


@pytest.mark.parametrize("hyperparameters", ["fixed", "tied"])
def test_where_regions_have_nothing_of_their_own_none_is_learnt(hyperparameters):
    living, plan = settled(hyperparameters)
    i = max(range(len(living.regions)), key=lambda i: living.regions[i].arrived)
    after = local.learn_region_again(living, i, plan, "it is due")
    region = after.regions[i]
    assert (region.n_learnt, region.arrived) == (living.regions[i].numbers.size, 0)
    assert [expert.prior for expert in region.experts] == [expert.prior for expert in living.regions[i].experts]
    assert {event.kind for event in after.events} <= {"reach"}
    assert same_elsewhere(living, after, i)


def test_a_region_that_is_learnt_again_stays_in_its_place():
    living, plan = settled()
    after = local.learn_region_again(living, 1, plan, "it is due")
    before, region = living.regions[1], after.regions[1]
    assert [(e.rows, e.kind, e.reason, e.box) for e in after.events] == [(190, "region", "it is due", before.box)]
    assert [expert.leaf for expert in region.experts] == [expert.leaf for expert in before.experts]
    assert region.numbers.tolist() == before.numbers.tolist()
    assert (region.n_learnt, region.arrived) == (before.numbers.size, 0)
    assert region.surprises is before.surprises
    assert same_elsewhere(living, after, 1)
    assert after.where == living.where


def test_a_region_is_cut_into_parts_with_its_rows():
    living, plan = settled()
    i = max(range(len(living.regions)), key=lambda i: living.regions[i].numbers.size)
    old = living.regions[i]
    plan = replace(plan, strategy=settled(max_leaf_size=15)[1].strategy)
    living = replace(living, base=replace(living.base, block_size=15))
    after = local.cut(living, i, plan)
    parts = [after.regions[i], *(after.regions[j] for j in range(len(living.regions), len(after.regions)))]
    assert len(parts) > 1
    assert sorted(number for part in parts for number in part.numbers) == old.numbers.tolist()
    for part in parts:
        assert part.box.contains(living.log.W.values[part.numbers]).all()
        assert (part.n_learnt, part.arrived) == (part.numbers.size, 0)
        assert [scores.size for scores in part.surprises] == [0, 0]
    assert same_elsewhere(living, after, i)
    (event,) = after.events
    assert (event.kind, event.reason, event.box) == ("cut", f"{old.numbers.size} rows are more than 15", old.box)
    for leaf, (j, at) in after.where.items():
        assert after.regions[j].experts[at].leaf == leaf
    assert sorted(after.where) == sorted(after.index.leaves())


@pytest.mark.parametrize("hyperparameters", ["tied", "independent"])
def test_parts_take_the_noise_that_all_regions_share(hyperparameters):
    living, plan = settled(hyperparameters)
    plan = replace(plan, strategy=settled(max_leaf_size=15)[1].strategy)
    i = max(range(len(living.regions)), key=lambda i: living.regions[i].numbers.size)
    after = local.cut(living, i, plan)
    parts = [after.regions[i], *(after.regions[j] for j in range(len(living.regions), len(after.regions)))]
    assert len(parts) > 1
    assert {expert.tied_noise for part in parts for expert in part.experts} == {hyperparameters == "tied"}


def test_what_a_region_saw_is_not_known_where_outputs_are_missing():
    """GPs of an output that is missing somewhere do not know all rows that their region sees."""
    living, _ = settled()
    lacking, _ = updating.add(living, np.zeros((1, 2)), np.array([[np.nan, 1.0]]))
    for model, is_known in ((living, True), (lacking, False)):
        region = replace(model.regions[0], reach=Reach(1e6), experts=model.regions[0].experts[:1])
        assert (local._reach(model, region.box, region.numbers, region)[2] is not None) == is_known


@pytest.mark.parametrize(
    ("hyperparameters", "missing", "looks"),
    [("adaptive", 1, True), ("adaptive", 0, False), ("adaptive", None, False), ("independent", 1, False)],
)
def test_recent_rows_are_looked_at_if_there_are_others_and_experts_adapt(hyperparameters, missing, looks, monkeypatch):
    """``missing``: so many rows of the region are not recent; None if none are said to be."""
    living, plan = settled()
    n = living.regions[0].numbers.size
    told = []

    def noted(living, old, root, plan, experts, recent):
        told.append(recent)
        return experts

    monkeypatch.setattr(local, "_better_of_recent", noted)
    recent = 0 if missing is None else n - missing
    local.learn_region_again(living, 0, replace(plan, hyperparameters=hyperparameters), "it is due", recent)
    assert told == ([n - 1] if looks else [])


def test_nothing_is_learnt_from_outputs_in_doubt(monkeypatch):
    living, plan = settled()
    number = int(living.regions[0].numbers[4])
    doubting = replace(living, doubts={(number, 1): 9.0})
    told = []
    monkeypatch.setattr(local, "learn_experts", lambda tied, W, Z, *_: told.append(Z))
    region = living.regions[0]
    local._learnt(doubting, region, Region(Box.EVERYWHERE, np.arange(region.numbers.size)), plan)
    expected = living.log.Z.values[region.numbers].copy()
    expected[4, 1] = np.nan
    np.testing.assert_array_equal(told[0], expected)


def test_rows_that_are_equal_cannot_be_cut():
    living, plan = settled()
    at = living.base.units.inputs.invert(living.log.W.values[:1])
    living, _ = updating.add(living, np.repeat(at, 40, axis=0), np.zeros((40, 2)))
    (i,) = (i for i, region in enumerate(living.regions) if 0 in region.numbers)
    equal = replace(living.regions[i], numbers=np.arange(190, 230))
    living = replace(living, regions=living.regions.with_items({i: equal}))
    after = local.cut(living, i, plan)
    (event,) = after.events
    assert (event.kind, event.reason) == ("region", "40 rows cannot be cut")


def test_rows_of_a_region_have_the_noise_of_each_of_its_experts():
    living, plan = settled()
    after = local.learn_region_again(living, 0, plan, "it is due")
    region = after.regions[0]
    experts = sorted(region.experts, key=lambda expert: (expert.output, expert.label))
    assert after.noise_kinds == tuple((expert.output, expert.label) for expert in experts)
    assert region.noise.tolist() == [expert.prior.noise_variance for expert in experts]
    assert len(set(region.noise)) == 4
    assert not np.array_equal(region.noise, living.regions[0].noise)


def test_rows_of_a_region_have_the_noise_of_its_experts_on_average_where_these_are_not_told_apart():
    living, plan = settled()
    living = replace(living, noise_kinds=averages(2))
    after = local.learn_region_again(living, 0, plan, "it is due")
    region = after.regions[0]
    weights = after.index.log_path_weights([expert.leaf for expert in region.experts], after.values)
    for k in range(2):
        parts = [np.exp(weights[e.leaf]) * e.prior.noise_variance for e in region.experts if e.output == k]
        assert len(parts) == 2
        assert region.noise[k] == pytest.approx(sum(parts))


def test_the_curvature_is_that_of_the_three_largest_regions():
    living, plan = settled()
    found = local._with_curvatures(living, plan)
    largest = sorted(living.regions, key=lambda region: -region.numbers.size)[:3]
    W, Z = living.log.W.values, living.log.Z.values
    for k, gps in enumerate(living.base.tied):
        blocks = [Block(W[r.numbers[:30]], Z[r.numbers[:30], k], None) for r in largest]
        for gp, curvature in zip(gps, found.curvatures[k], strict=True):
            np.testing.assert_allclose(curvature, mean_curvature(gp, blocks, 1), rtol=1e-8)
    assert local._with_curvatures(found, plan) is found
    assert local._with_curvatures(living, replace(plan, hyperparameters="independent")) is living


@pytest.mark.parametrize("known", [False, True])
def test_experts_of_recent_rows_are_taken_where_they_predict_these_clearly_better(known, monkeypatch):
    """By two nats, given all rows before; some of them with known variances."""
    living, plan = settled()
    old, recent = living.regions[0], 8
    variances = np.zeros((190, 2))
    if known:
        variances[old.numbers] = np.random.default_rng(0).uniform(0, 3, (old.numbers.size, 2))
        living = replace(living, log=replace(living.log, known=GrowingArray.of(variances)))
    root = Region(Box.EVERYWHERE, np.arange(old.numbers.size))
    W, Z, variances = living.log.W.values[old.numbers], living.log.Z.values[old.numbers], variances[old.numbers]
    gps = [ExactGP(SquaredExponential([0.7, 0.7]), noise) for noise in np.geomspace(0.01, 30.0, 12)]

    def score(gp, k):
        weights = gp.noise_variance / (gp.noise_variance + variances[:, k])
        every = gp.condition(W, Z[:, k], weights=weights).log_evidence
        return every - gp.condition(W[:-recent], Z[:-recent, k], weights=weights[:-recent]).log_evidence

    usual, taken = gps[-2 if known else 4], []
    told = {}

    def learnt(_, last, its_root, its_plan):
        told["numbers"], told["rows"] = last.numbers, its_root.rows
        return {("recent", k): [FreeExpert(gp, 0.0) for gp in gps] for k in range(2)}

    monkeypatch.setattr(local, "_learnt", learnt)
    of_all = {(id(root), k): [FreeExpert(usual, 0.0) for _ in gps] for k in range(2)}
    chosen = local._better_of_recent(living, old, root, plan, of_all, recent)
    assert told["numbers"].tolist() == old.numbers[-recent:].tolist()
    assert told["rows"].tolist() == list(range(recent))
    for k in range(2):
        expected = [usual if score(usual, k) + 2.0 > score(gp, k) else gp for gp in gps]
        assert [expert.gp for expert in chosen[id(root), k]] == expected
        taken += [gp is not usual for gp in expected]
    assert any(taken)
    assert not all(taken)


def test_leaves_of_no_probability_are_not_asked():
    living, _ = settled()
    expert = living.regions[0].experts[0]
    without = replace(living, values=living.index.updated(living.values, {expert.leaf: -np.inf}))
    inside = living.log.X.values[living.regions[0].numbers[:1]]
    assert [len(routed(model, inside).leaves) for model in (living, without)] == [4, 3]
    found = components(without, inside).log_weights[0, expert.output]
    assert np.exp(found[np.isfinite(found)]).tolist() == [1.0]
