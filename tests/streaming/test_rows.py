"""Rows that are remembered: arrays that grow, versions that share them, numbers and positions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.network.units import Affine, Units
from spngp.streaming.rows import GrowingArray, RowLog, are_among


def test_versions_share_memory_until_they_part():
    first = GrowingArray.of(np.arange(3.0))
    second = first.followed_by(np.array([3.0, 4.0]))
    other = first.followed_by(np.array([7.0]))  # the place is taken
    third = second.from_position(2).followed_by(np.array([5.0]))
    assert first.values.tolist() == [0.0, 1.0, 2.0]
    assert second.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert other.values.tolist() == [0.0, 1.0, 2.0, 7.0]
    assert third.values.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert np.shares_memory(first.values, second.values)
    assert np.shares_memory(second.values, third.values)
    assert not np.shares_memory(first.values, other.values)
    assert second.followed_by(np.empty(0)).values.tolist() == second.values.tolist()
    assert first.followed_by(np.empty(0)).values.tolist() == first.values.tolist()
    assert pickle.loads(pickle.dumps(third)).values.tolist() == third.values.tolist()
    with pytest.raises(ValueError, match="read-only"):
        first.values[0] = 1.0


def test_there_is_always_room():
    grown, expected = GrowingArray.of(np.empty((0, 2))), []
    for i in range(300):
        grown = grown.followed_by(np.full((1, 2), float(i)))
        expected.append([float(i)] * 2)
        if i % 50 == 49:
            grown, expected = grown.from_position(20), expected[20:]
    assert grown.values.tolist() == expected
    grown = grown.followed_by(np.ones((5000, 2)))
    assert grown.values.shape == (len(expected) + 5000, 2)
    assert grown.values[: len(expected)].tolist() == expected


def test_a_batch_of_far_more_rows_than_are_remembered():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (330, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(330)
    settings = {"max_leaf_size": 50, "hyperparameters": "fixed", "noise_variance": 0.01, "random_state": 0}
    model = SPNGPRegressor(SquaredExponential(0.5), **settings).fit(X[:20], y[:20])
    model.partial_fit(X[20:21], y[20:21]).partial_fit(X[21:], y[21:])
    assert model.row_numbers_.tolist() == list(range(330))
    np.testing.assert_array_equal(model.X_train_, X)
    assert np.sqrt(np.mean((model.predict(X) - np.sin(2 * X[:, 0])) ** 2)) < 0.05


def test_numbers_among_known_ones():
    known = np.array([2, 3, 7])
    assert are_among(np.array([0, 2, 5, 7, 9]), known).tolist() == [False, True, False, True, False]
    assert are_among(np.array([1]), np.empty(0, dtype=int)).tolist() == [False]


UNITS = Units(Affine(np.array([1.0]), np.array([2.0])), Affine(np.array([0.0, 1.0]), np.array([1.0, 10.0])))
X = np.arange(5.0)[:, np.newaxis]
Y = np.column_stack([X[:, 0], 10 * X[:, 0]])


def log(known=None):
    Y_given = Y.copy()
    Y_given[1, 0] = np.nan
    return RowLog.of(np.arange(5), X, Y_given, np.full(Y.shape, 0.1), 5, UNITS, known)


def more(of, n=2, known=None):
    X_new, Y_new = np.full((n, 1), 9.0), np.full((n, 2), 3.0)
    W, Z = UNITS.inputs.apply(X_new), UNITS.outputs.apply(Y_new)
    return of.followed_by(X_new, Y_new, W, Z, np.full(Y_new.shape, 0.2), known)


def test_rows_in_both_units_and_how_many_there_are():
    first = log()
    np.testing.assert_allclose(first.W.values[:, 0], (X[:, 0] - 1.0) / 2.0)
    np.testing.assert_allclose(first.Z.values[:, 1], (Y[:, 1] - 1.0) / 10.0)
    assert (first.n, first.n_ever, first.n_observed.tolist()) == (5, 5, [4, 5])
    second = more(first)
    assert second.numbers.values.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert (second.n, second.n_ever, second.n_observed.tolist()) == (7, 7, [6, 7])
    assert second.noise.values[:, 0].tolist() == [0.1] * 5 + [0.2] * 2
    assert (first.n, first.known, second.known) == (5, None, None)


@pytest.mark.parametrize("gone", [[0, 1], [1, 3], [4], [0, 1, 2, 3, 4], []])
def test_rows_that_are_gone(gone):
    kept = [number for number in range(5) if number not in gone]
    left = log(np.column_stack([X[:, 0], X[:, 0]])).without(np.array(gone, dtype=int))
    assert left.numbers.values.tolist() == kept
    assert left.X.values[:, 0].tolist() == kept
    assert left.known.values[:, 0].tolist() == kept
    assert left.n_observed.tolist() == [len([k for k in kept if k != 1]), len(kept)]
    assert left.n_ever == 5
    later = more(left)
    assert later.numbers.values.tolist() == [*kept, 5, 6]
    numbers = np.array([*kept, 6])
    assert later.numbers.values[later.positions(numbers)].tolist() == numbers.tolist()
    assert later.remembers(np.array([0, 1, 2, 3, 4, 5, 6, 7])).tolist() == [
        *(number in kept for number in range(5)),
        *(True, True, False),
    ]


def test_what_is_known_of_their_noise():
    assert log().known_at(np.array([0, 1])) is None
    assert log().known_variances_at(np.array([0])) is None
    given = np.zeros((5, 2))
    given[3, 1] = 0.7
    first = log(given)
    assert first.known_at(np.array([0, 2])) is None  # all are zero
    assert first.known_at(np.array([2, 3])).tolist() == [[0.0, 0.0], [0.0, 0.7]]
    assert first.known_variances_at(np.array([2, 3])).variances.tolist() == [[0.0, 0.0], [0.0, 0.7]]
    assert more(first).known.values[-2:].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    later = more(log(), known=np.full((2, 2), 0.4))  # nothing was known of the first rows
    assert later.known.values.tolist() == [[0.0, 0.0]] * 5 + [[0.4, 0.4]] * 2
