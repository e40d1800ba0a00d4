import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive_committees as naive
from spngp import GPRegressor, datasets
from spngp.committees import (
    RULES,
    BayesianCommitteeMachine,
    GeneralizedProductOfExperts,
    ProductOfExperts,
    RobustBayesianCommitteeMachine,
)
from spngp.estimators.expert_groups import affordable, compact_groups
from spngp.gp.exact import ExactGP
from spngp.kernels import Linear, Matern, SquaredExponential

COMMITTEES = {
    "PoE": ProductOfExperts,
    "gPoE": GeneralizedProductOfExperts,
    "BCM": BayesianCommitteeMachine,
    "rBCM": RobustBayesianCommitteeMachine,
}
every_rule = pytest.mark.parametrize("rule", COMMITTEES)


@parametrize_with_checks([committee(random_state=0) for committee in COMMITTEES.values()])
def test_scikit_learns_common_checks(estimator, check):
    check(estimator)


def rows(n=60, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, 10 + 5 * np.sin(X).sum(axis=1) + rng.standard_normal(n)


@every_rule
@pytest.mark.parametrize("assignment", ["random", "regions"])
@pytest.mark.parametrize("kernel", [SquaredExponential([0.7, 1.5], 2.0), Matern(1.5, 1.2) + Linear(0.3, 0.2)])
def test_equals_the_textbook_in_the_users_units(rule, assignment, kernel):
    X, y = rows()
    X_new = np.vstack([rows(12, seed=1)[0], [[50.0, -50.0]]])  # the last is far from everything
    model = COMMITTEES[rule](
        kernel, n_experts=5, assignment=assignment, hyperparameters="fixed", noise_variance=0.8, random_state=0
    ).fit(X, y)
    assert np.sort(np.concatenate(model.expert_rows_)).tolist() == list(range(60))
    groups = [(X[own], y[own] - y.mean()) for own in model.expert_rows_]
    for latent in (True, False):
        found = model.predict_dist(X_new, latent=latent)
        expected = [naive.predict(rule, kernel, 0.8, groups, x, latent) for x in X_new]
        np.testing.assert_allclose(found.mean, [y.mean() + mean for mean, _ in expected], rtol=1e-10)
        np.testing.assert_allclose(found.var, [variance for _, variance in expected], rtol=1e-10)


@pytest.mark.parametrize("rule", ["PoE", "gPoE", "BCM"])
@pytest.mark.parametrize("hyperparameters", ["fixed", "tied"])
def test_one_expert_is_the_full_gp(rule, hyperparameters):
    X, y = rows(120)
    X_new = np.vstack([rows(50, seed=1)[0], X[:5]])
    kernel = Matern(1.5, [1.0, 1.0])
    committee = COMMITTEES[rule](kernel, n_experts=1, hyperparameters=hyperparameters, random_state=0).fit(X, y)
    single = GPRegressor(kernel, hyperparameters=hyperparameters, noise_shape="gaussian", random_state=0).fit(X, y)
    for latent in (False, True):
        ours, theirs = (model.predict_dist(X_new, latent=latent) for model in (committee, single))
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-10)
        np.testing.assert_allclose(ours.var, theirs.var, rtol=1e-10)
    assert committee.log_evidence_ == pytest.approx(single.log_evidence_, rel=1e-12)


def test_far_from_all_rows_each_rule_says_what_it_is_known_for():
    X, y = rows()
    kernel = SquaredExponential(variance=7.0)
    found = {
        rule: committee(kernel, n_experts=6, hyperparameters="fixed", noise_variance=0.5, random_state=0)
        .fit(X, y)
        .predict_dist([[1e4, 1e4]], latent=True)
        for rule, committee in COMMITTEES.items()
    }
    for mixture in found.values():
        assert mixture.mean[0] == pytest.approx(y.mean())
    assert found["PoE"].var[0] == pytest.approx(7.0 / 6)  # sure of nothing, six times
    for rule in ("gPoE", "BCM", "rBCM"):
        assert found[rule].var[0] == pytest.approx(7.0)


def test_all_rules_from_one_prediction():
    X, y = rows(90)
    models = {rule: committee(n_experts=4, random_state=3).fit(X, y) for rule, committee in COMMITTEES.items()}
    assert list(models["PoE"].predict_dist_by_rule(X)) == list(RULES) == list(COMMITTEES)
    for rule, mixture in models["BCM"].predict_dist_by_rule(X).items():
        np.testing.assert_array_equal(mixture.mean, models[rule].predict(X))


def test_tied_parameters_maximise_the_sum_of_the_experts_evidences():
    X, y = rows(160)
    model = ProductOfExperts(n_experts=4, random_state=0).fit(X, y)
    Z, z = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    gp = model.experts_[0][0]
    prior = ExactGP(gp.kernel, gp.noise_variance)

    def evidence(theta):
        moved = prior.with_theta(theta)
        return sum(moved.condition(Z[own], z[own]).log_evidence for own in model.expert_rows_)

    best = evidence(prior.theta)
    assert model.log_evidence_ == pytest.approx(best - 160 * np.log(y.std()), rel=1e-10)
    for i in range(prior.theta.size):
        for step in (-0.5, 0.5):
            assert evidence(prior.theta + step * np.eye(prior.theta.size)[i]) < best + 0.05
    assert model.noise_std_ == pytest.approx(1.0, rel=0.3)
    assert model.score(X, y) > 0.9


def test_regions_are_compact_even_and_exact_in_number():
    X = np.random.default_rng(0).uniform(0, 1, (1000, 2)) * [10.0, 1.0]
    groups = compact_groups(X, 10)
    assert sorted(group.size for group in groups) == [100] * 10
    assert np.sort(np.concatenate(groups)).tolist() == list(range(1000))
    assert max(np.ptp(X[group], axis=0).max() for group in groups) < 2.5
    assert [group.size for group in compact_groups(np.ones((7, 1)), 7)] == [1] * 7  # nothing to cut by


def test_several_outputs_and_missing_ones_are_committees_of_their_own():
    X, y = rows(80)
    Y = np.column_stack([y, -3 * y + 1, X[:, 0]])
    Y[::7, 1] = np.nan
    kernel = SquaredExponential()
    settings = {"n_experts": 4, "hyperparameters": "fixed", "noise_variance": 0.5, "random_state": 0}
    together = BayesianCommitteeMachine(kernel, **settings).fit(X, Y)
    mean, std = together.predict(X, return_std=True)
    assert mean.shape == std.shape == (80, 3)
    for k in (0, 2):
        alone = BayesianCommitteeMachine(kernel, **settings).fit(X, Y[:, k])
        np.testing.assert_allclose(mean[:, k], alone.predict(X), rtol=1e-12)
        np.testing.assert_allclose(std[:, k], alone.predict(X, return_std=True)[1], rtol=1e-12)
    observed = np.flatnonzero(~np.isnan(Y[:, 1]))
    assert sum(gp.n_own for gp in together.experts_[1]) == observed.size
    assert together.predict_dist(X).logpdf(np.nan_to_num(Y)).shape == (80, 3)
    column = BayesianCommitteeMachine(kernel, **settings).fit(X, Y[:, :1])
    assert column.predict(X).shape == (80, 1)


def test_an_expert_without_outputs_has_no_say():
    X, y = rows(40)
    settings = {"hyperparameters": "fixed", "noise_variance": 0.5, "random_state": 0}
    whole = ProductOfExperts(SquaredExponential(), n_experts=4, **settings).fit(X, y)
    missing = y.copy()
    missing[whole.expert_rows_[2]] = np.nan
    model = ProductOfExperts(SquaredExponential(), n_experts=4, **settings).fit(X, missing)
    assert [gp.n_own for gp in model.experts_[0]] == [10, 10, 10]


@every_rule
def test_noise_free_experts_meet_at_their_rows(rule):
    X = np.linspace(0, 5, 30)[:, np.newaxis]
    y = np.sin(X[:, 0])
    settings = {"n_experts": 3, "hyperparameters": "fixed", "random_state": 0}
    model = COMMITTEES[rule](Matern(1.5), noise_variance=0.0, **settings).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert (std < 1e-3).all()
    origin = COMMITTEES[rule](Linear(), **settings).fit(X, y)
    assert np.isfinite(origin.predict([[0.0]], return_std=True)).all()


def test_threads_blocks_and_seeds_change_no_bit(monkeypatch):
    X, y = rows(150)
    first = RobustBayesianCommitteeMachine(n_experts=5, random_state=1).fit(X, y)
    expected = first.predict(X, return_std=True)
    threads = clone(first).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.predict(X, return_std=True), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(X, return_std=True), expected)
    other = clone(first).set_params(random_state=2).fit(X, y)
    assert (other.expert_rows_[0] != first.expert_rows_[0]).any()
    monkeypatch.setattr("spngp.estimators.committees._PREDICTED", 37)
    np.testing.assert_allclose(first.predict(np.tile(X, (3, 1)))[:150], expected[0], rtol=1e-12)


def test_the_cost_of_learning_is_bounded():
    rng = np.random.default_rng(0)
    sizes = {count: [np.arange(size)] * count for count, size in ((3, 100), (100, 500), (20, 1000), (4, 2500))}
    assert [len(affordable(groups, rng)) for groups in sizes.values()] == [3, 12, 2, 1]
    X, y = rows(600)
    model = ProductOfExperts(n_experts=60, random_state=0).fit(X, y)
    assert len(model.experts_[0]) == 60
    assert model.score(X, y) > 0.8


def test_scikit_learns_kernels_bring_their_noise():
    X, y = rows()
    settings = {"n_experts": 3, "hyperparameters": "fixed", "random_state": 0}
    ours = BayesianCommitteeMachine(SquaredExponential(1.5), noise_variance=0.1, **settings).fit(X, y)
    theirs = BayesianCommitteeMachine(sk.RBF(1.5) + sk.WhiteKernel(0.1), **settings).fit(X, y)
    np.testing.assert_allclose(ours.predict(X, return_std=True), theirs.predict(X, return_std=True), rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_experts": 0}, "'n_experts' parameter of ProductOfExperts must be an int in the range"),
        ({"n_experts": 2.5}, "'n_experts' parameter"),
        ({"n_experts": 61}, r"n_experts must be at most the number of rows \(60\), got 61"),
        ({"assignment": "kmeans"}, "'assignment' parameter .* 'kmeans'"),
        ({"hyperparameters": "adaptive"}, "'hyperparameters' parameter .* 'adaptive'"),
        ({"noise_variance": -1.0}, "'noise_variance' parameter"),
        ({"kernel": [SquaredExponential(), Linear()]}, "kernel must be one kernel, got a list of 2"),
        ({"kernel": SquaredExponential([1.0, 1.0, 1.0])}, "3"),
    ],
)
def test_bad_settings_are_one_clear_error_and_change_nothing(changes, message):
    X, y = rows()
    model = ProductOfExperts(n_experts=3, hyperparameters="fixed", random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=message):
        model.set_params(**changes).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(NotFittedError):
        ProductOfExperts().predict_dist_by_rule(X)


@every_rule
def test_all_settings_but_the_kernel_are_given_by_name(rule):
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        COMMITTEES[rule](SquaredExponential(), 5)


@pytest.mark.skipif(not datasets.status(datasets.find("kin40k")).available, reason="needs kin40k in $SPNGP_DATA")
def test_kin40k_is_as_published():
    train, test = datasets.load("kin40k").classic_split()
    scales = [2.477, 2.306, 1.336, 1.480, 1.574, 1.137, 1.170, 1.668]
    settings = {"n_experts": 64, "hyperparameters": "fixed", "noise_variance": 0.0021676, "random_state": 0}
    model = ProductOfExperts(SquaredExponential(scales, 1.0222), **settings).fit(train.X, train.Y[:, 0])
    sample = slice(None, None, 3)
    found = model.predict_dist_by_rule(test.X[sample])
    for rule, published in {"PoE": 0.518, "BCM": 0.451, "rBCM": 0.395}.items():
        squares = (found[rule].mean - test.Y[sample, 0]) ** 2
        rmse = np.sqrt(squares.mean())
        standard_error = squares.std() / np.sqrt(squares.size) / (2 * rmse)  # about 0.005: a third of the rows
        assert rmse == pytest.approx(published, abs=3 * standard_error)
        assert standard_error < 0.007
