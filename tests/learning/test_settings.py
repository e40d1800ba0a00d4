"""Settings of hyper-parameters that share the belief: their shares against quadrature, and what they are worth."""

import numpy as np
import pytest
from scipy.special import logsumexp

import spngp
from spngp import SPNGPRegressor, metrics
from spngp.gp import ExactGP
from spngp.gp.optimisation import Block
from spngp.kernels import Constant, Linear, Parameter, SquaredExponential
from spngp.learning import settings
from spngp.learning.averaging import put_in
from spngp.learning.settings import Alternative, learn_settings
from spngp.network import Sum


def rows(n=30, d=1, slope=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = slope * X[:, 0] + rng.standard_normal(n)
    return Block(X, (y - y.mean()) / y.std())


def known(kernel, noise=0.3):
    return ExactGP(kernel + Constant(Parameter(1.0, fixed=True)), Parameter(noise, (1e-5, 4.0)))


def by_quadrature(gp, block, stds):
    """log ∫ p(y | θ(z)) N(z) dz on a grid of z, with the prior written out anew."""
    z = np.linspace(-5, 5, 61)
    grids = np.meshgrid(*[z] * len(stds), indexing="ij")
    values = []
    for point in zip(*(grid.ravel() for grid in grids), strict=True):
        steps = [s * v * (1 - 0.3 * v) if v < 0 else s * v for v, s in zip(point, stds, strict=True)]
        theta = np.clip(gp.theta + steps, *gp.bounds.T)
        prior = -0.5 * np.square(point).sum() - 0.5 * len(stds) * np.log(2 * np.pi)
        values.append(gp.with_theta(theta).condition(block.X, block.y).log_evidence + prior)
    return float(logsumexp(values)) + len(stds) * np.log(z[1] - z[0])


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_shares_are_those_of_quadrature(slope):
    block = rows(slope=slope)
    constant = ExactGP(Constant(Parameter(1.0, fixed=True)), Parameter(1.0, (1e-5, 4.0)))
    line = known(Linear(Parameter(0.3, (1e-4, 1e3))))
    alternatives = [Alternative("constant", constant, constant), Alternative("line", line, line, weight=2.0)]
    found = learn_settings(alternatives, block, np.random.default_rng(0)).drawn
    share = sum(setting.share for setting in found if setting.label == "line")
    log_odds = by_quadrature(line, block, [1.0, 1.5]) + np.log(2.0) - by_quadrature(constant, block, [1.5])
    assert sum(setting.share for setting in found) == pytest.approx(1.0)
    assert np.log(share / (1 - share)) == pytest.approx(log_odds, abs=0.1)


def test_draws_know_their_evidence_and_depend_on_the_generator_alone():
    block = rows(40, 2)
    gp = known(SquaredExponential(Parameter([1.0, 1.0], (1e-3, 1e3)), Parameter(1.0, (1e-4, 1e3))))
    found = [
        learn_settings([Alternative("se", gp, gp)], block, np.random.default_rng(5), n_jobs).drawn
        for n_jobs in (None, 1, 2)
    ]
    for setting in found[0]:
        expected = setting.gp.condition(block.X, block.y).log_evidence
        assert setting.log_evidence == pytest.approx(expected, abs=1e-8)
    for others in found[1:]:
        assert [s.gp.theta.tolist() for s in others] == [s.gp.theta.tolist() for s in found[0]]


def test_few_rows_leave_a_wide_posterior_and_many_a_narrow_one():
    spreads = []
    for n in (12, 150):
        block = rows(n, slope=1.0)
        gp = known(SquaredExponential(Parameter(1.0, (1e-3, 1e3)), Parameter(1.0, (1e-4, 1e3))))
        found = learn_settings([Alternative("se", gp, gp)], block, np.random.default_rng(0))
        thetas = [s.gp.theta for s in found.drawn]
        spreads.append(np.std([theta[-1] for theta in thetas]))
    assert spreads[0] > 2 * spreads[1]


def small_set(n=25, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def test_the_mixture_over_settings_is_the_brute_force_sum():
    X, y = small_set()
    model = SPNGPRegressor(random_state=0, noise_shape="gaussian", outliers="trust").fit(X, y)
    learnt = model._learnt
    prior = learnt.prior
    assert isinstance(prior, Sum)
    W, z = learnt.units.inputs.apply(X), learnt.units.outputs.apply(y[:, np.newaxis])[:, 0]
    at = np.random.default_rng(2).uniform(-2, 2, (7, 2))
    posteriors = [leaf.gp.condition(W, z) for leaf in prior.children]
    log_weights = prior.log_weights + np.array([gp.log_evidence for gp in posteriors])
    weights = np.exp(log_weights - logsumexp(log_weights))
    assert len(posteriors) > 5
    assert weights.max() < 0.5  # no setting is taken for certain
    parts = [gp.predict(learnt.units.inputs.apply(at)) for gp in posteriors]
    mean = weights @ np.array([part[0] for part in parts])
    variance = weights @ np.array([part[1] + (part[0] - mean) ** 2 for part in parts])
    scale = learnt.units.outputs.scale[0]
    found = model.predict_dist(at)
    np.testing.assert_allclose(found.mean, mean * scale + learnt.units.outputs.mean[0], rtol=1e-9)
    # experts below a hundredth of a percent are left out of the network that predicts
    np.testing.assert_allclose(found.var, variance * scale**2, rtol=1e-3)


def test_same_seed_same_bits(tmp_path):
    X, y = small_set(40)
    first, second = (SPNGPRegressor(random_state=3, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    at = X[:9] + 0.1
    found = first.predict_dist(at)
    np.testing.assert_array_equal(found.means, second.predict_dist(at).means)
    first.save(tmp_path / "m")
    loaded = spngp.load(tmp_path / "m").predict_dist(at)
    np.testing.assert_array_equal(loaded.means, found.means)
    np.testing.assert_array_equal(loaded.variances, found.variances)


def test_intervals_of_few_rows_hold():
    held = []
    for seed in range(16):
        rng = np.random.default_rng([seed, 4])
        X = rng.uniform(-1, 1, (220, 2))
        y = np.sin(3 * X[:, 0] + seed) + 0.3 * rng.standard_normal(220)
        mixture = SPNGPRegressor(random_state=seed).fit(X[:20], y[:20]).predict_dist(X[20:])
        held.append(metrics.coverage(mixture, y[20:], 0.9))
    assert 0.85 < np.mean(held) < 0.96  # point estimates hold 82 %


def test_nothing_is_learnt_from_noise():
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 5])
        X, y = rng.standard_normal((260, 5)), rng.standard_normal(260)
        model = SPNGPRegressor(random_state=seed).fit(X[:60], y[:60])
        errors = y[60:] - model.predict(X[60:]), y[60:] - y[:60].mean()
        ratios.append(np.sqrt(np.mean(errors[0] ** 2) / np.mean(errors[1] ** 2)))
    assert np.mean(ratios) < 1.015


def test_simple_kernels_take_part_and_are_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    model = SPNGPRegressor(random_state=0).fit(X, rng.standard_normal(30))
    labels = {region["kernel"] for region in model.regions_}
    assert "Constant" in labels
    weights = model.predict_kernel_weights(X)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert weights.shape[1] == len(model.kernel_names_)


def test_an_alternative_whose_covariance_cannot_be_factored_is_left_out(monkeypatch):
    block = rows(10)
    gp = known(SquaredExponential(Parameter(1.0, (1e-3, 1e3)), Parameter(1.0, (1e-4, 1e3))))

    class Failing(settings.LeafEvidence):
        def __call__(self, theta):
            raise settings.NotPositiveDefiniteError("no")

        def value(self, theta):
            raise settings.NotPositiveDefiniteError("no")

    monkeypatch.setattr(settings, "LeafEvidence", Failing)
    assert learn_settings([Alternative("se", gp, gp)], block, np.random.default_rng(0)).drawn == []
    assert put_in({}, {}, None, None, None, None) == {}


@pytest.mark.parametrize(
    ("n", "d", "y"),
    [
        (1, 2, [3.0]),
        (2, 2, [3.0, 4.0]),
        (3, 1, [1.0, 2.0, 1.5]),
        (6, 12, np.arange(6.0)),  # more inputs than rows
        (12, 2, np.full(12, 7.0)),
        (15, 2, np.arange(15) % 2.0),  # two-valued
        (9, 1, [1e3, -5e4, 2e5, -1e6, 3.0, 8e6, -2e7, 9e8, -4e9]),  # every row an outlier of the others
        (12, 2, 1e150 * np.sin(np.arange(12.0))),
        (12, 2, 1e-149 * np.sin(np.arange(12.0))),
    ],
)
def test_hardly_any_rows(n, d, y):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)), np.asarray(y)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    mean, std = model.predict(rng.standard_normal((5, d)), return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()
    if n > 3 and np.ptp(y):
        assert (std > 0.01 * y.std()).all()
