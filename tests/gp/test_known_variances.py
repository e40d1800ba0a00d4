"""What is known of rows: their variances, the shares that they count as, and both for rows that follow others."""

import numpy as np
import pytest

from spngp.gp.row_weights import KnownVariances, check_weights, joined, weights_of_both

VARIANCES = np.array([[0.1, 0.2], [0.3, 0.0], [0.5, 0.6]])
SHARES = np.array([0.5, 1.0, 0.25])


def test_of_each_output():
    assert KnownVariances.of(None, None, 2) is None
    known = KnownVariances.of(VARIANCES, SHARES, 2)
    np.testing.assert_array_equal(known.shares, [[0.5, 0.5], [1.0, 1.0], [0.25, 0.25]])
    some = known[[0, 2], 1]
    np.testing.assert_array_equal(some.variances, [0.2, 0.6])
    np.testing.assert_array_equal(some.shares, [0.5, 0.25])
    assert KnownVariances.of(VARIANCES, None, 2)[0].shares is None
    assert KnownVariances.of(None, SHARES, 2)[0].variances is None


def test_nothing_is_known_if_variances_are_zero_and_rows_whole():
    assert KnownVariances().plain() is None
    assert KnownVariances(np.zeros(3), np.ones(3)).plain() is None
    for known, variances, shares in (
        (KnownVariances(np.zeros(3), SHARES), None, SHARES),
        (KnownVariances(VARIANCES[:, 1], np.ones(3)), VARIANCES[:, 1], None),
        (KnownVariances(VARIANCES[:, 1], SHARES), VARIANCES[:, 1], SHARES),
        (KnownVariances(None, SHARES), None, SHARES),
        (KnownVariances(VARIANCES[:, 1]), VARIANCES[:, 1], None),
    ):
        found = known.plain()
        assert (found.variances is None, found.shares is None) == (variances is None, shares is None)
        if variances is not None:
            np.testing.assert_array_equal(found.variances, variances)
        if shares is not None:
            np.testing.assert_array_equal(found.shares, shares)


def test_shares_divide_variances_and_multiply_weights():
    known = KnownVariances(VARIANCES[:, 0], SHARES)
    np.testing.assert_allclose(known.per_share(), [0.2, 0.3, 2.0])
    assert KnownVariances(None, SHARES).per_share() is None
    np.testing.assert_array_equal(KnownVariances(VARIANCES[:, 0]).per_share(), VARIANCES[:, 0])
    np.testing.assert_allclose(known.times(None), SHARES)
    np.testing.assert_allclose(known.times(np.array([2.0, 3.0, 4.0])), [1.0, 3.0, 1.0])
    assert KnownVariances(VARIANCES[:, 0]).times(None) is None
    np.testing.assert_array_equal(KnownVariances().times(SHARES), SHARES)


def test_outputs_in_other_units():
    known = KnownVariances(VARIANCES[:, 0], SHARES).divided_by(2.0)
    np.testing.assert_allclose(known.variances, VARIANCES[:, 0] / 4.0)
    np.testing.assert_array_equal(known.shares, SHARES)
    assert KnownVariances(None, SHARES).divided_by(2.0).variances is None


def test_a_share_of_a_row_needs_noise():
    KnownVariances(None, SHARES).check_noise(1e-9)
    KnownVariances(VARIANCES).check_noise(0.0)
    with pytest.raises(ValueError, match="a row of fractional weight needs noise, got noise_variance=0"):
        KnownVariances(None, SHARES).check_noise(0.0)


def test_weights_of_rows_and_of_those_that_follow():
    assert weights_of_both(None, 2, None, 1) is None
    np.testing.assert_array_equal(weights_of_both(np.array([0.5, 0.7]), 2, None, 1), [0.5, 0.7, 1.0])
    np.testing.assert_array_equal(weights_of_both(None, 2, np.array([0.3]), 1), [1.0, 1.0, 0.3])
    np.testing.assert_array_equal(weights_of_both(np.array([0.5, 0.7]), 2, np.array([0.3]), 1), [0.5, 0.7, 0.3])


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [[1.0, 1.0]]])
def test_weights_are_positive_and_one_a_row(weights):
    check_weights(None, 2)
    check_weights(np.array([0.1, 3.0]), 2)
    with pytest.raises(ValueError, match="weights must be 2 positive numbers, one per row"):
        check_weights(np.array(weights), 2)


def test_variances_of_all_rows_own_ones_first():
    nothing = KnownVariances()
    own, context = KnownVariances(np.array([3.0, 4.0])), KnownVariances(np.array([5.0]))
    assert joined(None, nothing, nothing, 2, 5, 2) is None
    # own rows before, further own rows, context before, further context
    before = np.array([1.0, 2.0, 9.0])  # two own rows, one of context
    np.testing.assert_array_equal(joined(before, own, context, 2, 6, 2), [1.0, 2.0, 3.0, 4.0, 9.0, 5.0])
    np.testing.assert_array_equal(joined(before, nothing, nothing, 2, 6, 2), [1.0, 2.0, 0.0, 0.0, 9.0, 0.0])
    np.testing.assert_array_equal(joined(None, own, nothing, 2, 5, 2), [0.0, 0.0, 3.0, 4.0, 0.0])
    np.testing.assert_array_equal(joined(None, nothing, context, 2, 5, 2), [0.0, 0.0, 0.0, 0.0, 5.0])
    shared = KnownVariances(np.array([3.0, 4.0]), np.array([0.5, 1.0]))
    np.testing.assert_array_equal(joined(None, shared, nothing, 0, 2, 2), [6.0, 4.0])
