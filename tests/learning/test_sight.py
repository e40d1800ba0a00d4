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
def test_each_number_of_context_rows_is_as_if_there_were_no_others(known: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 3, (60, 2)), rng.standard_normal(60)
    variances = KnownVariances(rng.uniform(0, 0.5, 60)) if known else None
    own = slice(0, 25)
    of_own = None if variances is None else variances[own]
    prior = ExactGP(SquaredExponential(0.7), 0.2).condition(X[own], y[own], known=of_own)

    def seeing(count: int) -> ExactGP:
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


def chosen(gain: list[float], divergence: list[float], spread: float) -> float:
    """The share where 1,000 rows have these means, and gains differ by chance as far as ``spread`` says."""
    noise = np.random.default_rng(1).standard_normal(1000)
    gains = np.array(gain)[:, np.newaxis] + spread * (noise - noise.mean()) / noise.std()
    return sight._chosen(gains, np.repeat(np.array(divergence)[:, np.newaxis], 1000, axis=1), np.ones((6, 1000)))


def test_a_share_that_is_clearly_better_is_taken_else_the_least_that_is_alike() -> None:
    far = [0.3, 0.2, 0.1, 0.05, 0.02, 0.0]
    assert chosen([-0.3, -0.2, -0.1, -0.05, -0.02, 0.0], far, 0.1) == 1.0
    assert chosen([0.2, 0.3, 0.1, 0.05, 0.02, 0.0], far, 0.1) == 0.2  # thirty standard errors better
    assert chosen([0.2, 0.3, 0.1, 0.05, 0.02, 0.0], far, 5.0) == 1.0  # two
    near = [0.1, 0.01, 0.003, 0.002, 0.001, 0.0]
    assert chosen([-0.1, -0.01, -0.003, 0.0, 0.0, 0.0], near, 0.1) == 0.35
    assert chosen([-0.1, -0.05, -0.04, 0.0, 0.0, 0.0], near, 0.1) == 0.5  # alike, but clearly worse


def context_per_own_row(model: SPNGPRegressor) -> float:
    regions = model.regions_
    return sum(one["context_rows"] for one in regions) / sum(one["rows"] for one in regions)


def test_noise_asks_for_fewer_rows_than_a_function_without() -> None:
    """A plane under noise hardly needs rows beyond the border; a rough function without noise needs all of them."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (2400, 3))
    settings = {"max_leaf_size": 100, "hyperparameters": "tied", "random_state": 0}
    noisy = SPNGPRegressor(**settings).fit(X, X[:, 0] + rng.standard_normal(2400))
    rough = SPNGPRegressor(kernels=Matern(1.5, 1.0), noise_variance=1e-6, **settings)
    rough.fit(X, np.sin(7 * X).prod(axis=1))
    assert context_per_own_row(noisy) < 0.5 * context_per_own_row(rough)
    assert context_per_own_row(rough) > 2.5


def test_what_a_user_asks_for_stays() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (1200, 2))
    y = X[:, 0] + rng.standard_normal(1200)
    model = SPNGPRegressor(max_leaf_size=80, overlap=2.0, hyperparameters="tied", random_state=0).fit(X, y)
    assert context_per_own_row(model) == pytest.approx(2.0, abs=0.05)


def test_outputs_without_rows_decide_nothing() -> None:
    """An output that hardly any region knows, and equal rows: there is a choice, and predictions are finite."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, (900, 2)).astype(float)
    Y = np.stack([X[:, 0] + rng.standard_normal(900), np.where(np.arange(900) < 20, 1.0, np.nan)], axis=1)
    model = SPNGPRegressor(max_leaf_size=60, hyperparameters="tied", random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X[:5])).all()
