"""A surprise costs nats, not thousands of them; everything else stays as it is."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.gp import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import SquaredExponential
from spngp.learning.noise_shapes import noise_shapes
from spngp.learning.surprises import Surprises, surprise_variances
from spngp.network import Leaf, Split
from spngp.noise import GAUSSIAN


def test_a_shape_with_surprises():
    surprises = Surprises(np.array([100, 400]), np.array([0.5, 0.2]))
    shape = surprises.added_to(GAUSSIAN, 0, 0.01)
    assert shape.weights == pytest.approx((1 - 1 / 200, 1 / 200))
    assert shape.factors == pytest.approx((1.0, 50.0))
    assert surprises.added_to(GAUSSIAN, 1, 4.0).factors == (1.0, 1.0)  # never nearer than the noise
    assert surprises.added_to(GAUSSIAN, 0, 0.0) == GAUSSIAN
    assert Surprises(np.array([100]), None).added_to(GAUSSIAN, 0, 0.01) == GAUSSIAN


def test_the_usual_noise_is_that_of_all_rows():
    network = Split(
        0, [0.0], [Leaf(SquaredExponential(), noise_variance=0.01), Leaf(SquaredExponential(), noise_variance=0.03)]
    )
    X = np.array([[-1.0], [-2.0], [-3.0], [1.0]])
    posterior = network.condition(X, np.zeros(4))
    assert surprise_variances(posterior, np.ones(1), [0.0]) == pytest.approx(25 * (3 * 0.01 + 0.03) / 4)
    assert surprise_variances(posterior, np.array([0.1]), [0.0]) == pytest.approx(0.01)  # at most that of the output
    # where rows that were left out are farther off than the noise says, a surprise is
    assert surprise_variances(posterior, np.ones(1), [0.02]) == pytest.approx(0.5)


def test_what_is_known_of_single_outputs_makes_no_surprise_larger():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (12, 1)), rng.standard_normal(12)
    known = KnownVariances(rng.uniform(0.1, 2.0, 12))
    prior = ExactGP(SquaredExponential(), 0.05)
    latent = []
    for i in range(12):
        others = np.arange(12) != i
        latent.append(prior.condition(X[others], y[others], known=known[others]).predict(X[i : i + 1], latent=True)[1])
    posterior = Leaf(SquaredExponential(), noise_variance=0.05).with_gp(prior.condition(X, y, known=known))
    (found,) = noise_shapes(posterior, 1, None, np.array([np.inf]), True, rng)
    assert found.variance == pytest.approx(np.mean(latent) + 0.05)


def test_a_contradiction_of_a_few_rows_without_noise_costs_little():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (120, 6))
    X[100:] = X[:20]  # rows that repeat, with the same outputs
    y = np.sin(3 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + np.cos(5 * X[:, 3] * X[:, 4])
    model = SPNGPRegressor(random_state=0).fit(X, y)
    mixture = model.predict_dist(X[:20])
    assert mixture.std.max() < 0.5 * np.std(y)
    assert mixture.logpdf(y[:20] + np.std(y)).min() > -12.0


@pytest.mark.long
def test_a_wrong_output_in_a_quiet_region_costs_little():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sin(3 * X[:, 0]) + np.where(X[:, 1] > 0, 0.3, 0.001) * rng.standard_normal(300)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    at = np.array([[0.2, -0.5]])
    mixture = model.predict_dist(at)
    truth = np.sin(0.6)
    assert mixture.logpdf([truth + 2.0]) > -25.0
    low, high = mixture.interval(0.9)
    assert high - low < 0.3
    # the noise that is told is that of the others
    assert model.predict_noise(at)[0] < mixture.std[0]
    exact = SPNGPRegressor(random_state=0, noise_shape="gaussian").fit(X, y).predict_dist(at)
    np.testing.assert_allclose(exact.mean, mixture.mean, rtol=1e-9)
    assert exact.std[0] < mixture.std[0]
