"""Which rows are made uncertain where a function is new, and by how much."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.streaming import ageing, updating
from spngp.streaming.conditioned import most_probable
from spngp.streaming.starting import start

AGED = 1e3 * 2.0  # times the prior variance


@cache
def learnt(**settings):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (80, 1))
    Y = np.stack([np.sin(2 * X[:, 0]), np.cos(X[:, 0])], axis=1) + 0.1 * rng.standard_normal((80, 2))
    given = {"max_leaf_size": 30, "overlap": 0, "hyperparameters": "fixed", "noise_variance": 0.01, "outliers": "trust"}
    return SPNGPRegressor(SquaredExponential(0.7, 2.0), random_state=0, **given | settings).fit(X, Y)._learnt


@pytest.fixture
def new_since(monkeypatch):
    """By region's box and output: since how many of its rows the function is new; elsewhere it is not."""
    found = {}

    def told(expert, rows):
        return found.get((int(rows.numbers[0]), expert.output))

    monkeypatch.setattr(ageing, "_new_since", told)
    return found


def test_where_no_function_is_new_nothing_happens(new_since):
    living = start(learnt())
    after, n_aged = ageing.without_the_past(living, range(len(living.regions)))
    assert after is living
    assert n_aged == 0


def test_earlier_rows_of_the_region_and_output_get_a_large_variance(new_since):
    living = start(learnt())
    region = living.regions[1]
    new_since[int(region.numbers[0]), 1] = 5
    after, n_aged = ageing.without_the_past(living, [0, 1])
    old = region.numbers[:-5]
    expected = np.zeros((80, 2))
    expected[old, 1] = AGED
    np.testing.assert_allclose(after.log.known.values, expected)
    assert n_aged == old.size
    assert after.revision != living.revision
    # evidences follow: of this region and output, and of nothing else
    for i, (one, other) in enumerate(zip(living.regions, after.regions, strict=True)):
        for before, now in zip(one.experts, other.experts, strict=True):
            changed = abs(before.log_evidence - now.log_evidence) > 1e-6
            assert changed == (i == 1 and before.output == 1)


def test_variances_that_are_known_already_are_added_to(new_since):
    given = np.linspace(0.0, 1.0, 6).reshape(3, 2)
    living, _ = updating.add(start(learnt()), np.full((3, 1), 0.1), np.zeros((3, 2)), variances=given)
    (i,) = (i for i, region in enumerate(living.regions) if 80 in region.numbers)
    region = living.regions[i]
    new_since[int(region.numbers[0]), 0] = 2
    after, n_aged = ageing.without_the_past(living, [i])
    assert n_aged == region.numbers.size - 2
    np.testing.assert_allclose(after.log.known.values[80:, 0], [given[0, 0] + AGED, given[1, 0], given[2, 0]])
    np.testing.assert_array_equal(after.log.known.values[:, 1], living.log.known.values[:, 1])


def test_rows_in_two_regions_are_aged_once(new_since):
    """Where cuts are alternatives, a row lies in several regions; the number is that of rows, not of regions."""
    living = start(learnt(n_partitions=2))
    assert not living.tiling
    for region in living.regions:
        new_since[int(region.numbers[0]), 0] = 1
    after, n_aged = ageing.without_the_past(living, range(len(living.regions)))
    last = {int(region.numbers[-1]) for region in living.regions}
    old = {int(number) for region in living.regions for number in region.numbers[:-1]}
    assert n_aged == len(old)
    assert set(np.unique(after.log.known.values[:, 0])) <= {0.0, AGED}
    assert set(np.flatnonzero(after.log.known.values[:, 0]).tolist()) == old
    assert last - old == set(np.flatnonzero(after.log.known.values[:, 0] == 0.0).tolist())


def test_two_outputs_may_change_at_different_rows(new_since):
    living = start(learnt())
    region = living.regions[0]
    first = int(region.numbers[0])
    new_since[first, 0], new_since[first, 1] = 3, 8
    after, n_aged = ageing.without_the_past(living, [0])
    assert n_aged == region.numbers.size - 3
    aged = after.log.known.values[region.numbers] > 0
    assert aged.sum(axis=0).tolist() == [region.numbers.size - 3, region.numbers.size - 8]


def test_an_output_that_no_expert_of_the_region_is_about_is_left_alone(new_since):
    living = start(learnt())
    region = replace(living.regions[0], experts=tuple(living.regions[0].of_output(1)))
    living = replace(living, regions=living.regions.with_items({0: region}))
    new_since[int(region.numbers[0]), 1] = 4
    assert most_probable(living, region, 0) is None
    ((output, since, variance),) = ageing._changes(living, 0)
    assert (output, since, variance) == (1, int(region.numbers[-4]), pytest.approx(AGED))
