"""Rows that come later: judged by one rule however they are batched, and safe with several threads."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

import spngp
from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential

GRID = np.linspace(-2, 2, 60)[:, np.newaxis]


def series(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n)


def updated(fitted, X_more, y_more, batch):
    """A copy of the model after further rows, so many at a time."""
    model = copy.copy(fitted)
    for start in range(0, len(y_more), batch):
        model.partial_fit(X_more[start : start + batch], y_more[start : start + batch])
    return model


def assert_same(one, other):
    assert one.outliers_.tolist() == other.outliers_.tolist()
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-9)
    for q in (0.05, 0.5, 0.95):
        np.testing.assert_allclose(one.predict_dist(GRID).quantile(q), other.predict_dist(GRID).quantile(q), atol=1e-6)


@pytest.mark.parametrize("overlap", [0.0, 1.0])
@pytest.mark.parametrize("later", [{3: 1e4}, {3: 1e4, 6: 9e3}, {3: 4.0, 7: -5.0, 8: 1e5, 12: 3e3}])
def test_judgement_does_not_depend_on_batches(later, overlap):
    X, y = series(150)
    X_more, y_more = series(14, seed=1)
    for row, size in later.items():
        y_more[row] += size
    fitted = SPNGPRegressor(max_leaf_size=60, overlap=overlap, random_state=0).fit(X, y)
    together = updated(fitted, X_more, y_more, 14)
    for batch in (1, 5):
        assert_same(updated(fitted, X_more, y_more, batch), together)


@pytest.mark.parametrize(
    "sizes",
    [
        [60.0, -5e3, 4.0],
        pytest.param([5.0], marks=pytest.mark.long),
        pytest.param([5.0, -4.0, 6.0], marks=pytest.mark.long),
        pytest.param([1e4, 9e3], marks=pytest.mark.long),
    ],
)
def test_gross_errors_that_come_later_are_doubted_as_in_fit(sizes):
    X, y = series(300)
    X_more, y_more = series(100, seed=1)
    gross = np.arange(len(sizes)) * 31 + 5
    y_more[gross] += sizes
    model = SPNGPRegressor(random_state=0).fit(X, y).partial_fit(X_more, y_more)
    assert model.outliers_[:, 0].tolist() == (300 + gross).tolist()
    assert np.sqrt(np.mean((model.predict(GRID) - np.sin(2 * GRID[:, 0])) ** 2)) < 0.05
    X_new, y_new = series(1_000, seed=2)
    low, high = model.predict_dist(X_new).interval(0.9)
    assert 0.86 < np.mean((low <= y_new) & (y_new <= high)) < 0.96


def test_outputs_trusted_in_fit_are_not_doubted_later_and_those_doubted_stay_so():
    X, y = series(300)
    y[17] += 5
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert model.outliers_.tolist() == [[17, 0]]
    model.partial_fit(*series(50, seed=1))
    assert model.outliers_.tolist() == [[17, 0]]


def test_an_update_is_exact_given_the_noise_of_each_output():
    X, y = series(150)
    X_more, y_more = series(40, seed=1)
    y_more[[3, 9]] += [5.0, -8.0]
    model = SPNGPRegressor(random_state=0, max_leaf_size=60, overlap=0.0).fit(X, y).partial_fit(X_more, y_more)
    learnt = model._frozen()
    assert learnt.own_noise.shape == learnt.Y.shape == (190, 1)
    own_noise = learnt.own_noise[:, 0] * learnt.units.outputs.scale**2
    X, centred = model.X_train_, model.y_train_ - y.mean()
    assert X.shape == (190, 1)
    for leaf, box, _ in model.network_.responsibilities():
        rows = box.contains(X)
        C = leaf.kernel.gram(X[rows]) + np.diag(np.fmax(own_noise[rows], leaf.noise_variance))
        evidence = -0.5 * centred[rows] @ np.linalg.solve(C, centred[rows])
        evidence -= 0.5 * np.linalg.slogdet(2 * np.pi * C)[1]
        assert leaf.log_evidence == pytest.approx(evidence, rel=1e-9)


def test_trusted_outputs_stay_trusted():
    X, y = series(100)
    model = SPNGPRegressor(random_state=0, outliers="trust").fit(X, y).partial_fit(X[:5], y[:5] + 50.0)
    assert model.outliers_.shape == (0, 2)


def test_no_update_is_lost_among_threads():
    X, y = series(200)
    model = SPNGPRegressor(random_state=0, hyperparameters="fixed")
    more = [series(10, seed=seed) for seed in range(8)]
    model.fit(X, y)
    start = threading.Barrier(8)

    def update(rows):
        start.wait()
        model.partial_fit(*rows)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(update, more))
    assert model.row_numbers_.size == 280
    seen = set(zip(model.X_train_[:, 0].tolist(), model.y_train_.tolist(), strict=True))
    assert all(set(zip(rows[:, 0].tolist(), outputs.tolist(), strict=True)) <= seen for rows, outputs in more)


def test_the_first_of_several_updates_fits_and_the_others_add():
    model = SPNGPRegressor(random_state=0, hyperparameters="fixed")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: model.partial_fit(*series(30, seed=seed)), range(4)))
    assert model.row_numbers_.size == 120


def test_predictions_see_the_model_before_or_after_an_update(monkeypatch):
    # the update happens between two batches of one call
    X, y = series(100)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    before, batches = model.predict(GRID), SPNGPRegressor._batches

    def update_after_the_first(self, X, units):
        for batch in batches(self, X, units, 20):
            yield batch
            model.partial_fit([[0.0]], [2.0])

    monkeypatch.setattr(SPNGPRegressor, "_batches", update_after_the_first)
    np.testing.assert_allclose(model.predict(GRID), before, rtol=1e-12)  # products of fewer rows round otherwise
    mean, std = model.predict(GRID, return_std=True)
    monkeypatch.undo()
    assert np.abs(model.predict(GRID) - mean).max() > 1e-3
    assert std.shape == mean.shape


def test_a_failed_fit_or_update_leaves_the_model_as_it_was():
    X, y = series(100)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    before, state = model.predict(GRID), dict(model.__dict__)
    with pytest.raises(ValueError, match="too far from the other values"):
        model.partial_fit(X, np.append(y[1:], 1e300))
    with pytest.raises(ValueError, match="too far from the other values"):
        model.fit(np.hstack([X, X]), np.append(y[1:], 1e300))
    assert {name: id(value) for name, value in model.__dict__.items()} == {
        name: id(value) for name, value in state.items()
    }
    np.testing.assert_array_equal(model.predict(GRID), before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda model: model.partial_fit([[0.5]], None), "requires y to be passed"),
        (lambda model: model.partial_fit([[0.5]], 1.0), r"y must have shape \(n,\) or \(n, p\), got \(\)"),
        (lambda model: model.forget(rows=model.row_numbers_ > 2), r"got a mask; give row_numbers_\[mask\]"),
        (lambda model: model.forget(rows=["first"]), "as in row_numbers_, got 'first'"),
    ],
)
def test_what_an_update_cannot_take_is_said_in_one_line(change, said):
    X = np.linspace(0.0, 1.0, 12)[:, np.newaxis]
    model = SPNGPRegressor(SquaredExponential(), hyperparameters="fixed", noise_variance=0.01).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=said) as error:
        change(model)
    assert "\n" not in str(error.value)


def test_models_that_were_updated_are_copied_pickled_cloned_and_saved(tmp_path):
    X, y = series(100)
    model = SPNGPRegressor(random_state=0).fit(X[:80], y[:80]).partial_fit(X[80:90], y[80:90])
    model.save(tmp_path / "m")
    copies = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), spngp.load(tmp_path / "m")]
    expected = model.partial_fit(X[90:], y[90:]).predict(GRID)
    for other in copies:
        np.testing.assert_allclose(other.partial_fit(X[90:], y[90:]).predict(GRID), expected, rtol=1e-9)
    assert not hasattr(clone(model), "_learnt")
