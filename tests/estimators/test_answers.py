"""Intervals and quantiles wherever people are: predict, pipelines, searches, scorers, notebooks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spngp import GPRegressor, SPNGPRegressor, metrics, scorers
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.kernels import Matern, SquaredExponential


def data(n=120, seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    Y = np.stack([10 + np.sin(2 * X[:, 0]) + k * X[:, 1] + 0.2 * rng.standard_normal(n) for k in range(outputs)], 1)
    return X, Y[:, 0] if outputs == 1 else Y


def small(**changes):
    return SPNGPRegressor(SquaredExponential(), max_leaf_size=40, hyperparameters="tied", random_state=0, **changes)


MODELS = [small(), GPRegressor(SquaredExponential(), random_state=0), RobustBayesianCommitteeMachine(n_experts=3)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("outputs", [1, 2])
def test_all_answers_are_those_of_the_distribution(model, outputs):
    X, y = data(outputs=outputs)
    model = model.fit(X, y)
    mixture = model.predict_dist(X)
    low, high = mixture.interval(0.9)
    mean, found_low, found_high = model.predict(X, interval=0.9)
    np.testing.assert_array_equal(found_low, low)
    np.testing.assert_array_equal(found_high, high)
    np.testing.assert_allclose(mean, model.predict(X), rtol=1e-12)
    four = model.predict(X, return_std=True, interval=0.9)
    assert isinstance(four, tuple)
    for one, other in zip(four, (mean, mixture.std, low, high), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.predict_interval(X, 0.9), (low, high))
    np.testing.assert_array_equal(model.predict(X, quantiles=[0.05, 0.95])[..., 1], high)
    np.testing.assert_allclose(model.predict_quantiles(X, 0.05), low, rtol=1e-13)  # (1 − 0.9) / 2 is not quite 0.05
    assert model.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (*y.shape, 3)
    np.testing.assert_array_equal(model.predict_var(X), mixture.var)
    np.testing.assert_array_equal(model.predict_var(X, latent=True), model.predict_dist(X, latent=True).var)


@pytest.mark.parametrize("outputs", [1, 2])
def test_covariance_of_rows(outputs):
    X, y = data(outputs=outputs)
    model = small().fit(X, y)
    covariance = model.predict_cov(X[:7])
    assert covariance.shape == (7, 7) if outputs == 1 else (7, 2, 7, 2)
    flat = covariance.reshape(7 * outputs, -1)
    np.testing.assert_allclose(np.diag(flat), model.predict_var(X[:7]).ravel(), rtol=1e-8)
    draws = model.sample_y(X[:7], 20000, random_state=0).reshape(7 * outputs, -1)
    np.testing.assert_allclose(np.cov(draws), flat, atol=0.003)
    one_column = small().fit(X, y.reshape(len(X), -1)[:, :1])
    assert one_column.predict_cov(X[:3]).shape == (3, 1, 3, 1)


def test_a_pipeline_passes_them_on():
    X, y = data()
    pipe = make_pipeline(StandardScaler(), small()).fit(X, y)
    mean, low, high = pipe.predict(X, interval=0.8)
    assert (low < mean).all()
    assert (mean < high).all()
    assert pipe.predict(X, quantiles=[0.1, 0.5]).shape == (120, 2)
    np.testing.assert_array_equal(pipe.predict(X, return_std=True)[0], mean)


def test_scorers_in_searches_and_cross_validation():
    X, y = data()
    y[3:9] = np.nan
    pipe = make_pipeline(StandardScaler(), small())
    grid = {"spngpregressor__kernels": [SquaredExponential(), Matern(1.5)]}
    search = GridSearchCV(pipe, grid, scoring=scorers.neg_nlpd, cv=2).fit(X, y)
    fitted = search.best_estimator_
    mixture = fitted[-1].predict_dist(fitted[:-1].transform(X))
    assert scorers.neg_nlpd(search, X, y) == -metrics.nlpd(mixture, y)
    assert search.score(X, y) == scorers.neg_nlpd(fitted, X, y)
    assert cross_val_score(small(), X, y, scoring=scorers.neg_crps, cv=2).max() < 0
    several = {"crps": scorers.neg_crps, "held": scorers.coverage(0.9), "off": scorers.neg_coverage_error(0.9)}
    found = cross_validate(small(), X, y, scoring=several, cv=2, n_jobs=1)
    np.testing.assert_allclose(found["test_off"], -np.abs(found["test_held"] - 0.9))
    with pytest.raises(TypeError, match="need a model with predict_dist, got StandardScaler"):
        scorers.neg_nlpd(StandardScaler(), X, y)


def test_score_leaves_missing_outputs_out():
    X, Y = data(outputs=2)
    model = small().fit(X, Y)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)), rel=1e-12)
    weights = np.arange(len(X)) + 1.0
    assert model.score(X, Y, weights) == pytest.approx(r2_score(Y, model.predict(X), sample_weight=weights))
    gaps = Y.copy()
    gaps[::3, 1] = np.nan
    seen = ~np.isnan(gaps[:, 1])
    mean = model.predict(X)
    expected = 0.5 * (r2_score(Y[:, 0], mean[:, 0]) + r2_score(Y[seen, 1], mean[seen, 1]))
    assert model.score(X, gaps) == pytest.approx(expected)
    with pytest.raises(ValueError, match="y must hold an observed value"):
        model.score(X, np.full(Y.shape, np.nan))


def test_transformed_target_regressor_works_or_says_what_to_use():
    X, y = data()
    wrapped = TransformedTargetRegressor(small(), func=np.log, inverse_func=np.exp).fit(X, y)
    assert np.corrcoef(wrapped.predict(X), y)[0, 1] > 0.9
    quantiles = wrapped.predict(X, quantiles=[0.05, 0.95])  # a quantile of a function is the function of a quantile
    np.testing.assert_allclose(quantiles, np.exp(wrapped.regressor_.predict(X, quantiles=[0.05, 0.95])))
    for asked in ({"return_std": True}, {"interval": 0.9}):
        with pytest.raises(AttributeError, match=r"SPNGPRegressor\(target=transformer\)"):
            wrapped.predict(X, **asked)
    assert np.ndim(small().fit(X, y).predict(X, return_std=True)) == 2  # for NumPy it is a tuple


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"interval": 90}, r"interval must lie strictly between 0 and 1 (0.9 for 90 %), got 90"),
        ({"interval": "wide"}, r"interval must lie strictly between 0 and 1 (0.9 for 90 %), got 'wide'"),
        ({"quantiles": [0.5, 1.0]}, "quantiles must lie strictly between 0 and 1 (0.05 for 5 %), got 1"),
        ({"quantiles": -0.1}, "quantiles must lie strictly between 0 and 1 (0.05 for 5 %), got -0.1"),
        ({"quantiles": float("nan")}, "quantiles must lie strictly between 0 and 1 (0.05 for 5 %), got nan"),
        ({"quantiles": [[0.5]]}, "quantiles must be a number or a sequence of numbers, got shape (1, 1)"),
        (
            {"quantiles": 0.5, "return_std": True},
            "quantiles are returned alone: ask for the mean, its std or an interval in another call",
        ),
    ],
)
def test_what_cannot_be_asked_for(asked, message):
    X, y = data(40)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        small().fit(X, y).predict(X, **asked)
    assert str(caught.value) == message


def test_levels_of_the_named_methods():
    X, y = data(40)
    model = small().fit(X, y)
    with pytest.raises(ValueError, match=r"^coverage must lie strictly between 0 and 1"):
        model.predict_interval(X, 1.5)
    with pytest.raises(ValueError, match=r"^alpha must lie strictly between 0 and 1"):
        model.predict_quantiles(X, [0.1, 2])


def test_notebooks_see_what_was_learnt():
    X, y = data()
    frame = pd.DataFrame(X, columns=["<wide>", "height"])
    unfitted = small()._repr_mimebundle_()["text/html"]
    assert "spngp-learnt" not in unfitted
    fitted = small().fit(frame, y)
    page = fitted._repr_mimebundle_()["text/html"]
    assert "spngp-learnt" in fitted._repr_html_()
    assert "SPNGPRegressor" in page
    assert "&lt;wide&gt;, height" in page
    assert "learnt from" in page
    assert "120 rows" in page
    committee = RobustBayesianCommitteeMachine(n_experts=3).fit(X, y)._repr_html_()
    assert "experts" in committee


def test_one_call_draws_the_model():
    X, y = data()
    model = small().fit(X, y)
    display = model.plot(X, y, ylabel="height")
    assert [ax.get_xlabel() for ax in display.axes_] == ["x0", "x1", "predicted"]
    assert display.shares[0, 0] > display.shares[1, 0]
    assert len(small().fit(X[:, :1], y).plot().axes_) == 1
    with pytest.raises(ValueError, match=r"^X and y go together, got X alone$"):
        model.plot(X)
