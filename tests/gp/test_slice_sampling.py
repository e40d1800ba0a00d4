"""Draws have the moments of the density, wherever the Gaussian around which it is sampled lies."""

import numpy as np
import pytest

from spngp.gp.slice_sampling import elliptical_slices

MEAN = np.array([0.5, -1.0])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.5]])


def log_density(x):
    return -0.5 * (x - MEAN) @ np.linalg.solve(COVARIANCE, x - MEAN)


@pytest.mark.parametrize(
    ("centre", "root"),
    [(MEAN, np.linalg.cholesky(COVARIANCE)), (np.zeros(2), 1.5 * np.eye(2)), (np.array([0.8, -0.5]), np.eye(2))],
)
def test_a_gaussian_around_another(centre, root):
    draws = elliptical_slices(log_density, centre, root, 8000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), MEAN, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.12)


def test_no_draw_where_the_density_is_zero():
    def half(x):
        return -0.5 * float(x @ x) if x[0] > -0.1 else -np.inf

    draws = elliptical_slices(half, np.zeros(1), np.eye(1), 2000, np.random.default_rng(1))
    assert draws.min() > -0.1
    assert draws.max() > 2.0


def test_the_generator_decides():
    first, second, other = (
        elliptical_slices(log_density, MEAN, np.eye(2), 20, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_around_the_density_itself_a_step_forgets_the_last_one():
    draws = elliptical_slices(log_density, MEAN, np.linalg.cholesky(COVARIANCE), 8000, np.random.default_rng(5))
    for column in draws.T:
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 0.05
