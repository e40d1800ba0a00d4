"""Parts of a cut set as sums over settings: what they keep, and what they are worth."""

import numpy as np
import pytest
from scipy.special import logsumexp

from spngp import SPNGPRegressor, metrics
from spngp.gp import ExactGP
from spngp.gp.optimisation import Block, LeafEvidence
from spngp.kernels import Parameter, SquaredExponential
from spngp.learning import flow, uncut
from spngp.learning.laplace import Freedom, draw_free, fit_free


def tied():
    return ExactGP(
        SquaredExponential(Parameter(0.5, (1e-3, 1e3)), Parameter(1.0, (1e-4, 1e3))), Parameter(0.1, (1e-5, 4.0))
    )


def block(n, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, n))
    return Block(x[:, np.newaxis], np.sin(3 * x) + 0.5 * rng.standard_normal(n))


def test_draws_share_the_evidence_of_the_expert_that_they_replace():
    rows, freedom = block(15), Freedom.of(tied(), 0.85, 1.75, 1.75)
    known = fit_free(tied(), rows, freedom)
    drawn = draw_free(tied(), rows, freedom, known, 5, np.random.default_rng(0))
    totals = [rows.given_to(expert.gp).log_evidence + expert.log_correction for expert in [known, *drawn]]
    assert len(drawn) == 5
    np.testing.assert_allclose(totals, totals[0], atol=1e-8)


def test_draws_are_those_of_the_posterior():
    rows, freedom = block(15), Freedom.of(tied(), 0.85, 1.75, 1.75)
    drawn = draw_free(tied(), rows, freedom, fit_free(tied(), rows, freedom), 1500, np.random.default_rng(1))
    found = np.array([expert.gp.theta for expert in drawn])
    steps = np.linspace(-3.5, 3.5, 15)
    grid = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    thetas = tied().theta + (grid * freedom.std) @ freedom.directions
    evidence = LeafEvidence(tied(), *rows)
    values = [evidence.value(theta) - 0.5 * phi @ phi for theta, phi in zip(thetas, grid, strict=True)]
    weights = np.exp(values - logsumexp(values))
    mean = weights @ thetas
    std = np.sqrt(weights @ (thetas - mean) ** 2)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.2)
    np.testing.assert_allclose(found.std(axis=0), std, rtol=0.15)


def changing(n, seed):
    rng = np.random.default_rng([seed, 7])
    x = rng.uniform(-1, 1, n)
    return x[:, np.newaxis], np.where(x > 0.2, 1.0, -1.0) + np.where(x > 0.2, 0.1, 0.6) * rng.standard_normal(n)


@pytest.mark.long
def test_intervals_of_parts_hold(monkeypatch):
    monkeypatch.setattr(uncut, "smooth_experts", lambda *given: {})  # which parts may have as well

    def held():
        found = []
        for seed in range(5):
            X, y = changing(350, seed)
            mixture = SPNGPRegressor(random_state=seed).fit(X[:50], y[:50]).predict_dist(X[50:])
            found.append([metrics.coverage(mixture, y[50:], 0.95), metrics.nlpd(mixture, y[50:])])
        return np.mean(found, axis=0)

    spread = held()
    monkeypatch.setattr(flow, "spread_parts", lambda prior, tied, experts, *others: experts)
    points = held()
    assert spread[0] > max(0.9, points[0] + 0.01)
    assert spread[1] < points[1]


def test_same_seed_same_bits():
    X, y = changing(50, 3)
    first, second = (SPNGPRegressor(random_state=1, n_jobs=n_jobs).fit(X, y).predict_dist(X) for n_jobs in (1, 2))
    np.testing.assert_array_equal(first.means, second.means)
    np.testing.assert_array_equal(first.variances, second.variances)
