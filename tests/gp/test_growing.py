"""A GP whose rows come and go is the exact GP given the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spngp.gp import growing
from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP, given_together
from spngp.gp.leave_one_out import leave_one_out, standardised_residuals
from spngp.gp.left_out import LeftOut
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.kernels.compiled_sum import FewColumns

PRIOR = ExactGP(SquaredExponential([1.0, 2.0]) + Matern(1.5, [2.0, 1.0], 0.3), 0.04)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(n), np.where(rng.uniform(size=n) < 0.1, 0.5, 0.04)


def exact(X, y, noise):
    return PRIOR.condition(X, y, weights=0.04 / noise)


def assert_same(gp, reference):
    at = rows(7, seed=9)[0]
    assert gp.log_evidence == pytest.approx(reference.log_evidence, rel=1e-10)
    for found, expected in zip(gp.predict(at), reference.predict(at, latent=True), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("n", [60, 400])
def test_rows_that_come_and_go(n):
    X, y, noise = rows(n)
    gp = GrowingGP.of(PRIOR, X[:20], y[:20], noise[:20])
    left = LeftOut.of(gp)
    for start in range(20, n, 9):
        part = slice(start, start + 9)
        gp = gp.given(X[part], y[part], noise[part])
        left = left.followed_by(gp)
    reference = exact(X, y, noise)
    assert_same(gp, reference)
    residual, latent = leave_one_out(reference, np.arange(n))
    np.testing.assert_allclose(left.alpha / left.precision, residual, atol=1e-9)
    np.testing.assert_allclose(1.0 / left.precision - noise, latent, atol=1e-9)
    gone = np.arange(3, n, 23)
    kept = np.delete(np.arange(n), gone)
    assert_same(gp.without(gone), exact(X[kept], y[kept], noise[kept]))


def test_the_innovation_is_the_deviation_from_what_came_before():
    X, y, noise = rows(30)
    gp = GrowingGP.of(PRIOR, X[:28], y[:28], noise[:28])
    mean, variance = gp.predict(X[28:29])
    both = gp.given(X[28:], y[28:], noise[28:])
    z, spread = both.z[28:], both.factor.last_diagonal(2)
    assert spread[0] ** 2 == pytest.approx(variance[0] + noise[28])
    assert z[0] * spread[0] == pytest.approx(y[28] - mean[0])


@pytest.mark.parametrize("m", [0, 1, 5])
def test_prediction_in_the_same_pass(m):
    X, y, noise = rows(90)
    gp = GrowingGP.of(PRIOR, X[:80], y[:80], noise[:80])
    new = slice(80, 80 + m)
    at = rows(4, seed=3)[0]
    both, mean, variance = gp.given_and_predicting(X[new], y[new], noise[new], at)
    expected = gp.given(X[new], y[new], noise[new])
    assert both.n == expected.n == 80 + m
    np.testing.assert_allclose((mean, variance), expected.predict(at), atol=1e-11)


@pytest.mark.parametrize("m", [0, 1, 2, 5])
@pytest.mark.parametrize("asked", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 130])
def test_few_rows_in_one_compiled_call_are_as_by_matrix_products(n, m, asked, monkeypatch):
    X, y, noise = rows(n + m)
    at = rows(asked, seed=3)[0]
    gp = GrowingGP.of(PRIOR, X[:n], y[:n], noise[:n])
    found, *moments = gp.given_and_predicting(X[n:], y[n:], noise[n:], at)
    monkeypatch.setattr(FewColumns, "takes", lambda *_: False)
    expected, *expected_moments = gp.given_and_predicting(X[n:], y[n:], noise[n:], at)
    np.testing.assert_allclose(moments, expected_moments, atol=1e-12)
    np.testing.assert_allclose(found.z, expected.z, atol=1e-12)
    np.testing.assert_allclose(found.factor.dense(), expected.factor.dense(), atol=1e-12)
    assert found.log_evidence == pytest.approx(expected.log_evidence, rel=1e-12, abs=1e-12)
    anew = GrowingGP.of(PRIOR, X, y, noise)
    assert found.log_evidence == pytest.approx(anew.log_evidence, rel=1e-12, abs=1e-12)


OTHERS = [PRIOR, ExactGP(Matern(2.5, [1.0, 1.0]), 0.1), ExactGP(SquaredExponential([0.5, 0.5]), 0.02)]


@pytest.mark.parametrize("way", ["compiled", "products"])
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_gps_of_the_same_rows_grow_together_as_they_do_alone(m, asked, way, monkeypatch):
    if way == "products":
        monkeypatch.setattr(FewColumns, "takes", lambda *_: False)
    X, y, _ = rows(70 + m)
    noise = np.array([np.linspace(0.5, 1.5, 70 + m) * prior.noise_variance for prior in OTHERS])
    gps = [GrowingGP.of(prior, X[:70], y[:70], of[:70]) for prior, of in zip(OTHERS, noise, strict=True)]
    at = rows(asked, seed=3)[0]
    together, means, variances = given_together(gps, X[70:], y[70:], noise[:, 70:].copy(), at)
    assert means.shape == variances.shape == (3, asked)
    for gp, prior, of, *moments in zip(together, OTHERS, noise, means, variances, strict=True):
        anew = GrowingGP.of(prior, X, y, of)
        assert gp.log_evidence == pytest.approx(anew.log_evidence, rel=1e-12)
        np.testing.assert_allclose(gp.factor.dense(), anew.factor.dense(), atol=1e-12)
        np.testing.assert_array_equal(gp.noise, of)
        np.testing.assert_allclose(moments, anew.predict(at), atol=1e-11)


def test_one_of_several_gps_may_have_to_be_factored_anew():
    X, y, _ = rows(10)
    priors = [ExactGP(SquaredExponential([1.0, 1.0]), 0.0), PRIOR]
    noise = [np.zeros(10), np.full(10, 0.04)]
    gps = [GrowingGP.of(prior, X, y, of) for prior, of in zip(priors, noise, strict=True)]
    after, means, variances = given_together(gps, X[:1], y[:1], np.array([[0.0], [0.04]]), X[2:3])
    assert [gp.jitter > 0.0 for gp in after] == [True, False]
    for gp, *moments in zip(after, means, variances, strict=True):
        assert gp.n == 11
        np.testing.assert_allclose(moments, gp.predict(X[2:3]), atol=1e-12)


@pytest.mark.parametrize("way", ["compiled", "products"])
def test_a_mean_that_overflows_names_the_kernel(way, monkeypatch):
    if way == "products":
        monkeypatch.setattr(FewColumns, "takes", lambda *_: False)
    X, y, noise = rows(5)
    gp = GrowingGP.of(PRIOR, X, y, noise)
    endless = replace(gp, z=np.full(5, np.inf))
    for gps in ([gp, endless], [endless]):
        with pytest.raises(ValueError, match=r"SquaredExponential.* overflows at a row of X; rescale X"):
            given_together(gps, X[:0], y[:0], np.empty((len(gps), 0)), X[:1])
    assert np.isfinite(given_together([gp, gp], X[:0], y[:0], np.empty((2, 0)), X[:1])[1]).all()


def test_the_evidence_of_many_single_rows_stays_exact():
    X, y, noise = rows(300)
    gp = GrowingGP.of(PRIOR, X[:0], y[:0], noise[:0])
    for i in range(300):
        gp = gp.given(X[i : i + 1], y[i : i + 1], noise[i : i + 1])
    assert gp.log_evidence == pytest.approx(GrowingGP.of(PRIOR, X, y, noise).log_evidence, rel=1e-12)


def test_two_versions_that_grow_from_one_stay_apart():
    X, y, noise = rows(90)
    gp = GrowingGP.of(PRIOR, X[:70], y[:70], noise[:70])
    one = gp.given(X[70:75], y[70:75], noise[70:75])
    other = gp.given(X[80:84], y[80:84], noise[80:84])
    last = one.given(X[75:78], y[75:78], noise[75:78])
    for found, chosen in ((one, np.r_[:75]), (other, np.r_[:70, 80:84]), (last, np.r_[:78])):
        assert_same(found, exact(X[chosen], y[chosen], noise[chosen]))


@pytest.mark.parametrize("compiled_call", [True, False])
def test_a_row_that_is_known_already_is_no_row_of_a_factor(compiled_call, monkeypatch):
    if not compiled_call:
        monkeypatch.setattr(FewColumns, "takes", lambda *_: False)
    prior = ExactGP(SquaredExponential([1.0, 1.0]), 0.0)
    X, y, _ = rows(10)
    gp = GrowingGP.of(prior, X, y, np.zeros(10))
    again, mean, _ = gp.given_and_predicting(X[:1], y[:1], np.zeros(1), X[2:3])
    assert gp.jitter == 0.0 < again.jitter
    assert mean[0] == pytest.approx(y[2], abs=1e-3)


def test_frozen_and_thawed():
    X, y, noise = rows(50)
    gp = GrowingGP.of(PRIOR, X, y, noise)
    own, context = np.arange(0, 50, 2), np.arange(1, 50, 2)
    evidence = exact(X[own], y[own], noise[own]).log_evidence
    frozen = gp.frozen(own, context, evidence)
    assert (frozen.n_own, frozen.n_context, frozen.log_evidence) == (25, 25, evidence)
    at = rows(5, seed=2)[0]
    np.testing.assert_allclose(frozen.predict(at, latent=True), gp.predict(at), atol=1e-10)
    thawed = GrowingGP.thawed(frozen.with_factor())
    np.testing.assert_allclose(thawed.predict(at), gp.predict(at), atol=1e-10)
    assert GrowingGP.thawed(frozen) is None


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_frozen_rows_have_the_weights_that_their_noise_says(weight):
    X, y, _ = rows(20)
    gp = GrowingGP.of(PRIOR, X, y, np.full(20, PRIOR.noise_variance / weight))
    context = {"context_weights": np.full(5, weight)}
    expected = PRIOR.condition(X[:15], y[:15], X[15:], y[15:], weights=np.full(15, weight), **context)
    frozen = gp.frozen(np.arange(15), np.arange(15, 20), expected.log_evidence).with_factor()
    np.testing.assert_allclose(frozen.predict(X + 0.1), expected.predict(X + 0.1), rtol=1e-9)
    assert (frozen._context_weights is None) == (weight == 1.0)
    more = rows(4, seed=3)[:2]  # given which the factor is made anew, by the weights of the rows before
    np.testing.assert_allclose(frozen.condition(*more).log_evidence, expected.condition(*more).log_evidence, rtol=1e-10)


def test_equal_rows_without_noise_need_jitter_and_stay_sound():
    prior = ExactGP(SquaredExponential([1.0, 1.0]), 0.0)
    X, y, _ = rows(10)
    gp = GrowingGP.of(prior, X, y, np.zeros(10))
    again = gp.given(X[:2], y[:2], np.zeros(2))
    assert again.jitter > 0
    mean, _ = again.predict(X[2:3])
    assert mean[0] == pytest.approx(y[2], abs=1e-3)
    assert again.without(np.array([0])).n == 11


@pytest.mark.parametrize("kernel", [Linear(), SquaredExponential([1.0, 2.0])])
def test_rows_that_need_jitter_may_come_when_nothing_is_asked(kernel):
    X, y, _ = rows(3)
    gp = GrowingGP.of(ExactGP(kernel, 0.0), X[[0, 0]], y[[0, 0]], np.zeros(2))
    assert gp.jitter > 0
    gp = gp.given(X[[0, 1]], y[[0, 1]], np.zeros(2))
    assert np.isfinite([gp.log_evidence, *np.ravel(gp.predict(X))]).all()
    for found in gp.predict(X[:0]):
        assert found.shape == (0,)


@pytest.mark.parametrize("count", [0, 4, 5, 8, 11])
def test_rows_are_predicted_in_batches_as_at_once(count, monkeypatch):
    gp = GrowingGP.of(PRIOR, *rows(30))
    at = rows(count, seed=4)[0]
    expected = gp.predict(at)
    monkeypatch.setattr(growing, "_ROWS_AT_ONCE", 4)
    for found, whole in zip(gp.predict(at), expected, strict=True):
        assert found.shape == (count,)
        np.testing.assert_allclose(found, whole, rtol=1e-12)


def test_standardised_residuals_are_those_of_rows_left_out():
    X, y, _ = rows(25)
    found = standardised_residuals(PRIOR, X, y, 3, np.random.default_rng(0))
    for i in range(25):
        others = np.delete(np.arange(25), i)
        mean, variance = PRIOR.condition(X[others], y[others]).predict(X[i : i + 1])
        assert found[i, 0] == pytest.approx((y[i] - mean[0]) / np.sqrt(variance[0]), rel=1e-8)
    drawn = standardised_residuals(PRIOR, X, y, 4000, np.random.default_rng(1))[:, 1:]
    np.testing.assert_allclose(drawn.std(axis=1), 1.0, atol=0.05)
