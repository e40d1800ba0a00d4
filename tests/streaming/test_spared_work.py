"""What is not computed again: GPs that are up to date, rows that were looked at, rows left out before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.gp import growing
from spngp.gp.growing import GrowingGP
from spngp.gp.left_out import LeftOut
from spngp.kernels import Matern, SquaredExponential
from spngp.streaming import conditioned, updating
from spngp.streaming.conditioned import given_own, given_own_together, given_seen, known_to_be_seen, left_out, predicted
from spngp.streaming.living import next_revision
from spngp.streaming.regions import Cell
from spngp.streaming.starting import start
from spngp.structure.context import Reach

KERNELS = [SquaredExponential([1.0, 1.0]), Matern(1.5, [1.5, 1.5])]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n))[:, np.newaxis]


@cache
def learnt():
    settings = {"max_leaf_size": 30, "overlap": 1, "hyperparameters": "fixed", "noise_variance": 0.04}
    settings |= {"noise_shape": "gaussian", "outliers": "trust"}
    return SPNGPRegressor(KERNELS, random_state=0, **settings).fit(*rows(90))._learnt


def asked(living):
    """The model after all experts were asked, given their own rows and all that they see."""
    for region in living.regions:
        for expert in region.experts:
            given_own(living, region, expert)
            given_seen(living, region, expert)
    return living


def inside(living, i, n=1):
    """New rows in a region: next to some that it has."""
    places = living.log.positions(living.regions[i].numbers[:n])
    return living.log.X.values[places] + 1e-3, np.full((n, 1), 0.3)


@pytest.fixture
def work(monkeypatch):
    """How often each costly thing is done; rows are taken out of small GPs as of large ones."""
    monkeypatch.setattr(growing, "_REBUILT_UP_TO", 0)
    monkeypatch.setattr(growing, "_REBUILT_BEYOND", 1.0)
    done = Counter()
    for owner, name in ((GrowingGP, "of"), (LeftOut, "of"), (GrowingGP, "thawed")):
        real = getattr(owner, name)

        def counted(*given, what=f"{owner.__name__}.{name}", real=real, **named):
            done[what] += 1
            return real(*given, **named)

        monkeypatch.setattr(owner, name, staticmethod(counted))
    real_sees = Reach.sees

    def sees(self, box, W, scales):
        done["rows looked at"] += len(W)
        return real_sees(self, box, W, scales)

    monkeypatch.setattr(Reach, "sees", sees)
    return done


def assert_exact(living):
    naive = Naive(living)
    assert living.log_evidence == pytest.approx(naive.total(), rel=1e-9)


def test_who_is_asked_twice_answers_the_same(work):
    living = asked(start(learnt()))
    work.clear()
    for region in living.regions:
        for expert in region.experts:
            assert given_own(living, region, expert) is expert.own.content
            assert given_seen(living, region, expert) is expert.seen.content
    assert not work


def test_a_row_that_comes_is_appended_to_what_is_there(work):
    living = asked(start(learnt()))
    work.clear()
    after, touched = updating.add(living, *inside(living, 1))
    assert touched == {1}
    assert work["GrowingGP.of"] == 0
    assert_exact(asked(after))
    assert work["GrowingGP.of"] == 0
    assert work["rows looked at"] <= len(living.regions) * len(KERNELS)  # the one that came
    for region in after.regions:
        for expert in region.experts:
            assert (90 in expert.own.content.numbers) == (region is after.regions[1])
            assert expert.own.content.told == expert.seen.content.told == 91


def test_rows_that_go_are_taken_out_of_what_is_there(work):
    living = asked(start(learnt()))
    gone = living.regions[0].numbers[2:5]
    work.clear()
    after = asked(updating.forget(living, gone))
    assert work["GrowingGP.of"] == 0
    assert_exact(after)
    for region in after.regions:
        for expert in region.experts:
            assert not np.isin(gone, expert.own.content.numbers).any()
            assert not np.isin(gone, expert.seen.content.numbers).any()


def test_a_verdict_changes_the_noise_of_its_row_alone(work):
    living = asked(start(learnt()))
    number = int(living.regions[0].numbers[3])
    before = living.regions[0].experts[0].own.content
    work.clear()
    after = replace(living, doubts={(number, 0): 9.0}, revision=next_revision())
    content = given_own(after, after.regions[0], after.regions[0].experts[0])
    assert work["GrowingGP.of"] == 0
    assert sorted(content.numbers) == sorted(before.numbers)
    noise = dict(zip(content.numbers.tolist(), content.gp.noise.tolist(), strict=True))
    assert {i: value for i, value in noise.items() if value != 0.04} == {number: 9.0}
    taken_back = replace(after, doubts={}, revision=next_revision())
    content = given_own(taken_back, after.regions[0], after.regions[0].experts[0])
    assert set(content.gp.noise.tolist()) == {0.04}


def test_a_new_revision_that_changes_nothing_keeps_the_gp():
    living = asked(start(learnt()))
    expert = living.regions[0].experts[0]
    gp, left = expert.own.content.gp, left_out(living, living.regions[0], expert)[1]
    after = replace(living, revision=next_revision())
    assert given_own(after, after.regions[0], expert).gp is gp
    assert expert.own.content.left_out is left


def test_own_rows_are_the_beginning_of_what_a_fit_has_kept(work):
    living = start(learnt())
    assert all(expert.seen.content is not None for region in living.regions for expert in region.experts)
    for region in living.regions:
        given_own(living, region, region.experts[0])
    assert work["GrowingGP.of"] == 0
    assert work["GrowingGP.thawed"] == len(living.regions)


@pytest.mark.parametrize("together", [False, True])
def test_without_factors_every_gp_is_made_once(work, together):
    living = start(learnt())
    bare = [
        replace(region, experts=tuple(replace(e, seen=Cell()) for e in region.experts)) for region in living.regions
    ]
    for _ in range(2):
        for region in bare:
            if together:
                given_own_together(living, region, region.experts)
            else:
                [given_own(living, region, expert) for expert in region.experts]
    assert work["GrowingGP.of"] == len(living.regions) * len(KERNELS)


def test_experts_of_a_region_look_at_rows_once(work):
    living = asked(start(learnt()))
    after, _ = updating.add(living, *inside(living, 1, n=3))
    work.clear()
    for expert in after.regions[0].experts:
        given_seen(after, after.regions[0], expert)
    assert work["rows looked at"] == 3
    assert (
        known_to_be_seen(after, after.regions[0]).tolist() == after.regions[0].experts[0].seen.content.numbers.tolist()
    )
    assert work["rows looked at"] == 3


def test_what_a_region_sees_is_known_from_its_gps_or_looked_for(work):
    living = asked(start(learnt()))
    region = living.regions[0]
    work.clear()
    known = known_to_be_seen(living, region)
    assert not work
    bare = replace(region, experts=tuple(replace(expert, seen=Cell()) for expert in region.experts))
    assert sorted(known_to_be_seen(living, bare)) == sorted(known)
    assert work["rows looked at"] == 90
    gone = updating.forget(living, known[:2])
    assert sorted(known_to_be_seen(gone, region)) == sorted(known[2:])


def test_rows_left_out_are_followed_and_found_anew_when_rows_go(work):
    living = replace(start(learnt()), first_later=60)
    region, expert = living.regions[0], living.regions[0].experts[0]
    numbers, found = left_out(living, region, expert)
    content = expert.own.content
    assert numbers.tolist() == content.numbers[found.first :].tolist()
    assert set(region.numbers[region.numbers >= 60]) <= set(numbers)
    assert work["LeftOut.of"] == 1
    assert left_out(living, region, expert)[1] is found
    after, _ = updating.add(living, *inside(living, 0))
    expert = after.regions[0].experts[0]
    numbers, _ = left_out(after, after.regions[0], expert)
    assert numbers[-1] == 90
    assert work["LeftOut.of"] == 1
    gone = updating.forget(after, numbers[-1:])
    expert = gone.regions[0].experts[0]
    assert left_out(gone, gone.regions[0], expert)[1].alpha == pytest.approx(found.alpha, rel=1e-8)
    assert work["LeftOut.of"] == 2


def test_without_later_rows_none_is_left_out():
    living = start(learnt())
    region = living.regions[0]
    numbers, found = left_out(living, region, region.experts[0])
    assert numbers.size == found.alpha.size == 0


@pytest.mark.parametrize("sees", [False, True])
def test_experts_that_are_in_step_are_asked_together(sees, monkeypatch):
    sizes = []

    def noted(gps, *given):
        sizes.append(len(gps))
        return growing.given_together(gps, *given)

    monkeypatch.setattr(conditioned, "given_together", noted)
    living = asked(start(learnt()))
    predicted(living, living.regions[0], living.regions[0].experts, np.zeros((1, 2)), sees)
    assert sizes == [2]
    after, _ = updating.add(living, *inside(living, 0))
    sizes.clear()
    predicted(after, after.regions[0], after.regions[0].experts, np.zeros((1, 2)), sees)
    assert sizes == [2]


@pytest.mark.parametrize("sees", [False, True])
@pytest.mark.parametrize("state", ["not asked", "asked", "one is behind"])
def test_experts_predict_the_same_together_and_alone(sees, state):
    living = start(learnt())
    if state != "not asked":
        living = asked(living)
    if state == "one is behind":
        living, _ = updating.add(living, *inside(living, 0))
        given_seen(living, living.regions[0], living.regions[0].experts[0])
    region, at = living.regions[0], rows(5, seed=3)[0]
    means, variances = predicted(living, region, region.experts, at, sees)
    for expert, mean, variance in zip(region.experts, means, variances, strict=True):
        content = (given_seen if sees else given_own)(living, region, expert)
        expected = content.gp.predict(at)
        np.testing.assert_allclose(mean, expected[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(variance, expected[1], rtol=1e-9, atol=1e-12)
