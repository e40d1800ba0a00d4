import numpy as np
import pytest
from scipy import integrate

from spngp import metrics
from spngp.predictive import GaussianMixture


@pytest.fixture
def mixture():
    weights = np.array([[0.3, 0.7], [1.0, 0.0]])
    with np.errstate(divide="ignore"):
        return GaussianMixture(
            np.log(weights), np.array([[-1.0, 2.0], [0.5, 9.0]]), np.array([[0.25, 1.0], [4.0, 1.0]])
        )


def test_crps_equals_the_integral_of_squared_cdf_differences(mixture):
    y = np.array([0.4, -3.0])

    def integral(row):
        def squared(t):
            return (mixture.cdf(np.full(2, t))[row] - (t >= y[row])) ** 2

        return integrate.quad(squared, -20, 20, points=[y[row]], limit=400)[0]

    assert metrics.crps(mixture, y) == pytest.approx(np.mean([integral(0), integral(1)]), rel=1e-6)


def test_rmse_and_nlpd_by_hand(mixture):
    y = np.array([1.1, 0.5])  # the mean of the first is 0.3·(−1) + 0.7·2 = 1.1
    assert metrics.rmse(mixture, y) == pytest.approx(0.0, abs=1e-12)
    assert metrics.rmse(mixture, y + np.array([0.0, 2.0])) == pytest.approx(np.sqrt(2.0))
    second = 0.5 * np.log(2 * np.pi * 4.0)
    first = -np.log(
        0.3 * np.exp(-0.5 * 2.1**2 / 0.25) / np.sqrt(2 * np.pi * 0.25) + 0.7 * np.exp(-0.5 * 0.81) / np.sqrt(2 * np.pi)
    )
    assert metrics.nlpd(mixture, y) == pytest.approx(0.5 * (first + second))


def test_coverage_sharpness_and_pit_of_a_calibrated_prediction():
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2.0, 20_000)
    mixture = GaussianMixture(np.zeros((20_000, 1)), np.zeros((20_000, 1)), std[:, np.newaxis] ** 2)
    y = std * rng.standard_normal(20_000)
    assert metrics.coverage(mixture, y) == pytest.approx(0.95, abs=0.006)
    assert metrics.sharpness(mixture) == pytest.approx(2 * 1.959964 * std.mean(), rel=1e-6)
    assert np.quantile(metrics.pit(mixture, y), [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.015)


def test_missing_observations_are_left_out_and_shapes_are_checked(mixture):
    assert metrics.rmse(mixture, [np.nan, 0.5]) == 0.0
    assert metrics.coverage(mixture, [np.nan, 0.5]) == 1.0
    with pytest.raises(ValueError, match=r"y must have the shape of the predictions, \(2,\), got \(3,\)"):
        metrics.nlpd(mixture, np.zeros(3))
