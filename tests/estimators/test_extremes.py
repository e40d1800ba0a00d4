"""Faults that the torture section of ``make soak`` found: evidences and parameters far beyond the usual."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp._linalg.square import NotPositiveDefiniteError
from spngp.kernels import Polynomial, SquaredExponential
from spngp.network import Leaf, Sum
from spngp.predictive import GaussianMixture

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (60, 2))
Y = 20 * np.sin(40 * X[:, 0]) + 0.1 * RNG.standard_normal(60)


def fixed(kernel, **options):
    return SPNGPRegressor(kernel, hyperparameters="fixed", noise_variance=0.01, random_state=1, **options)


@pytest.mark.parametrize("structure", ["compact", "random"])
def test_a_partition_whose_probability_is_zero_is_left_out(structure):
    """Its regions are no longer there to be searched for context, but the rows inside them are."""
    model = fixed(SquaredExponential(), n_partitions=2, max_leaf_size=30, structure=structure).fit(X, Y)
    (best,) = (weights := model.network_.weights)[weights > 0]
    assert best == 1.0
    assert all(record["context_rows"] > 0 for record in model.regions_ if record["weight"] > 0)
    assert np.isfinite(model.predict_dist(X).logpdf(Y)).all()
    model.partial_fit(X[:2], Y[:2])
    assert np.isfinite(model.predict_dist(X).logpdf(Y)).all()


def test_equal_experts_share_an_evidence_of_any_size():
    leaf = Leaf(SquaredExponential(), noise_variance=0.1)
    posterior = Sum([leaf, leaf], weights=[0.25, 0.75]).condition(X, 1e130 * Y)
    assert posterior.log_evidence < -1e260
    np.testing.assert_allclose(posterior.weights, [0.25, 0.75], rtol=1e-12)
    assert np.isfinite(posterior.predict_dist(X).mean).all()


def test_equal_experts_share_an_evidence_of_any_size_after_an_update():
    kernel = SquaredExponential()
    model = fixed([kernel, kernel], max_leaf_size=500).fit(X, 1e60 * Y)
    model.partial_fit(X[:3], 1e60 * Y[:3])
    np.testing.assert_allclose(model.predict_kernel_weights(X[:5]), 0.5, rtol=1e-12)


@pytest.mark.parametrize("length_scale", [1e-300, 1e-160, 1e160, 1e300])
def test_length_scales_whose_squares_are_no_numbers(length_scale):
    model = fixed(SquaredExponential(length_scale), max_leaf_size=20).fit(X, Y)
    assert np.isfinite(model.predict_dist(X).logpdf(Y)).all()


def test_slopes_that_overflow_are_not_what_a_person_is_told_about():
    with pytest.raises(NotPositiveDefiniteError, match="covariance matrix is not finite: it overflows"):
        fixed(Polynomial(3, offset=1e181, variance=1e33), max_leaf_size=20).fit(X, Y)


def test_variances_that_are_no_numbers_are_refused():
    means = np.array([[-1e160, 1e160]])
    with pytest.raises(ValueError, match="the variance overflows: components differ by more than 1e154; rescale y"):
        _ = GaussianMixture(np.log([[0.5, 0.5]]), means, np.ones((1, 2))).var
    far = [Leaf(SquaredExponential(1.0, variance), noise_variance=variance) for variance in (1e300, 1e302)]
    posterior = Sum(far).condition(X[:1], [1e154])
    assert np.isfinite(posterior.covariance(X[:1])).all()
    apart = Sum([Leaf(SquaredExponential(1.0, 1e5)), Leaf(SquaredExponential(1.0, 1e-5))]).condition(X[:1], [1e140])
    with np.errstate(over="raise"):
        assert np.isfinite(apart.covariance(X[:1])).all()


def test_inputs_that_differ_by_less_than_a_float_can_tell_are_constant():
    X = np.array([[-1e-323, 0.0, 1.0], [5e-324, 5e-324, 1.0]])  # the spread of the second is no float but 0
    model = SPNGPRegressor(random_state=0).fit(X, [0.0, 1.0])
    assert np.isfinite(model.predict(X, return_std=True)).all()
