"""Units: a network put into those of the user is the same distribution, cuts included."""

import numpy as np
import pytest

from spngp.kernels import (
    Constant,
    Linear,
    Matern,
    Parameter,
    Periodic,
    Polynomial,
    RandomSlopes,
    RationalQuadratic,
    SquaredExponential,
)
from spngp.network import Leaf, Product, Split, Sum
from spngp.network.rescaling import in_units
from spngp.network.units import Affine, Units
from spngp.noise import GAUSSIAN, NoiseShape

RNG = np.random.default_rng(20)
UNITS = Units(
    Affine(np.array([2000.0, -3.0]), np.array([12.0, 0.01])), Affine(np.array([50.0, -1.0]), np.array([7.0, 0.3]))
)


def network():
    def experts(output):
        return Sum(
            [
                Leaf(SquaredExponential([1.0, 2.0], 0.7), 0.1, output=output),
                Leaf(Matern(1.5, 0.8, 1.2) + SquaredExponential(0.3, 0.1), 0.3, output=output),
            ],
            weights=[0.3, 0.7],
        )

    both = Product([experts(0), experts(1)])
    return Sum([Split(0, [-0.3, 0.4], [both, both, both]), Split(1, [0.1], [both, Split(0, [0.0], [both, both])])])


@pytest.fixture(scope="module")
def posteriors():
    Z, Y = RNG.standard_normal((40, 2)), RNG.standard_normal((40, 2))
    Y[3, 0] = Y[5, 1] = np.nan
    standard = network().condition(Z, Y)
    shapes = [GAUSSIAN, NoiseShape.scaled([0.8, 0.2], [1.0, 9.0])]
    return standard, in_units(standard, UNITS, lambda leaf: shapes[leaf.output]), Z, Y


def test_moments_and_evidence_are_those_of_the_user(posteriors):
    standard, renewed, _, Y = posteriors
    at = RNG.standard_normal((30, 2))
    expected, found = standard.predict_dist(at), renewed.predict_dist(UNITS.inputs.invert(at))
    np.testing.assert_allclose(found.mean, UNITS.outputs.invert(expected.mean), rtol=1e-11)
    np.testing.assert_allclose(found.std, expected.std * UNITS.outputs.scale, rtol=1e-9)
    shift = (~np.isnan(Y)).sum(axis=0) @ np.log(UNITS.outputs.scale)
    assert renewed.log_evidence == pytest.approx(standard.log_evidence - shift, rel=1e-12)
    np.testing.assert_array_equal(renewed.weights, standard.weights)
    covariance = renewed.covariance(UNITS.inputs.invert(at))
    scaled = standard.covariance(at) * UNITS.outputs.scale[:, np.newaxis, np.newaxis] * UNITS.outputs.scale
    np.testing.assert_allclose(covariance, scaled, rtol=1e-9, atol=1e-12)


def test_the_shape_of_the_noise_is_part_of_the_network(posteriors):
    standard, renewed, _, _ = posteriors
    at = RNG.standard_normal((5, 2))
    plain, shaped = standard.predict_dist(at), renewed.predict_dist(UNITS.inputs.invert(at))
    assert shaped.means.shape[-1] == 2 * plain.means.shape[-1]
    np.testing.assert_allclose(shaped.var, plain.var * UNITS.outputs.scale**2, rtol=1e-9)
    draws = renewed.sample(UNITS.inputs.invert(at), 40_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=-1), shaped.mean, atol=0.03 * UNITS.outputs.scale.max())
    np.testing.assert_allclose(draws.std(axis=-1), shaped.std, rtol=0.02)
    kurtosis = ((draws - draws.mean(axis=-1, keepdims=True)) ** 4).mean(axis=-1) / draws.var(axis=-1) ** 2
    assert kurtosis[:, 1].min() > kurtosis[:, 0].max()


def test_further_rows_are_taken_in_the_units_of_the_user(posteriors):
    standard, renewed, _, _ = posteriors
    more, outputs = RNG.standard_normal((12, 2)), RNG.standard_normal((12, 2))
    expected = in_units(standard.condition(more, outputs), UNITS, lambda leaf: GAUSSIAN)
    found = renewed.condition(UNITS.inputs.invert(more), UNITS.outputs.invert(outputs))
    at = UNITS.inputs.invert(RNG.standard_normal((9, 2)))
    np.testing.assert_allclose(found.predict_dist(at).mean, expected.predict_dist(at).mean, rtol=1e-9)
    assert found.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)


@pytest.mark.parametrize(("mean", "scale"), [(0.0, 1.0), (1e6, 1e-3), (-2000.3, 7e5), (1e-9, 3e-12), (12.5, 0.1)])
def test_a_cut_sends_every_number_the_same_way(mean, scale):
    affine = Affine(np.array([mean]), np.array([scale]))
    for at in RNG.standard_normal(200):
        cut = affine.invert_cut(0, float(at))
        assert affine.apply(np.array([cut]))[0] <= at < affine.apply(np.array([np.nextafter(cut, np.inf)]))[0]


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential([0.5, 2.0], 3.0),
        Matern(0.5, 0.7, 2.0),
        RationalQuadratic(0.7, [0.5, 0.9], 1.3),
        Periodic([1.0, 3.0], 0.6, 2.0),
        Linear([0.5, 2.0], 0.3),
        RandomSlopes([0.5, 2.0], 0.3),
        Constant(2.0) * SquaredExponential(1.5, 1.0) + Matern(2.5, 1.0, 0.2),
        (SquaredExponential(1.0) + Linear(2.0)) * (Matern(1.5) + Constant(0.5)),
    ],
    ids=str,
)
def test_a_rescaled_kernel_has_the_same_covariances(kernel):
    scales, X = np.array([12.0, 0.01]), RNG.standard_normal((7, 2))
    found = kernel.rescaled(scales, 5.0).gram(X * scales)
    np.testing.assert_allclose(found, 25.0 * kernel.gram(X), rtol=1e-12)


def test_what_is_fixed_stays_fixed_and_what_has_no_other_units_says_so():
    kernel = SquaredExponential(Parameter([1.0, 2.0], fixed=[True, False]), Parameter(3.0, fixed=True))
    rescaled = kernel.rescaled(np.array([2.0, 3.0]), 1.0)
    assert rescaled.parameter_names == ("length_scale[1]",)
    assert Polynomial().rescaled(np.ones(2), 1.0) == Polynomial()
    with pytest.raises(ValueError, match=r"Polynomial\(.*cannot be put into other units"):
        Polynomial().rescaled(np.array([2.0, 3.0]), 1.0)
