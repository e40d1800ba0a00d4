"""What is due after rows have come: each rule at its edge, what is done then, and what is announced."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp._support.versions import VersionedSequence
from spngp.box import Box
from spngp.kernels import SquaredExponential
from spngp.learning.upkeep import Event
from spngp.network.units import Affine, Units
from spngp.streaming import updating, upkeep
from spngp.streaming.living import announced
from spngp.streaming.regions import Cell
from spngp.streaming.starting import start
from spngp.streaming.upkeep import RECENT, WINDOW, Learner, look_after

OFF = "the last 16 values of output 0 lie off"


def series(n, seed=0, n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    Y = np.stack([np.sin(2 * X[:, 0]), np.cos(X[:, 0])], axis=1)[:, :n_outputs]
    return X, Y + 0.1 * rng.standard_normal(Y.shape)


@cache
def learnt(n_outputs=1):
    """A model of 60 rows, learnt before any came."""
    settings = {"max_leaf_size": 15, "overlap": 1, "hyperparameters": "fixed", "noise_variance": 0.01}
    model = SPNGPRegressor(SquaredExponential(0.7), random_state=0, noise_shape="gaussian", **settings)
    return model.fit(*series(60, n_outputs=n_outputs))._learnt


def living(block=15, n_learnt=60, arrived=0, n_regions=None, events=(), n_outputs=1, **others):
    """A model that remembers 60 rows, of which the last ``arrived`` came after it was learnt."""
    found = start(learnt(n_outputs))
    if n_regions is not None:
        found = replace(found, regions=VersionedSequence([found.regions[0]] * n_regions))
    base = replace(found.base, block_size=block)
    return replace(found, base=base, n_learnt=n_learnt, first_later=60 - arrived, events=tuple(events), **others)


def plan(hyperparameters="tied"):
    return lambda: SimpleNamespace(hyperparameters=hyperparameters, n_jobs=1)


def reason(n_came=1, hyperparameters="tied", **given):
    return upkeep._reason_for_all(living(**given), n_came, plan(hyperparameters))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # a small set, of up to two regions' worth of rows: half as many more
        ({"block": 30, "n_learnt": 60, "arrived": 29}, ""),
        ({"block": 30, "n_learnt": 60, "arrived": 30}, "30 rows have come since it was learnt from 60"),
        ({"block": 30, "n_learnt": 58, "arrived": 2}, ""),
        ({"block": 29, "n_learnt": 58, "arrived": 2}, "60 rows are too many for a small set"),
        # up to sixteen: as many more
        ({"block": 29, "n_learnt": 59, "arrived": 40}, ""),
        ({"block": 4, "n_learnt": 50, "arrived": 49}, ""),
        ({"block": 4, "n_learnt": 50, "arrived": 50}, "50 rows have come since it was learnt from 50"),
        ({"block": 4, "n_learnt": 50, "arrived": 50, "hyperparameters": "fixed"}, ""),
        ({"block": 3, "n_learnt": 47, "arrived": 47}, "47 rows have come since it was learnt from 47"),
        # a large one
        ({"block": 3, "n_learnt": 48, "arrived": 48}, ""),
        ({"block": 3, "n_learnt": 100, "arrived": 59}, ""),
        ({"block": 3, "n_learnt": 100, "arrived": 60}, "all 60 rows have come since it was learnt"),
        # four times as many regions as rows call for, which is two for each region's worth of rows
        ({"block": 3, "n_learnt": 48, "arrived": 48, "n_regions": 160}, ""),
        ({"block": 3, "n_learnt": 48, "arrived": 48, "n_regions": 161}, "161 regions are too many for 60 rows"),
        ({"block": 3, "n_learnt": 48, "arrived": 47, "n_regions": 161}, ""),
    ],
)
def test_when_everything_is_learnt_again(given, expected):
    assert reason(**given) == expected


def alarm(place, rows=60, reason=OFF):
    return Event(rows=rows, kind="region", reason=reason, box=Box(((0, float(place), place + 1.0),)))


def alarms(n, rows=60):
    return [alarm(place, rows) for place in range(n)]


@pytest.mark.parametrize(
    ("given", "n_drifted"),
    [
        ({"n_regions": 9, "events": alarms(3)}, 0),
        ({"n_regions": 9, "events": alarms(4)}, 4),
        ({"n_regions": 20, "events": alarms(4)}, 0),  # a quarter of all
        ({"n_regions": 20, "events": alarms(5)}, 5),
        ({"n_regions": 9, "events": [*alarms(3), alarm(2)]}, 0),  # one region twice
        ({"n_regions": 9, "events": [*alarms(3), alarm(3, reason="20 rows are more than 15")]}, 0),
        ({"n_regions": 9, "events": [*alarms(3, rows=40), alarm(3)]}, 0),  # before everything was learnt
        ({"n_regions": 9, "events": [*alarms(3, rows=41), alarm(3)]}, 4),
        ({"n_regions": 9, "events": alarms(4, rows=59)}, 4),
        ({"n_regions": 9, "events": alarms(4, rows=58)}, 0),  # no alarm is new
        ({"n_regions": 9, "events": alarms(4, rows=58), "n_came": 2}, 4),
        ({"n_regions": 9, "events": [*alarms(4), alarm(5, reason="20 rows have come")]}, 4),
    ],
)
def test_when_many_regions_have_drifted(given, n_drifted):
    found = reason(n_learnt=500, arrived=20, **given)
    assert found == (f"{n_drifted} of {given['n_regions']} regions have drifted" if n_drifted else "")


@pytest.mark.parametrize(
    ("arrived", "n_came", "looks"),
    [(16, 1, False), (31, 1, False), (32, 1, True), (33, 1, False), (33, 2, True), (40, 40, True), (31, 31, False)],
)
def test_units_are_looked_at_when_as_many_rows_have_come_as_a_power_of_two(arrived, n_came, looks, monkeypatch):
    monkeypatch.setattr(upkeep, "_misfit", lambda _: "they do not fit")
    assert reason(n_came, n_learnt=500, arrived=arrived) == ("they do not fit" if looks else "")


def with_later(X, Y):
    """Rows that came after the model was learnt, in standard deviations of its inputs and outputs."""
    base = living().base
    units = base.units
    at = units.inputs.invert(np.asarray(X, dtype=float).reshape(-1, 1))
    values = units.outputs.invert(np.asarray(Y, dtype=float).reshape(-1, 1) * base.output_spreads)
    return updating.add(living(), at, values)[0]


def spread(n, middle, width):
    """Values with this median, whose quartiles are those of a normal distribution with this standard deviation."""
    return middle + 1.35 * width * np.linspace(-1, 1, n)


@pytest.mark.parametrize(
    ("Y", "expected"),
    [
        (spread(33, 2.99, 1.0), ""),
        (spread(33, 3.01, 1.0), "output 0 has moved to 3 ± 1 standard deviations"),
        (spread(33, -3.01, 1.0), "output 0 has moved to -3 ± 1 standard deviations"),
        (spread(33, 0.0, 3.99), ""),
        (spread(33, 0.5, 4.01), "output 0 has moved to 0.5 ± 4 standard deviations"),
        (spread(31, 9.0, 1.0), ""),
        (spread(32, 9.0, 1.0), "output 0 has moved to 9 ± 1 standard deviations"),
        (np.append(spread(31, 9.0, 1.0), np.nan), ""),  # outputs that are missing do not count
        (np.append(spread(32, 9.0, 1.0), np.nan), "output 0 has moved to 9 ± 1 standard deviations"),
    ],
)
def test_when_outputs_no_longer_fit_their_units(Y, expected):
    assert upkeep._misfit(with_later(np.zeros(len(Y)), Y)) == expected


def with_inputs_moved(keeps_scale=False):
    """Inputs of later rows are elsewhere; only if they are learnt in the units of the user, that does not matter."""
    found = with_later(spread(40, 5.0, 1.0), np.zeros(40))
    units = SimpleNamespace(inputs=SimpleNamespace(keeps_scale=keeps_scale))
    return replace(found, base=replace(found.base, units=units))


def test_inputs_in_units_of_the_user_have_no_units_to_fit():
    assert upkeep._misfit(with_inputs_moved()) == "input 0 has moved to 5 ± 1 standard deviations"
    assert upkeep._misfit(with_inputs_moved(keeps_scale=True)) == ""


@pytest.mark.parametrize(("n", "n_new", "due"), [(40, 31, False), (40, 32, True), (300, 35, False), (300, 36, True)])
def test_when_levels_that_came_later_are_too_many(n, n_new, due, monkeypatch):
    """At least 32 rows, and a tenth of all."""
    monkeypatch.setattr(upkeep, "with_new_levels", lambda _, numbers: np.arange(numbers.size) < n_new)
    found = upkeep._misfit(with_later(np.zeros(n), np.zeros(n)))
    assert found == (f"{n_new} rows have levels that came later" if due else "")


def test_codes_of_levels_have_no_units_to_fit(monkeypatch):
    monkeypatch.setattr(upkeep, "with_new_levels", lambda _, numbers: np.zeros(numbers.size, dtype=bool))
    for limit, told in ((np.inf, True), (3.0, False)):
        monkeypatch.setattr(upkeep, "code_limits", lambda _, limit=limit: np.array([limit]))
        assert bool(upkeep._misfit(with_inputs_moved())) == told


def learnt_again(given):
    """The model after everything was learnt again, and what it was learnt from."""
    told = []

    def learn_all(*rows):
        told.extend(rows)
        return learnt()

    return look_after(given, [], 1, Learner(learn_all, plan())), told


def test_what_everything_is_learnt_from():
    given = living(block=4, n_learnt=30, arrived=30, since=7, events=[alarm(0, rows=3)])
    found, (X, Y, variances) = learnt_again(given)
    np.testing.assert_array_equal(X, given.log.X.values)
    np.testing.assert_array_equal(Y, given.log.Y.values)
    assert variances is None
    assert [(event.rows, event.kind, event.reason) for event in found.events] == [
        (3, "region", OFF),
        (60, "model", "30 rows have come since it was learnt from 30"),
    ]
    assert found.events[-1].box == Box.EVERYWHERE
    assert (found.n_learnt, found.arrived, found.since, found.log.n_ever) == (60, 0, 7, 60)


@pytest.mark.parametrize("drifted", [False, True])
def test_where_regions_have_drifted_the_past_hardly_counts_for_what_is_learnt(drifted, monkeypatch):
    asked = []
    monkeypatch.setattr(upkeep, "without_the_past", lambda living, i, _: asked.append(list(i)) or (living, 7))
    given = living(block=3, n_learnt=500, arrived=20 if drifted else 60, events=alarms(4) if drifted else ())
    found, _ = learnt_again(given)
    assert asked == ([list(range(len(given.regions)))] if drifted else [])
    told = found.events[len(given.events) :]
    assert [event.kind for event in told] == (["past", "model"] if drifted else ["model"])
    assert {event.box for event in told} == {Box.EVERYWHERE}


def test_known_variances_are_told_in_the_units_of_the_user():
    X, Y = series(2, seed=1)
    given, _ = updating.add(start(learnt()), X, Y, variances=np.array([[0.5], [0.0]]))
    units = Units(given.base.units.inputs, Affine(np.array([1.0]), np.array([3.0])))  # a standard deviation of three
    due = {"n_learnt": 30, "first_later": 31, "base": replace(given.base, block_size=4, units=units)}
    _, (_, _, variances) = learnt_again(replace(given, **due))
    np.testing.assert_allclose(variances[:, 0], [0.0] * 60 + [9 * 0.5, 0.0], rtol=1e-12)
    zero, _ = updating.add(start(learnt()), X, Y, variances=np.zeros((2, 1)))
    assert learnt_again(replace(zero, **due))[1][2] is None


def test_no_region_of_a_small_set_is_looked_after(monkeypatch):
    monkeypatch.setattr(upkeep, "_look_after_region", lambda living, i, _: replace(living, since=living.since + i))
    learner = Learner(None, plan())
    assert look_after(living(block=30, n_learnt=60), [1, 2], 1, learner).since == 0
    assert look_after(living(block=29, n_learnt=59), [1, 2], 1, learner).since == 3


@pytest.mark.parametrize(
    ("rows", "first", "since"), [([50, 45, 60], 0, 45), ([50, 45, 60], 44, 45), ([50, 45, 60], 45, 0)]
)
def test_a_drift_began_at_the_first_alarm_unless_all_rows_before_are_forgotten(rows, first, since):
    given = living(block=3, n_learnt=500, arrived=30, since=9)
    given = replace(given, log=given.log.without(np.arange(first)))
    given = replace(given, events=(alarm(0, rows=20), *(alarm(i, rows=at) for i, at in enumerate(rows))))
    assert upkeep._since(given, "4 of 9 regions have drifted") == since
    assert upkeep._since(given, "30 rows have come") == (0 if first else 9)


def test_the_oldest_of_very_many_events_are_left_out():
    given = living(events=alarms(999))
    once = replace(given, events=announced(given, "cut", "first"))
    twice = announced(once, "cut", "second")
    assert len(once.events) == len(twice) == 1000
    assert once.events[0] == alarm(0)
    assert twice[0] == alarm(1)
    assert [event.reason for event in twice[-2:]] == ["first", "second"]


# One region


@pytest.fixture
def done(monkeypatch):
    """What is done with a region, noted instead."""
    found = []

    def note(name):
        def noted(living, i, *given, **named):
            found.append((name, i, *(value for value in given if isinstance(value, str)), *named.items()))
            return living

        monkeypatch.setattr(upkeep, name, noted)

    for name in ("cut", "learn_region_again", "see_less"):
        note(name)
    return found


def with_region(n=15, n_outputs=1, **changes):
    """A model whose second region has so many rows, in place of its own, and other changes."""
    given = living(block=15, n_learnt=500, n_outputs=n_outputs)
    region = replace(given.regions[1], numbers=np.arange(n), **{"n_learnt": 15, "arrived": 0} | changes)
    return replace(given, regions=given.regions.with_items({1: region}))


def grown(n, n_learnt):
    return ("learn_region_again", 1, f"{n} rows have come since it was learnt from {n_learnt}")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n": 15, "n_learnt": 12}, []),
        ({"n": 16, "n_learnt": 15}, [("cut", 1)]),
        ({"n": 30, "n_learnt": 30, "arrived": 3}, []),  # it could not be cut
        ({"n": 30, "n_learnt": 30, "arrived": 4}, [("cut", 1)]),
        ({"n": 15, "n_learnt": 10, "arrived": 4}, []),
        ({"n": 15, "n_learnt": 10, "arrived": 5}, [grown(5, 10)]),
        ({"n": 1, "n_learnt": 0, "arrived": 0}, []),
        ({"n": 1, "n_learnt": 0, "arrived": 1}, [grown(1, 0)]),
        ({"n": 2, "n_learnt": 1, "arrived": 1}, [grown(1, 1)]),
        ({"n": 4, "n_learnt": 3, "arrived": 1}, []),
    ],
)
def test_what_is_done_with_a_region_that_grows(changes, expected, done):
    upkeep._look_after_region(with_region(**changes), 1, Learner(None, plan()))
    assert done == expected


@pytest.mark.parametrize(("n_seen", "n_wanted", "done_then"), [(25, 5, False), (26, 5, True), (26, 0, False)])
def test_a_region_sees_less_when_it_sees_twice_as_much_as_it_did(n_seen, n_wanted, done_then, done):
    given = with_region(n_wanted=n_wanted)
    (expert,) = given.regions[1].experts
    # an output that is missing more often is seen less often; one that was never asked for, not at all
    seen = [Cell(), *(Cell(SimpleNamespace(numbers=np.arange(n))) for n in (n_seen - 2, n_seen, n_seen - 1))]
    region = replace(given.regions[1], experts=tuple(replace(expert, seen=cell) for cell in seen))
    given = replace(given, regions=given.regions.with_items({1: region}))
    upkeep._look_after_region(given, 1, Learner(None, plan()))
    assert done == ([("see_less", 1)] if done_then else [])


CALM, WILD = np.linspace(0.03, 0.97, WINDOW), np.full(WINDOW, 0.999)


@pytest.mark.parametrize(
    ("surprises", "of_output"),
    [((CALM, CALM), None), ((WILD, CALM), 0), ((CALM, WILD), 1), ((WILD, 1 - WILD), 0), ((WILD[1:], WILD[1:]), None)],
)
@pytest.mark.parametrize("n_aged", [0, 3])
def test_a_region_that_drifts_is_learnt_again(surprises, of_output, n_aged, done, monkeypatch):
    """From recent rows, unless earlier ones hardly count any more."""
    monkeypatch.setattr(upkeep, "without_the_past", lambda living, *_: (living, n_aged))
    given = with_region(n_outputs=2, surprises=surprises)
    upkeep._look_after_region(given, 1, Learner(None, plan()))
    if of_output is None:
        assert done == []
        return
    ((name, i, why, recent),) = done
    assert (name, i) == ("learn_region_again", 1)
    assert why.startswith(f"the last 16 values of output {of_output} lie +")
    assert recent == ("recent", 0 if n_aged else RECENT)


def test_outputs_that_were_judged_are_not_judged_again(monkeypatch):
    for name in ("cut", "learn_region_again", "see_less"):
        monkeypatch.setattr(upkeep, name, lambda living, *_, **__: living)
    monkeypatch.setattr(upkeep, "without_the_past", lambda living, *_: (living, 0))
    given = with_region(n_outputs=2, surprises=(WILD, CALM[1:]))
    after = upkeep._look_after_region(given, 1, Learner(None, plan()))
    assert [scores.size for scores in after.regions[1].surprises] == [0, WINDOW - 1]


@pytest.mark.parametrize(
    ("regions", "n_aged", "said"),
    [
        ([1], 1, "off: 1 earlier row contradicted, which hardly count any more"),
        ([1, 2], 2, "off: 2 earlier rows contradicted, which hardly count any more"),
        ([1], 0, None),
    ],
)
def test_rows_that_hardly_count_any_more_are_announced(regions, n_aged, said, monkeypatch):
    monkeypatch.setattr(upkeep, "without_the_past", lambda living, *_: (living, n_aged))
    given = living()
    found = upkeep._without_the_past(given, regions, "off", 1)
    if said is None:
        assert found is given
        return
    (event,) = found.events
    assert (event.kind, event.rows, event.reason) == ("past", 60, said)
    assert event.box == (given.regions[1].box if len(regions) == 1 else Box.EVERYWHERE)
