"""How many rows beyond its border a leaf region sees: by a share of the default context."""

from __future__ import annotations

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp._linalg.square import NotPositiveDefiniteError
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out, leave_one_out_by_context
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Matern, SquaredExponential
from spngp.learning import context_share, ground
from spngp.structure import tiling


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
    found = leave_one_out_by_context(seeing(35), rows, counts)
    for count, (residuals, latent) in zip(counts, found, strict=True):
        wanted = leave_one_out(seeing(count), rows)
        np.testing.assert_allclose(residuals, wanted[0], rtol=1e-9)
        np.testing.assert_allclose(latent, wanted[1], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("keeps", [False, True])
def test_many_rows_are_left_out_by_an_inverse_as_few_are_by_solutions(keeps):
    rng = np.random.default_rng(5)
    X, y = rng.uniform(0, 9, (420, 2)), rng.standard_normal(420)
    gp = ExactGP(SquaredExponential(0.7), 0.2).condition(X[:300], y[:300], X[300:], y[300:], keep_factor=keeps)
    many, few = leave_one_out(gp, np.arange(300)), leave_one_out(gp, np.arange(0, 300, 3))
    for own, other in zip(many, few, strict=True):
        np.testing.assert_allclose(own[::3], other, rtol=1e-9)
    mean = gp.predict(X[:9])[0]  # the factor is as it was
    np.testing.assert_allclose(leave_one_out(gp, np.arange(300))[0], many[0], rtol=1e-12)
    np.testing.assert_array_equal(gp.predict(X[:9])[0], mean)


ALL = [1.0] * 6  # the same as with all context


def chosen(gain, divergence, spread, latent=ALL, squared=ALL, n_regions=20, n_outputs=1):
    """The share where rows of regions have these means, and gains differ by ``spread`` from region to region."""
    noise = np.random.default_rng(1).standard_normal(n_regions)
    noise = np.tile(np.repeat(spread * (noise - noise.mean()) / noise.std(), 50), n_outputs)
    gains = np.array(gain)[:, np.newaxis] + noise
    means = [np.repeat(np.array(own)[:, np.newaxis], noise.size, axis=1) for own in (divergence, latent, squared)]
    regions = np.tile(np.repeat(np.arange(n_regions), 50), n_outputs)
    return context_share._chosen(context_share._Compared(gains, *means, np.ones(noise.size)), regions)


def test_a_share_that_is_better_is_taken_else_the_least_that_is_alike():
    far = [0.3, 0.2, 0.1, 0.05, 0.02, 0.0]
    assert chosen([-0.3, -0.2, -0.1, -0.05, -0.02, 0.0], far, 0.1) == 1.0
    better = [0.2, 0.3, 0.1, 0.05, 0.02, 0.0]
    assert chosen(better, far, 0.1) == 0.2
    assert chosen(better, far, 2.0) == 1.0  # less than a standard error
    assert chosen(better, far, 2.0, n_outputs=10) == 1.0  # ten outputs that gain together are no ten witnesses
    assert chosen(better, far, 0.1, n_regions=5) == 1.0  # too few regions
    assert chosen(better, far, 0.1, squared=[1.0, 1.3, 1.1, 1.1, 1.0, 1.0]) == 0.1  # better, but too far off
    near = [0.1, 0.01, 0.003, 0.002, 0.001, 0.0]
    gain = [-0.1, -0.01, -0.003, 0.0, 0.0, 0.0]
    assert chosen(gain, near, 0.01) == 0.35
    assert chosen(gain, near, 0.01, latent=[1.9, 1.3, 1.1, 1.04, 1.0, 1.0]) == 0.5  # the mean is off, noise hides it
    assert chosen(gain, near, 0.01, squared=[1.9, 1.3, 1.1, 1.04, 1.0, 1.0]) == 0.5
    assert chosen([-0.1, -0.05, -0.04, 0.0, 0.0, 0.0], near, 0.01) == 0.5  # alike, but worse


def context_per_own_row(model):
    regions = model.regions_
    return sum(one["context_rows"] for one in regions) / sum(one["rows"] for one in regions)


FIXED = {"max_leaf_size": 100, "hyperparameters": "fixed", "random_state": 0}


def plane(n=2400, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X).prod(axis=1), rng.standard_normal(n)


def test_rows_that_say_nothing_new_are_not_seen():
    """Along a rough function regions know of each other what lies at the border; of a smooth one much more."""
    X, function, noise = plane()
    y = function + 0.1 * noise
    rough = SPNGPRegressor(kernels=Matern(0.5, 0.03), noise_variance=0.01, **FIXED).fit(X, y)
    smooth = SPNGPRegressor(kernels=SquaredExponential(1.0), noise_variance=0.01, **FIXED).fit(X, y)
    assert context_per_own_row(rough) < 0.5 * context_per_own_row(smooth)
    assert context_per_own_row(smooth) > 1.0


def asked_with(**given):
    """The share and what it was asked with, in a fit of a smooth kernel."""
    found = []

    def share(*asked):
        found.append((original(*asked), asked))
        return found[-1][0]

    original = ground.context_share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ground, "context_share", share)
        X, function, noise = plane()
        known = given.pop("known", None)
        y = function + (0.3 if known is None else known**0.5) * noise
        SPNGPRegressor(kernels=SquaredExponential(1.0), **given, **FIXED).fit(X, y, y_variance=known)
    return found[0]


def test_variances_that_are_known_do_not_hide_that_the_mean_is_off():
    as_noise, _ = asked_with(noise_variance=0.09)
    as_known, asked = asked_with(noise_variance=1e-4, known=np.full(2400, 0.09))
    assert as_known >= as_noise >= 0.5
    seen = context_share._left_out(*left_out_of(asked))
    assert all((one[4] == pytest.approx(0.09)) and (one[1] >= one[4]).all() for one in seen)


def left_out_of(asked):
    """What the rows of the first region are left out with."""
    tied, W, Z, plan = asked
    first = next(region for region in tiling(tied.regions) if region.rows.size)
    others = np.setdiff1d(np.arange(W.shape[0]), first.rows)
    return tied, 0, first.rows, others[:200], W, Z[:, 0], plan


def test_equal_rows_and_kernels_that_fail_tell_nothing(monkeypatch):
    _, asked = asked_with(noise_variance=0.09)
    tied, k, rows, around, W, y, plan = left_out_of(asked)
    assert len(context_share._left_out(tied, k, rows, around, W, y, plan)) == 6
    assert context_share._left_out(tied, k, rows, np.repeat(around[:50], 4), W, y, plan) == []

    def fails(self, *given, **options):
        raise NotPositiveDefiniteError("no")

    monkeypatch.setattr(ExactGP, "condition", fails)
    assert context_share._left_out(tied, k, rows, around, W, y, plan) == []


def test_what_a_user_asks_for_stays():
    X, function, noise = plane(1200)
    model = SPNGPRegressor(kernels=SquaredExponential(1.0), noise_variance=0.01, overlap=2.0, **FIXED)
    model.fit(X, function + 0.1 * noise)
    assert context_per_own_row(model) == pytest.approx(2.0, abs=0.05)


def test_outputs_that_are_mostly_missing_leave_the_choice_to_others():
    X, function, noise = plane()
    y = function + 0.1 * noise
    few = np.where(np.arange(2400) % 600, np.nan, 1.0)
    settings = {"kernels": Matern(0.5, 0.03), "noise_variance": 0.01, **FIXED}
    both = SPNGPRegressor(**settings).fit(X, np.stack([y, few], axis=1))
    alone = SPNGPRegressor(**settings).fit(X, y)
    assert both._learnt.overlap == alone._learnt.overlap < 2.0
    assert np.isfinite(both.predict(X[:5])).all()
