"""How many rows beyond its border a leaf region sees."""

from __future__ import annotations

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out, leave_one_out_by_sight
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Matern, SquaredExponential
from spngp.learning import sight


@pytest.mark.parametrize("known", [False, True])
def test_each_number_of_context_rows_is_as_if_there_were_no_others(known):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 3, (60, 2)), rng.standard_normal(60)
    variances = KnownVariances(rng.uniform(0, 0.5, 60)) if known else None
    own = slice(0, 25)
    of_own = None if variances is None else variances[own]
    prior = ExactGP(SquaredExponential(0.7), 0.2).condition(X[own], y[own], known=of_own)

    def seeing(count):
        near = slice(25, 25 + count)
        of_near = None if variances is None else variances[near]
        return prior.condition(X[:0], y[:0], X[near], y[near], context_known=of_near)

    assert seeing(35).shape_of_rows == (60, 2)
    rows, counts = np.array([3, 0, 24]), [0, 1, 20, 35]
    found = leave_one_out_by_sight(seeing(35), rows, counts)
    for count, (residuals, latent) in zip(counts, found, strict=True):
        wanted = leave_one_out(seeing(count), rows)
        np.testing.assert_allclose(residuals, wanted[0], rtol=1e-9)
        np.testing.assert_allclose(latent, wanted[1], rtol=1e-7, atol=1e-12)


ALL = [1.0] * 6  # the same as with all context


def chosen(gain, divergence, spread, latent=ALL, squared=ALL):
    """The share where rows of 20 regions have these means, and gains differ by ``spread`` from region to region."""
    noise = np.random.default_rng(1).standard_normal(20)
    gains = np.array(gain)[:, np.newaxis] + np.repeat(spread * (noise - noise.mean()) / noise.std(), 50)
    means = [np.repeat(np.array(own)[:, np.newaxis], 1000, axis=1) for own in (divergence, latent, squared)]
    return sight._chosen(sight._Compared(gains, *means, np.ones(1000)), [50] * 20)


def test_a_share_that_is_better_is_taken_else_the_least_that_is_alike():
    far = [0.3, 0.2, 0.1, 0.05, 0.02, 0.0]
    assert chosen([-0.3, -0.2, -0.1, -0.05, -0.02, 0.0], far, 0.1) == 1.0
    better = [0.2, 0.3, 0.1, 0.05, 0.02, 0.0]
    assert chosen(better, far, 0.1) == 0.2
    assert chosen(better, far, 2.0) == 1.0  # less than a standard error
    assert chosen(better, far, 0.1, squared=[1.0, 1.3, 1.1, 1.1, 1.0, 1.0]) == 0.1  # better, but too far off
    near = [0.1, 0.01, 0.003, 0.002, 0.001, 0.0]
    gain = [-0.1, -0.01, -0.003, 0.0, 0.0, 0.0]
    assert chosen(gain, near, 0.01) == 0.35
    assert chosen(gain, near, 0.01, latent=[1.9, 1.3, 1.1, 1.04, 1.0, 1.0]) == 0.5  # the mean is off, noise hides it
    assert chosen([-0.1, -0.05, -0.04, 0.0, 0.0, 0.0], near, 0.01) == 0.5  # alike, but worse


def context_per_own_row(model):
    regions = model.regions_
    return sum(one["context_rows"] for one in regions) / sum(one["rows"] for one in regions)


def test_rows_that_say_nothing_new_are_not_seen():
    """Along a rough function regions know of each other what lies at the border; of a smooth one much more."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (2400, 2))
    settings = {"max_leaf_size": 100, "hyperparameters": "fixed", "random_state": 0}
    y = np.sin(3 * X).prod(axis=1) + 0.1 * rng.standard_normal(2400)
    rough = SPNGPRegressor(kernels=Matern(0.5, 0.03), noise_variance=0.01, **settings).fit(X, y)
    smooth = SPNGPRegressor(kernels=SquaredExponential(1.0), noise_variance=0.01, **settings).fit(X, y)
    assert context_per_own_row(rough) < 0.5 * context_per_own_row(smooth)
    assert context_per_own_row(smooth) > 1.0


def test_what_a_user_asks_for_stays():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (1200, 2))
    y = X[:, 0] + rng.standard_normal(1200)
    model = SPNGPRegressor(max_leaf_size=80, overlap=2.0, hyperparameters="tied", random_state=0).fit(X, y)
    assert context_per_own_row(model) == pytest.approx(2.0, abs=0.05)


def test_outputs_without_rows_decide_nothing():
    """An output that hardly any region knows, and equal rows: there is a choice, and predictions are finite."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, (900, 2)).astype(float)
    Y = np.stack([X[:, 0] + rng.standard_normal(900), np.where(np.arange(900) < 20, 1.0, np.nan)], axis=1)
    model = SPNGPRegressor(max_leaf_size=60, hyperparameters="tied", random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X[:5])).all()
