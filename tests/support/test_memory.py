"""The memory limit: predictions do not depend on it, and one that is too small says so."""

import numpy as np
import pytest

from spngp import GPRegressor, SPNGPRegressor
from spngp._support import memory as _memory
from spngp._support.memory import Budget, default_limit
from spngp.kernels import SquaredExponential


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def factors(model):
    return [placed.leaf.gp.has_factor for placed in model.network_.responsibilities()]


@pytest.mark.parametrize("overlap", [pytest.param(0.0, marks=pytest.mark.long), 2.0])
def test_predictions_do_not_depend_on_what_is_kept(overlap):
    X, y = rows(900)
    options = {"max_leaf_size": 150, "overlap": overlap, "random_state": 0, "hyperparameters": "tied"}
    plenty, scarce = (
        SPNGPRegressor(memory_limit=limit, **options).fit(X, y) for limit in (1.0, 0.001 * (1 + overlap) ** 2)
    )
    assert all(factors(plenty))
    assert 0 < sum(factors(scarce)) < len(factors(scarce))
    X_new, y_new = rows(50, seed=1)
    for _ in range(2):
        assert plenty.log_evidence_ == pytest.approx(scarce.log_evidence_, rel=1e-10)
        for got, expected in zip(
            scarce.predict(X_new, return_std=True), plenty.predict(X_new, return_std=True), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-9)
        np.testing.assert_allclose(scarce.sample_y(X_new, 2), plenty.sample_y(X_new, 2), rtol=1e-8, atol=1e-10)
        plenty.partial_fit(X_new, y_new)
        scarce.partial_fit(X_new, y_new)


def test_a_limit_too_small_for_one_leaf_is_refused_before_anything_is_learnt():
    X, y = rows(900)
    model = SPNGPRegressor(max_leaf_size=150, memory_limit=1e-4, n_jobs=2)
    message = (
        r"memory_limit must be at least 0\.02 \(gigabytes\) for 5760 rows in leaves of up to 900 rows on 2 threads"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(ValueError, match="'memory_limit' parameter of SPNGPRegressor must be"):
        SPNGPRegressor(memory_limit=-1.0).fit(X, y)


def test_one_gp_on_all_rows_keeps_its_factor():
    X, y = rows(60)
    assert factors(GPRegressor(hyperparameters="fixed").fit(X, y)) == [True]


def test_the_first_leaves_keep_their_factors_while_there_is_room():
    budget = Budget(limit=1e-9 * 8 * (3 * 10**2 + 30 * 4 + 1.5 * 10**2), threads=1)
    assert budget.keep([10, 10, 10], n_inputs=2) == [True, True, True]
    assert Budget(0.99 * budget.limit, 1).keep([10, 10, 10], n_inputs=2) == [True, True, False]
    assert Budget().keep([10, 10**6], n_inputs=2) == [True, True]
    assert default_limit() > 0.1


def test_a_gigabyte_of_factors_by_default_and_all_that_fit_if_asked_for(monkeypatch):
    monkeypatch.setattr(_memory, "default_limit", lambda: 100.0)
    sizes = [5000] * 6  # 0.2 gigabytes each
    assert Budget.of(100.0, 1).keep(sizes, n_inputs=2) == [True] * 6
    assert Budget.of(None, 1).keep(sizes, n_inputs=2) == [True] * 5 + [False]


def test_rows_repeated_beyond_all_measure_do_not_use_up_the_room():
    assert Budget(limit=1.0).keep([100, 10**6, 100], n_inputs=2)[0]


def test_a_leaf_sees_no_more_rows_than_there_are():
    """However large the overlap: memory is not asked for rows that do not exist."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    kernel = SquaredExponential(1.0)
    model = SPNGPRegressor(kernel, overlap=1000, max_leaf_size=30, hyperparameters="fixed").fit(X, X[:, 0])
    assert {record["rows"] + record["context_rows"] for record in model.regions_} == {80}
