"""skpro's own checks, and that its regressor predicts what ours does."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skpro", reason="needs the extra skpro")

from skpro.utils import check_estimator

from spngp import GPRegressor, SPNGPRegressor, metrics
from spngp.adapters.skpro import MixtureDistribution, SPNGPProbaRegressor
from spngp.kernels import SquaredExponential
from spngp.predictive import GaussianMixture


def table(n=80, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-3, 3, (n, 2)), columns=["a", "b"], index=np.arange(n) * 2)
    Y = np.stack([np.sin(X["a"]) + k * X["b"] + 0.1 * rng.standard_normal(n) for k in range(outputs)], axis=1)
    return X, pd.DataFrame(Y, columns=[f"y{k}" for k in range(outputs)], index=X.index)


@pytest.mark.filterwarnings("ignore")  # of skpro about its own use of pandas
@pytest.mark.parametrize("kind", [SPNGPProbaRegressor, pytest.param(MixtureDistribution, marks=pytest.mark.long)])
def test_skpros_checks(kind):
    results = check_estimator(kind, raise_exceptions=False, verbose=False)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert not failed
    assert len(results) > 20


@pytest.mark.parametrize("outputs", [1, 2])
def test_it_is_our_distribution(outputs):
    X, Y = table(outputs=outputs)
    ours = SPNGPRegressor(SquaredExponential(), max_leaf_size=30, random_state=0)
    model = SPNGPProbaRegressor(ours).fit(X, Y)
    mixture = ours.fit(X, Y.to_numpy()).predict_dist(X)
    found = model.predict_proba(X)
    np.testing.assert_array_equal(found.mean(), mixture.mean)
    np.testing.assert_array_equal(found.var(), mixture.var)
    np.testing.assert_array_equal(found.log_pdf(Y), mixture.logpdf(Y.to_numpy()))
    np.testing.assert_allclose(found.quantile([0.1]).to_numpy(), mixture.quantile(0.1).reshape(len(X), -1))
    np.testing.assert_allclose(model.predict(X), mixture.mean, rtol=1e-12)
    energy = found.energy(Y).to_numpy()[:, 0] - 0.5 * found.energy().to_numpy()[:, 0]  # the CRPS, summed over outputs
    np.testing.assert_allclose(energy, metrics.crps_of_rows(mixture, Y.to_numpy()).sum(axis=1), rtol=1e-9)
    one = found.iloc[3, 0]
    assert one.mean() == mixture.mean[3, 0]
    draws = one.sample(20_000)
    assert float(np.asarray(draws).mean()) == pytest.approx(one.mean(), abs=0.01)
    assert found.loc[[2, 4]].shape == (2, outputs)


def test_updates_and_other_models():
    X, Y = table()
    model = SPNGPProbaRegressor(SPNGPRegressor(SquaredExponential(), max_leaf_size=30, random_state=0))
    model.fit(X[:50], Y[:50]).update(X[50:], Y[50:])
    assert model.regressor_.X_train_.shape == (80, 2)
    log = SPNGPProbaRegressor(GPRegressor(SquaredExponential(), target="log")).fit(X, np.exp(Y))
    found = log.predict_proba(X)
    assert (found.quantile([0.01]).to_numpy() > 0).all()
    with pytest.warns(UserWarning, match="does not have a numerically exact implementation of the 'energy' method"):
        assert np.isfinite(found.energy().to_numpy()).all()  # by skpro's samples


def test_a_single_distribution():
    one = GaussianMixture(np.log([0.3, 0.7]), np.array([-1.0, 1.0]), np.array([0.5, 0.2]))
    found = MixtureDistribution(one)
    assert found.mean() == pytest.approx(0.4)
    assert found.cdf(found.ppf(0.3)) == pytest.approx(0.3)
