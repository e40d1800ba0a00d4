"""Importance of inputs against shares of variance that are known in closed form."""

import numpy as np
import pandas as pd
import pytest

from spngp import SPNGPRegressor
from spngp.estimators.importance import importance_of
from spngp.kernels import SquaredExponential


def ishigami(X):
    """Mean with known shares; the log std depends on the last input alone."""
    mean = np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])
    return np.stack([mean, 0.3 * X[:, 3]], axis=-1)[:, np.newaxis]


FIRST, TOTAL = np.array([0.3139, 0.4424, 0.0, 0.0]), np.array([0.5576, 0.4424, 0.2437, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_shares_of_a_known_function_within_their_errors(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-np.pi, np.pi, (2000, 4))
    found = importance_of(ishigami, X, list("abcd"), 2000, rng).of_one_output()
    for shares, first, total in (
        (found.mean, FIRST, TOTAL),
        (found.log_std, [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]),
    ):
        assert (np.abs(shares.first - first) <= 4 * shares.first_error + 0.005).all()
        assert (np.abs(shares.total - total) <= 4 * shares.total_error + 0.005).all()
        assert (shares.first_error < 0.04).all()
        assert (shares.total_error < 0.08).all()


def test_errors_are_those_of_new_rows():
    def estimates(seed):
        rng = np.random.default_rng(seed)
        found = importance_of(ishigami, rng.uniform(-np.pi, np.pi, (300, 4)), list("abcd"), 300, rng).of_one_output()
        return found.mean

    runs = [estimates(seed) for seed in range(60)]
    spread = np.std([run.total for run in runs], axis=0)[:3]
    stated = np.mean([run.total_error for run in runs], axis=0)[:3]
    assert ((0.6 * spread < stated) & (stated < 1.6 * spread)).all()
    spread = np.std([run.first for run in runs], axis=0)[:2]
    stated = np.mean([run.first_error for run in runs], axis=0)[:2]
    assert ((0.6 * spread < stated) & (stated < 1.7 * spread)).all()


def test_levels_and_inputs_that_move_together():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 1500).astype(float)
    X = np.stack([level, level, rng.standard_normal(1500)], axis=1)

    def predict(rows):
        return np.stack([rows[:, 0] ** 2 + 0 * rows[:, 1], rows[:, 2]], axis=-1)[:, np.newaxis]

    found = importance_of(predict, X, ["a", "twin", "c"], 1500, rng).of_one_output()
    np.testing.assert_allclose(found.mean.first, [1, 1, 0], atol=0.05)  # each tells all
    np.testing.assert_allclose(found.mean.total, [1, 0, 0], atol=0.06)  # only one of them is used


def test_of_a_model_with_names_and_several_outputs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (150, 3)), columns=["width", "height", "colour"])
    Y = np.stack([3 * frame["width"], frame["width"] + frame["height"]], axis=1)
    Y += 0.01 * rng.standard_normal(Y.shape)
    model = SPNGPRegressor(SquaredExponential([1.0] * 3), hyperparameters="tied", random_state=0).fit(frame, Y)
    found = model.importance(frame, most_rows=100)
    assert found.names == ("width", "height", "colour")
    assert found.mean.first.shape == (3, 2)
    assert found.n_rows == 100
    np.testing.assert_allclose(found.mean.total, [[1.0, 0.5], [0.0, 0.5], [0.0, 0.0]], atol=0.15)
    records = found.records(output=1)
    assert {record["input"] for record in records[:2]} == {"width", "height"}
    assert records[0]["mean_total"] >= records[1]["mean_total"] >= records[2]["mean_total"]
    assert "colour" in repr(found)
    assert repr(model.importance(frame)) == repr(model.importance())
    assert np.isfinite(model.importance(frame[:2]).mean.total).all()
    with pytest.raises(ValueError, match=r"^X must have at least 2 rows to compare, got 1$"):
        model.importance(frame[:1])


def test_what_never_varies_has_no_shares():
    rng = np.random.default_rng(0)

    def constant(rows):
        return np.full((rows.shape[0], 1, 2), 7.0)

    found = importance_of(constant, rng.uniform(size=(50, 2)), ["a", "b"], 50, rng)
    assert not found.mean.first.any()
    assert not found.mean.total.any()
