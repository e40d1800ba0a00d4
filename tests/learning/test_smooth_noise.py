"""Noise that changes smoothly with the inputs: formulas against differences and quadrature, and what a fit finds."""

import copy
import warnings

import numpy as np
import pytest

import spngp
from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.kernels import Parameter, SquaredExponential
from spngp.learning import smooth_noise as subject
from spngp.learning.averaging import _log_total
from spngp.learning.laplace import FreeExpert
from spngp.learning.smooth_experts import Smooth, joined
from spngp.learning.smooth_noise import Basis, smooth_noise
from spngp.learning.tied import Profiled


def noisy_rows(n, seed, d=1):
    """A wave whose noise grows twentyfold along the first input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, d))
    std = 0.05 * np.exp(3.0 * X[:, 0])
    return X, np.sin(6.0 * X[:, -1]) + std * rng.standard_normal(n), std


def standard(n, seed, d=1):
    X, y, std = noisy_rows(n, seed, d)
    W = (X - X.mean(axis=0)) / X.std(axis=0)
    gp = ExactGP(SquaredExponential([1.0] * d, 1.0), Parameter(0.2, (1e-5, 4.0)))
    return gp, Block(W, (y - y.mean()) / y.std()), std


def test_the_parabola_of_more_rows_is_that_of_numpy():
    gp, block, _ = standard(70, 1)  # the inverse is made by halves
    K, g = gp.kernel.gram(block.X), np.linspace(-1.0, 1.0, 70)
    around, D = subject._parabola(K, block.y, 0.2, 1e-5, g), 0.2 * np.exp(g)
    P = np.linalg.inv(K + np.diag(D))
    np.testing.assert_allclose(around.gradient, 0.5 * D * ((P @ block.y) ** 2 - np.diagonal(P)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(around.curvature, 0.5 * P**2 * np.outer(D, D), rtol=1e-9, atol=1e-12)


def test_the_parabola_has_the_slope_of_the_evidence_and_its_expected_curvature():
    gp, block, _ = standard(12, 0)
    K, g = gp.kernel.gram(block.X), np.linspace(-1.0, 1.0, 12)
    around = subject._parabola(K, block.y, 0.2, 1e-5, g)

    def value(g):
        C = K + np.diag(0.2 * np.exp(g))
        return -0.5 * block.y @ np.linalg.solve(C, block.y) - 0.5 * np.linalg.slogdet(2 * np.pi * C)[1]

    assert around.value == pytest.approx(value(g), rel=1e-10)
    slopes = [(value(g + step) - value(g - step)) / 2e-5 for step in 1e-5 * np.eye(12)]
    np.testing.assert_allclose(around.gradient, slopes, rtol=1e-6, atol=1e-8)
    # the curvature is the covariance of the slope over outputs that the GP draws
    rng, C = np.random.default_rng(0), K + np.diag(0.2 * np.exp(g))
    outputs = np.linalg.cholesky(C) @ rng.standard_normal((12, 4000))
    drawn = [subject._parabola(K, y, 0.2, 1e-5, g).gradient for y in outputs.T]
    np.testing.assert_allclose(np.cov(np.transpose(drawn)), around.curvature, atol=0.06)


def test_where_noise_is_at_its_floor_nothing_changes():
    gp, block, _ = standard(12, 0)
    around = subject._parabola(gp.kernel.gram(block.X), block.y, 0.2, 0.1, np.full(12, -3.0))
    np.testing.assert_array_equal(around.gradient, 0.0)
    np.testing.assert_array_equal(around.curvature, 0.0)


def test_bumps_are_a_process_of_variance_one():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 1))
    basis = Basis.of(X, [0], 0.8)
    exact = np.exp(-0.5 * ((X - X.T) / (0.8 * X.std())) ** 2)
    np.testing.assert_allclose(basis.Phi[:, 1:] @ basis.Phi[:, 1:].T, exact, atol=0.05)
    u = rng.standard_normal(basis.Phi.shape[1])
    gp = basis.given_to(ExactGP(SquaredExponential(), Parameter(0.3, (1e-9, 50.0))), u)
    factors = np.exp(basis.Phi @ u)
    np.testing.assert_allclose(gp.noise_at(X), 0.3 * factors, rtol=1e-6)
    assert gp.noise_profile.factors(X).mean() == pytest.approx(1.0)
    assert gp.noise_variance == pytest.approx(0.3 * factors.mean())


def test_the_evidence_of_two_numbers_is_that_of_quadrature():
    gp, block, _ = standard(150, 3)
    whole = Basis.of(block.X, [0], 1.6)
    (j, own, width, turn), last = whole.bumps[0], whole.axes.size - 1
    basis = Basis(whole.Phi[:, [0, last + 1]], whole.axes[[last]], ((j, own, width, turn[:, [last]]),))
    K, precision = gp.kernel.gram(block.X), np.array([subject._CONSTANT_STD**-2, 0.7**-2])
    u = np.zeros(2)
    for _ in range(30):
        around = subject._parabola(K, block.y, gp.noise_variance, 1e-5, basis.Phi @ u)
        curvature = basis.Phi.T @ around.curvature @ basis.Phi
        slope = basis.Phi.T @ around.gradient - precision * u
        u = u + np.linalg.solve(curvature + np.diag(precision), slope)
    around = subject._parabola(K, block.y, gp.noise_variance, 1e-5, basis.Phi @ u)
    found = subject._reached(basis, around, precision, u, 0.0)

    steps = np.linspace(-6.0, 6.0, 41)
    turn = np.linalg.inv(np.linalg.cholesky(found.hessian)).T  # steps in standard deviations
    values = []
    for at in (u + turn @ step for step in np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)):
        value = subject._parabola(K, block.y, gp.noise_variance, 1e-5, basis.Phi @ at).value
        prior = 0.5 * np.log(precision).sum() - np.log(2 * np.pi) - 0.5 * at @ (precision * at)
        values.append(value + prior - found.log_total)
    total = np.exp(values).sum() * (steps[1] - steps[0]) ** 2 * np.linalg.det(turn)
    assert total == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("d", [1, 3])
def test_noise_that_grows_is_found_along_its_input(d):
    gp, block, std = standard(250, 5, d)
    found = smooth_noise(gp, block, list(range(d)))
    log_factors = found.basis.Phi @ found.u
    assert np.corrcoef(log_factors, np.log(std))[0, 1] > 0.95
    assert found.log_total > block.given_to(gp).log_evidence + 30.0
    profiled = found.basis.given_to(gp, found.u)
    assert block.given_to(profiled).log_evidence == pytest.approx(found.log_evidence, rel=1e-6)


def test_one_noise_for_all_is_not_made_smooth():
    rng = np.random.default_rng(0)
    gains = []
    for seed in range(8):
        gp, block, _ = standard(100, seed)
        y = np.linalg.cholesky(gp.kernel.gram(block.X) + 0.2 * np.eye(100)) @ rng.standard_normal(100)
        same = Block(block.X, y)
        gains.append(smooth_noise(gp, same, [0]).log_total - same.given_to(gp).log_evidence)
    assert max(gains) < 3.0
    assert np.mean(gains) < 0.0


def test_inputs_that_do_not_change_are_none():
    gp, block, _ = standard(40, 1)
    assert smooth_noise(gp, Block(np.zeros((40, 1)), block.y), [0]) is None


def test_both_kinds_of_noise_share_the_belief_by_their_evidence():
    gp, block, _ = standard(40, 1)
    tied = type("Tied", (), {"regions": object()})()
    key = id(tied.regions), 0
    plain = [FreeExpert(gp, -1.0), FreeExpert(gp.with_theta(gp.theta + 0.1), 0.5)]
    own = [FreeExpert(gp.with_theta(gp.theta - 0.1), float(i)) for i in range(3)]
    profiled = Profiled([gp], 0.0, 0.0)
    both = joined({0: Smooth(own, profiled)}, {key: plain}, tied)[key]
    expected = np.logaddexp(_log_total(plain, block), _log_total(own, block)) - np.log(2.0)
    assert _log_total(both, block) == pytest.approx(expected, rel=1e-10)


@pytest.fixture(scope="module")
def model():
    X, y, _ = noisy_rows(150, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SPNGPRegressor(random_state=0, noise_shape="gaussian").fit(X, y)


def test_a_fit_learns_how_the_noise_changes_and_without_steps(model):
    grid = np.linspace(0.02, 0.98, 400)[:, np.newaxis]
    noise = np.log(model.predict_noise(grid))
    true = np.log(0.05) + 3.0 * grid[:, 0]
    assert np.corrcoef(noise, true)[0, 1] > 0.97
    assert np.abs(noise - true).max() < 1.0
    assert np.abs(np.diff(np.log(model.predict(grid, return_std=True)[1]))).max() < 0.25
    assert sum(record["weight"] for record in model.regions_ if record["noise_varies"]) > 0.9


def test_rows_that_come_later_are_exact():
    X, y, _ = noisy_rows(112, 8, 2)
    model = SPNGPRegressor(random_state=0, noise_shape="gaussian").fit(X[:100], y[:100])
    assert sum(record["weight"] for record in model.regions_ if record["noise_varies"]) > 0.8
    living = copy.copy(model).partial_fit(X[100:], y[100:]).forget(rows=[3, 104])
    naive, at = Naive(living._learnt), np.random.default_rng(0).uniform(-0.1, 1.1, (7, 2))
    mean, variance = naive.moments(at)
    assert living.log_evidence_ == pytest.approx(naive.total(), rel=1e-8)
    np.testing.assert_allclose(living.predict(at), mean[:, 0], rtol=1e-8, atol=1e-8)
    if not living.outliers_.size:
        surprises = living.predict_dist(at).var / variance[:, 0]
        np.testing.assert_allclose(surprises, surprises[0], rtol=1e-6)
    np.testing.assert_allclose(living.network_.predict_dist(at).var, living.predict_dist(at).var, rtol=1e-8)


@pytest.mark.long
def test_files_and_explanations_know_the_profile(model, tmp_path):
    at = np.linspace(-0.1, 1.1, 7)[:, np.newaxis]
    model.save(tmp_path / "m")
    opened = spngp.load(tmp_path / "m", verify=True)
    np.testing.assert_array_equal(opened.predict_dist(at).var, model.predict_dist(at).var)
    told = model.explain(at[3])
    assert told.std == pytest.approx(float(model.predict(at[[3]], return_std=True)[1][0]), rel=1e-8)
    assert told.mean == pytest.approx(float(model.predict(at[[3]])[0]), rel=1e-8)


@pytest.mark.long
def test_words_and_pages_tell_which_noise_changes(model, tmp_path):
    from spngp.plotting.names import short_names
    from spngp.plotting.settings import grouped, in_words
    from spngp.report import write_report

    whole = [record for record in model.regions_ if record["rows"] == 150]
    groups = grouped(whole)
    assert {group.noise_varies for group in groups} >= {True}
    assert "with changing noise" in in_words(whole, ["x"], short_names(model))
    X, y, _ = noisy_rows(40, 9)
    write_report(model, tmp_path / "report.html", X, y)
    assert "it changes with the inputs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_noise_that_a_user_gave_stays_as_it_is():
    X, y, _ = noisy_rows(120, 7)
    model = SPNGPRegressor(noise_variance=0.3, random_state=0).fit(X, y)
    assert not any(record["noise_varies"] for record in model.regions_)


@pytest.mark.long
def test_a_noise_that_jumps_to_and_fro_is_saved_and_opened(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-3.0, 3.0, (150, 1))
    y = np.sin(X[:, 0]) + np.where(np.sin(4.0 * X[:, 0]) > 0, 1.0, 1e-3) * rng.standard_normal(150)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    opened = spngp.load(tmp_path / "m", verify=True)
    np.testing.assert_array_equal(opened.predict_dist(X).var, model.predict_dist(X).var)


def test_the_price_of_more_rows():
    gp, block, _ = standard(100, 3)
    found = smooth_noise(gp, block, [0])
    data = found.hessian - np.diag(found.precision)
    expected = found.log_correction + 0.5 * np.linalg.slogdet(found.hessian)[1]
    expected -= 0.5 * np.linalg.slogdet(np.diag(found.precision) + 2.0 * data)[1]
    assert found.log_correction_of(1.0) == pytest.approx(found.log_correction)
    assert found.log_correction_of(2.0) == pytest.approx(expected)
