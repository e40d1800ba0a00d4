"""A GP whose noise changes with the inputs, against textbook formulas."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from spngp.gp.evidence import Evidence, evidence_of
from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP
from spngp.gp.leave_one_out import leave_one_out
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.optimisation import LeafEvidence
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum

KERNELS = {
    "compiled": SquaredExponential([1.0, 2.0]) + Matern(1.5, [0.5, 1.0], 0.3),
    "not compiled": Linear(0.5) + SquaredExponential(1.5),
}
HEIGHTS = np.array([1.2, -2.0, -0.4])
PROFILE = NoiseProfile(
    0.3, np.array([0, 1, 0]), np.array([0.2, -0.5, 1.0]), np.array([0.7, 1.0, 0.7]), HEIGHTS, least=0.3, most=2.5
)


def naive_factors(X, profile=PROFILE):
    found = []
    for x in X:
        parts = zip(profile.axes, profile.centres, profile.length_scales, profile.coefficients, strict=True)
        g = profile.constant + sum(c * np.exp(-0.5 * ((x[j] - at) / length) ** 2) for j, at, length, c in parts)
        found.append(min(max(np.exp(g), profile.least), profile.most))
    return np.array(found)


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    return rng.normal(size=(30, 2)), rng.normal(size=30)


@pytest.fixture(params=list(KERNELS))
def gp(request):
    return ExactGP(KERNELS[request.param], 0.3).with_noise_profile(PROFILE)


def test_factors_are_sums_of_bumps_with_a_floor(rows):
    factors = PROFILE.factors(rows[0])
    np.testing.assert_allclose(factors, naive_factors(rows[0]), rtol=1e-12)
    assert factors.min() == pytest.approx(0.3)
    assert factors.max() == pytest.approx(2.5)
    far = PROFILE.factors(np.array([[1e200, -1e200]]))
    assert far == pytest.approx(np.exp(0.3))


def test_evidence_is_the_density_of_the_outputs(gp, rows):
    X, y = rows
    C = gp.kernel.gram(X) + np.diag(0.3 * naive_factors(X))
    expected = multivariate_normal(np.zeros(30), C).logpdf(y)
    assert gp.condition(X, y).log_evidence == pytest.approx(expected, rel=1e-10)
    assert gp.log_evidence_with_gradient(X, y)[0] == pytest.approx(expected, rel=1e-10)
    # nothing that has a profile is taken for the same without it
    assert not gp.has_prior_of(gp.with_noise_profile(None))


@pytest.mark.parametrize("known", [None, KnownVariances(np.linspace(0.0, 0.5, 30), np.linspace(0.3, 1.0, 30))])
def test_gradient_is_that_of_central_differences(gp, rows, known):
    evidence, theta = LeafEvidence(gp, *rows, known), gp.theta
    _, gradient = evidence(theta)
    steps = 1e-5 * np.eye(theta.size)
    differences = [(evidence.value(theta + step) - evidence.value(theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)


def test_the_compiled_evidence_is_the_other_one(rows):
    kernel = KERNELS["compiled"]
    values = kernel.parameters.values
    found = evidence_of(kernel, *rows, profile=PROFILE)(values, 0.3)
    expected = Evidence(kernel, *rows, None, PROFILE)(values, 0.3)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_predictions_have_the_noise_of_their_place(gp, rows):
    X, y = rows
    posterior = gp.condition(X[:25], y[:25])
    C = gp.kernel.gram(X[:25]) + np.diag(0.3 * naive_factors(X[:25]))
    cross = gp.kernel.covariances(X[25:], X[:25])
    covariance = gp.kernel.gram(X[25:]) - cross @ np.linalg.solve(C, cross.T) + np.diag(0.3 * naive_factors(X[25:]))
    mean, variance = posterior.predict(X[25:])
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(C, y[:25]), rtol=1e-9)
    np.testing.assert_allclose(variance, np.diagonal(covariance), rtol=1e-9)
    np.testing.assert_allclose(posterior.joint(X[25:])[1], covariance, rtol=1e-8, atol=1e-10)
    leaf = Leaf.of(posterior)
    np.testing.assert_allclose(leaf.predict_dist(X[25:]).var, variance, rtol=1e-9)
    drawn = leaf.sample(X[25:], 4000, 0)
    np.testing.assert_allclose(drawn.reshape(5, -1).var(axis=1), variance, rtol=0.15)


def test_a_row_left_out_is_predicted_by_the_others(gp, rows):
    X, y = rows
    residuals, latent = leave_one_out(gp.condition(X, y), np.arange(30))
    for i in (0, 7, 29):
        others = np.delete(np.arange(30), i)
        mean, variance = gp.condition(X[others], y[others]).predict(X[[i]], latent=True)
        assert residuals[i] == pytest.approx(y[i] - mean[0], rel=1e-8)
        assert latent[i] == pytest.approx(variance[0], rel=1e-8)


def test_equal_rows_are_not_merged_and_weights_multiply(rows):
    X, y = rows
    gp = ExactGP(SquaredExponential(), 0.3).with_noise_profile(PROFILE)
    many = np.repeat(X, 70, axis=0)
    assert gp.condition(many, np.repeat(y, 70), keep_factor=False).shape_of_rows[0] == 2100
    weights = np.linspace(0.2, 1.0, 30)
    C = gp.kernel.gram(X) + np.diag(0.3 * naive_factors(X) / weights)
    expected = multivariate_normal(np.zeros(30), C).logpdf(y)
    assert gp.condition(X, y, weights=weights).log_evidence == pytest.approx(expected, rel=1e-10)


def test_a_growing_gp_freezes_to_the_same(gp, rows):
    X, y = rows
    grown = GrowingGP.of(gp, X[:20], y[:20], gp.noise_at(X[:20])).given(X[20:], y[20:], gp.noise_at(X[20:]))
    frozen = grown.frozen(np.arange(30), np.arange(0), grown.log_evidence)
    expected = gp.condition(X, y)
    assert frozen.noise_is_even
    assert frozen.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)
    np.testing.assert_allclose(frozen.predict(X + 0.1), expected.predict(X + 0.1), rtol=1e-8)


def test_context_rows_have_the_noise_of_their_own_region(rows):
    X, y = rows
    kernel = SquaredExponential(1.5)
    smooth, plain = ExactGP(kernel, 0.3).with_noise_profile(PROFILE), Leaf(kernel, 0.1)
    split = Split(0, [0.0], [Leaf.of(smooth), plain])
    posterior = Sum([split, Split(0, [0.0], [plain, Leaf.of(smooth)])]).condition(X, y, margin=[9.0, 9.0])
    weights = np.exp(posterior.log_child_weights())
    below = X[:, 0] <= 0.0
    noise = 0.3 * naive_factors(X)
    of_rows = np.where(below, weights[0] * noise + weights[1] * 0.1, weights[1] * noise + weights[0] * 0.1)
    leaf = next(item.leaf for item in posterior.responsibilities() if item.leaf.gp.noise_profile is not None)
    own = below if leaf.gp.n_own == below.sum() else ~below
    order = np.concatenate([np.flatnonzero(own), np.flatnonzero(~own)])
    expected = np.where(own, noise, of_rows)[order]
    found, outputs = leaf.gp.rows_seen
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in found]
    np.testing.assert_allclose(leaf.gp._noise_per_row(), np.where(own, noise, of_rows)[places], rtol=1e-9)
    assert expected.size == outputs.size
