import copy
import itertools
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from spngp import GPRegressor, SPNGPRegressor, metrics
from spngp.gp.exact import ExactGP
from spngp.kernels import Linear, Matern, Parameter, SquaredExponential
from spngp.structure import Compact, EqualWidth, RandomAxes


# of 200 rows regions are cut, fewer are one region
@parametrize_with_checks(
    [SPNGPRegressor(max_leaf_size=40, hyperparameters="tied", random_state=0), GPRegressor(random_state=0)]
)
def test_scikit_learns_common_checks(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([SPNGPRegressor(random_state=0), SPNGPRegressor(max_leaf_size=40, random_state=0)])
def test_scikit_learns_common_checks_with_all_that_is_learnt(estimator, check):
    check(estimator)


def wave(n=300, d=1, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, 10 + 5 * (np.sin(2 * X).sum(axis=1) + noise * rng.standard_normal(n))


def small(**changes):
    """A model that is quick to fit and still cuts."""
    return SPNGPRegressor(**{"kernels": SquaredExponential(), "max_leaf_size": 40, "random_state": 0, **changes})


def strategy(structure):
    """Settings of a model with a strategy object, which decides on the leaf size by itself."""
    return {"structure": structure, "max_leaf_size": 500}


def test_defaults_learn_and_are_calibrated():
    X, y = wave(400, 2)
    model = SPNGPRegressor(random_state=0).fit(X[:300], y[:300])
    mixture = model.predict_dist(X[300:])
    assert model.score(X[300:], y[300:]) > 0.97
    assert 0.85 <= metrics.coverage(mixture, y[300:]) <= 1.0
    mean, std = model.predict(X[300:], return_std=True)
    np.testing.assert_allclose(mean, model.predict(X[300:]), rtol=1e-10)
    np.testing.assert_allclose(std, mixture.std)
    assert (model.predict_dist(X[300:], latent=True).std < std).all()


@pytest.mark.parametrize("hyperparameters", ["tied", "adaptive", "independent", "fixed"])
def test_one_leaf_equals_the_traditional_gp(hyperparameters):
    X, y = wave(120, 2)
    kernel = Matern(1.5, [1.0, 1.0])
    network = SPNGPRegressor(
        kernel, max_leaf_size=120, overlap=0.0, hyperparameters=hyperparameters, random_state=0
    ).fit(X, y)
    single = GPRegressor(kernel, hyperparameters="fixed" if hyperparameters == "fixed" else "tied", random_state=0).fit(
        X, y
    )
    for ours, theirs in zip(network.predict(X, return_std=True), single.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    assert network.log_evidence_ == pytest.approx(single.log_evidence_, rel=1e-10)


def test_log_evidence_is_in_the_units_of_y():
    X, y = wave(60)
    kernel = SquaredExponential(1.5, 12.0)
    model = GPRegressor(kernel, hyperparameters="fixed", noise_variance=0.5).fit(X, y)
    C = kernel.gram(X) + 0.5 * np.eye(60)
    centred = y - y.mean()
    expected = -0.5 * (centred @ np.linalg.solve(C, centred) + np.linalg.slogdet(C)[1] + 60 * np.log(2 * np.pi))
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("hyperparameters", ["tied", "adaptive", "independent"])
def test_threads_and_seeds_change_no_bit(hyperparameters):
    X, y = wave(200, 2)
    models = [small(n_jobs=n_jobs, hyperparameters=hyperparameters, kernels=None).fit(X, y) for n_jobs in (1, 2, 1)]
    first = models[0].predict_dist(X)
    for model in models[1:]:
        again = model.predict_dist(X)
        for name in ("log_weights", "means", "variances"):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_predict_noise_follows_the_truth_where_a_single_gp_is_flat():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, 1500))[:, np.newaxis]
    truth = 0.05 + 0.5 * np.exp(-0.5 * (X[:, 0] - 5) ** 2)
    y = np.sin(X[:, 0]) + truth * rng.standard_normal(1500)
    model = SPNGPRegressor(max_leaf_size=150, random_state=0).fit(X, y)
    learnt = model.predict_noise(X)
    assert np.corrcoef(np.log(learnt), np.log(truth))[0, 1] >= 0.9
    assert np.median(np.abs(np.log(learnt / truth))) < 0.25
    flat = GPRegressor(SquaredExponential(), random_state=0).fit(X[::5], y[::5]).predict_noise(X)
    assert np.ptp(flat) == 0.0


def test_kernel_weights_and_regions_tell_what_was_learnt():
    X, y = wave(300, 2)
    names = ["SquaredExponential", "Linear"]
    model = small(kernels=[SquaredExponential(), Linear()]).fit(X, y)
    assert model.kernel_names_ == names
    weights = model.predict_kernel_weights(X)
    assert weights.shape == (300, 2)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert weights[:, 0].mean() > 0.9  # the waves are not lines
    table = pd.DataFrame(model.regions_)
    assert set(table["kernel"]) == set(names)
    assert table.query("kernel == 'Linear'")["rows"].sum() == 300
    assert {"low", "high", "parameters", "noise_std", "log_evidence", "weight", "context_rows"} <= set(table.columns)
    for record in model.regions_:
        inside = ((record["low"] < X) & (record["high"] >= X)).all(axis=1)
        assert inside.sum() == record["rows"]


def test_overlap_removes_jumps_and_leaves_the_evidence_alone():
    X, y = wave(300, noise=0.3)
    without, with_ = (small(overlap=overlap, hyperparameters="tied").fit(X, y) for overlap in (0.0, 2.0))
    assert with_.log_evidence_ == pytest.approx(without.log_evidence_, rel=1e-12)

    def largest_jump(model):
        cuts = np.unique([side for record in model.regions_ for side in record["low"] if np.isfinite(side)])
        below, above = model.predict(cuts[:, np.newaxis]), model.predict(cuts[:, np.newaxis] + 1e-9)
        return np.abs(above - below).max()

    assert largest_jump(with_) < 0.2 * largest_jump(without)
    for margin in (0.5, [0.5]):
        by_distance = small(margin=margin, hyperparameters="tied").fit(X, y)
        for record in by_distance.regions_:
            [low], [high] = record["low"], record["high"]
            near = (X[:, 0] > low - 0.5) & (X[:, 0] <= high + 0.5) & ~((X[:, 0] > low) & (X[:, 0] <= high))
            assert record["context_rows"] == near.sum() > 0
        assert by_distance.log_evidence_ == pytest.approx(without.log_evidence_, rel=1e-12)


@pytest.mark.parametrize(
    "structure",
    [
        "compact",
        "random",
        "equal-width",
        Compact(50),
        RandomAxes(60, spacing=0.7),
        EqualWidth(50, n_parts=3, n_partitions=2),
    ],
)
def test_every_structure_learns(structure):
    X, y = wave(250, 2)
    size = {"max_leaf_size": 40} if isinstance(structure, str) else {}
    model = SPNGPRegressor(
        SquaredExponential(), structure=structure, hyperparameters="tied", random_state=0, **size
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.network_.outputs == (0,)
    assert max(record["rows"] for record in model.regions_) <= getattr(structure, "max_leaf_size", 40)


def test_a_strategy_object_decides_on_sizes_and_all_else_follows():
    X, y = wave(400, 2)
    named = SPNGPRegressor(SquaredExponential(), max_leaf_size=50, random_state=0, hyperparameters="tied").fit(X, y)
    given = SPNGPRegressor(SquaredExponential(), structure=Compact(50, whole_size=100), random_state=0)
    given.set_params(hyperparameters="tied").fit(X, y)
    np.testing.assert_array_equal(given.predict(X), named.predict(X))
    assert [record["context_rows"] for record in given.regions_] == [r["context_rows"] for r in named.regions_]


def test_spacings_of_a_strategy_are_in_the_units_of_x():
    X, y = wave(250)
    for factor, kernels in itertools.product((1.0, 1000.0), (None, SquaredExponential())):
        structure = RandomAxes(60, spacing=0.5 * factor)
        model = SPNGPRegressor(kernels, structure=structure, hyperparameters="fixed", random_state=0)
        lows = {record["low"][0] for record in model.fit(X * factor, y).regions_} - {-np.inf}
        steps = (np.array(sorted(lows)) - X.min() * factor) / (0.5 * factor)
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)


def test_alternative_partitions_are_mixed_by_evidence():
    X, y = wave(200, 2)
    one, three = (small(n_partitions=n, max_leaf_size=60, hyperparameters="tied").fit(X, y) for n in (1, 3))
    assert three.network_.n_induced_trees > one.network_.n_induced_trees
    assert three.score(X, y) > 0.9


def test_several_outputs_with_missing_values_drop_no_row():
    X, y = wave(300, 2)
    Y = np.column_stack([y, -2 * y + X[:, 0]])
    complete = small(hyperparameters="tied").fit(X, Y)
    holes = Y.copy()
    holes[np.random.default_rng(1).random(300) < 0.2, 1] = np.nan
    partial = small(hyperparameters="tied").fit(X, holes)
    assert complete.predict(X).shape == complete.predict_noise(X).shape == (300, 2)
    assert complete.predict_dist(X).shape == (300, 2)
    assert complete.sample_y(X[:5], 3, random_state=0).shape == (5, 2, 3)
    assert complete.predict_kernel_weights(X).shape == (300, 2, 1)
    assert partial.score(X, Y) > 0.95
    rows = dict.fromkeys((0, 1), 0)
    for record in partial.regions_:
        rows[record["output"]] += record["rows"]
    assert rows == {0: 300, 1: 300 - int(np.isnan(holes[:, 1]).sum())}


def test_one_column_of_outputs_keeps_its_axis():
    X, y = wave(60)
    model = small().fit(X, y[:, np.newaxis])
    assert model.predict(X).shape == model.predict_dist(X).mean.shape == (60, 1)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (60, 1)
    assert model.sample_y(X, 2).shape == (60, 1, 2)


@pytest.mark.parametrize("overlap", [0.0, 2.0])
def test_partial_fit_is_as_if_all_rows_had_come_at_once(overlap):
    X, y = wave(240, 2)
    model = small(overlap=overlap, kernels=[SquaredExponential(), Linear()]).fit(X[:200], y[:200])
    prior = copy.deepcopy(model)
    model.partial_fit(X[200:220], y[200:220]).partial_fit(X[220:], y[220:])
    at_once = prior.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(model.predict(X), at_once.predict(X), rtol=1e-8)
    assert model.log_evidence_ == pytest.approx(at_once.log_evidence_, rel=1e-9)
    # the same leaves conditioned from their priors on all rows
    np.testing.assert_array_equal(model.X_train_, X)
    np.testing.assert_array_equal(model.y_train_, y)
    for leaf, box, _ in model.network_.responsibilities():
        inside = box.contains(X)
        again = ExactGP(leaf.kernel, leaf.noise_variance).condition(X[inside], y[inside] - y[:200].mean())
        assert leaf.log_evidence == pytest.approx(again.log_evidence, rel=1e-8)
    rows = [record["rows"] for record in model.regions_ if record["kernel"] == "Linear"]
    assert sum(rows) == 240


def test_partial_fit_checks_outputs_and_takes_a_batch_with_one_missing():
    X, y = wave(100, 2)
    Y = np.column_stack([y, 2 * y])
    model = small(hyperparameters="fixed").fit(X, Y)
    with pytest.raises(ValueError, match=r"y must have shape \(n, 2\) as before, got \(5,\)"):
        model.partial_fit(X[:5], y[:5])
    before = model.log_evidence_
    model.partial_fit(X[:5] + 0.1, np.column_stack([y[:5], np.full(5, np.nan)]))
    assert model.log_evidence_ != before


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = wave(80, 2)
    model = small().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="margin"):
        model.set_params(margin=[1.0, 2.0, 3.0]).fit(X[:, :1] * 100, 50 * y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match=r"infinity|finite"):
        model.set_params(margin=None).fit(X[:, :1], np.full(80, np.inf))
    np.testing.assert_array_equal(model.predict(X), before)
    broken = small(kernels=[])
    with pytest.raises(ValueError, match="kernels"):
        broken.fit(X, y)
    with pytest.raises(NotFittedError):
        broken.predict(X)


def test_noise_variance_is_in_the_units_of_each_output():
    X, y = wave(80)
    model = small(noise_variance=0.01, hyperparameters="fixed").fit(X, np.column_stack([y, 1000 * y]))
    np.testing.assert_allclose(model.predict_noise(X), 0.1)


def test_records_add_up_to_the_log_evidence():
    X, y = wave(150, 2)
    model = small(hyperparameters="tied", max_leaf_size=60).fit(X, y)
    assert sum(record["log_evidence"] for record in model.regions_) == pytest.approx(model.log_evidence_, rel=1e-10)


def test_a_column_with_two_values_stays_within_bounds():
    X = np.repeat([[0.0], [1.0]], 300, axis=0)
    y = X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(600)
    model = small(max_leaf_size=50).fit(X, y)
    assert model.predict([[0.0], [1.0]]) == pytest.approx([0.0, 1.0], abs=0.05)


def test_samples_are_joint_and_follow_the_predictive():
    X, y = wave(150, noise=0.3)
    model = small(max_leaf_size=80).fit(X, y)
    grid = np.linspace(-2.5, 2.5, 7)[:, np.newaxis]
    draws = model.sample_y(grid, 20_000, random_state=1)
    mixture = model.predict_dist(grid)
    np.testing.assert_allclose(draws.mean(axis=1), mixture.mean, atol=5 * mixture.std.max() / np.sqrt(20_000))
    np.testing.assert_allclose(draws.std(axis=1), mixture.std, rtol=0.03)
    np.testing.assert_array_equal(draws, model.sample_y(grid, 20_000, random_state=1))


def test_frames_names_pipelines_grid_search_clone_and_pickle():
    X, y = wave(150, 2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(flag=X[:, 0] > 0, count=np.arange(150) % 5, same=3.0)
    model = small().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "flag", "count", "same"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert clone(model).get_params() == model.get_params()
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(frame), model.predict(frame))
    search = GridSearchCV(make_pipeline(MinMaxScaler(), small()), {"spngpregressor__overlap": [0.0, 1.0]}, cv=2)
    assert search.fit(*wave(150)).best_score_ > 0.9


def test_polars_frames_are_accepted():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = wave(80, 2)
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    np.testing.assert_array_equal(small().fit(frame, y).predict(frame), small().fit(X, y).predict(X))


def test_scikit_learn_kernels_bring_their_noise():
    X, y = wave(80)
    model = small(kernels=sk.RBF(1.0) + sk.WhiteKernel(0.01, "fixed"), max_leaf_size=80).fit(X, y)
    np.testing.assert_allclose(model.predict_noise(X), 0.1)


def test_fixed_noise_and_fixed_parameters_stay():
    X, y = wave(100)
    kernel = SquaredExponential(Parameter(0.5, fixed=True))
    model = small(kernels=kernel, noise_variance=0.7).fit(X, y)
    np.testing.assert_allclose(model.predict_noise(X), np.sqrt(0.7))
    assert {record["parameters"]["length_scale"] for record in model.regions_} == {0.5}


@pytest.mark.parametrize("hyperparameters", ["fixed", "tied", "independent", "adaptive"])
def test_with_all_parameters_fixed_there_is_one_result(hyperparameters):
    X, y = wave(200)
    kernel = SquaredExponential(Parameter(0.5, fixed=True), Parameter(1.0, fixed=True))
    models = [
        SPNGPRegressor(kernel, max_leaf_size=50, noise_variance=0.01, hyperparameters=name, random_state=0).fit(X, y)
        for name in ("fixed", hyperparameters)
    ]
    assert len(models[0].regions_) > 1
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


@pytest.mark.filterwarnings("ignore:hyper-parameters")  # rounding decides whether the optimiser is content here
def test_repeated_rows_with_hardly_any_noise_are_survived():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(120, 1))
    X, y = np.r_[X, X[:20]], np.r_[np.sin(2 * X[:, 0]), np.sin(2 * X[:20, 0]) + 0.1]  # twenty rows measured twice
    model = SPNGPRegressor(noise_variance=1e-12, max_leaf_size=30, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99


def test_prediction_in_batches_equals_prediction_at_once(monkeypatch):
    X, y = wave(150, 2)
    model = small(kernels=None).fit(X, y)
    at_once = model.predict_dist(X)
    monkeypatch.setattr("spngp.estimators.base._ROWS_AT_ONCE", 37)
    in_batches = model.predict_dist(X)
    np.testing.assert_allclose(in_batches.mean, at_once.mean, rtol=1e-12)
    np.testing.assert_allclose(in_batches.quantile(0.9), at_once.quantile(0.9), rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), at_once.mean, rtol=1e-9)


@pytest.mark.parametrize("hyperparameters", ["fixed", "adaptive"])
@pytest.mark.parametrize("exponent", [-150, 149])  # y is about 10, and means up to 1e151 are allowed
def test_outputs_of_extreme_size(exponent, hyperparameters):
    X, y = wave(80)
    scale = 10.0**exponent

    def predicted(scale):
        kernel = SquaredExponential(0.7, 12.0 * scale**2)
        model = small(kernels=kernel, hyperparameters=hyperparameters).fit(X, y * scale)
        return np.stack(model.partial_fit(X[:9] + 0.1, y[:9] * scale).predict(X, return_std=True))

    np.testing.assert_allclose(predicted(scale), predicted(1.0) * scale, rtol=1e-6)


def test_identical_rows_constant_outputs_and_one_row():
    same = np.ones((90, 2))
    y = np.random.default_rng(0).standard_normal(90)
    model = small(max_leaf_size=20).fit(same, y)
    assert model.predict([[1.0, 1.0]])[0] == pytest.approx(y.mean(), abs=0.3)
    X, _ = wave(60)
    assert small().fit(X, np.full(60, 3.0)).predict(X) == pytest.approx(np.full(60, 3.0))
    assert np.isfinite(small().fit([[1.0]], [2.0]).predict([[1.0], [5.0]])).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_leaf_size": 0}, "'max_leaf_size' parameter of SPNGPRegressor must be an int in the range"),
        ({"overlap": -1.0}, "'overlap' parameter of SPNGPRegressor must be"),
        ({"overlap": [1.0]}, "'overlap' parameter of SPNGPRegressor must be a float in the range"),
        ({"margin": -1.0}, "'margin' parameter of SPNGPRegressor must be"),
        ({"margin": [1.0, 2.0, 3.0]}, r"margin must be a number >= 0 or one per input \(1\), got \[1.0, 2.0, 3.0\]"),
        ({"margin": [np.nan]}, r"margin must be a number >= 0 or one per input \(1\), got \[nan\]"),
        ({"overlap": 1.0, "margin": 2.0}, "overlap and margin exclude each other, got overlap=1.0 and margin=2.0"),
        ({"overlap": 0.0, "margin": 2.0}, "overlap and margin exclude each other, got overlap=0.0 and margin=2.0"),
        ({"structure": "kd"}, "'structure' parameter of SPNGPRegressor must be a str among"),
        ({"hyperparameters": "learn"}, "'hyperparameters' parameter of SPNGPRegressor must be a str among"),
        ({"n_partitions": 0}, "'n_partitions' parameter"),
        ({"noise_variance": -1.0}, "'noise_variance' parameter"),
        ({"kernels": []}, "kernels must be None, a kernel or a list of kernels, got an empty list"),
        ({"kernels": ["rbf"]}, "kernels must be spngp or scikit-learn kernels, got 'rbf'"),
        ({"kernels": "rbf"}, "kernels must be spngp or scikit-learn kernels, got 'rbf'"),
        ({"kernels": SquaredExponential([1.0, 2.0])}, "length_scale of SquaredExponential has 2 values"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"noise_variance": Parameter([0.1])}, "noise_variance must be one number, got"),
        (
            {"kernels": sk.RBF() + sk.WhiteKernel(), "noise_variance": 0.1},
            "noise is given twice, by noise_variance=0.1",
        ),
        (strategy(Compact(30, [1.0, 2.0])), "length_scales must be 1 numbers > 0, one per input, got"),
        (strategy(Compact(30, [0.0])), "length_scales must be 1 numbers > 0, one per input, got"),
        (strategy(RandomAxes(30, [1.0, 2.0])), r"spacing must be one number or one per input \(1\), got"),
        (
            {"structure": Compact(30)},
            r"a strategy object decides on leaf size and partitions by itself: .* got structure=Compact\(.*\), "
            "max_leaf_size=40, n_partitions=1",
        ),
        (strategy(EqualWidth(30)) | {"n_partitions": 2}, "a strategy object decides .* n_partitions=2"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    X, y = wave(60)
    with pytest.raises((ValueError, TypeError), match=message):
        small(**changes).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], ["a", "b"], "Input y must be numeric"),
        ([[1.0], [np.nan]], [1.0, 2.0], "X must not contain NaN or infinity, got nan in column 0, row 1"),
        ([[1.0], [2.0]], [1.0, np.inf], "Input y (contains infinity|must be finite)"),
        ([[1.0], [2.0]], [np.nan, np.nan], "Input y contains NaN only, in output 0"),
        ([[1.0], [2.0]], [1.0], "y must have as many rows as X"),
        ([["a"], ["b"]], [1.0, 2.0], r"X must be numeric, got text in column 0 \(row 0: 'a'\)"),
        (np.ma.masked_array([[1.0], [2.0]], [[True], [False]]), [1.0, 2.0], "X must not have masked values"),
    ],
)
def test_bad_data_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        small().fit(X, y)


def test_predict_before_fit_and_with_other_columns():
    with pytest.raises(NotFittedError):
        small().predict([[0.0]])
    odd = pd.DataFrame({"x": [0.0, 1.0, 2.0], "_mask": [True, False, True]})  # a name like any other
    assert np.isfinite(small().fit(odd, [1.0, 2.0, 3.0]).predict(odd)).all()
    for name in ("network_", "regions_", "log_evidence_", "outliers_"):
        with pytest.raises(NotFittedError):
            getattr(small(), name)
    X, y = wave(60, 2)
    with pytest.raises(ValueError, match="X has 1 features, but SPNGPRegressor is expecting 2"):
        small().fit(X, y).predict(X[:, :1])


@pytest.mark.parametrize("estimator", [SPNGPRegressor, GPRegressor])
def test_all_settings_but_the_kernel_are_given_by_name(estimator):
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        estimator(SquaredExponential(), "tied")


@pytest.mark.parametrize("overlap", [1e300, 10**400, np.inf])
def test_an_overlap_beyond_all_rows_is_refused(overlap):
    with pytest.raises(ValueError, match=r"'overlap' parameter .* must be a float in the range \[0.0, 1000000000.0\]"):
        SPNGPRegressor(overlap=overlap).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])


def test_a_word_that_is_not_allowed_is_answered_by_those_that_are():
    X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]
    for settings, allowed in [
        ({"structure": "kompact"}, "{'compact', 'random', 'equal-width'} or a strategy of spngp.structure"),
        ({"hyperparameters": "tight"}, "{'adaptive', 'tied', 'independent', 'fixed'}"),
        ({"noise_shape": "round"}, "{'learnt', 'gaussian'}"),
        ({"outliers": "drop"}, "{'doubt', 'trust'}"),
    ]:
        [(name, value)] = settings.items()
        message = f"The {name!r} parameter of SPNGPRegressor must be a str among {allowed}. Got {value!r} instead."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            SPNGPRegressor(**settings).fit(X, y)


NETWORKS = {
    "default": {},
    "two outputs": {},
    "kernels given": {"kernels": [SquaredExponential(0.8, 20.0), Linear(1.0, 1.0)], "max_leaf_size": 60},
    "margin": {"margin": 0.4, "max_leaf_size": 60, "hyperparameters": "tied"},
    "long tails": {"max_leaf_size": 120},
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.long) if case in ("two outputs", "long tails") else case
        for case in NETWORKS
    ],
)
def test_the_network_predicts_and_samples_what_the_model_does(case):
    X, y = wave(260)
    if case == "long tails":
        y = y + np.random.default_rng(1).standard_t(2, y.size)
    Y = np.column_stack([y, np.where(np.arange(260) % 7 == 0, np.nan, 100.0 - 3.0 * y)]) if case == "two outputs" else y
    model = SPNGPRegressor(random_state=0, **NETWORKS[case]).fit(X[:240], Y[:240])
    if case == "long tails":
        assert len(model.noise_shapes_[0].weights) > 1
    at = np.linspace(-3.5, 3.5, 40)[:, np.newaxis]
    for _ in range(2):
        for latent in (False, True):
            ours, networks = model.predict_dist(at, latent), model.network_.predict_dist(at, latent)
            for name in ("log_weights", "means", "variances"):
                np.testing.assert_allclose(getattr(ours, name), getattr(networks, name), rtol=1e-9, atol=1e-9)
        draws = model.network_.sample(at, 3, random_state=5)
        np.testing.assert_array_equal(model.sample_y(at, 3, random_state=5), draws)
        assert model.log_evidence_ == pytest.approx(model.network_.log_evidence, rel=1e-12)
        model.partial_fit(X[240:], Y[240:])
    np.testing.assert_array_equal(model.X_train_, np.concatenate([X, X[240:]]))
    np.testing.assert_array_equal(model.y_train_, np.concatenate([Y, Y[240:]]))
