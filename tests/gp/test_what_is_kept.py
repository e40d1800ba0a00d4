"""What a GP keeps of its rows: factors, weights, and what it says of itself."""

import numpy as np
import pytest

from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP
from spngp.gp.influence import influence
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import SquaredExponential

PRIOR = ExactGP(SquaredExponential(0.7), 0.1)
X = np.linspace(-1, 1, 6)[:, np.newaxis]
y = np.sin(3 * X[:, 0])


def test_a_factor_is_made_where_there_is_none():
    kept, without = PRIOR.condition(X, y), PRIOR.condition(X, y, keep_factor=False)
    assert (kept.has_factor, without.has_factor, PRIOR.has_factor) == (True, False, False)
    assert kept.with_factor() is kept
    assert PRIOR.with_factor() is PRIOR  # it has no rows
    again = without.with_factor()
    assert again.has_factor
    assert not without.has_factor
    np.testing.assert_allclose(again.predict(X + 0.1), kept.predict(X + 0.1), rtol=1e-12)
    np.testing.assert_allclose(without.predict(X + 0.1), kept.predict(X + 0.1), rtol=1e-12)


def test_weights_of_one_are_not_kept():
    plain = PRIOR.condition(X, y, weights=np.ones(6))
    assert plain._repeats is None
    weighted = PRIOR.condition(X, y, weights=np.array([1.0, 1.0, 0.5, 1.0, 1.0, 1.0]))
    assert weighted._repeats is not None
    assert (plain.noise_is_even, weighted.noise_is_even) == (True, False)
    assert weighted.n_counted == plain.n_counted == 6.0
    some = PRIOR.condition(X, y, known=KnownVariances(shares=np.array([0.5, 1.0, 1.0, 0.25, 1.0, 1.0])))
    assert some.n_counted == 4.75
    assert some.rows_seen_once.tolist() == plain.rows_seen_once.tolist() == [0, 1, 2, 3, 4, 5]


def test_rows_own_ones_first():
    gp = PRIOR.condition(X[:4], y[:4], X[4:], y[4:])
    assert (gp.n_own, gp.n_context, gp.shape_of_rows) == (4, 2, (6, 1))
    np.testing.assert_array_equal(gp.rows_seen[0], X)
    np.testing.assert_array_equal(gp.rows_seen[1], y)
    more = gp.condition(X[:1] - 1.0, y[:1], X[:1] - 2.0, y[:1])
    np.testing.assert_array_equal(more.rows_seen[0][:, 0], [*X[:4, 0], X[0, 0] - 1.0, *X[4:, 0], X[0, 0] - 2.0])
    assert repr(gp).endswith("noise_variance=0.1, 4 rows and 2 of context)")
    assert repr(PRIOR).endswith("noise_variance=0.1)")


@pytest.mark.parametrize("n", [1, 1024, 1025, 2500])
def test_many_rows_are_predicted_in_batches(n):
    gp = PRIOR.condition(X, y)
    at = np.random.default_rng(0).uniform(-2, 2, (n, 1))
    mean, variance = gp.predict(at)
    np.testing.assert_allclose(gp.predict_mean(at), mean, rtol=1e-12, atol=1e-14)
    for row in {0, n // 2, n - 1}:
        np.testing.assert_allclose(gp.predict(at[[row]]), (mean[[row]], variance[[row]]), rtol=1e-10)
    joint_mean, covariance = gp.joint(at[:5])
    np.testing.assert_allclose(joint_mean, mean[:5], rtol=1e-10)
    np.testing.assert_allclose(covariance.diagonal(), variance[:5], rtol=1e-10)


def test_without_rows_it_is_the_prior():
    for prior in (PRIOR, PRIOR.condition(X, y).with_theta(PRIOR.theta), PRIOR.with_kernel(SquaredExponential(0.7))):
        assert (prior.log_evidence, prior.n_own, prior._jitter) == (0.0, 0, 0.0)
        np.testing.assert_array_equal(prior.predict_mean(X), np.zeros(6))
        np.testing.assert_allclose(prior.predict(X), (np.zeros(6), np.full(6, 1.1)))


def test_rows_of_weight_one_that_follow_others_in_doubt():
    weights = np.array([0.2, 1.0, 0.5, 1.0, 1.0, 1.0])
    at_once = PRIOR.condition(X, y, weights=weights)
    in_turns = PRIOR.condition(X[:3], y[:3], weights=weights[:3]).condition(X[3:], y[3:])
    assert in_turns.n_own == 6
    assert in_turns.log_evidence == pytest.approx(at_once.log_evidence, rel=1e-10)
    np.testing.assert_allclose(in_turns.predict(X + 0.1), at_once.predict(X + 0.1), rtol=1e-10)


def test_influence_is_the_weight_of_each_output_in_a_prediction():
    gp = PRIOR.condition(X[:4], y[:4], X[4:], y[4:])
    at = np.array([[0.25]])
    found = influence(gp, at)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, y)
    assert found.weights @ y == pytest.approx(gp.predict_mean(at)[0], rel=1e-12)
    for i in range(6):
        more = y + 0.5 * (np.arange(6) == i)
        moved = PRIOR.condition(X[:4], more[:4], X[4:], more[4:]).predict_mean(at)[0]
        assert moved - gp.predict_mean(at)[0] == pytest.approx(0.5 * found.weights[i], abs=1e-12)
    assert influence(PRIOR, at).weights.size == 0


def test_a_missing_output_is_no_output():
    missing = np.where(np.arange(6) == 2, np.nan, y)
    with pytest.raises(ValueError, match="y must be finite, got nan in row 2"):
        PRIOR.condition(X, missing)
    with pytest.raises(ValueError, match="y_context must be finite, got nan in row 2"):
        PRIOR.condition(X, y, X + 3.0, missing)
    with pytest.raises(ValueError, match="y must be finite, got nan in row 2"):
        PRIOR.log_evidence_with_gradient(X, missing)


def test_a_gp_that_grows_has_no_jitter_unless_it_needs_it():
    gp = GrowingGP.of(PRIOR, X, y, np.full(6, 0.1))
    assert gp.jitter == 0.0
    more = gp.given(X + 0.05, y, np.full(6, 0.1))
    assert more.jitter == 0.0
    assert more.log_evidence == pytest.approx(
        PRIOR.condition(np.vstack([X, X + 0.05]), np.tile(y, 2)).log_evidence, rel=1e-10
    )
