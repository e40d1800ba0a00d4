import tracemalloc

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, logsumexp

from spngp import predictive
from spngp.predictive import GaussianMixture

WEIGHTS = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.01, 0.98, 0.01]])
MEANS = np.array([[-3.0, 0.0, 4.0], [2.0, 7.0, 9.0], [-50.0, 0.0, 50.0]])
STDS = np.array([[0.5, 1.0, 0.1], [3.0, 1.0, 1.0], [1e-3, 1e-2, 1e-3]])


@pytest.fixture
def mixture():
    with np.errstate(divide="ignore"):
        return GaussianMixture(np.log(WEIGHTS), MEANS, STDS**2)


def by_scipy(function, y):
    return (WEIGHTS * getattr(stats.norm, function)(y, MEANS, STDS)).sum(axis=1)


def test_moments_density_and_cdf_equal_sums_over_components(mixture):
    mean = (WEIGHTS * MEANS).sum(axis=1)
    np.testing.assert_allclose(mixture.mean, mean)
    variance = (WEIGHTS * (STDS**2 + MEANS**2)).sum(axis=1) - mean**2
    np.testing.assert_allclose(mixture.var, variance, rtol=1e-9)
    np.testing.assert_allclose(mixture.std**2, mixture.var)
    for y in (-3.1, 0.2, 4.0, 51.0):
        np.testing.assert_allclose(mixture.cdf(y), by_scipy("cdf", y), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(mixture.logpdf(0.1), np.log(by_scipy("pdf", 0.1)), rtol=1e-10)


def test_log_density_far_out_equals_high_precision(mixture):
    y = 400.0
    with mpmath.workdps(60):
        total = mpmath.fsum(
            mpmath.mpf(w) * mpmath.npdf(y, m, s) for w, m, s in zip(WEIGHTS[0], MEANS[0], STDS[0], strict=True)
        )
        assert mixture.logpdf(y)[0] == pytest.approx(float(mpmath.log(total)), rel=1e-12)


LEVELS = np.array([1e-12, 1e-4, 0.005, 0.01, 0.2, 0.200000001, 0.5, 0.7, 0.99, 0.995, 1 - 1e-4, 1 - 1e-12])


def test_quantile_inverts_the_cdf_to_1e_8_and_is_monotone(mixture):
    found = mixture.quantile(LEVELS)
    assert found.shape == (3, LEVELS.size)
    assert (np.diff(found, axis=1) >= 0).all()
    for i, level in enumerate(LEVELS):
        np.testing.assert_allclose(mixture.cdf(found[:, i]), level, rtol=1e-8, atol=0)
        nearby = 1e-8 * np.maximum(np.abs(found[:, i]), 1.0)
        # on a plateau between two components the cdf itself is only known to rounding
        assert (mixture.cdf(found[:, i] - nearby) <= level * (1 + 1e-14)).all()
        assert (mixture.cdf(found[:, i] + nearby) >= level * (1 - 1e-14)).all()


def hard_to_invert(kind, n=200):
    """Mixtures of components that overlap; of narrow ones far apart; with one of no weight, far from all others."""
    rng = np.random.default_rng(0)
    if kind == "smooth":
        return np.log(rng.dirichlet(np.ones(4), n)), rng.normal(size=(n, 4)), rng.uniform(0.5, 2, (n, 4)) ** 2
    if kind == "narrow":
        variances = 10.0 ** rng.uniform(-12, 0, (n, 8))
        return np.log(rng.dirichlet(np.ones(8), n)), 1e3 * rng.normal(size=(n, 8)), variances
    weights = np.insert(rng.dirichlet(np.ones(3), n), 1, 0.0, axis=1)
    means = np.insert(10 * rng.normal(size=(n, 3)), 1, 1e6, axis=1)
    with np.errstate(divide="ignore"):
        return np.log(weights), means, 10.0 ** rng.uniform(-8, 0, (n, 4))


@pytest.mark.parametrize(("kind", "mean", "most"), [("smooth", 5.0, 9), ("narrow", 13.0, 46), ("unused", 8.6, 18)])
def test_a_quantile_is_found_in_few_steps(kind, mean, most, monkeypatch):
    """Newton steps where the mixture is smooth, and cuts between components where these are narrow and far apart."""
    mixture, sizes = GaussianMixture(*hard_to_invert(kind)), []

    def noted(z):
        sizes[-1].append(len(z))
        return log_ndtr(z)

    monkeypatch.setattr(predictive, "log_ndtr", noted)
    for level in (0.01, 0.3, 0.9):
        sizes.append([])
        np.testing.assert_allclose(mixture.cdf(mixture.quantile(level)), level, atol=1e-8)
    assert np.mean([sum(of_level) for of_level in sizes]) <= mean * len(mixture)
    assert max(map(len, sizes)) <= most


def test_a_quantile_of_components_that_agree_takes_no_step(monkeypatch):
    """Whatever one of no weight says, far below or above."""
    monkeypatch.setattr(predictive, "log_ndtr", None)
    means = np.array([[1.0, 1.0, -50.0], [-2.0, -2.0, 50.0]])
    with np.errstate(divide="ignore"):
        mixture = GaussianMixture(np.log([[0.3, 0.7, 0.0]] * 2), means, np.full((2, 3), 4.0))
    for level in (0.1, 0.9):
        np.testing.assert_allclose(mixture.quantile(level), stats.norm.ppf(level, [1, -2], 2), rtol=1e-12)


def test_intervals_hold_95_percent_unless_said_otherwise(mixture):
    np.testing.assert_array_equal(mixture.interval(), mixture.interval(0.95))


def test_one_negative_variance_among_others_is_refused():
    with pytest.raises(ValueError, match=r"variances must be >= 0, got -0\.5"):
        GaussianMixture(np.log([[0.5, 0.5]]), np.zeros((1, 2)), np.array([[1.0, -0.5]]))


def test_quantile_of_one_component_is_the_normal_quantile():
    single = GaussianMixture(np.zeros((2, 1)), np.array([[1.0], [-2.0]]), np.array([[4.0], [9.0]]))
    np.testing.assert_allclose(single.quantile(0.975), stats.norm.ppf(0.975, [1, -2], [2, 3]), rtol=1e-12)
    low, high = single.interval(0.95)
    np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * np.array([2, 3]), rtol=1e-12)


def test_quantile_ends_and_many_rows_at_once(mixture):
    np.testing.assert_array_equal(mixture.quantile(0.0), -np.inf)
    np.testing.assert_array_equal(mixture.quantile(1.0), np.inf)
    rng = np.random.default_rng(0)
    raw = rng.random((5000, 6))
    many = GaussianMixture(np.log(raw / raw.sum(axis=1, keepdims=True)), rng.normal(size=(5000, 6)), raw + 1e-6)
    np.testing.assert_allclose(many.cdf(many.quantile(0.37)), 0.37, atol=1e-10)


def test_samples_follow_the_cdf_and_the_seed(mixture):
    draws = mixture.sample(20_000, random_state=3)
    assert draws.shape == (3, 20_000)
    np.testing.assert_array_equal(draws, mixture.sample(20_000, random_state=3))
    uniform = np.array([mixture.cdf(draws[:, i]) for i in range(2000)])
    for row in range(3):
        assert stats.kstest(uniform[:, row], "uniform").pvalue > 1e-3


def test_density_and_mode_on_a_grid(mixture):
    grid = np.linspace(-10, 10, 2001)
    density = mixture.density(grid)
    assert density.shape == (3, 2001)
    assert np.trapezoid(density[0], grid) == pytest.approx(1.0, abs=1e-6)
    assert mixture.mode(grid)[0] == pytest.approx(4.0, abs=0.011)


def test_two_outputs_keep_their_axes():
    mixture = GaussianMixture(np.zeros((4, 2, 1)), np.ones((4, 2, 1)), np.ones((4, 2, 1)))
    assert mixture.mean.shape == mixture.logpdf(np.zeros((4, 2))).shape == (4, 2)
    assert mixture.quantile([0.1, 0.9]).shape == (4, 2, 2)
    assert mixture.sample(5, 0).shape == (4, 2, 5)


NARROW = {
    "three": ([1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 2.0], 1e-32),
    "far from zero": ([0.5, 0.5], [1e6 - 1, 1e6 + 1], 1e-20),
    "no width": ([0.3, 0.4, 0.3], [0.0, 1.0, 2.0], 0.0),
}


@pytest.mark.parametrize(("weights", "means", "variance"), NARROW.values(), ids=NARROW.keys())
def test_quantiles_of_components_narrower_than_the_spacing_of_numbers(weights, means, variance):
    mixture = GaussianMixture(np.log([weights]), np.array([means]), np.full((1, len(means)), variance))
    ends = np.cumsum(weights)
    for level in (1e-9, 0.01, 0.2, 0.29, 0.45, 0.55, 0.65, 0.72, 0.99, 1 - 1e-9):
        expected = means[int(np.searchsorted(ends, level))]
        assert mixture.quantile(level)[0] == pytest.approx(expected, rel=5e-16, abs=7 * variance**0.5 + 1e-150), level


def test_quantile_next_to_a_component_of_tiny_width():
    mixture = GaussianMixture(np.log([[0.3, 0.7]]), np.array([[0.0, 1.0]]), np.array([[1e-300, 1.0]]))
    levels = np.array([0.1, 0.2, 0.29, 0.35, 0.5, 0.9])
    found = mixture.quantile(levels)
    assert (np.diff(found) > 0).all()
    for i, level in enumerate(levels):
        np.testing.assert_allclose(mixture.cdf(found[:, i]), level, rtol=1e-8)


def test_components_without_width_cause_no_warning():
    mixture = GaussianMixture(np.log([[0.5, 0.5]]), np.array([[0.0, 1.0]]), np.zeros((1, 2)))
    np.testing.assert_allclose(mixture.cdf(0.5), 0.5)
    np.testing.assert_allclose(mixture.cdf(1e200), 1.0)
    np.testing.assert_allclose(mixture.cdf(1.0), 0.75)  # half of the second component, as of any Gaussian
    assert mixture.logpdf(1.0)[0] > 300
    assert mixture.logpdf(0.5)[0] < -1e300
    assert set(mixture.sample(20, 0)[0]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.quantile(1.5), r"q must lie in \[0, 1\], got 1.5"),
        (lambda m: m.quantile(np.nan), r"q must lie in \[0, 1\]"),
        (lambda m: m.interval(1.0), "coverage must lie strictly between 0 and 1, got 1.0"),
        (lambda m: m.interval("a"), "coverage must lie strictly between 0 and 1, got 'a'"),
        (lambda m: GaussianMixture(m.log_weights + 1e-5, m.means, m.variances), "sum to 1, got a sum of 1.00001"),
        (lambda m: GaussianMixture(m.log_weights * np.nan, m.means, m.variances), "sum to 1, got a sum of nan"),
        (lambda m: GaussianMixture(m.log_weights, m.means + np.inf, m.variances), "means must be finite where"),
        (lambda m: GaussianMixture(m.log_weights, m.means, m.variances * np.nan), "variances must be finite where"),
        (lambda m: GaussianMixture(*[np.zeros((3, 0))] * 3), r"at least one component, got shape \(3, 0\)"),
        (lambda m: m.logpdf([1.0, 2.0]), r"y must have shape \(3,\), got \(2,\)"),
        (lambda m: m.sample(-1), "n_samples must be an integer >= 0, got -1"),
        (lambda m: m.sample(1, random_state="a"), "random_state must be"),
        (lambda m: GaussianMixture(m.log_weights, m.means, -m.variances), "variances must be >= 0"),
        (lambda m: GaussianMixture(m.log_weights[:, :2], m.means, m.variances), "must have one shape"),
    ],
)
def test_bad_arguments_are_named(mixture, call, message):
    with pytest.raises(ValueError, match=message):
        call(mixture)


def many_components(n, size, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(size, 0.3), n)
    with np.errstate(divide="ignore"):
        return GaussianMixture(np.log(weights), rng.normal(size=(n, size)), rng.uniform(1e-4, 2, (n, size)))


def peak_memory(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_each_draw_is_of_the_first_component_whose_cumulative_weight_reaches_a_uniform_number():
    for size in (1, 2, 3, 8, 9, 50):
        mixture = many_components(7, size, seed=size)
        rng = np.random.default_rng(5)
        uniform, normal = rng.random((7, 40)), rng.standard_normal((7, 40))
        cumulative = np.cumsum(mixture.weights, axis=1)
        for row, draws in enumerate(mixture.sample(40, random_state=5)):
            for j, draw in enumerate(draws):
                k = next(k for k in range(size) if uniform[row, j] <= cumulative[row, k] / cumulative[row, -1])
                assert draw == mixture.means[row, k] + np.sqrt(mixture.variances[row, k]) * normal[row, j]


def test_weights_that_do_not_quite_sum_to_one_are_shares():
    levels = np.array([[0.0, 0.24, 0.26, 1.0 - 1e-16]])
    for total in (1.0 - 1e-7, 1.0 + 1e-7, 8.0):
        assert predictive._components_at(levels, total * np.array([[0.25, 0.75]])).tolist() == [[0, 0, 1, 1]]


def test_samples_take_memory_for_rows_times_samples_and_not_times_components():
    mixture = many_components(500, 336)
    assert peak_memory(lambda: mixture.sample(400, 0)) < 30e6  # 67 MB for one byte per row, sample and component
    assert many_components(3, 336).sample(0, 0).shape == (3, 0)


def test_quantiles_and_densities_take_rows_in_blocks_with_the_same_result():
    mixture = many_components(4000, 100)  # 3.2 MB an array
    found = []
    assert peak_memory(lambda: found.append(mixture.quantile([0.3, 0.99]))) < 30e6
    for rows in (slice(0, 3), slice(2600, 2700), slice(3999, None)):
        np.testing.assert_array_equal(found[0][rows], mixture[rows].quantile([0.3, 0.99]))
    y = found[0][:, 1]
    for call in (mixture.logpdf, mixture.cdf):
        assert peak_memory(lambda call=call: call(y)) < 6e6
        some = getattr(mixture[2600:2700], call.__name__)
        np.testing.assert_array_equal(call(y)[2600:2700], some(y[2600:2700]))
    two_outputs = GaussianMixture(
        *(part.reshape(2000, 2, 100) for part in (mixture.log_weights, mixture.means, mixture.variances))
    )
    np.testing.assert_array_equal(two_outputs.quantile(0.3).ravel(), found[0][:, 0])


class TestIndexing:
    @pytest.fixture
    def mixture(self):
        rng = np.random.default_rng(0)
        weights = rng.dirichlet(np.ones(3), (4, 2))
        return GaussianMixture(np.log(weights), rng.standard_normal((4, 2, 3)), rng.uniform(0.1, 1.0, (4, 2, 3)))

    @pytest.mark.parametrize(
        "index",
        [
            2,
            slice(1, 3),
            [3, 0],
            np.array([True, False, True, False]),
            (slice(None), 1),
            (2, 1),
            (..., 0),
            np.array([[True, False], [False, True], [False, False], [True, True]]),
        ],
        ids=str,
    )
    def test_what_is_taken_is_what_moments_show(self, mixture, index):
        taken = mixture[index]
        for name in ("mean", "std"):
            np.testing.assert_array_equal(getattr(taken, name), getattr(mixture, name)[index])
        assert taken.means.shape[-1] == 3

    @pytest.mark.parametrize("index", [4, (0, 2), (0, 0, 0), (slice(None), slice(None), 0)])
    def test_components_and_what_is_not_there_cannot_be_taken(self, mixture, index):
        with pytest.raises(IndexError, match=r"index must fit the shape of the mixtures, \(4, 2\), got"):
            mixture[index]


def test_intervals_of_mixtures_narrower_than_a_rounding_error_are_in_order():
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(3000, 1))
    means = centre + rng.integers(-3, 4, (3000, 3)) * np.spacing(np.abs(centre))
    variances = 10.0 ** rng.uniform(-36, -28, means.shape)
    mixture = GaussianMixture(np.log(np.full(means.shape, 1 / 3)), means, variances)
    for coverage in (0.2, 0.5, 0.9):
        low, high = mixture.interval(coverage)
        assert (low <= high).all()


def test_scaled_is_the_distribution_of_a_multiple_of_the_output(mixture):
    scaled = mixture.scaled(-2.0, 3.0)
    np.testing.assert_allclose(scaled.mean, 3.0 - 2.0 * mixture.mean)
    np.testing.assert_allclose(scaled.std, 2.0 * mixture.std)
    np.testing.assert_allclose(scaled.cdf(1.5), 1.0 - mixture.cdf((1.5 - 3.0) / -2.0), atol=1e-12)


def test_densities_are_sums_over_components_however_narrow_or_far():
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.full(7, 0.3), 40)
    weights[:5, 2:] = 0.0
    weights /= weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    means, variances = 10.0 * rng.standard_normal((40, 7)), np.exp(rng.uniform(-30.0, 5.0, (40, 7)))
    mixture = GaussianMixture(log_weights, means, variances)
    grid = np.array([-1e160, -30.0, 0.0, float(means[0, 0]), 4.0])
    z = (grid[:, np.newaxis, np.newaxis] - means) / np.sqrt(variances)
    with np.errstate(over="ignore"):
        terms = log_weights - 0.5 * z * z - 0.5 * np.log(2.0 * np.pi * variances)
    expected = logsumexp(terms, axis=-1)
    found = np.array([mixture.logpdf(np.full(40, point)) for point in grid])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(mixture.density(grid).T, np.exp(expected), rtol=1e-12)
    assert (found[0] == -np.inf).all()


def test_a_single_mixture_has_numbers_and_one_density_per_point():
    mixture = GaussianMixture(np.log([0.25, 0.75]), np.array([-1.0, 1.0]), np.array([0.5, 2.0]))
    assert mixture.logpdf(0.3).shape == mixture.quantile(0.9).shape == ()
    np.testing.assert_allclose(mixture.density([0.3, 2.0]), np.exp([mixture.logpdf(0.3), mixture.logpdf(2.0)]))


def test_an_axis_for_one_output(mixture):
    one = mixture.with_outputs_axis()
    assert one.shape == (3, 1)
    np.testing.assert_array_equal(one.mean[:, 0], mixture.mean)
    np.testing.assert_array_equal(one.quantile(0.3)[:, 0], mixture.quantile(0.3))


def test_a_probability_is_at_most_one_though_weights_are_rounded():
    weights = np.array([[0.5, 0.5 + 9e-7]])
    mixture = GaussianMixture(np.log(weights), np.array([[0.0, 1.0]]), np.ones((1, 2)))
    assert mixture.cdf(50.0)[0] == 1.0


@pytest.mark.parametrize("level", [2.0**-50, 2.0**-40, 2.0**-20, 0.25, 0.5])
def test_both_tails_have_the_same_digits(level):
    mixture = GaussianMixture(np.log([[0.25, 0.5, 0.25]]), np.array([[-2.0, 0.0, 2.0]]), np.array([[1.0, 4.0, 1.0]]))
    np.testing.assert_allclose(mixture.quantile(1.0 - level), -mixture.quantile(level), rtol=1e-14, atol=1e-14)


def test_batches_of_rows_are_joined_with_components_of_no_weight(mixture):
    other = GaussianMixture(np.zeros((2, 1)), np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))
    joined = GaussianMixture.concatenate([other, mixture, other])
    assert joined.shape == (7,)
    assert joined.n_components == 3
    np.testing.assert_array_equal(joined.mean, np.concatenate([other.mean, mixture.mean, other.mean]))
    np.testing.assert_array_equal(joined.var, np.concatenate([other.var, mixture.var, other.var]))
    np.testing.assert_array_equal(joined.log_weights[0], [0.0, -np.inf, -np.inf])
    assert GaussianMixture.concatenate([mixture]) is mixture


def test_each_row_is_found_by_itself_though_others_are_unlike(mixture):
    """Rows of very different scales, and components of no weight far off: as if each were asked for alone."""
    with np.errstate(divide="ignore"):
        log_weights = np.log([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.0, 0.3, 0.7], [0.1, 0.2, 0.7]])
    means = np.array([[0.0, 1e-6, 1e9], [1e8, 1e8 + 5.0, -1e12], [7e3, -4.0, 4.0], [-1e3, 0.0, 1e3]])
    variances = np.array([[1e-14, 1e-13, 1.0], [1.0, 4.0, 1e20], [1.0, 1.0, 1e-6], [1e4, 1e-4, 1.0]])
    together = GaussianMixture(log_weights, means, variances)
    for level in (1e-9, 0.05, 0.31, 0.5, 0.77, 1 - 1e-6):
        found = together.quantile(level)
        np.testing.assert_array_equal(found, [together[[i]].quantile(level)[0] for i in range(4)])
        np.testing.assert_allclose(together.cdf(found), level, rtol=1e-7)


def test_batches_of_several_outputs_are_joined():
    one = GaussianMixture(np.zeros((2, 4, 1)), np.ones((2, 4, 1)), np.ones((2, 4, 1)))
    two = GaussianMixture(np.full((3, 4, 2), np.log(0.5)), np.zeros((3, 4, 2)), np.full((3, 4, 2), 4.0))
    joined = GaussianMixture.concatenate([one, two])
    assert (joined.shape, joined.n_components) == ((5, 4), 2)
    np.testing.assert_array_equal(joined.mean, np.concatenate([one.mean, two.mean]))
    np.testing.assert_array_equal(joined.var, np.concatenate([one.var, two.var]))


@pytest.mark.parametrize("name", ["means", "variances"])
def test_one_number_that_is_not_finite_is_refused_where_it_is_used(name):
    parts = {"log_weights": np.log([[0.5, 0.5]]), "means": np.zeros((1, 2)), "variances": np.ones((1, 2))}
    parts[name][0, 1] = np.inf
    with pytest.raises(ValueError, match=f"{name} must be finite where they are used, got inf"):
        GaussianMixture(**parts)
    GaussianMixture(**parts | {"log_weights": np.array([[0.0, -np.inf]])})


def test_one_sample_unless_said_otherwise(mixture):
    assert mixture.sample(random_state=0).shape == (3, 1)


def test_parts_may_be_lists_of_numbers_and_nothing_else():
    mixture = GaussianMixture([[0.0]], [[1]], [[2]])
    assert mixture.means.dtype == mixture.variances.dtype == np.float64
    assert mixture.mean.tolist() == [1.0]
    with pytest.raises(ValueError, match="means must be numeric"):
        GaussianMixture([[0.0]], [["a"]], [[2.0]])


@pytest.mark.parametrize("grid", [[[0.0, 1.0]], [], 1.0])
def test_a_grid_has_one_axis_and_a_point(mixture, grid):
    with pytest.raises(ValueError, match="grid must be one-dimensional with at least one point, got shape"):
        mixture.density(grid)


def test_sizes_and_names():
    mixture = GaussianMixture(np.zeros((4, 2, 1)), np.ones((4, 2, 1)), np.ones((4, 2, 1)))
    assert (len(mixture), mixture.n_components, mixture.shape) == (4, 1, (4, 2))
    assert len(GaussianMixture(np.zeros(1), np.ones(1), np.ones(1))) == 0
    assert repr(mixture) == "GaussianMixture(shape=(4, 2), components=1)"


def test_a_variance_that_overflows_is_told():
    far = GaussianMixture(np.log([[0.5, 0.5]]), np.array([[-1e200, 1e200]]), np.ones((1, 2)))
    with pytest.raises(ValueError, match="the variance overflows: components differ by more than 1e154"):
        far.moments()
