"""One exact GP: against scikit-learn, against the naive reference, and at the edges."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs

import reference
from spngp._linalg.square import NotPositiveDefiniteError
from spngp.gp.evidence import evidence_of
from spngp.gp.exact import ExactGP
from spngp.kernels import (
    Constant,
    Linear,
    Matern,
    Parameter,
    Periodic,
    PiecewiseConstant,
    Polynomial,
    RandomSlopes,
    RationalQuadratic,
    SquaredExponential,
)

pytestmark = pytest.mark.usefixtures("formulas")

NOISE = 0.15


def log_evidence_with_gradient(kernel, noise_variance, X, y):
    return ExactGP(kernel, noise_variance).log_evidence_with_gradient(X, y)


def data(n=20, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + X[:, -1] ** 2 + 0.3 * rng.standard_normal(n)


def new_inputs(n=6, d=2, seed=1):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size=(n, d))


# --- scikit-learn ---------------------------------------------------------------------------------

# Ours; theirs; and for each of their log-parameters, in their order, how ours move with it: a factor per
# name. Their DotProduct is x·x' + sigma_0², so log(sigma_0) moves our bias variance (or offset) twice as
# fast; a constant in front of it moves slope and bias together.
SCALED = theirs.ConstantKernel(1.3)
SHAPE_AND_SCALE = [{"variance": 1}, {"length_scale": 1}]
ARD = [{"variance": 1}, {"length_scale[0]": 1}, {"length_scale[1]": 1}]
SAME_KERNELS = {
    "constant": (Constant(1.3), SCALED, [{"variance": 1}]),
    "se": (SquaredExponential(0.7, 1.3), SCALED * theirs.RBF(0.7), SHAPE_AND_SCALE),
    "se-ard": (SquaredExponential([0.7, 2.1], 1.3), SCALED * theirs.RBF([0.7, 2.1]), ARD),
    "matern-0.5": (Matern(0.5, 0.7, 1.3), SCALED * theirs.Matern(0.7, nu=0.5), SHAPE_AND_SCALE),
    "matern-1.5": (Matern(1.5, 0.7, 1.3), SCALED * theirs.Matern(0.7, nu=1.5), SHAPE_AND_SCALE),
    "matern-2.5": (Matern(2.5, 0.7, 1.3), SCALED * theirs.Matern(0.7, nu=2.5), SHAPE_AND_SCALE),
    "matern-1.5-ard": (Matern(1.5, [0.7, 2.1], 1.3), SCALED * theirs.Matern([0.7, 2.1], nu=1.5), ARD),
    "rational-quadratic": (
        RationalQuadratic(0.8, 0.7, 1.3),
        SCALED * theirs.RationalQuadratic(length_scale=0.7, alpha=0.8),
        [{"variance": 1}, {"alpha": 1}, {"length_scale": 1}],
    ),
    "periodic-one-input": (
        Periodic(1.4, 0.7, 1.3),
        SCALED * theirs.ExpSineSquared(length_scale=0.7, periodicity=1.4),
        [{"variance": 1}, {"length_scale": 1}, {"period": 1}],
    ),
    "linear": (
        Linear(1.3, bias_variance=1.3 * 0.6**2),
        SCALED * theirs.DotProduct(0.6),
        [{"variance": 1, "bias_variance": 1}, {"bias_variance": 2}],
    ),
    "polynomial": (
        Polynomial(degree=3, offset=0.6**2, variance=1.3),
        SCALED * theirs.Exponentiation(theirs.DotProduct(0.6), 3),
        [{"variance": 1}, {"offset": 2}],
    ),
    "sum": (
        SquaredExponential(0.7, 1.3) + Matern(0.5, 0.4, 0.8),
        SCALED * theirs.RBF(0.7) + theirs.ConstantKernel(0.8) * theirs.Matern(0.4, nu=0.5),
        [{"0.variance": 1}, {"0.length_scale": 1}, {"1.variance": 1}, {"1.length_scale": 1}],
    ),
    "product": (
        SquaredExponential(0.7, 1.3) * Polynomial(1, 0.6**2, 0.8),
        SCALED * theirs.RBF(0.7) * (theirs.ConstantKernel(0.8) * theirs.DotProduct(0.6)),
        [{"0.variance": 1}, {"0.length_scale": 1}, {"1.variance": 1}, {"1.offset": 2}],
    ),
}


@pytest.fixture(params=SAME_KERNELS.items(), ids=SAME_KERNELS.keys())
def same(request):
    """Ours, the fitted scikit-learn model, the map between the parameters, and the data."""
    name, (kernel, their_kernel, moves) = request.param
    d = 1 if "one-input" in name else 2
    X, y = data(d=d)
    model = GaussianProcessRegressor(their_kernel + theirs.WhiteKernel(NOISE), alpha=0.0, optimizer=None)
    return kernel, model.fit(X, y), [*moves, {"noise": 1}], X, y, new_inputs(d=d)


def test_prediction_equals_scikit_learn(same):
    kernel, model, _, X, y, X_new = same
    mean, std = model.predict(X_new, return_std=True)
    our_mean, our_variance = ExactGP(kernel, NOISE).condition(X, y).predict(X_new)
    np.testing.assert_allclose(our_mean, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(our_variance), std, rtol=1e-7)


def test_joint_equals_scikit_learn(same):
    kernel, model, _, X, y, X_new = same
    mean, covariance = model.predict(X_new, return_cov=True)
    our_mean, our_covariance = ExactGP(kernel, NOISE).condition(X, y).joint(X_new)
    np.testing.assert_allclose(our_mean, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(our_covariance, covariance, rtol=1e-7, atol=1e-9)


def test_log_evidence_and_gradient_equal_scikit_learn(same):
    kernel, model, moves, X, y, _ = same
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    our_value, our_gradient = log_evidence_with_gradient(kernel, NOISE, X, y)
    by_name = dict(zip([*kernel.parameter_names, "noise"], our_gradient, strict=True))
    chained = [sum(factor * by_name[name] for name, factor in move.items()) for move in moves]
    np.testing.assert_allclose(our_value, value, rtol=1e-7)
    np.testing.assert_allclose(chained, gradient, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ExactGP(kernel, NOISE).condition(X, y).log_evidence, value, rtol=1e-7)


# --- the naive reference --------------------------------------------------------------------------

KERNEL = SquaredExponential([0.6, 1.4], 1.2) + Linear(0.5, bias_variance=0.2)


def assert_same_gp(actual, expected, X_new, rtol=1e-9):
    """Two ExactGPs a user cannot tell apart."""
    np.testing.assert_allclose(actual.log_evidence, expected.log_evidence, rtol=rtol)
    for latent in (False, True):
        for ours, other in zip(actual.joint(X_new, latent), expected.joint(X_new, latent), strict=True):
            np.testing.assert_allclose(ours, other, rtol=rtol, atol=rtol * np.max(np.abs(other)))
        for ours, other in zip(actual.predict(X_new, latent), expected.predict(X_new, latent), strict=True):
            np.testing.assert_allclose(ours, other, rtol=rtol, atol=rtol * np.max(np.abs(other)))


def assert_equals_naive(gp, kernel, noise, X, y, X_new, rtol=1e-9):
    for latent in (False, True):
        mean, covariance = reference.gp_posterior(kernel, noise, X, y, X_new, latent=latent)
        scale = np.max(np.abs(covariance))
        our_mean, our_variance = gp.predict(X_new, latent=latent)
        np.testing.assert_allclose(our_mean, mean, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(our_variance, np.diag(covariance), rtol=rtol, atol=rtol * scale)
        joint_mean, joint_covariance = gp.joint(X_new, latent=latent)
        np.testing.assert_allclose(joint_mean, mean, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(joint_covariance, covariance, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("name", SAME_KERNELS)
def test_nothing_asked_for_is_nothing_said(name):
    X, y = data(5)
    for gp in (ExactGP(SAME_KERNELS[name][0], NOISE), ExactGP(SAME_KERNELS[name][0], NOISE).condition(X, y)):
        mean, covariance = gp.joint(X[:0])
        assert (mean.shape, covariance.shape) == ((0,), (0, 0))
        assert [part.shape for part in gp.predict(X[:0])] == [(0,), (0,)]
        assert gp.sample(X[:0], 3, 0).shape == (0, 3)


@pytest.mark.parametrize("n", [0, 1, 2, 20])
def test_conditioned_gp_equals_naive(n):
    X, y = data(n)
    gp = ExactGP(KERNEL, NOISE).condition(X, y)
    np.testing.assert_allclose(gp.log_evidence, reference.gp_log_evidence(KERNEL, NOISE, X, y), rtol=1e-10)
    assert_equals_naive(gp, KERNEL, NOISE, X, y, new_inputs())


def test_prior():
    X_new = new_inputs()
    gp = ExactGP(KERNEL, NOISE)
    assert gp.log_evidence == 0.0
    np.testing.assert_array_equal(gp.predict(X_new)[0], np.zeros(len(X_new)))
    assert_equals_naive(gp, KERNEL, NOISE, np.empty((0, 2)), np.empty(0), X_new)


def test_conditioning_leaves_the_original_alone():
    X, y = data()
    X_new = new_inputs()
    prior = ExactGP(KERNEL, NOISE)
    first = prior.condition(X[:12], y[:12])
    first.condition(X[12:], y[12:])
    assert prior.log_evidence == 0.0
    assert_equals_naive(prior, KERNEL, NOISE, X[:0], y[:0], X_new)
    assert_equals_naive(first, KERNEL, NOISE, X[:12], y[:12], X_new)


def test_duplicate_rows_with_noise_equal_naive():
    X, y = data(8)
    X, y = np.repeat(X, 3, axis=0), np.concatenate([y, y + 0.1, y - 0.2])
    gp = ExactGP(KERNEL, NOISE).condition(X, y)
    np.testing.assert_allclose(gp.log_evidence, reference.gp_log_evidence(KERNEL, NOISE, X, y), rtol=1e-10)
    assert_equals_naive(gp, KERNEL, NOISE, X, y, new_inputs())


def test_inputs_are_left_untouched():
    X, y = data()
    before = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    gp = ExactGP(KERNEL, NOISE).condition(X[:10], y[:10], X[15:], y[15:]).condition(X[10:15], y[10:15])
    gp.joint(X)
    log_evidence_with_gradient(KERNEL, NOISE, X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_a_conditioned_gp_keeps_its_own_copy_of_the_data():
    X, y = data()
    gp = ExactGP(KERNEL, NOISE).condition(X, y)
    before = gp.predict(new_inputs())
    X[:], y[:] = 9.0, 9.0
    np.testing.assert_array_equal(gp.predict(new_inputs()), before)


@pytest.mark.parametrize("noise", [NOISE, Parameter(NOISE), Parameter(NOISE, bounds=(0.01, 1.0))])
def test_noise_may_be_a_number_or_a_parameter(noise):
    X, y = data()
    gp = ExactGP(KERNEL, noise).condition(X, y)
    np.testing.assert_allclose(gp.log_evidence, reference.gp_log_evidence(KERNEL, NOISE, X, y), rtol=1e-10)


def test_noise_is_a_tenth_and_free_unless_told_otherwise():
    gp = ExactGP(SquaredExponential())
    assert gp.noise_variance == 0.1
    assert gp.noise_is_fixed is False
    assert ExactGP(SquaredExponential(), Parameter(0.2, fixed=True)).noise_is_fixed is True


# --- context rows ---------------------------------------------------------------------------------


def test_context_rows_enter_the_prediction_but_not_the_evidence():
    X, y = data(20)
    X_new = new_inputs()
    gp = ExactGP(KERNEL, NOISE).condition(X[:12], y[:12], X[12:], y[12:])
    evidence = reference.gp_log_evidence(KERNEL, NOISE, X[:12], y[:12])
    np.testing.assert_allclose(gp.log_evidence, evidence, rtol=1e-10)
    assert_equals_naive(gp, KERNEL, NOISE, X, y, X_new)
    without = ExactGP(KERNEL, NOISE).condition(X[:12], y[:12])
    assert np.max(np.abs(gp.predict(X_new)[0] - without.predict(X_new)[0])) > 1e-3


def test_context_rows_only():
    X, y = data(6)
    gp = ExactGP(KERNEL, NOISE).condition(X[:0], y[:0], X, y)
    assert gp.log_evidence == 0.0
    assert_equals_naive(gp, KERNEL, NOISE, X, y, new_inputs())


# --- appended rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [[10], [1], [19], [0], [3, 7, 8, 15], list(range(1, 20))])
def test_appended_rows_equal_conditioning_at_once(cuts):
    X, y = data(20)
    gp = ExactGP(KERNEL, NOISE)
    for rows in np.split(np.arange(20), cuts):
        gp = gp.condition(X[rows], y[rows])
    assert_same_gp(gp, ExactGP(KERNEL, NOISE).condition(X, y), new_inputs())


def test_appended_own_rows_keep_earlier_context():
    X, y = data(20)
    gp = ExactGP(KERNEL, NOISE).condition(X[:8], y[:8], X[15:], y[15:]).condition(X[8:15], y[8:15])
    at_once = ExactGP(KERNEL, NOISE).condition(X[:15], y[:15], X[15:], y[15:])
    assert_same_gp(gp, at_once, new_inputs())
    np.testing.assert_allclose(gp.log_evidence, reference.gp_log_evidence(KERNEL, NOISE, X[:15], y[:15]), rtol=1e-10)


def test_appended_context_joins_earlier_context():
    X, y = data(20)
    gp = ExactGP(KERNEL, NOISE).condition(X[:8], y[:8], X[12:16], y[12:16])
    gp = gp.condition(X[8:12], y[8:12], X[16:], y[16:])
    assert_same_gp(gp, ExactGP(KERNEL, NOISE).condition(X[:12], y[:12], X[12:], y[12:]), new_inputs())


def repeated(noise, kernel=SquaredExponential(0.9, 1e4)):  # noqa: B008  a kernel never changes
    """Rows of which the second half repeats the first, for a kernel without noise: their covariance is singular."""
    X, y = data(12)
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    return ExactGP(kernel, noise), X, y


@pytest.mark.parametrize("noise", [0.0, 1e-20])
@pytest.mark.parametrize("cuts", [[12], [4], [18], [6, 12, 18], [23]])
@pytest.mark.parametrize("kernel", [SquaredExponential(0.9, 1e4), Linear(2.0, 0.5)], ids=repr)
def test_appended_rows_equal_conditioning_at_once_where_jitter_is_needed(kernel, cuts, noise):
    prior, X, y = repeated(noise, kernel)
    at_once = prior.condition(X, y)
    gp = prior
    for rows in np.split(np.arange(24), cuts):
        gp = gp.condition(X[rows], y[rows])
    np.testing.assert_allclose(gp.log_evidence, at_once.log_evidence, rtol=1e-9)
    for ours, other in zip(gp.predict(new_inputs()), at_once.predict(new_inputs()), strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("own", [12, 18])
def test_context_that_needs_jitter_leaves_the_evidence_alone(own):
    prior, X, y = repeated(0.0)
    without = prior.condition(X[:own], y[:own])
    with_context = prior.condition(X[:own], y[:own], X[own:], y[own:] + 0.01)
    assert with_context.log_evidence == pytest.approx(without.log_evidence, rel=1e-9)
    later = prior.condition(X[:5], y[:5], X[own:], y[own:] + 0.01).condition(X[5:own], y[5:own])
    assert later.n_context == 24 - own
    assert later.log_evidence == pytest.approx(without.log_evidence, rel=1e-9)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda gp: pickle.loads(pickle.dumps(gp))])
def test_a_copy_predicts_and_goes_on_learning(clone):
    X, y = data(20)
    gp = ExactGP(KERNEL, NOISE).condition(X[:10], y[:10], X[15:], y[15:])
    twin = clone(gp)
    np.testing.assert_array_equal(twin.predict(new_inputs()), gp.predict(new_inputs()))
    assert_same_gp(twin.condition(X[10:15], y[10:15]), gp.condition(X[10:15], y[10:15]), new_inputs())


@pytest.mark.parametrize("noise", [0.0, NOISE, Parameter(0.3, bounds=(0.1, 0.3)), Parameter(0.1, bounds=(0.1, 0.3))])
def test_with_theta_of_a_conditioned_gp_is_the_prior(noise):
    X, y = data(6)
    prior = ExactGP(SquaredExponential(0.1), noise)
    moved = prior.condition(X, y, X + 1.0, y).with_theta(prior.theta)
    assert (moved.log_evidence, moved.n_own, moved.n_context) == (0.0, 0, 0)
    np.testing.assert_array_equal(moved.bounds, prior.bounds)
    assert_same_gp(moved.condition(X, y), prior.condition(X, y), new_inputs())


def test_with_theta_refuses_a_wrong_length_and_what_is_no_logarithm_of_a_number():
    gp = ExactGP(SquaredExponential(), 0.1)
    for size in (2, 4):
        with pytest.raises(ValueError, match=rf"theta must have shape \(3,\), got \({size},\)"):
            gp.with_theta(np.zeros(size))
    with pytest.raises(ValueError, match="theta must hold logs of positive finite numbers, got 800 for noise_variance"):
        gp.with_theta([0.0, 0.0, 800.0])


# --- gradient -------------------------------------------------------------------------------------

GRADIENT_KERNELS = {
    "se-ard": SquaredExponential([0.6, 1.4], 1.2),
    "matern-0.5": Matern(0.5, 0.8),
    "matern-1.5-ard": Matern(1.5, [0.8, 0.5]),
    "matern-2.5": Matern(2.5, 0.8),
    "rational-quadratic": RationalQuadratic(0.7, [0.9, 1.1], 0.8),
    "periodic": Periodic([1.3, 2.1], [0.9, 1.4], 0.8),
    "linear-ard": Linear([0.5, 1.5], 0.3),
    "polynomial": Polynomial(2, 0.4, 0.8),
    "random-slopes": RandomSlopes([0.9, 1.1], 0.8) + SquaredExponential(0.6),
    "piecewise": PiecewiseConstant(1, [-0.3, 0.4], 0.8) + SquaredExponential(0.6),
    "nested": (SquaredExponential(0.6) + Linear(0.5, 0.2)) * (Matern(1.5, 0.9) + Constant(0.4)),
    "partly-fixed": SquaredExponential(Parameter([0.6, 1.4], fixed=[False, True]), Parameter(1.2, fixed=True)),
    "all-fixed": SquaredExponential(Parameter(0.6, fixed=True), Parameter(1.2, fixed=True)),
}


@pytest.mark.parametrize("duplicates", [False, True], ids=["distinct", "duplicates"])
@pytest.mark.parametrize("noise_fixed", [False, True], ids=["noise free", "noise fixed"])
@pytest.mark.parametrize("kernel", GRADIENT_KERNELS.values(), ids=GRADIENT_KERNELS.keys())
def test_gradient_equals_central_differences(kernel, noise_fixed, duplicates):
    X, y = data(10)
    if duplicates:
        X[5:8] = X[0]

    def evidence(theta):
        p = len(kernel.theta)
        noise = NOISE if noise_fixed else math.exp(theta[p])
        return reference.gp_log_evidence(kernel.with_theta(theta[:p]), noise, X, y)

    theta = kernel.theta if noise_fixed else np.append(kernel.theta, math.log(NOISE))
    value, gradient = log_evidence_with_gradient(kernel, Parameter(NOISE, fixed=noise_fixed), X, y)
    np.testing.assert_allclose(value, evidence(theta), rtol=1e-10)
    assert gradient.shape == theta.shape
    np.testing.assert_allclose(gradient, reference.central_differences(evidence, theta), rtol=1e-6, atol=1e-7)


def test_gradient_of_one_row():
    X, y = data(1)
    kernel = SquaredExponential(0.6, 1.2)
    value, gradient = log_evidence_with_gradient(kernel, NOISE, X, y)
    # log N(y; 0, c) with c = 1.2 + 0.15, so d/d log v = v (y²/c² − 1/c)/2 for each of the two variances v.
    c = 1.2 + NOISE
    assert value == pytest.approx(reference.log_normal(y[0], 0.0, c), rel=1e-12)
    by_name = dict(zip([*kernel.parameter_names, "noise"], gradient, strict=True))
    slope = (y[0] ** 2 / c**2 - 1 / c) / 2
    assert by_name["length_scale"] == 0.0
    assert by_name["variance"] == pytest.approx(1.2 * slope, rel=1e-12)
    assert by_name["noise"] == pytest.approx(NOISE * slope, rel=1e-12)


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("latent", [False, True])
def test_samples_have_the_exact_moments(latent):
    X, y = data()
    X_new = new_inputs(3)
    n_samples = 100_000
    gp = ExactGP(KERNEL, NOISE).condition(X, y)
    draws = gp.sample(X_new, n_samples, random_state=2, latent=latent)
    assert draws.shape == (3, n_samples)
    mean, covariance = reference.gp_posterior(KERNEL, NOISE, X, y, X_new, latent=latent)
    deviations = draws - mean[:, None]
    # For a Gaussian: Var[mean] = S_aa/N and Var[sampled S_ab] = (S_aa S_bb + S_ab²)/N.
    variance = np.diag(covariance)
    mean_error = np.sqrt(variance / n_samples)
    covariance_error = np.sqrt((np.outer(variance, variance) + covariance**2) / n_samples)
    assert np.max(np.abs(deviations.mean(axis=1)) / mean_error) < 5
    assert np.max(np.abs(deviations @ deviations.T / n_samples - covariance) / covariance_error) < 5


def test_same_seed_same_bits():
    X, y = data()
    gp = ExactGP(KERNEL, NOISE).condition(X, y)
    first = gp.sample(new_inputs(), 5, random_state=3)
    assert first.tobytes() == gp.sample(new_inputs(), 5, random_state=3).tobytes()
    assert first.tobytes() == gp.sample(new_inputs(), 5, random_state=np.random.default_rng(3)).tobytes()
    assert not np.array_equal(first, gp.sample(new_inputs(), 5, random_state=4))


def test_noise_free_samples_at_repeated_inputs_agree():
    """The latent covariance of repeated inputs is singular; the draws must still be exact there."""
    X, y = data()
    X_new = new_inputs()[[0, 1, 0, 1, 0]]
    draws = ExactGP(KERNEL, NOISE).condition(X, y).sample(X_new, 50, random_state=1, latent=True)
    np.testing.assert_allclose(draws[0], draws[2], atol=1e-4)
    np.testing.assert_allclose(draws[1], draws[3], atol=1e-4)


# --- the edges of floating point ------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e150, 1e-150, 1e10, 1e-10])
def test_the_unit_of_y_does_not_matter(size):
    X, y = data()
    X_new = new_inputs()
    usual = ExactGP(Matern(1.5, 0.7, 1.2), NOISE).condition(X, y)
    scaled = ExactGP(Matern(1.5, 0.7, 1.2 * size**2), NOISE * size**2).condition(X, size * y)
    np.testing.assert_allclose(scaled.log_evidence, usual.log_evidence - len(y) * math.log(size), rtol=1e-9)
    (mean, variance), (usual_mean, usual_variance) = scaled.predict(X_new), usual.predict(X_new)
    np.testing.assert_allclose(mean / size, usual_mean, rtol=1e-9)
    np.testing.assert_allclose(variance / size / size, usual_variance, rtol=1e-9)


@pytest.mark.parametrize("size", [1e150, 1e-150, 1e10, 1e-10])
def test_the_unit_of_y_does_not_change_the_gradient(size):
    X, y = data()
    _, usual = log_evidence_with_gradient(Matern(1.5, [0.7, 0.9], 1.2), NOISE, X, y)
    kernel = Matern(1.5, [0.7, 0.9], 1.2 * size**2)
    _, scaled = log_evidence_with_gradient(kernel, NOISE * size**2, X, size * y)
    np.testing.assert_allclose(scaled, usual, rtol=1e-8)


@pytest.mark.parametrize("noise", [1e-14, 1e-18, 1e-30])
def test_tiny_noise_with_duplicate_rows_still_interpolates(noise):
    """K is singular to working precision: a jitter relative to its size lets the factorisation through."""
    X, y = data(8)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    gp = ExactGP(SquaredExponential(0.8), noise).condition(X, y)
    mean, variance = gp.predict(X)
    np.testing.assert_allclose(mean, y, atol=1e-3)
    assert np.all(variance >= 0)
    assert np.all(variance < 1e-3)
    assert math.isfinite(gp.log_evidence)


def test_a_matrix_that_cannot_be_factorised_ends_in_a_clear_error():
    """Entries of K overflow: no jitter helps. The error names the size, the kernel and what to change."""
    X = np.arange(1.0, 6.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(Exception, match=r"5 x 5.*Linear") as caught:
            ExactGP(Linear(1e308), 1e-300).condition(X, X[:, 0])
    assert type(caught.value).__module__.startswith("spngp")


def test_targets_too_large_end_in_the_same_error_whether_conditioning_or_training():
    X, _ = data(5)
    gp = ExactGP(SquaredExponential(), 0.1)
    for call in (
        gp.condition,
        gp.log_evidence_with_gradient,
        lambda X, y: evidence_of(gp.kernel, X, y)(np.ones(2), 0.1),
    ):
        with pytest.raises(ValueError, match=r"5 rows is out of range: y reaches 1e\+200 .* rescale y"):
            call(X, np.full(5, 1e200))
    with pytest.raises(ValueError, match="out of range"):  # the evidence can be written down, its gradient not
        ExactGP(SquaredExponential(1.0, 1e-30), 1e-30).log_evidence_with_gradient(X, np.full(5, 1e138))


@pytest.mark.parametrize("position", [0, 2, 4])
def test_an_infinite_variance_of_one_row_is_noticed_wherever_it_stands(position):
    X = np.ones((5, 1))
    X[position] = 1e200
    gp = ExactGP(Linear(), 0.1)
    for call in (gp.condition, gp.log_evidence_with_gradient, lambda X, y: gp.condition(X[:0], y[:0], X, y)):
        with pytest.raises(NotPositiveDefiniteError, match="5 x 5 covariance matrix is not finite: it overflows"):
            call(X, np.ones(5))


STATIONARY = [SquaredExponential(), Matern(0.5), Matern(1.5), Matern(2.5), RationalQuadratic(), RationalQuadratic(1e5)]


@pytest.mark.parametrize("far", [1e155, -1e155, 1e300, -1e300])
@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_far_away_the_prior_stands(kernel, far):
    X, y = data(6, 1)
    gp = ExactGP(kernel, 0.1).condition(X, y)
    mean, variance = gp.predict([[far]])
    np.testing.assert_allclose(mean, 0.0, atol=1e-250)
    np.testing.assert_allclose(variance, 1.1, rtol=1e-12)
    np.testing.assert_allclose(gp.joint([[far], [far / 2]])[1], np.diag([1.1, 1.1]), atol=1e-250)
    # and rows learnt from there are independent of the others
    X_far, y_far = np.vstack([X, [[far]]]), np.append(y, 0.7)
    independent = gp.log_evidence + reference.log_normal(0.7, 0.0, 1.1)
    value, gradient = ExactGP(kernel, 0.1).log_evidence_with_gradient(X_far, y_far)
    assert value == pytest.approx(independent, rel=1e-12)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("far", [1e155, -1e300])
def test_far_away_a_periodic_function_stays_within_its_prior(far):
    X, y = data(6, 1)
    mean, variance = ExactGP(Periodic(), 0.1).condition(X, y).predict([[far]])
    assert np.isfinite(mean).all()
    assert (variance <= 1.1).all()


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3), Linear() * Matern(1.5)], ids=repr)
def test_a_kernel_that_overflows_says_where(kernel):
    X, y = data(6, 1)
    gp = ExactGP(kernel, 0.1).condition(X, y)
    for call in (gp.predict, gp.joint, lambda X: gp.sample(X, 1, 0)):
        with pytest.raises(ValueError, match=r"overflows at row 1 of X, \[1e\+200\]; rescale X"):
            call([[0.5], [1e200]])


def test_context_must_fit_the_own_rows():
    X, y = data(6)
    gp = ExactGP(SquaredExponential(), 0.1)
    with pytest.raises(ValueError, match="X_context must have 2 columns as X, got 1"):
        gp.condition(X, y, X[:, :1], y)
    with pytest.raises(ValueError, match="y_context needs X_context, got None"):
        gp.condition(X, y, None, y)


@pytest.mark.parametrize(
    ("X", "y", "named"),
    [
        (np.zeros((3, 2)), np.zeros(4), "y"),
        (np.zeros((3, 2)), np.array([0.0, math.nan, 1.0]), "y"),
        (np.zeros((3, 2)), np.array([0.0, math.inf, 1.0]), "y"),
        (np.array([[0.0, math.nan]]), np.zeros(1), "X"),
        (np.array([[0.0, math.inf]]), np.zeros(1), "X"),
    ],
)
def test_bad_data_is_refused_by_name(X, y, named):
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        ExactGP(SquaredExponential(), 0.1).condition(X, y)


@pytest.mark.parametrize("noise", [-1.0, math.nan, math.inf, "low", [0.1, 0.2]])
def test_bad_noise_is_refused_by_name(noise):
    with pytest.raises((ValueError, TypeError), match="noise_variance"):
        ExactGP(SquaredExponential(), noise)


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential([0.7, 1.3]),
        Matern(1.5, [0.7, 1.3]) + Matern(0.5, 2.0) + Constant(0.5),
        SquaredExponential(1.0) + Linear(0.4, 0.2),
    ],
)
def test_the_evidence_alone_is_the_same(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((25, 2)), rng.standard_normal(25)
    evidence = evidence_of(kernel, X, y)
    values = kernel.parameters.values
    assert evidence.value(values, 0.3) == pytest.approx(evidence(values, 0.3)[0], abs=1e-10)


def test_a_posterior_has_the_prior_that_was_conditioned():
    prior = ExactGP(SquaredExponential(), 0.1)
    posterior = prior.condition([[0.0], [1.0]], [0.5, -0.5])
    assert posterior.has_prior_of(prior)
    assert not posterior.has_prior_of(ExactGP(prior.kernel, 0.2))
    assert not posterior.has_prior_of(prior.with_kernel(SquaredExponential()))


def test_a_gradient_that_overflows_is_infinite_and_not_nan():
    gp = ExactGP(Periodic(2.6e169, 1e-146, 8.8e-21), 0.0)
    X, y = np.linspace(-1.5, 1.5, 9)[:, np.newaxis], np.random.default_rng(0).standard_normal(9)
    with np.errstate(all="ignore"):
        value, gradient = gp.log_evidence_with_gradient(X, y)
    assert np.isfinite(value)
    assert gradient[1] == np.inf
    assert np.isfinite(gradient[[0, 2]]).all()
