"""The shape of the noise: leave-one-out in closed form, recovery of a known shape, and what it must not change."""

import numpy as np
import pytest
from scipy import stats

from spngp import GPRegressor, SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out
from spngp.kernels import Matern, SquaredExponential
from spngp.learning.noise_shapes import learn_noise_shape
from spngp.noise import GAUSSIAN, NoiseShape


def _series(rng, n, outliers):
    x = np.sort(rng.uniform(0, 10, n))
    noise = rng.normal(size=n) * np.where(rng.random(n) < outliers, 1.5, 0.1)
    return x[:, np.newaxis], np.sin(x) + noise


@pytest.mark.parametrize("n_context", [0, 7])
def test_leave_one_out_equals_conditioning_without_the_row(n_context):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    n = 20 - n_context
    prior = ExactGP(Matern(1.5, [0.7, 1.3], 1.4), 0.2)
    gp = prior.condition(X[:n], y[:n], X[n:], y[n:])
    rows = np.array([0, 3, n - 1])
    residuals, variances = leave_one_out(gp, rows)
    for i, row in enumerate(rows):
        others = np.arange(20) != row
        mean, variance = prior.condition(X[others], y[others]).predict(X[[row]], latent=True)
        assert residuals[i] == pytest.approx(y[row] - mean[0], abs=1e-10)
        assert variances[i] == pytest.approx(variance[0], abs=1e-10)


def test_learnt_shape_finds_the_tails_and_hardly_changes_the_variance():
    rng = np.random.default_rng(1)
    n = 20_000
    wide = rng.random(n) < 0.05
    residuals = rng.normal(size=n) * np.where(wide, 4.0, 1.0)
    total = 0.95 + 0.05 * 16.0
    shape = learn_noise_shape(np.stack([residuals, np.zeros(n), np.full(n, total), np.ones(n)]))
    weights, factors = np.array(shape.weights), np.array(shape.factors)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert weights @ factors == pytest.approx(1.0, rel=0.01)

    wide = rng.random(n) < 0.05
    fresh = rng.normal(size=n) * np.where(wide, 4.0, 1.0)

    def mean_log_density(weights, variances):
        return np.log(stats.norm.pdf(fresh[:, np.newaxis], scale=np.sqrt(variances)) @ weights).mean()

    truth = mean_log_density([0.95, 0.05], [1.0, 16.0])
    assert mean_log_density(weights, total * factors) > truth - 0.02  # the grid of factors is coarse
    assert mean_log_density([1.0], [total]) < truth - 0.1  # what Gaussian noise would give


def test_many_rows_correct_a_noise_variance_that_is_off_few_hardly_and_a_judge_never():
    rng = np.random.default_rng(12)
    for n, power in ((150, 0.4), (4000, 0.95)):  # of the true factor: as learnt from few rows before any is scaled
        for true in (0.5, 1.5):
            residuals = rng.normal(size=n) * np.sqrt(0.3 + true)
            held_out = np.stack([residuals, np.full(n, 0.3), np.ones(n), np.ones(n)])
            assert np.log(learn_noise_shape(held_out).variance) == pytest.approx(
                power * np.log(true), abs=0.3 if n < 200 else 0.08
            )
            judged = learn_noise_shape(held_out, keeps_variance=True).variance
            assert judged == pytest.approx(1.0, abs=0.3 if n < 200 else 0.02)


def test_tails_of_any_ratio_are_found_on_the_grid_that_is_scaled_to_them():
    rng = np.random.default_rng(13)
    n, wide = 20_000, 9.0
    residuals = rng.normal(size=n) * np.where(rng.random(n) < 0.1, wide, 0.6)
    shape = learn_noise_shape(np.stack([residuals, np.zeros(n), np.ones(n), np.ones(n)]))
    true = 0.9 * 0.36 + 0.1 * wide**2
    assert shape.variance == pytest.approx(true, rel=0.1)
    grid = np.linspace(-30, 30, 2001)
    density = stats.norm.pdf(grid[:, np.newaxis], scale=np.sqrt(shape.factors)) @ np.array(shape.weights)
    truth = stats.norm.pdf(grid[:, np.newaxis], scale=[0.6, wide]) @ np.array([0.9, 0.1])
    assert np.abs(np.log(density / truth))[truth > 1e-4].max() < 0.25


def test_gaussian_residuals_and_few_rows_stay_near_a_gaussian():
    rng = np.random.default_rng(2)
    for n, error in ((5, 0.04), (5000, 0.01)):
        shape = learn_noise_shape(np.stack([rng.normal(size=n), np.zeros(n), np.ones(n), np.ones(n)]))
        z = 1.96 / np.sqrt(shape.factors)
        assert np.array(shape.weights) @ (2 * stats.norm.cdf(z) - 1) == pytest.approx(0.95, abs=error)


def test_few_rows_already_tell_a_narrow_core_with_long_tails_from_a_gaussian():
    held = {"gaussian": [], "long tails": []}
    for seed in range(40):
        rng = np.random.default_rng([seed, 8])
        for name, noise in (("gaussian", rng.normal(size=25)), ("long tails", rng.standard_t(2.5, 25))):
            scale = np.mean(noise**2)  # what a Gaussian makes of it
            shape = learn_noise_shape(np.stack([noise, np.zeros(25), np.full(25, scale), np.ones(25)]))
            fresh = np.abs(rng.normal(size=2000) if name == "gaussian" else rng.standard_t(2.5, 2000)) / np.sqrt(scale)
            below = np.array(shape.weights) @ (2 * stats.norm.cdf(fresh / np.sqrt(shape.factors)[:, np.newaxis]) - 1)
            held[name].append([(below < level).mean() for level in (0.5, 0.95)])
    np.testing.assert_allclose(np.mean(held["gaussian"], axis=0), [0.5, 0.95], atol=0.03)
    np.testing.assert_allclose(np.mean(held["long tails"], axis=0), [0.5, 0.95], atol=0.045)  # a Gaussian's hold 67 %


def test_outliers_sharpen_densities_but_move_no_means_and_variances_hardly():
    rng = np.random.default_rng(3)
    X, y = _series(rng, 400, 0.05)
    X_test, y_test = _series(rng, 400, 0.05)
    settings = {"max_leaf_size": 100, "random_state": 0, "outliers": "trust"}
    learnt = SPNGPRegressor(**settings).fit(X, y).predict_dist(X_test)
    gaussian = SPNGPRegressor(**settings, noise_shape="gaussian").fit(X, y).predict_dist(X_test)
    np.testing.assert_allclose(learnt.mean, gaussian.mean, atol=1e-12)
    np.testing.assert_allclose(learnt.std, gaussian.std, rtol=0.1)  # 400 rows also say how wide their noise is
    assert learnt.logpdf(y_test).mean() > gaussian.logpdf(y_test).mean() + 0.2
    inside = (learnt.interval(0.9)[0] < y_test) & (y_test < learnt.interval(0.9)[1])
    assert 0.86 <= inside.mean() <= 0.96  # the Gaussian's 90 % intervals hold more than 96 %


@pytest.mark.long
def test_joint_samples_have_the_shape_of_the_mixture():
    X, y = _series(np.random.default_rng(4), 150, 0.05)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    at = np.array([[2.0], [7.0]])
    draws = model.sample_y(at, 40_000, random_state=5)
    for level in (0.01, 0.2, 0.5, 0.9):
        np.testing.assert_allclose(
            (draws < model.predict_dist(at).quantile(level)[:, np.newaxis]).mean(axis=1), level, atol=0.008
        )


def test_fixed_noise_or_parameters_stay_gaussian():
    X, y = _series(np.random.default_rng(6), 60, 0.1)
    for model in (
        GPRegressor(noise_variance=0.1),
        SPNGPRegressor(SquaredExponential(), hyperparameters="fixed"),
        SPNGPRegressor(noise_shape="gaussian"),
    ):
        assert model.fit(X, y).noise_shapes_ == [GAUSSIAN]


@pytest.mark.long
def test_each_output_has_its_own_shape():
    rng = np.random.default_rng(7)
    X, y = _series(rng, 150, 0.08)
    Y = np.column_stack([y, np.cos(X[:, 0]) + 0.1 * rng.normal(size=150)])
    model = SPNGPRegressor(random_state=0).fit(X, Y)
    first, second = model.noise_shapes_
    assert max(first.factors) > 5.0 > 2.0 > second.factors[np.argmax(second.weights)] > 0.5
    mixture = model.predict_dist(X[:5])
    assert mixture.shape == (5, 2)
    assert np.isfinite(mixture.logpdf(Y[:5])).all()


def test_scaled_keeps_proportions():
    shape = NoiseShape.scaled([2.0, 2.0], [1.0, 3.0])
    assert shape == NoiseShape((0.5, 0.5), (0.5, 1.5))
