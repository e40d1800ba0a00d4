"""Outputs in doubt: rows with weights against plain linear algebra, and what a model makes of planted outliers."""

import numpy as np
import pytest
from scipy import stats

from spngp import GPRegressor, SPNGPRegressor
from spngp.gp import exact as leaf
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out, misleading_rows
from spngp.kernels import Matern, Parameter, SquaredExponential
from spngp.learning.doubt import outliers
from spngp.network import Leaf, Split, Sum
from spngp.network.conditioning import condition, no_factors


def _naive(kernel, noise, X, y, weights, X_context, y_context, context_weights, X_new):
    """Evidence of the own rows; mean and variance given all rows."""
    C = kernel.gram(X) + np.diag(noise / weights)
    evidence = stats.multivariate_normal(np.zeros(len(y)), C).logpdf(y)
    rows, outputs = np.vstack([X, X_context]), np.concatenate([y, y_context])
    C = kernel.gram(rows) + np.diag(noise / np.concatenate([weights, context_weights]))
    cross = kernel.gram(X_new, rows)
    mean = cross @ np.linalg.solve(C, outputs)
    variance = np.diag(kernel.gram(X_new)) - np.einsum("ij,ji->i", cross, np.linalg.solve(C, cross.T))
    return evidence, mean, variance


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 2)).round(1)
    X[5], X[9] = X[2], X[2]  # equal rows
    return X, rng.normal(size=16), rng.uniform(0.01, 1.0, 16), rng.normal(size=(4, 2))


@pytest.mark.parametrize("merged_above", [2000, 3])
@pytest.mark.parametrize("steps", [1, 2])
def test_weights_divide_the_noise_of_their_rows(rows, merged_above, steps, monkeypatch):
    monkeypatch.setattr(leaf, "_MERGED_ABOVE", merged_above)
    X, y, w, X_new = rows
    kernel, noise = Matern(1.5, [0.8, 1.2], 1.3), 0.1
    gp = ExactGP(kernel, noise)
    for part in np.array_split(np.arange(12), steps):
        gp = gp.condition(X[part], y[part], weights=w[part])
    gp = gp.condition(X[:0], y[:0], X[12:], y[12:], context_weights=w[12:])
    evidence, mean, variance = _naive(kernel, noise, X[:12], y[:12], w[:12], X[12:], y[12:], w[12:], X_new)
    assert gp.log_evidence == pytest.approx(evidence, rel=1e-9)
    assert gp.n_own == 12
    np.testing.assert_allclose(gp.predict(X_new, latent=True), (mean, variance), atol=1e-9)
    without = ExactGP(kernel, noise).condition(
        X[:12], y[:12], X[12:], y[12:], weights=w[:12], context_weights=w[12:], keep_factor=False
    )
    np.testing.assert_allclose(without.predict(X_new), gp.predict(X_new), atol=1e-9)


def test_weights_of_one_change_nothing(rows):
    X, y, _, X_new = rows
    prior = ExactGP(SquaredExponential(), 0.1)
    plain, weighted = prior.condition(X, y), prior.condition(X, y, weights=np.ones(16))
    assert plain.log_evidence == weighted.log_evidence
    np.testing.assert_array_equal(plain.predict(X_new), weighted.predict(X_new))


def test_leave_one_out_of_a_weighted_row(rows):
    X, y, w, _ = rows
    prior = ExactGP(SquaredExponential(0.5), 0.1)
    residuals, variances = leave_one_out(prior.condition(X, y, weights=w), np.array([3]))
    others = np.arange(16) != 3
    mean, variance = prior.condition(X[others], y[others], weights=w[others]).predict(X[[3]], latent=True)
    np.testing.assert_allclose([residuals[0], variances[0]], [y[3] - mean[0], variance[0]], atol=1e-10)


def _series(n, outliers, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, n))
    y = np.sin(x) + 0.1 * rng.normal(size=n)
    y[outliers] += np.where(np.arange(len(outliers)) % 2, 4.0, -4.0)
    return x[:, np.newaxis], y


@pytest.mark.parametrize(
    "model", [SPNGPRegressor(max_leaf_size=50), pytest.param(SPNGPRegressor(), marks=pytest.mark.long), GPRegressor()]
)
def test_planted_outliers_are_found_and_do_not_pull(model):
    planted = [15, 56, 100, 166]
    X, y = _series(200, planted)
    X_clean, y_clean = np.delete(X, planted, axis=0), np.delete(y, planted)
    found = model.set_params(random_state=0).fit(X, y)
    assert found.outliers_.tolist() == [[row, 0] for row in planted]
    near = X[planted]
    means = found.predict(near)
    trusting = model.set_params(outliers="trust").fit(X, y)
    assert trusting.outliers_.shape == (0, 2)
    pulled = np.abs(trusting.predict(near) - np.sin(near[:, 0])).mean()
    assert np.abs(means - np.sin(near[:, 0])).mean() < 0.06
    assert np.abs(means - np.sin(near[:, 0])).mean() < pulled
    clean = model.fit(X_clean, y_clean)
    np.testing.assert_allclose(means, clean.predict(near), atol=0.05)


@pytest.mark.parametrize(
    "seed", [3, pytest.param(12, marks=pytest.mark.long), pytest.param(17, marks=pytest.mark.long)]
)
def test_an_outlier_hidden_by_a_larger_one_is_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(150, 1))
    y = 3 * np.sin(2 * X[:, 0]) + 10 + 0.2 * rng.normal(size=150)
    y[5] += 30
    y[40] -= 12
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert model.outliers_[:, 0].tolist() == [5, 40]
    new = np.linspace(-2, 2, 200)[:, np.newaxis]
    assert np.sqrt(np.mean((model.predict(new) - 3 * np.sin(2 * new[:, 0]) - 10) ** 2)) < 0.1


def test_only_regions_near_outputs_in_doubt_are_looked_at_again():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 80)[:, np.newaxis]
    Y = np.sin(6 * X) + 0.05 * rng.normal(size=X.shape)
    Y[[10, 70]] += 5
    halves = [Leaf(SquaredExponential(0.3, 1.0), Parameter(0.01, (1e-6, 1.0))) for _ in range(2)]
    own = condition(Split(0, [0.5], halves), X, Y)
    assert np.flatnonzero(~np.isnan(outliers(own, X, Y))).tolist() == [10, 70]
    near = np.zeros(Y.shape, dtype=bool)
    near[12] = True
    assert np.flatnonzero(~np.isnan(outliers(own, X, Y, near=near))).tolist() == [10]


def test_a_second_look_is_for_what_was_hidden_and_not_for_ordinary_surprises():
    X = np.linspace(0, 1, 40)[:, np.newaxis]
    Y = np.sin(6 * X) + 0.05 * np.random.default_rng(0).normal(size=X.shape)
    Y[20] += 0.7  # six or seven standard deviations
    own = condition(Leaf(SquaredExponential(0.3, 1.0), Parameter(0.01, (1e-6, 1.0))), X, Y)
    assert np.flatnonzero(~np.isnan(outliers(own, X, Y))).tolist() == [20]
    assert outliers(own, X, Y, near=np.ones(Y.shape, dtype=bool)) is None


def test_no_row_is_dropped_and_noise_tells_of_the_outliers():
    planted = [30, 111, 200, 333]
    X, y = _series(400, planted)
    model = SPNGPRegressor(max_leaf_size=100, random_state=0).fit(X, y)
    boxes = {(tuple(record["low"]), tuple(record["high"])): record["rows"] for record in model.regions_}
    assert sum(boxes.values()) == 400
    assert model.predict_dist(X[[30]]).logpdf(y[[30]])[0] > -12.0  # tails know that such outputs happen
    core = SPNGPRegressor(max_leaf_size=100, random_state=0).fit(*_series(400, []))
    assert (model.predict_noise(X) > core.predict_noise(X)).mean() > 0.9


def test_gaussian_noise_raises_no_doubt():
    X, y = _series(2000, [])
    assert len(SPNGPRegressor(random_state=0).fit(X, y).outliers_) == 0


def test_update_after_doubt_is_exact():
    planted = [30, 111]
    X, y = _series(300, planted)
    X_more, y_more = _series(60, [], seed=5)
    model = SPNGPRegressor(max_leaf_size=100, random_state=0, overlap=1.0).fit(X, y)
    again = SPNGPRegressor(max_leaf_size=100, random_state=0, overlap=1.0).fit(X, y)
    again.partial_fit(X_more[:30], y_more[:30]).partial_fit(X_more[30:], y_more[30:])
    model.partial_fit(X_more, y_more)
    assert model.outliers_.tolist() == [[row, 0] for row in planted]
    grid = np.linspace(0, 10, 50)[:, np.newaxis]
    np.testing.assert_allclose(model.predict(grid, return_std=True), again.predict(grid, return_std=True), atol=1e-8)


@pytest.mark.long
def test_each_output_is_doubted_alone():
    X, y = _series(120, [50])
    _, clean = _series(120, [], seed=1)
    model = SPNGPRegressor(random_state=0).fit(X, np.column_stack([clean, y]))
    assert model.outliers_.tolist() == [[50, 1]]


def _loo_log_density(prior, X, y):
    total = 0.0
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        mean, variance = prior.condition(X[others], y[others]).predict(X[[row]])
        total += stats.norm(mean[0], np.sqrt(variance[0])).logpdf(y[row])
    return total


def test_outliers_of_a_leaf_are_those_without_which_the_others_are_better_predicted():
    rng = np.random.default_rng(8)
    X = np.sort(rng.uniform(0, 6, 30))[:, np.newaxis]
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    y[7] += 3.0
    y[20] -= 1.2
    prior = ExactGP(SquaredExponential(1.0), 0.02)
    kept, expected, passed = np.arange(30), [], set()
    while True:  # naive: every candidate is left out, and all others are left out in turn
        z = [
            abs(r) / np.sqrt(v + 0.02)
            for r, v in zip(*leave_one_out(prior.condition(X[kept], y[kept]), np.arange(kept.size)), strict=True)
        ]
        order = [i for i in np.argsort(z)[::-1] if z[i] > 5.0 and kept[i] not in passed]
        if not order:
            break
        without = np.delete(kept, order[0])
        row = int(kept[order[0]])
        before = _loo_log_density(prior, X[kept], y[kept])
        mean, variance = prior.condition(X[without], y[without]).predict(X[[row]])
        before -= stats.norm(mean[0], np.sqrt(variance[0])).logpdf(y[row])  # the candidate's own share
        if _loo_log_density(prior, X[without], y[without]) > before:
            expected.append((row, (y[row] - mean[0]) ** 2))
            kept = without
        else:
            passed.add(row)
    rows, squares = misleading_rows(prior.condition(X, y), 5.0)
    assert {row for row, _ in expected} >= {7, 20}
    assert rows.tolist() == [row for row, _ in expected]
    np.testing.assert_allclose(squares, [square for _, square in expected], rtol=1e-6)


@pytest.mark.parametrize("hyperparameters", ["tied", "adaptive"])
def test_parameters_of_several_regions_are_learnt_again_without_outliers(hyperparameters):
    planted = [30, 111, 200, 333, 400, 500]
    X, y = _series(600, planted)
    model = SPNGPRegressor(max_leaf_size=100, hyperparameters=hyperparameters, random_state=0).fit(X, y)
    assert model.outliers_[:, 0].tolist() == planted
    noise = [np.sqrt(leaf.noise_variance) for leaf, _, weight in model.network_.responsibilities() if weight > 0.1]
    assert max(noise) < 0.16  # 0.1 in truth; 0.4 with the outliers


@pytest.mark.long
def test_a_sharp_function_without_noise_raises_no_doubt():
    x = np.sort(np.random.default_rng(0).uniform(-1, 1, 400))
    y = np.sin(10 * x) + 5 * np.exp(-0.5 * (x / 0.006) ** 2)
    assert len(SPNGPRegressor(random_state=0).fit(x[:, np.newaxis], y).outliers_) == 0


@pytest.mark.long
def test_gaussian_shape_carries_the_variance_of_outliers():
    rng = np.random.default_rng(9)
    x = np.sort(rng.uniform(0, 10, 900))[:, np.newaxis]
    noise = 0.1 * rng.normal(size=900) + np.where(rng.random(900) < 0.02, rng.choice([-1.2, 1.2], 900), 0.0)
    y = np.sin(x[:, 0]) + noise
    test = np.arange(900) % 3 == 0
    for shape in ("gaussian", "learnt"):
        model = SPNGPRegressor(noise_shape=shape, random_state=0).fit(x[~test], y[~test])
        mean, std = model.predict(x[test], return_std=True)
        assert len(model.outliers_) > 5
        assert 0.8 < np.sqrt(np.mean(((y[test] - mean) / std) ** 2)) < 1.3


@pytest.mark.parametrize("weights", [np.ones(2), np.array([1.0, -1.0, 1.0]), np.array([1.0, np.nan, 1.0])])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be 3 positive numbers"):
        ExactGP(SquaredExponential()).condition([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], weights=weights)


def test_leaves_without_outliers_are_taken_as_they_are_known():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 4, (40, 1)), axis=0)
    Y = np.sin(3 * X) + 0.1 * rng.normal(size=X.shape)
    kernels = [("SE", SquaredExponential(0.5)), ("Matern", Matern(1.5, 0.5))]
    experts = [Sum([Leaf(kernel, 0.01, label=label) for label, kernel in kernels]) for _ in range(2)]
    prior = Split(0, 2.0, experts)
    known = condition(prior, X, Y, keep=no_factors)
    own_noise = np.full(Y.shape, np.nan)
    own_noise[3] = 0.5  # on the left
    expected = condition(prior, X, Y, own_noise=own_noise)
    got = condition(prior, X, Y, own_noise=own_noise, known=known)
    assert got.log_evidence == expected.log_evidence != known.log_evidence
    left, right = got.children
    assert [a is b for a, b in zip(left.children, known.children[0].children, strict=True)] == [False, False]
    assert [a is b for a, b in zip(right.children, known.children[1].children, strict=True)] == [True, True]
    # a prior with other parameters is another leaf
    shorter = Leaf(SquaredExponential(0.4), 0.01, label="SE")
    other = Split(0, 2.0, [experts[0], Sum([shorter, experts[1].children[1]])])
    got = condition(other, X, Y, own_noise=own_noise, known=known)
    assert got.log_evidence == condition(other, X, Y, own_noise=own_noise).log_evidence
    assert got.children[1].children[1] is known.children[1].children[1]


@pytest.mark.long
def test_of_few_rows_an_error_that_made_all_the_noise_is_found_and_sound_rows_are_not():
    # a row can be √20 = 4.5 standard deviations off, if these are learnt from it as well
    named = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 9])
        X = rng.uniform(-1, 1, (20, 1))
        y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(20)
        assert not len(SPNGPRegressor(random_state=0).fit(X, y).outliers_)
        y[4] += 12.0
        named.append(4 in SPNGPRegressor(random_state=0).fit(X, y).outliers_[:, 0])
    assert sum(named) >= 5


def test_of_few_rows_the_limit_is_as_improbable_as_of_many():
    prior = ExactGP(SquaredExponential(variance=1e-6), 1.0)
    X = np.arange(12.0)[:, np.newaxis]
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    limit = stats.t.isf(stats.norm.sf(4.0), 11)
    for size, expected in ((0.95 * limit, []), (1.05 * limit, [3])):
        y[3] = size
        assert misleading_rows(prior.condition(X, y), 4.0)[0].tolist() == expected


def test_a_partition_that_an_absurd_output_rules_out_leaves_no_gap():
    """The first partition tiles the space for the search of context, even if its weight is zero to the last bit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + rng.normal(size=40)
    y[13] = 3.8e19
    settings = {"max_leaf_size": 20, "overlap": 0.5, "n_partitions": 3, "hyperparameters": "fixed", "random_state": 0}
    model = SPNGPRegressor(**settings).fit(X, y)
    assert len(model.network_.children) == 1  # the others are ruled out
    assert np.isfinite(model.predict(X)).all()
