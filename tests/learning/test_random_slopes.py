"""Lines that differ by level, as mixed models have them: offered, found, kept and streamed like any other kernel."""

import numpy as np
import pandas as pd
import pytest

from spngp import SPNGPRegressor, load, metrics
from spngp.kernels import RandomSlopes
from spngp.learning.defaults import default_kernels

BY_LEVEL = "RandomSlopes + SquaredExponential"


def lines(n: int, seed: int = 0, n_levels: int = 12) -> tuple[pd.DataFrame, np.ndarray]:
    """A line for each level, and a curve that all share."""
    shift, slope = np.random.default_rng(99).standard_normal((2, n_levels))
    rng = np.random.default_rng(seed)
    level, a, b = rng.integers(0, n_levels, n), rng.uniform(-2.0, 2.0, n), rng.uniform(-2.0, 2.0, n)
    y = shift[level] + slope[level] * a + np.sin(2.0 * b) + 0.2 * rng.standard_normal(n)
    return pd.DataFrame({"a": a, "b": b, "level": [f"level {i}" for i in level]}), y


@pytest.fixture(scope="module")
def model() -> SPNGPRegressor:
    return SPNGPRegressor(max_leaf_size=100, random_state=0).fit(*lines(320))


@pytest.mark.parametrize(("levels", "offered"), [((), False), ((0, 2), False), ((0, 3), True)])
def test_offered_where_there_are_more_than_two_levels(levels, offered):
    kernels = default_kernels(2, levels)
    assert any(isinstance(part, RandomSlopes) for kernel in kernels for part in getattr(kernel, "parts", ())) == offered


def test_lines_by_level_are_recognised(model):
    X, y = lines(500, seed=1)
    weights = model.predict_kernel_weights(X).mean(axis=0)
    assert model.kernel_names_[weights.argmax()] == BY_LEVEL
    assert weights.max() > 0.5
    assert metrics.rmse(model.predict_dist(X), y) < 0.26  # the noise is 0.2


def test_saved_and_opened(model, tmp_path):
    X, _ = lines(50, seed=2)
    model.save(tmp_path / "lines.spngp")
    found = load(tmp_path / "lines.spngp").predict(X, return_std=True)
    np.testing.assert_allclose(found, model.predict(X, return_std=True), rtol=1e-9)


def test_rows_that_come_one_at_a_time_count_as_rows_of_one_batch():
    rows, (X, y), (X_new, _) = lines(320), lines(9, seed=3), lines(20, seed=4)
    settings = {"max_leaf_size": 100, "hyperparameters": "tied", "random_state": 0}
    at_once, one_by_one = (SPNGPRegressor(**settings).fit(*rows) for _ in range(2))
    assert BY_LEVEL in at_once.kernel_names_
    at_once.partial_fit(X, y)
    for i in range(y.size):
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1])
    found = one_by_one.predict(X_new, return_std=True)
    np.testing.assert_allclose(found, at_once.predict(X_new, return_std=True), rtol=1e-8)
