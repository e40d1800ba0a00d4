"""Weights are repetition, to the last bit; known variances are per-row noise; neither depends on the order of rows."""

import numpy as np
import pytest

import spngp
from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.gp.evidence import evidence_of
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum


def data(n=60, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    y = 10 + 3 * np.sin(X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n)
    return X, y, rng


def same(one, other, X, rtol=0.0):
    """Evidence, parameters, mean and variance."""
    np.testing.assert_allclose(one.log_evidence_, other.log_evidence_, rtol=rtol)
    first, second = one.predict_dist(X), other.predict_dist(X)
    np.testing.assert_allclose(first.mean, second.mean, rtol=rtol)
    np.testing.assert_allclose(first.var, second.var, rtol=rtol)
    if hasattr(one, "regions_"):
        for a, b in zip(one.regions_, other.regions_, strict=True):
            np.testing.assert_allclose(list(a["parameters"].values()), list(b["parameters"].values()), rtol=rtol)
            assert (a["rows"], a["context_rows"], a["kernel"]) == (b["rows"], b["context_rows"], b["kernel"])


MODELS = {
    "defaults": lambda: SPNGPRegressor(random_state=0),
    "cut": lambda: SPNGPRegressor(Matern(1.5), max_leaf_size=40, overlap=1.0, random_state=0),
    "one GP": lambda: GPRegressor(random_state=0),
    "committee": lambda: RobustBayesianCommitteeMachine(n_experts=3, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_weights_equal_repetition(name, seed):
    X, y, rng = data(40, seed=seed)
    y[7] += 40.0  # in doubt
    weights = rng.integers(0, 4, y.size)
    weighted = MODELS[name]().fit(X, y, sample_weight=weights)
    repeated = MODELS[name]().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    same(weighted, repeated, X)
    shuffled = rng.permutation(y.size)
    same(MODELS[name]().fit(X[shuffled], y[shuffled], weights[shuffled]), repeated, X, rtol=1e-9)
    assert weighted.row_repeats_.tolist() == weights.tolist()


def test_weights_and_variances_with_regions_of_random_cuts():
    X, y, rng = data(300)
    weights, variances = rng.integers(0, 4, y.size), rng.uniform(0, 2, y.size)
    random = {"structure": "random", "max_leaf_size": 120, "hyperparameters": "tied", "random_state": 3}
    weighted = SPNGPRegressor(Matern(), **random).fit(X, y, sample_weight=weights, y_variance=variances)
    again = SPNGPRegressor(Matern(), **random)
    again.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), y_variance=np.repeat(variances, weights))
    same(weighted, again, X)


def test_weights_in_updates_and_numbers_of_rows():
    X, y, rng = data(120)
    y[7] += 60.0
    weights = rng.integers(0, 3, y.size)
    weights[7] = 2
    cut = 80

    def model():
        return SPNGPRegressor(SquaredExponential(), max_leaf_size=50, random_state=0)

    weighted = model().fit(X[:cut], y[:cut], weights[:cut]).partial_fit(X[cut:], y[cut:], weights[cut:])
    repeated = model().fit(np.repeat(X[:cut], weights[:cut], axis=0), np.repeat(y[:cut], weights[:cut]))
    repeated.partial_fit(np.repeat(X[cut:], weights[cut:], axis=0), np.repeat(y[cut:], weights[cut:]))
    same(weighted, repeated, X)
    assert weighted.row_repeats_.tolist() == weights.tolist()
    assert weighted.row_numbers_.tolist() == np.repeat(np.arange(120), weights).tolist()
    assert len(set(map(tuple, weighted.outliers_.tolist()))) == len(weighted.outliers_)
    assert np.array_equal(weighted.X_train_, np.repeat(X, weights, axis=0))  # in the order in which they came
    later = model().fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:], weights[cut:])
    assert later.row_repeats_.tolist() == [1] * cut + weights[cut:].tolist()
    assert not hasattr(later.fit(X, y), "row_repeats_")


def test_a_model_does_not_depend_on_the_order_of_rows():
    X, y, rng = data(1300)
    X[:, 0] = np.round(X[:, 0], 1)  # with ties
    order = rng.permutation(y.size)
    one, other = (
        SPNGPRegressor(SquaredExponential([1.0, 1.0]), max_leaf_size=200, overlap=1.0, random_state=0).fit(
            X[rows], y[rows]
        )
        for rows in (np.arange(y.size), order)
    )
    same(one, other, X[:50], rtol=1e-8)


def test_weights_in_a_network_by_hand():
    X, y, rng = data()
    weights, variances = rng.integers(0, 4, y.size), rng.uniform(0, 1, y.size)
    leaf = Leaf(SquaredExponential(), noise_variance=0.2)
    prior = Sum([Split(0, [0.0], [leaf, Leaf(Linear(bias_variance=9.0), noise_variance=0.1)]), leaf])
    weighted = prior.condition(X, y, sample_weight=weights, y_variance=variances, margin=1.0)
    rows = np.repeat(np.arange(y.size), weights)
    repeated = prior.condition(X[rows], y[rows], y_variance=variances[rows], margin=1.0)
    assert weighted.log_evidence == repeated.log_evidence
    assert np.array_equal(weighted.predict_dist(X).mean, repeated.predict_dist(X).mean)


# Known variances.


def naive(kernel, noise, X, y, X_new):
    """Mean and latent variance of a GP with a noise variance for each row, and its log evidence."""
    C = kernel.covariances(X, X) + np.diag(noise)
    cross = kernel.covariances(X, X_new)
    solved = np.linalg.solve(C, cross)
    _, log_determinant = np.linalg.slogdet(C)
    evidence = -0.5 * (y @ np.linalg.solve(C, y) + log_determinant + y.size * np.log(2 * np.pi))
    return solved.T @ y, kernel.variances(X_new) - np.sum(cross * solved, axis=0), evidence


@pytest.mark.parametrize("noise", [0.2, 0.0])
def test_known_variances_are_noise_of_single_rows(noise):
    X, y, rng = data()
    y -= 10
    variances = rng.uniform(0.05, 2, y.size)
    kernel = SquaredExponential([1.0, 2.0], 4.0)
    mean, variance, evidence = naive(kernel, noise + variances, X, y, X[:9] + 0.1)
    leaf = Leaf(kernel, noise_variance=noise)
    posterior = leaf.condition(X, y, y_variance=variances)
    found = posterior.predict_dist(X[:9] + 0.1, latent=True)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.var, variance, rtol=1e-8)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)
    in_turns = leaf.condition(X[:20], y[:20], y_variance=variances[:20])
    in_turns = in_turns.condition(X[20:40], y[20:40], y_variance=variances[20:40])
    in_turns = in_turns.condition(X[40:], y[40:], y_variance=variances[40:])
    np.testing.assert_allclose(in_turns.predict_dist(X[:9] + 0.1, latent=True).mean, mean, rtol=1e-9)
    np.testing.assert_allclose(in_turns.log_evidence, evidence, rtol=1e-9)


def test_context_rows_keep_their_variances():
    X, y, rng = data(d=1)
    y -= 10
    variances = rng.uniform(0.05, 2, y.size)
    kernel = SquaredExponential(1.0, 4.0)
    leaf = Leaf(kernel, noise_variance=0.1)
    posterior = Split(0, [0.0], [leaf, leaf]).condition(X, y, y_variance=variances, margin=1.0)
    x = np.array([[-0.5]])
    seen = X[:, 0] <= 1.0
    mean, variance, _ = naive(kernel, 0.1 + variances[seen], X[seen], y[seen], x)
    np.testing.assert_allclose(posterior.predict_dist(x, latent=True).mean, mean, rtol=1e-9)
    np.testing.assert_allclose(posterior.predict_dist(x, latent=True).var, variance, rtol=1e-9)


@pytest.mark.parametrize("overlap", [0.0, 2.0])
def test_a_model_equals_a_network_by_hand(overlap):
    X, y, rng = data(90)
    variances = rng.uniform(0, 2, y.size)
    kernel = Matern(1.5, 2.0, 5.0)
    model = SPNGPRegressor(
        kernel, hyperparameters="fixed", noise_variance=0.3, max_leaf_size=50, overlap=overlap, random_state=0
    ).fit(X, y, y_variance=variances)
    centred = y - model._learnt.units.outputs.mean
    by_hand = model._learnt.prior.condition(X, centred, y_variance=variances)
    np.testing.assert_allclose(model.log_evidence_, by_hand.log_evidence, rtol=1e-10)
    if overlap == 0.0:
        np.testing.assert_allclose(model.predict(X) - y + centred, by_hand.predict_dist(X).mean, rtol=1e-8)
        np.testing.assert_allclose(model.predict_var(X), by_hand.predict_dist(X).var, rtol=1e-8)
    one = GPRegressor(kernel, hyperparameters="fixed", noise_variance=0.3).fit(X, y, y_variance=variances)
    mean, variance, _ = naive(kernel, 0.3 + variances, X, y - y.mean(), X[:5] + 0.1)
    np.testing.assert_allclose(one.predict(X[:5] + 0.1) - y.mean(), mean, rtol=1e-8)
    np.testing.assert_allclose(one.predict_var(X[:5] + 0.1, latent=True), variance, rtol=1e-8)


def test_equal_variances_are_as_good_as_noise():
    X, y, _ = data()
    fixed = {"hyperparameters": "fixed", "max_leaf_size": 30, "overlap": 1.0}
    known = SPNGPRegressor(SquaredExponential(), noise_variance=0.1, **fixed).fit(X, y, y_variance=0.5)
    noise = SPNGPRegressor(SquaredExponential(), noise_variance=0.6, **fixed).fit(X, y)
    one, other = known.predict_dist(X, latent=True), noise.predict_dist(X, latent=True)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.var, other.var, rtol=1e-9)
    np.testing.assert_allclose(known.log_evidence_, noise.log_evidence_, rtol=1e-10)


@pytest.mark.parametrize("kernel", [SquaredExponential([0.8, 1.3]) + Matern(1.5), Linear(bias_variance=1.0)], ids=repr)
def test_gradient_of_the_evidence_with_known_variances(kernel):
    X, y, rng = data(25)
    evidence = evidence_of(kernel, X, y, KnownVariances(rng.uniform(0, 1, y.size)))
    values = kernel.parameters.values
    value, by_kernel, by_noise = evidence(values, 0.3)
    assert value == pytest.approx(naive(kernel, 0.3 + evidence._variances, X, y, X)[2], rel=1e-10)
    for i, slope in enumerate([*by_kernel, by_noise]):
        up, down = np.append(values, 0.3), np.append(values, 0.3)
        up[i], down[i] = up[i] * np.exp(1e-5), down[i] * np.exp(-1e-5)
        difference = (evidence(up[:-1], float(up[-1]))[0] - evidence(down[:-1], float(down[-1]))[0]) / 2e-5
        np.testing.assert_allclose(slope, difference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [SPNGPRegressor(random_state=0), GPRegressor(random_state=0), SPNGPRegressor(max_leaf_size=40, random_state=0)],
)
def test_noise_that_is_known_is_not_learnt(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (100, 1))
    std = np.where(rng.random(100) < 0.5, 0.05, 2.0)
    y = np.sin(X[:, 0]) + std * rng.standard_normal(100) + 0.05 * rng.standard_normal(100)
    model = model.fit(X, y, y_variance=std**2)
    assert np.median(model.predict_noise(X)) < 0.2
    assert len(model.outliers_) == 0
    truth, grid = np.sin(np.linspace(-2.8, 2.8, 50)), np.linspace(-2.8, 2.8, 50)[:, np.newaxis]
    known = np.sqrt(np.mean((model.predict(grid) - truth) ** 2))
    unknown = np.sqrt(np.mean((model.fit(X, y).predict(grid) - truth) ** 2))
    assert known < 0.7 * unknown


def test_variances_in_updates_committees_files_and_missing_outputs(tmp_path):
    X, y, rng = data(100)
    variances = rng.uniform(0, 2, y.size)
    y[5] = np.nan
    variances[5] = np.nan  # of a missing output nothing need be known
    settings = {"hyperparameters": "fixed", "max_leaf_size": 40, "overlap": 1.0, "random_state": 0}

    def model():
        return SPNGPRegressor(SquaredExponential(), **settings)

    updated = (
        model().fit(X[:60], y[:60], y_variance=variances[:60]).partial_fit(X[60:], y[60:], y_variance=variances[60:])
    )
    one_by_one = model().fit(X[:60], y[:60], y_variance=variances[:60])
    for rows in (slice(60, 75), slice(75, 100)):
        one_by_one.partial_fit(X[rows], y[rows], y_variance=variances[rows])
    same(updated, one_by_one, X, rtol=1e-9)
    exact_at_first = model().fit(X[:60], y[:60]).partial_fit(X[60:], y[60:], y_variance=variances[60:])
    zeros = np.where(np.arange(100) < 60, 0.0, variances)
    same(
        exact_at_first,
        model().fit(X[:60], y[:60], y_variance=0.0).partial_fit(X[60:], y[60:], y_variance=zeros[60:]),
        X,
        rtol=1e-9,
    )
    updated.save(tmp_path / "m")
    same(spngp.load(tmp_path / "m"), updated, X, rtol=1e-12)
    later = model().fit(X[:60], y[:60]).partial_fit(X[60:70], y[60:70])  # nothing known of the first rows that came
    zeros[60:70] = 0.0
    same(
        later.partial_fit(X[70:], y[70:], y_variance=variances[70:]),
        model().fit(X[:60], y[:60], y_variance=0.0).partial_fit(X[60:], y[60:], y_variance=zeros[60:]),
        X,
        rtol=1e-9,
    )
    # rows of known variances are forgotten, and come again
    again = spngp.load(tmp_path / "m").forget(rows=np.arange(60, 100))
    assert again.log_evidence_ != updated.log_evidence_
    same(again.partial_fit(X[60:], y[60:], y_variance=variances[60:]), updated, X, rtol=1e-9)
    committee = RobustBayesianCommitteeMachine(
        SquaredExponential(), n_experts=1, hyperparameters="fixed", noise_variance=0.1
    )
    variance = committee.fit(X[6:], y[6:], y_variance=variances[6:]).experts_[0][0].predict(X[:5], latent=True)[1]
    expected = naive(SquaredExponential(), 0.1 + variances[6:], X[6:], y[6:], X[:5])[1]
    np.testing.assert_allclose(variance, expected, rtol=1e-8)


def test_known_variances_are_not_merged_with_equal_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (2100, 1)).astype(float)
    y, variances = rng.standard_normal(2100), rng.uniform(0.1, 1, 2100)
    gp = ExactGP(SquaredExponential(3.0), 0.1).condition(X, y, known=KnownVariances(variances))
    mean, _, evidence = naive(SquaredExponential(3.0), 0.1 + variances, X, y, X[:3])
    np.testing.assert_allclose(gp.predict_mean(X[:3]), mean, rtol=1e-7)
    np.testing.assert_allclose(gp.log_evidence, evidence, rtol=1e-9)


BAD = [
    ({"sample_weight": np.zeros(10)}, "sample_weight must leave at least one row, got a weight of zero for all 10"),
    (
        {"sample_weight": [1] * 9 + [np.nan]},
        "sample_weight must be finite and >= 0, got nan in row 9; 0 leaves a row out",
    ),
    (
        {"sample_weight": [1] * 9 + [-1]},
        "sample_weight must be finite and >= 0, got -1 in row 9; 0 leaves a row out",
    ),
    (
        {"sample_weight": [np.inf] + [1] * 9},
        "sample_weight must be finite and >= 0, got inf in row 0; 0 leaves a row out",
    ),
    (
        {"sample_weight": [1e9] + [1] * 9},
        "sample_weight must add up to at most 1e+08 rows, got 1e+09; divide all by a common factor",
    ),
    ({"sample_weight": [1, 2]}, "Sample weights must be 1D: sample_weight has shape (2,), expected (10,)"),
    ({"sample_weight": ["a"] * 10}, "sample_weight must be numeric, got "),
    ({"y_variance": -1.0}, "y_variance must be finite and >= 0, got -1 in row 0; 0 for outputs known exactly"),
    (
        {"y_variance": [1] * 9 + [np.nan]},
        "y_variance must be finite and >= 0, got nan in row 9; 0 for outputs known exactly",
    ),
    ({"y_variance": [1.0] * 3}, "y_variance must be a number, one per row (10,) or one per output (10, 1), got (3,)"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_what_cannot_be_known_about_rows(given, message):
    X, y, _ = data(10)
    for model in (GPRegressor(), RobustBayesianCommitteeMachine(), SPNGPRegressor()):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
            model.fit(X, y, **given)
        assert str(caught.value).startswith(message)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Leaf(SquaredExponential()).condition(X, y, **given)
    assert str(caught.value).startswith(message)


def test_all_that_counts_is_missing():
    X, y, _ = data(10)
    y[:5] = np.nan
    with pytest.raises(ValueError, match="contains NaN only, in output 0, where sample_weight is positive"):
        GPRegressor().fit(X, y, sample_weight=[1] * 5 + [0] * 5)
