import tracemalloc

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

from spngp import metrics
from spngp.mixture_spread import FEW
from spngp.predictive import GaussianMixture


@pytest.fixture
def mixture():
    weights = np.array([[0.3, 0.7], [1.0, 0.0]])
    with np.errstate(divide="ignore"):
        return GaussianMixture(
            np.log(weights), np.array([[-1.0, 2.0], [0.5, 9.0]]), np.array([[0.25, 1.0], [4.0, 1.0]])
        )


def test_crps_equals_the_integral_of_squared_cdf_differences(mixture):
    y = np.array([0.4, -3.0])

    def integral(row):
        def squared(t):
            return (mixture.cdf(np.full(2, t))[row] - (t >= y[row])) ** 2

        return integrate.quad(squared, -20, 20, points=[y[row]], limit=400)[0]

    assert metrics.crps(mixture, y) == pytest.approx(np.mean([integral(0), integral(1)]), rel=1e-6)


def test_rmse_and_nlpd_by_hand(mixture):
    y = np.array([1.1, 0.5])  # the mean of the first is 0.3·(−1) + 0.7·2 = 1.1
    assert metrics.rmse(mixture, y) == pytest.approx(0.0, abs=1e-12)
    assert metrics.rmse(mixture, y + np.array([0.0, 2.0])) == pytest.approx(np.sqrt(2.0))
    second = 0.5 * np.log(2 * np.pi * 4.0)
    first = -np.log(
        0.3 * np.exp(-0.5 * 2.1**2 / 0.25) / np.sqrt(2 * np.pi * 0.25) + 0.7 * np.exp(-0.5 * 0.81) / np.sqrt(2 * np.pi)
    )
    assert metrics.nlpd(mixture, y) == pytest.approx(0.5 * (first + second))


def test_coverage_sharpness_and_pit_of_a_calibrated_prediction():
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2.0, 20_000)
    mixture = GaussianMixture(np.zeros((20_000, 1)), np.zeros((20_000, 1)), std[:, np.newaxis] ** 2)
    y = std * rng.standard_normal(20_000)
    assert metrics.coverage(mixture, y) == pytest.approx(0.95, abs=0.006)
    assert metrics.sharpness(mixture) == pytest.approx(2 * 1.959964 * std.mean(), rel=1e-6)
    assert np.quantile(metrics.pit(mixture, y), [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.015)


def test_missing_observations_are_left_out_and_shapes_are_checked(mixture):
    assert metrics.rmse(mixture, [np.nan, 0.5]) == 0.0
    assert metrics.coverage(mixture, [np.nan, 0.5]) == 1.0
    with pytest.raises(ValueError, match=r"y must have the shape of the predictions, \(2,\), got \(3,\)"):
        metrics.nlpd(mixture, np.zeros(3))


def mixture_of(kind, n, size, rng):
    """Weights, means and standard deviations of n rows: of no particular kind, or as models make them, or awkward."""
    weights, means, stds = rng.dirichlet(np.ones(size), n), rng.normal(size=(n, size)), rng.uniform(0.1, 2, (n, size))
    if kind == "noise of a shape":  # seven widths about each of few means
        means = np.repeat(means[:, : size // 7], 7, axis=1)
        widths = np.repeat(stds[:, : size // 7] ** 2, 7, axis=1) / 9
        stds = np.sqrt(widths + 0.3 * np.tile(4.0 ** np.arange(-2, 5), size // 7))
        weights = np.repeat(rng.dirichlet(np.full(size // 7, 0.02), n), 7, axis=1) * np.tile(
            [0.1, 0.2, 0.4, 0.2, 0.09, 0.009, 0.001], size // 7
        )
    elif kind == "widths of all sizes":
        stds = 10.0 ** rng.uniform(-6, 0, (n, size))
    elif kind == "one rare and wide":
        stds *= 1e-3
        means *= 1e-3
        weights[:, 0], stds[:, 0], means[:, 0] = 1e-7, 1e4, -1e3
    elif kind == "far from zero, some of no weight and no width":
        means += 1e6
        weights[:, ::3] = 0.0
        stds[:, ::5] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return GaussianMixture(np.log(weights), means, stds**2)


def crps_by_pairs(mixture, y):
    """The closed form, one row at a time."""

    def mean_absolute(mean, variance):
        std = np.sqrt(variance)
        z = np.divide(mean, std, out=np.full(mean.shape, 1e9), where=std > 0)
        return np.where(
            std > 0, mean * (2 * ndtr(z) - 1) + 2 * std * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), np.abs(mean)
        )

    scores = []
    for weights, means, variances, value in zip(mixture.weights, mixture.means, mixture.variances, y, strict=True):
        differences = mean_absolute(means[:, None] - means, variances[:, None] + variances)
        scores.append(weights @ mean_absolute(value - means, variances) - 0.5 * weights @ differences @ weights)
    return np.array(scores)


KINDS = [
    "any",
    "noise of a shape",
    "widths of all sizes",
    "one rare and wide",
    "far from zero, some of no weight and no width",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [7, 28, 147])
def test_crps_of_few_and_of_many_components_equals_the_closed_form(kind, size):
    rng = np.random.default_rng(size)
    mixture = mixture_of(kind, 60, size, rng)
    y = mixture.mean + mixture.std * rng.standard_normal(60)
    expected = crps_by_pairs(mixture, y)
    np.testing.assert_allclose(metrics.crps_of_rows(mixture, y), expected, rtol=1e-6 if size > FEW else 1e-9)
    assert metrics.crps(mixture, y) == pytest.approx(expected.mean(), rel=1e-7)


def test_crps_of_two_outputs_and_of_missing_ones():
    rng = np.random.default_rng(0)
    flat = mixture_of("any", 40, 30, rng)
    mixture = GaussianMixture(*(part.reshape(20, 2, 30) for part in (flat.log_weights, flat.means, flat.variances)))
    y = rng.standard_normal((20, 2))
    y[3, 1] = y[7, 0] = np.nan
    scores = metrics.crps_of_rows(mixture, y)
    assert scores.shape == (20, 2)
    np.testing.assert_allclose(scores.ravel(), crps_by_pairs(flat, y.ravel()), rtol=1e-7)
    assert metrics.crps(mixture, y) == np.nanmean(scores)


def test_crps_ignores_what_components_of_no_weight_say():
    with np.errstate(divide="ignore"):
        log_weights = np.log([[1.0, 0.0]])
    mixture = GaussianMixture(log_weights, np.array([[0.0, np.nan]]), np.array([[1.0, np.inf]]))
    assert metrics.crps(mixture, [0.0]) == pytest.approx(0.2337, abs=1e-4)


def test_crps_of_many_components_takes_no_memory_for_all_pairs():
    rng = np.random.default_rng(0)
    mixture = mixture_of("noise of a shape", 3000, 343, rng)  # 2.8 GB for one array of all pairs
    y = rng.standard_normal(3000)
    tracemalloc.start()
    try:
        metrics.crps(mixture, y)
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()


class TestScores:
    @pytest.fixture
    def rows(self):
        rng = np.random.default_rng(1)
        weights = rng.dirichlet(np.ones(2), 60)
        mixture = GaussianMixture(np.log(weights), rng.standard_normal((60, 2)), rng.uniform(0.5, 2.0, (60, 2)))
        return mixture, mixture.sample(1, 2)[:, 0]

    def test_are_those_of_the_single_functions(self, rows):
        mixture, y = rows
        found = metrics.scores(mixture, y)
        assert found.n == 60
        assert found.rmse == pytest.approx(metrics.rmse(mixture, y))
        assert found.nlpd == pytest.approx(metrics.nlpd(mixture, y))
        assert found.crps == pytest.approx(metrics.crps(mixture, y))
        assert found.mae == pytest.approx(np.abs(mixture.mean - y).mean())
        assert found.r2 == pytest.approx(1.0 - np.mean((mixture.mean - y) ** 2) / np.var(y))
        assert found.coverage == {level: metrics.coverage(mixture, y, level) for level in metrics.LEVELS}
        np.testing.assert_allclose(found.pit, np.histogram(metrics.pit(mixture, y), 10, (0.0, 1.0))[0] / 60)

    def test_do_not_depend_on_blocks(self, rows):
        mixture, y = rows
        tally = metrics.Tally()
        for block in (slice(0, 7), slice(7, 7), slice(7, 50), slice(50, 60)):
            tally.add(mixture[block], y[block])
        whole, parts = metrics.scores(mixture, y), tally.scores()
        assert parts.coverage == whole.coverage
        for name in ("n", "rmse", "mae", "nlpd", "crps", "mean_std", "std_of_y"):
            assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12)

    def test_leave_out_what_is_missing(self, rows):
        mixture, y = rows
        seen = np.arange(60) % 3 > 0
        assert metrics.scores(mixture, np.where(seen, y, np.nan)) == metrics.scores(mixture[seen], y[seen])

    def test_of_nothing_are_unknown(self, rows):
        mixture, _ = rows
        found = metrics.scores(mixture, np.full(60, np.nan))
        assert found.n == 0
        assert np.isnan([found.rmse, found.nlpd, found.crps, found.r2, *found.coverage.values()]).all()

    def test_levels_can_be_chosen(self, rows):
        assert list(metrics.scores(*rows, levels=(0.3,)).coverage) == [0.3]

    def test_other_shapes_are_refused(self, rows):
        with pytest.raises(ValueError, match=r"y must have the shape of the predictions, \(60,\), got \(59,\)"):
            metrics.scores(rows[0], rows[1][1:])
