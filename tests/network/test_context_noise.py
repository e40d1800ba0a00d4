"""Rows beyond a border keep the noise of their own region."""

import numpy as np
import pytest

import reference
from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum

SEEN = 0.6  # how far beyond its border a leaf sees


def network(output=0):
    """A quiet half and a noisy half with two alternatives, or no cut."""
    noisy = Sum([Leaf(SquaredExponential(0.7), 0.5, output), Leaf(Matern(1.5, 0.5), 0.8, output)], weights=[0.3, 0.7])
    cut = Split(axis=0, at=[0.0], children=[Leaf(SquaredExponential(1.0), 0.01, output), noisy])
    return Sum([cut, Leaf(SquaredExponential(0.8), 0.2, output)], weights=[0.6, 0.4])


def rows(n=14, seed=3):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-1.5, 1.5, n))[:, None]
    return X, np.sin(2 * X[:, 0]) + np.where(X[:, 0] > 0, 0.7, 0.1) * rng.standard_normal(n)


def naive_predictions(prior, X, y, X_new):
    """Means and variances of the mixture, each leaf with context rows of their own regions' noise."""
    found = reference.Enumeration(prior, X, y).responsibilities()
    noise = np.array([sum(p * leaf.noise_variance for box, leaf, p in found if reference.contains(box, x)) for x in X])
    means, variances = np.empty(len(X_new)), np.empty(len(X_new))
    for i, x in enumerate(X_new):
        parts = []
        for box, leaf, probability in found:
            if not reference.contains(box, x):
                continue
            inside = np.array([reference.contains(box, row) for row in X])
            low, high = box.get(0, (-np.inf, np.inf))
            near = ~inside & (X[:, 0] > low - SEEN) & (X[:, 0] <= high + SEEN)
            order = [*np.flatnonzero(inside), *np.flatnonzero(near)]
            row_noise = np.where(inside, leaf.noise_variance, noise)[order]
            mean, covariance = reference.gp_posterior(
                leaf.kernel, leaf.noise_variance, X[order], y[order], X_new[[i]], row_noise=row_noise
            )
            parts.append((probability, mean[0], covariance[0, 0]))
        means[i] = sum(p * m for p, m, _ in parts)
        variances[i] = sum(p * (v + (m - means[i]) ** 2) for p, m, v in parts)
    return means, variances


def test_context_rows_keep_the_noise_of_their_own_region():
    X, y = rows()
    X_new = np.linspace(-0.7, 0.7, 9)[:, None]
    posterior = network().condition(X, y, margin=SEEN)
    mean, variance = naive_predictions(network(), X, y, X_new)
    predicted = posterior.predict_dist(X_new)
    np.testing.assert_allclose(predicted.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(predicted.var, variance, rtol=1e-8)
    assert posterior.log_evidence == pytest.approx(network().condition(X, y).log_evidence, rel=1e-13)


def test_outputs_have_each_their_own_noise():
    X, y = rows()
    other = np.cos(X[:, 0])
    other[[2, 9]] = np.nan
    both = Product([network(0), Leaf(SquaredExponential(1.0), 0.05, 1)])
    posterior = both.condition(X, np.column_stack([y, other]), margin=SEEN)
    X_new = np.linspace(-0.7, 0.7, 5)[:, None]
    alone = network().condition(X, y, margin=SEEN).predict_dist(X_new)
    np.testing.assert_allclose(posterior.predict_dist(X_new).var[:, 0], alone.var, rtol=1e-12)


def test_one_noise_for_all_regions_is_left_as_it_is():
    X, y = rows(30)
    kernels = [SquaredExponential(0.7), Matern(1.5, 0.5)]
    halves = [Sum([Leaf(kernel, noise) for kernel, noise in zip(kernels, [0.1, 0.3], strict=True)]) for _ in range(2)]
    posterior = Split(axis=0, at=[0.0], children=halves).condition(X, y, margin=SEEN)
    assert all(leaf.gp.n_context and leaf.gp._context_weights is None for leaf, _, _ in posterior.responsibilities())


def test_a_quiet_half_is_not_led_astray_by_noisy_rows_beyond_its_border():
    rng = np.random.default_rng(50)
    X = np.sort(rng.uniform(0, 1, 400))[:, None]
    signal, noise = np.sin(12 * X[:, 0] + 1), np.where(X[:, 0] > 0.5, 1.0, 0.02)
    y = signal + noise * rng.standard_normal(400)
    model = SPNGPRegressor(max_leaf_size=100, hyperparameters="independent", random_state=0).fit(X, y)
    near = (X[:, 0] > 0.4) & (X[:, 0] < 0.5)
    error = np.sqrt(np.mean((model.predict(X[near]) - signal[near]) ** 2))
    assert error < 0.01  # 0.026 where noisy rows are taken for quiet ones
