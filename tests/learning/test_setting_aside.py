"""Gross errors are set aside before parameters are learnt that would explain them."""

import numpy as np
import pytest

from spngp import SPNGPRegressor, metrics
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.learning.defaults import default_kernels, noise_parameter
from spngp.learning.setting_aside import errors_in, without_errors

START = ExactGP(default_kernels(4)[0], noise_parameter(1.0, 300))


def block(n: int = 300, seed: int = 0) -> Block:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return Block(X, 0.6 * X[:, 0] - 0.5 * X[:, 1] + 0.4 * np.sin(2.0 * X[:, 2]) + 0.1 * rng.standard_normal(n))


def changed(found: Block, rows: list[int], by: list[float]) -> Block:
    y = found.y.copy()
    y[rows] += by
    return Block(found.X, y)


def test_errors_are_found_that_are_no_farther_off_than_sound_outputs():
    rows = [7, 100, 211]
    found = changed(block(), rows, [-4.0, 4.0, -4.0])
    assert np.flatnonzero(errors_in(START, found)).tolist() == rows
    (kept,) = without_errors(START, [found])
    np.testing.assert_array_equal(kept.y, np.delete(found.y, rows))


def test_an_error_that_another_one_hides_is_found_without_it():
    sound = block()
    near = int(np.argsort(np.square(sound.X - sound.X[7]).sum(axis=1))[1])
    assert errors_in(START, changed(sound, [7, near], [40.0, -3.0])).sum() == 2


@pytest.mark.parametrize(
    ("rows", "by"),
    [([], []), (list(range(0, 300, 10)), [4.0] * 30)],
    ids=["none", "too many to be errors"],
)
def test_nothing_is_set_aside(rows, by):
    found = changed(block(), rows, by)
    assert not errors_in(START, found).any()
    assert without_errors(START, [found])[0] is found


def test_a_peak_that_inputs_tell_of_is_no_error():
    sound = block()
    peak = np.argsort(np.square(sound.X[:, :1] - 1.0).sum(axis=1))[:6].tolist()
    assert not errors_in(START, changed(sound, peak, [6.0] * 6)).any()


def test_of_equal_rows_that_are_merged_nothing_is_known():
    sound = block(30)
    repeated = Block(np.repeat(sound.X, 70, axis=0), np.repeat(sound.y, 70))
    assert not errors_in(START, changed(repeated, [3], [6.0])).any()


@pytest.mark.parametrize("scale", [0.2, 5.0])
def test_of_few_rows_the_scale_of_outputs_does_not_matter(scale):
    sound = block(80)
    found = changed(Block(sound.X, scale * sound.y), [5], [6.0 * scale])
    assert np.flatnonzero(errors_in(START, found)).tolist() == [5]


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_errors_among_outputs_with_hardly_any_noise_are_in_doubt(noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (1100, 2))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.standard_normal(1100)
    rows, wrong = rng.choice(800, 8, replace=False), y[:800].copy()
    wrong[rows] += 6.0 * y.std() * rng.choice([-1.0, 1.0], 8)
    model = SPNGPRegressor(max_leaf_size=200, random_state=0).fit(X[:800], wrong)
    assert set(model.outliers_[:, 0]) == set(rows)
    assert metrics.rmse(model.predict_dist(X[800:]), y[800:]) < 0.002 + 1.2 * noise


def test_a_few_errors_do_not_become_structure():
    """Without setting aside, a short part explained them: one was found, and RMSE was 0.47."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1200, 8))
    w = rng.standard_normal(8) / np.sqrt(8.0)
    X[:, 4:] = np.round(X[:, 4:])
    y = X @ w + 0.5 * np.tanh(2.0 * X[:, 0]) + 0.1 * rng.standard_t(5, 1200)
    errors = np.random.default_rng(103)
    rows = errors.choice(900, 6, replace=False)
    wrong = y[:900].copy()
    wrong[rows] += errors.choice([-6.0, 5.0], 6)
    model = SPNGPRegressor(max_leaf_size=200, random_state=0).fit(X[:900], wrong)
    assert set(rows) <= set(model.outliers_[:, 0])
    assert metrics.rmse(model.predict_dist(X[900:]), y[900:]) < 0.15  # the noise is 0.13
