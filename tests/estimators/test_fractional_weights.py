"""A row of weight w is a likelihood to the power w: fractions are smooth between whole numbers of equal rows."""

import numpy as np
import pytest

import spngp
from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.gp.evidence import evidence_of
from spngp.gp.exact import _MERGED_ABOVE, ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum


def data(n=50, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, 3 * np.sin(X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n), rng


def naive(kernel, noise, weights, X, y, X_new):
    """Mean, latent variance and log evidence under the likelihood Π N(y; f, noise)^w, one noise variance per row."""
    C = kernel.covariances(X, X) + np.diag(noise / weights)
    cross = kernel.covariances(X, X_new)
    solved = np.linalg.solve(C, cross)
    evidence = -0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(2 * np.pi * C)[1])
    # N(y; f, s)^w over N(y; f, s/w), at any y and f
    evidence += np.sum(-0.5 * weights * np.log(2 * np.pi * noise) + 0.5 * np.log(2 * np.pi * noise / weights))
    return solved.T @ y, kernel.variances(X_new) - np.sum(cross * solved, axis=0), evidence


@pytest.mark.parametrize("known", [0.0, 0.7])
def test_fractions_are_powers_of_the_likelihood(known):
    X, y, rng = data()
    weights, variances = rng.uniform(0.01, 3.2, y.size), known * rng.uniform(0.1, 2, y.size)
    kernel, x = SquaredExponential([1.0, 2.0], 4.0), X[:9] + 0.1
    mean, variance, evidence = naive(kernel, 0.2 + variances, weights, X, y, x)
    leaf = Leaf(kernel, noise_variance=0.2)
    posterior = leaf.condition(X, y, sample_weight=weights, y_variance=variances)
    in_turns = leaf.condition(X[:20], y[:20], sample_weight=weights[:20], y_variance=variances[:20])
    in_turns = in_turns.condition(X[20:], y[20:], sample_weight=weights[20:], y_variance=variances[20:])
    for found in (posterior, in_turns):
        np.testing.assert_allclose(found.log_evidence, evidence, rtol=1e-9)
        np.testing.assert_allclose(found.predict_dist(x, latent=True).mean, mean, rtol=1e-7)
        np.testing.assert_allclose(found.predict_dist(x, latent=True).var, variance, rtol=1e-7)


def test_context_rows_count_as_their_weights():
    X, y, rng = data(d=1)
    weights, kernel = rng.uniform(0.1, 2.0, y.size), SquaredExponential(1.0, 4.0)
    leaf = Leaf(kernel, noise_variance=0.1)
    posterior = Split(0, [0.0], [leaf, leaf]).condition(X, y, sample_weight=weights, margin=1.0)
    x, seen = np.array([[-0.5]]), X[:, 0] <= 1.0
    mean, variance, _ = naive(kernel, np.full(seen.sum(), 0.1), weights[seen], X[seen], y[seen], x)
    np.testing.assert_allclose(posterior.predict_dist(x, latent=True).mean, mean, rtol=1e-8)
    np.testing.assert_allclose(posterior.predict_dist(x, latent=True).var, variance, rtol=1e-8)


def test_parts_of_a_row_are_the_row():
    """Rows of weights .3 and .7 are one row; so a network of any shape has the same evidence and predictions."""
    X, y, _ = data()
    leaf = Leaf(SquaredExponential(), noise_variance=0.2)
    prior = Sum([Split(0, [0.0], [leaf, Leaf(Linear(bias_variance=9.0), noise_variance=0.1)]), leaf])
    twice, shares = np.repeat(np.arange(y.size), 2), np.tile([0.3, 0.7], y.size)
    whole, parts = prior.condition(X, y), prior.condition(X[twice], y[twice], sample_weight=shares)
    np.testing.assert_allclose(parts.log_evidence, whole.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(parts.predict_dist(X).mean, whole.predict_dist(X).mean, rtol=1e-8)
    np.testing.assert_allclose(parts.predict_dist(X).var, whole.predict_dist(X).var, rtol=1e-8)


def test_equal_rows_of_fractional_weights_are_merged():
    n = _MERGED_ABOVE + 10
    rng = np.random.default_rng(0)
    X, y, shares = rng.integers(0, 4, (n, 1)).astype(float), rng.standard_normal(n), rng.uniform(0.1, 1.0, n)
    prior = ExactGP(SquaredExponential(), 0.3)
    merged = prior.condition(X, y, known=KnownVariances(shares=shares))
    assert merged.shape_of_rows[0] == 4
    assert merged.log_evidence == pytest.approx(naive(prior.kernel, np.full(n, 0.3), shares, X, y, X[:1])[2], rel=1e-9)


@pytest.mark.parametrize("kernel", [SquaredExponential([0.8, 1.3]) + Matern(1.5), Linear(bias_variance=1.0)], ids=repr)
@pytest.mark.parametrize("variances", [False, True])
def test_gradient_of_the_evidence(kernel, variances):
    X, y, rng = data(25)
    known = KnownVariances(rng.uniform(0, 1, y.size) if variances else None, rng.uniform(0.1, 1, y.size))
    evidence, values = evidence_of(kernel, X, y, known), np.append(kernel.parameters.values, 0.3)
    value, by_kernel, by_noise = evidence(values[:-1], 0.3)
    gp = ExactGP(kernel, 0.3).condition(X, y, known=known)
    assert value == pytest.approx(gp.log_evidence, rel=1e-10)
    for i, slope in enumerate([*by_kernel, by_noise]):
        sides = []
        for step in (1e-5, -1e-5):
            moved = values.copy()
            moved[i] *= np.exp(step)
            sides.append(evidence.value(moved[:-1], float(moved[-1])))
        assert slope == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-6)


MODELS = {
    "cut": lambda: SPNGPRegressor(Matern(1.5), max_leaf_size=40, overlap=1.0, random_state=0),
    "one GP": lambda: GPRegressor(SquaredExponential([1.0, 1.0]), random_state=0),
    "committee": lambda: RobustBayesianCommitteeMachine(Matern(1.5), n_experts=1, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_smooth_between_whole_numbers(name, tmp_path):
    X, y, _ = data(60)
    fitted = {}
    for weight in (1.0, 2.0 - 1e-6, 2.0, 2.0 + 1e-6, 1.5):
        weights = np.ones(y.size)
        weights[3] = weight
        fitted[weight] = MODELS[name]().fit(X, y, sample_weight=weights)
    found = {weight: model.predict_dist(X) for weight, model in fitted.items()}
    for near in (2.0 - 1e-6, 2.0 + 1e-6):
        np.testing.assert_allclose(found[near].mean, found[2.0].mean, rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(found[near].var, found[2.0].var, rtol=5e-3)
    if name != "cut":  # cuts see three rows instead of two
        assert fitted[2.0 + 1e-6].log_evidence_ == pytest.approx(fitted[2.0].log_evidence_, abs=1e-3)
    residuals = [abs(found[weight].mean[3] - y[3]) for weight in (1.0, 1.5, 2.0)]
    assert residuals[0] > residuals[1] > residuals[2]
    fitted[1.5].save(tmp_path / "m.spngp")
    np.testing.assert_array_equal(spngp.load(tmp_path / "m.spngp").predict_dist(X).mean, found[1.5].mean)


def test_the_default_model_learns_from_fractions_what_it_learns_from_repetition():
    X, y, rng = data(80)
    weights = rng.integers(1, 3, y.size) / 2.0
    model = SPNGPRegressor(random_state=0).fit(X, y, sample_weight=weights)
    doubled = SPNGPRegressor(random_state=0).fit(X, y, sample_weight=2 * weights)
    assert model.score(X, y) > 0.95
    assert model.row_repeats_.tolist() == [1] * y.size
    # half the rows know less
    assert np.mean(model.predict_var(X, latent=True)) > np.mean(doubled.predict_var(X, latent=True))


def test_updates_with_fractions_are_exact_given_what_was_learnt():
    X, y, rng = data(120)
    weights = rng.uniform(0.2, 2.5, y.size)
    model = SPNGPRegressor(Matern(1.5), max_leaf_size=60, overlap=0.0, random_state=0)
    model.fit(X[:90], y[:90], weights[:90]).partial_fit(X[90:], y[90:], weights[90:])
    units = model._learnt.units.outputs
    by_hand = model._learnt.prior.condition(X, units.apply(y[:, np.newaxis]), sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), by_hand.predict_dist(X).mean * units.scale + units.mean, rtol=1e-7)
    with pytest.raises(ValueError, match="fractional weights cannot be forgotten"):
        model.forget(keep_last=50)


def test_a_fraction_of_a_row_needs_noise():
    X, y, _ = data(10)
    with pytest.raises(ValueError, match="a row of fractional weight needs noise, got noise_variance=0"):
        Leaf(SquaredExponential(), noise_variance=0.0).condition(X, y, sample_weight=0.5)
