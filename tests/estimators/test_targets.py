"""Targets on another scale: predictions in the units of y."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import PowerTransformer

import spngp
from spngp import GPRegressor, SPNGPRegressor, metrics
from spngp.estimators.targets import transforms_for
from spngp.kernels import SquaredExponential
from spngp.transformed import Log, TransformedMixture, Unchanged


def lognormal(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.exp(1.5 * np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.standard_normal(n))


def small(**changes):
    return SPNGPRegressor(SquaredExponential(), max_leaf_size=60, random_state=0, **changes)


def test_the_logarithm_is_learnt_and_predicted_in_the_units_of_y():
    X, y = lognormal()
    model, by_hand = small(target="log").fit(X, y), small().fit(X, np.log(y))
    mixture, logs = model.predict_dist(X), by_hand.predict_dist(X)
    assert isinstance(mixture, TransformedMixture)
    np.testing.assert_allclose(mixture.quantile(0.2), np.exp(logs.quantile(0.2)), rtol=1e-12)
    np.testing.assert_allclose(mixture.logpdf(y), logs.logpdf(np.log(y)) - np.log(y), rtol=1e-10)
    np.testing.assert_allclose(model.log_evidence_, by_hand.log_evidence_ - np.log(y).sum(), rtol=1e-10)
    np.testing.assert_allclose(model.y_train_, y, rtol=1e-12)
    mean, low, high = model.predict(X, interval=0.9)
    np.testing.assert_array_equal(mean, model.predict(X))
    assert (low > 0).all()
    assert 0.8 < np.mean((low <= y) & (y <= high)) < 0.99
    draws = model.sample_y(X[:5], 4000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=1), mean[:5], rtol=0.15)
    np.testing.assert_allclose(model.sample_y(X, 2, random_state=1), np.exp(by_hand.sample_y(X, 2, random_state=1)))
    assert metrics.crps(mixture, y) < metrics.crps(small().fit(X, y).predict_dist(X), y)
    assert model.predict_quantiles(X, [0.1, 0.9]).shape == (240, 2)
    assert model.importance(X).mean.total[0] > 0.5


def test_a_target_in_updates_files_and_clones(tmp_path):
    X, y = lognormal()
    model = small(target="log").fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    by_hand = small().fit(X[:200], np.log(y[:200])).partial_fit(X[200:], np.log(y[200:]))
    np.testing.assert_allclose(model.predict_quantiles(X, 0.5), np.exp(by_hand.predict_quantiles(X, 0.5)), rtol=1e-12)
    model.save(tmp_path / "m")
    loaded = spngp.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-12)
    assert loaded.targets_ == [Log()]
    assert clone(model).target == "log"
    model.plot()


def test_the_evidence_chooses():
    X, y = lognormal()
    model = GPRegressor(target="auto", random_state=0).fit(X, y)
    assert model.targets_ == [Log()]
    rng = np.random.default_rng(1)
    plain = 50 + np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))
    assert GPRegressor(target="auto", random_state=0).fit(X, plain).targets_ == [Unchanged()]
    assert GPRegressor(target="auto", random_state=0).fit(X, plain - 50).targets_ == [Unchanged()]
    both = GPRegressor(target="auto", random_state=0).fit(X, np.stack([y, plain - 50], axis=1))
    assert both.targets_ == [Log(), Unchanged()]
    mean, low, _ = both.predict(X, interval=0.95)
    assert mean.shape == (240, 2)
    assert (low[:, 0] > 0).all()
    assert (low[:, 1] < 0).any()


def test_a_transformer(tmp_path):
    X, y = lognormal()
    transformer = PowerTransformer()
    model = small(target=transformer).fit(X, y)
    assert not hasattr(transformer, "lambdas_")  # a clone is fitted
    mixture = model.predict_dist(X)
    z = model.targets_[0].forward(y)
    by_hand = small().fit(X, z).predict_dist(X)
    np.testing.assert_allclose(mixture.cdf(y), by_hand.cdf(z), rtol=1e-9)
    assert 0.85 < metrics.coverage(mixture, y, 0.9) < 0.99
    with pytest.raises(ValueError, match=r"^a model whose target is a transformer cannot be saved, got Power"):
        model.save(tmp_path / "m")


BAD = [
    (
        {"target": "sqrt"},
        "target must be None, 'log', 'auto' or a transformer with fit, transform and inverse_transform",
    ),
    ({"target": 3}, "target must be None, 'log', 'auto' or a transformer"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_what_is_no_target(settings, message):
    X, y = lognormal(30)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared
        GPRegressor(**settings).fit(X, y)
    assert str(caught.value).startswith(message)


def test_values_that_have_no_logarithm():
    X, y = lognormal(60)
    y[11] = -3.0
    message = (
        r"^y must be positive under target='log', got -3 in row 11; use target=PowerTransformer\(\) or 'auto', or "
    )
    with pytest.raises(ValueError, match=message):
        small(target="log").fit(X, y)
    with pytest.raises(ValueError, match=r"got 0 in row 1 of output 1"):
        small(target="log").fit(X[:3], [[1.0, 1.0], [1.0, 0.0], [2.0, 3.0]])
    model = small(target="log").fit(X[:11], y[:11])
    with pytest.raises(ValueError, match=r"got -3 in row 0"):
        model.partial_fit(X[11:], y[11:])
    with pytest.raises(ValueError, match=r"^y_variance is in the units of y and goes without a target"):
        small(target="log").fit(X[:11], y[:11], y_variance=1.0)
    with pytest.raises(ValueError, match=r"^predict_cov goes without a target"):
        model.predict_cov(X)


def test_prices_in_cents_do_not_raise_the_mean():
    """Outputs in doubt widen the shape of the noise; on the scale of a logarithm that must not move the mean."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 1))
    y = np.exp(5 + X[:, 0] + 0.1 * rng.standard_normal(200))
    wrong = rng.choice(200, 4, replace=False)
    y[wrong] *= 100
    model = SPNGPRegressor(SquaredExponential(2.0, 4.0), target="log", random_state=0).fit(X, y)
    assert set(wrong) <= set(model.outliers_[:, 0])
    np.testing.assert_allclose(model.predict(X), np.exp(5 + X[:, 0]), rtol=0.1)


def test_errors_do_not_choose_the_scale():
    """On the scale of y itself, prices of next to nothing are no surprise; on that of the logarithm they are errors."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 2))
    y = np.exp(8 + 0.7 * X[:, 0] + 0.1 * rng.standard_normal(200))
    y[:3] *= 0.001
    assert isinstance(transforms_for("auto", X, y[:, np.newaxis], "")[0], Log)
    order = rng.permutation(200)
    assert isinstance(transforms_for("auto", X[order], y[order, np.newaxis], "")[0], Log)
    even = 20 + 3 * X[:, :1] + rng.standard_normal((200, 1))
    assert isinstance(transforms_for("auto", X, even, "")[0], Unchanged)
