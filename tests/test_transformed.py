"""Transformed mixtures against closed forms, SciPy and plain integration."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer, StandardScaler

from spngp import metrics
from spngp.predictive import GaussianMixture
from spngp.transformed import Fitted, Log, TransformedMixture, Unchanged


def mixtures(n=4, size=3, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(size), n)
    return GaussianMixture(np.log(weights), rng.normal(0, 1, (n, size)), rng.uniform(0.02, 0.6, (n, size)))


def test_a_log_normal_is_scipys():
    normal = GaussianMixture(np.zeros((1, 1)), np.array([[0.3]]), np.array([[0.49]]))
    found, truth = TransformedMixture(normal, (Log(),)), stats.lognorm(0.7, scale=np.exp(0.3))
    for y in (1e-3, 0.5, 2.0, 40.0):
        np.testing.assert_allclose(found.logpdf([y]), truth.logpdf(y), rtol=1e-12)
        np.testing.assert_allclose(found.cdf([y]), truth.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(found.quantile([0.01, 0.5, 0.99])[0], truth.ppf([0.01, 0.5, 0.99]), rtol=1e-10)
    np.testing.assert_allclose([found.mean[0], found.std[0]], [truth.mean(), truth.std()], rtol=1e-12)
    np.testing.assert_allclose(found.interval(0.9), np.array([truth.interval(0.9)]).T, rtol=1e-10)
    assert found.cdf([-1.0]) == 0.0
    assert found.logpdf([0.0]) == -np.inf
    assert found.quantile(0.0) == 0.0
    assert found.quantile(1.0) == np.inf


@pytest.mark.parametrize(
    "transformer",
    [
        PowerTransformer(),
        PowerTransformer("box-cox"),
        StandardScaler(),
        FunctionTransformer(np.log, np.exp, check_inverse=False),
        FunctionTransformer(np.sqrt, np.square, check_inverse=False),
    ],
    ids=repr,
)
def test_densities_integrate_to_one_and_agree_with_cdf_mean_and_variance(transformer):
    y = np.random.default_rng(0).gamma(3.0, 2.0, 400)
    of = Fitted.to(transformer, y)
    z = of.forward(y)
    narrow = GaussianMixture(
        np.log([[0.3, 0.7]]), np.array([[z.mean(), z.mean() + 0.3 * z.std()]]), np.array([[0.2, 0.4]]) ** 2 * z.var()
    )
    found = TransformedMixture(narrow, (of,))
    low, high = (float(edge[0]) for edge in found.interval(1 - 1e-9))

    def density(t):
        return float(np.exp(found.logpdf([t]))[0])

    total, mean, square = (quad(lambda t: density(t) * t**k, low, high, limit=200)[0] for k in (0, 1, 2))  # noqa: B023
    np.testing.assert_allclose(total, 1.0, rtol=1e-6)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(found.var, square - mean**2, rtol=1e-5)
    at = float(found.quantile(0.3)[0])
    np.testing.assert_allclose(quad(density, low, at, limit=200)[0], 0.3, rtol=1e-5)


def test_without_a_change_it_is_the_mixture():
    mixture = mixtures()
    found, y = TransformedMixture(mixture, (Unchanged(),)), np.array([0.1, -2.0, 1.0, 0.0])
    for name in ("logpdf", "cdf"):
        np.testing.assert_array_equal(getattr(found, name)(y), getattr(mixture, name)(y))
    np.testing.assert_array_equal(found.mean, mixture.mean)
    np.testing.assert_array_equal(found.sample(5, 0), mixture.sample(5, 0))
    np.testing.assert_allclose(metrics.crps_of_rows(found, y), metrics.crps_of_rows(mixture, y), rtol=1e-6)
    scaled = Fitted.to(StandardScaler(), np.random.default_rng(0).normal(3.0, 2.0, 50))
    moved = TransformedMixture(mixture, (scaled,))
    same = mixture.scaled(scaled.transformer.scale_[0], scaled.transformer.mean_[0])
    np.testing.assert_allclose(moved.mean, same.mean, rtol=1e-10)
    np.testing.assert_allclose(moved.var, same.var, rtol=1e-10)
    np.testing.assert_allclose(moved.logpdf(y), same.logpdf(y), rtol=1e-8)
    np.testing.assert_allclose(metrics.crps_of_rows(moved, y), metrics.crps_of_rows(same, y), rtol=1e-6)


def test_scores_of_a_log_normal():
    mixture, y = mixtures(), np.array([0.2, 1.0, 5.0, np.nan])
    found = TransformedMixture(mixture, (Log(),))
    scores = metrics.crps_of_rows(found, y)
    assert np.isnan(scores[3])
    for i in range(3):
        one = found[i : i + 1]
        edges = [0.0, y[i], float(one.quantile(1 - 1e-12)[0])]
        parts = [
            quad(lambda t: (one.cdf([t])[0] - (y[i] <= t)) ** 2, *pair, limit=400)[0]  # noqa: B023
            for pair in (edges[:2], edges[1:])
        ]
        np.testing.assert_allclose(scores[i], sum(parts), rtol=1e-5)
    assert metrics.nlpd(found, y) == pytest.approx(-np.nanmean(found.logpdf(y)))
    assert metrics.coverage(found, y, 0.9) == metrics.coverage(mixture, np.log(y), 0.9)
    assert metrics.scores(found, y).n == 3
    draws = found.sample(200_000, 0)
    np.testing.assert_allclose(draws.mean(axis=1), found.mean, rtol=0.02)


def test_rows_outputs_and_batches():
    both = GaussianMixture(*(np.stack([part, part + 0.0], axis=1) for part in vars(mixtures()).values()))
    found = TransformedMixture(both, (Log(), Unchanged()), by_output=True)
    assert found.shape == (4, 2)
    np.testing.assert_array_equal(found[:, 0].mean, TransformedMixture(mixtures(), (Log(),)).mean)
    np.testing.assert_array_equal(found[:, 1].mean, mixtures().mean)
    np.testing.assert_array_equal(found[1:3].std, found.std[1:3])
    np.testing.assert_array_equal(found[2].mean, found.mean[2])
    np.testing.assert_array_equal(found.quantile([0.1, 0.9])[:, 0], found[:, 0].quantile([0.1, 0.9]))
    joined = TransformedMixture.concatenate([found[:1], found[1:]])
    np.testing.assert_array_equal(joined.var, found.var)
    assert len(found) == 4
    one = TransformedMixture(mixtures(), (Log(),)).with_outputs_axis()
    assert one.quantile([0.1, 0.9]).shape == (4, 1, 2)
    assert "Log" in repr(found)
    with pytest.raises(ValueError, match=r"y must have shape \(4, 2\), got \(3,\)"):
        found.logpdf(np.zeros(3))


def test_a_rare_wide_part_of_the_noise_does_not_decide_the_mean():
    shaped = GaussianMixture(np.log([[1 - 1e-5, 1e-5]]), np.zeros((1, 2)), np.array([[0.04, 160.0]]))
    plain = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1)), np.array([[0.0416]]))
    assert TransformedMixture(shaped, (Log(),)).mean > 1e20
    found = TransformedMixture(shaped, (Log(),), plain)
    np.testing.assert_allclose(found.mean, np.exp(0.0208), rtol=1e-12)
    np.testing.assert_allclose(found.quantile(0.5), 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (FunctionTransformer(np.negative, np.negative, check_inverse=False), "must be increasing"),
        (FunctionTransformer(np.square, np.square, check_inverse=False), "must give finite values back"),
        (FunctionTransformer(np.log, np.exp, check_inverse=False), "must give finite values back"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_transformers_that_cannot_be_used(transformer, message):
    with pytest.raises(ValueError, match=rf"^target=FunctionTransformer {message}"):
        Fitted.to(transformer, np.array([-1.0, 2.0, 3.0]))


def test_quantile_transformers_end_where_the_data_end():
    y = np.random.default_rng(0).gamma(2.0, 1.0, 300)
    of = Fitted.to(QuantileTransformer(n_quantiles=100, output_distribution="normal"), y)
    assert of.inverse(np.array([-50.0, 50.0])).tolist() == [y.min(), y.max()]
