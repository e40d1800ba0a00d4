import warnings

import numpy as np
import pandas as pd
import pytest

from spngp import SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import standardised_residuals
from spngp.kernels import KernelSum, Matern, SquaredExponential
from spngp.learning import StructureLeftWarning, search
from spngp.learning.blocks import blocks_of
from spngp.learning.defaults import default_kernels, noise_parameter
from spngp.learning.parts import parts_of, with_less_noise, with_part, with_rougher_parts, without_part
from spngp.learning.plan import Effort
from spngp.learning.search import (
    Alternatives,
    beliefs,
    evidences_of,
    in_sight,
    without_far_behind,
    without_unneeded,
)
from spngp.learning.structure_left import Finding, structure_left, warn_of_structure
from spngp.learning.tied import metric
from spngp.learning.tied_evidence import evidence, fit_tied, tied_prior


def waves(n, seed, d=8, along=3, w=15.0):
    """Inputs, outputs and the function: smooth along two inputs, fine along one where it is positive."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    function = np.sin(4 * X[:, 0]) * np.cos(2 * X[:, 1]) + np.where(X[:, along] > 0, np.sin(w * X[:, along]), 0.0)
    return X, function + 0.2 * rng.standard_normal(n), function


def smooth_gp(d, noise=0.3):
    return ExactGP(SquaredExponential([0.5, 0.8, *[50.0] * (d - 2)], 0.3), noise)


def screened(gp, X, y, most=2, share=0.02):
    return structure_left(gp, [(X, y)], most, share, np.random.default_rng(0))


# Screening


def test_residuals_are_those_of_leaving_each_row_out():
    X, y, _ = waves(60, 0, d=4)
    gp = smooth_gp(4)
    found = standardised_residuals(gp, X, y, 0, np.random.default_rng(0))[:, 0]
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        mean, variance = gp.condition(X[rest], y[rest]).predict(X[i : i + 1])
        assert found[i] == pytest.approx(np.clip((y[i] - mean[0]) / np.sqrt(variance[0]), -3, 3), rel=1e-9)


def test_drawn_residuals_have_the_covariance_that_the_gp_says():
    X, y, _ = waves(12, 1, d=2, along=1)
    gp = smooth_gp(2)
    drawn = standardised_residuals(gp, X, y, 40_000, np.random.default_rng(0))[:, 1:]
    precision = np.linalg.inv(gp.kernel.gram(X) + gp.noise_variance * np.eye(12))
    scale = np.sqrt(np.diag(precision))
    # cutting off at three standard deviations moves a covariance by about one hundredth
    np.testing.assert_allclose(np.cov(drawn), precision / np.outer(scale, scale), atol=0.05)


@pytest.mark.parametrize(("along", "w"), [(3, 10.0), (3, 60.0), (6, 25.0)])
def test_a_wave_along_one_input_is_found_with_its_input_and_a_width_that_resolves_it(along, w):
    X, y, _ = waves(800, 2, along=along, w=w)
    first = screened(smooth_gp(8), X, y)[0]
    assert first.inputs == (along,)
    assert first.widths[0] < np.pi / w  # half a period
    assert 0.4 < first.share < 1.0


def test_waves_along_two_inputs_are_two_findings():
    X, y, _ = waves(1000, 3)
    y = y + np.where(X[:, 5] > 0, np.sin(12 * X[:, 5]), 0.0)
    assert sorted(found.inputs for found in screened(smooth_gp(8, 0.6), X, y)) == [(3,), (5,)]


def test_a_wave_that_shows_along_no_single_input_is_found_along_two():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (1000, 6))
    y = np.sin(15 * X[:, 2]) * X[:, 4] + 0.2 * rng.standard_normal(1000)
    found = screened(ExactGP(SquaredExponential([20.0] * 6, 0.01), 0.3), X, y)
    assert [finding.inputs for finding in found] == [(2, 4)]


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_found_where_the_gp_is_right_nor_in_noise_that_varies(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (500, 5))
    gp = ExactGP(SquaredExponential([0.5, 0.8, 20.0, 20.0, 20.0], 1.0), 0.1)
    assert screened(gp, X, gp.sample(X, 1, rng)[:, 0], share=0.0) == []
    uneven = gp.sample(X, 1, rng, latent=True)[:, 0] + np.exp(-1.5 + X[:, 3]) * rng.standard_normal(500)
    assert screened(gp, X, uneven, share=0.0) == []


def test_one_gross_error_is_no_structure():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    gp = ExactGP(SquaredExponential([0.5, 0.8, 20.0], 1.0), 0.1)
    y = gp.sample(X, 1, rng)[:, 0]
    y[7] = 1e4
    # without the gross error's shadow on its neighbours, which the smooth part spreads
    assert all(finding.share < 0.5 for finding in screened(gp, X, y))


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((200, 3)),
        np.repeat([[0.0, 1.0], [1.0, 0.0]], 100, axis=0),
        np.vstack([np.zeros((199, 2)), np.ones((1, 2))]),
        np.indices((15, 15)).reshape(2, -1).T.astype(float),
    ],
    ids=["constant", "two values", "all equal but one", "integer grid"],
)
def test_inputs_of_few_values_are_screened_without_a_fault(X):
    y = np.random.default_rng(0).standard_normal(X.shape[0])
    assert screened(ExactGP(SquaredExponential([1.0] * X.shape[1]), 1.0), X, y) == []


def test_levels_of_an_integer_input_are_found():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 12, 600), rng.integers(0, 3, 600)]).astype(float)
    y = np.where(X[:, 0] % 2 == 0, 1.0, -1.0) + 0.5 * rng.standard_normal(600)
    assert screened(ExactGP(SquaredExponential([10.0, 10.0]), 1.0), X, y)[0].inputs == (0,)


def test_few_rows_tell_nothing():
    X, y, _ = waves(99, 0)
    assert screened(smooth_gp(8), X, y) == []


# Long length-scales


def with_length_scale(gp, along, value):
    lengths = [which.role == "length_scale" and which.input == along for which in gp.free_parameters]
    return gp.with_theta(np.where(lengths, np.log(value), gp.theta))


def test_only_long_length_scales_are_brought_into_sight():
    start = ExactGP(default_kernels(2)[0], noise_parameter(1.0, 400))
    here = with_length_scale(with_length_scale(start, 0, 0.1), 1, 300.0)
    here = here.with_theta(here.theta + np.where([p.role == "variance" for p in here.free_parameters], 3.0, 0.0))
    near = in_sight(Alternatives([start], [here], ["sum"])).gps[0]
    expected = np.where(np.isclose(here.theta, np.log(300.0)), start.theta + np.log(2.0), here.theta)
    np.testing.assert_allclose(near.theta, expected)


@pytest.mark.parametrize("seed", range(3))
def test_an_input_that_was_let_go_of_is_found_again_from_within_sight(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (400, 3))
    y = np.sin(2 * X[:, 0]) + np.sin(2.5 * X[:, 1]) * np.cos(X[:, 2]) + 0.1 * rng.standard_normal(400)
    blocks = blocks_of([np.arange(200), np.arange(200, 400)], X, y, None)
    start = ExactGP(default_kernels(3)[0], noise_parameter(1.0, 400))
    known = Alternatives([start], [with_length_scale(start, 1, 300.0)], ["sum"])

    def reached(known):
        return evidence(fit_tied(known.gps, blocks, 40)[0], blocks)

    assert reached(in_sight(known)) > reached(known) + 100


def test_a_prior_may_hold_back_short_length_scales_alone():
    start = ExactGP(default_kernels(3)[0], noise_parameter(1.0, 400))
    along = np.array([which.role == "length_scale" for which in start.free_parameters])
    free, held = tied_prior(start, Effort()), tied_prior(start, Effort(short_prior_std=0.7))
    for prior, below in ((free, np.inf), (held, 0.7)):
        assert (prior.std[along] == np.inf).all()  # a long one is simple
        assert (prior.below[along] == below).all()
    np.testing.assert_array_equal(held.below[~along], free.std[~along])


@pytest.mark.parametrize("seed", range(2))
def test_noise_along_many_inputs_is_not_taken_for_structure_that_is_short_along_some(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (600, 24))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(600)
    blocks = blocks_of(np.array_split(np.argsort(X[:, 0]), 4), X, y, None)
    start = ExactGP(default_kernels(24)[1], noise_parameter(1.0, 600))
    noisy = with_length_scale(with_length_scale(start, 3, 0.1), 5, 0.1)

    def shortest(effort):
        found = fit_tied([noisy], blocks, 40, priors=[tied_prior(start, effort)])[0]
        lengths = [p.role == "length_scale" for p in found.free_parameters]
        return np.exp(found.theta[lengths].min())

    assert shortest(Effort(short_prior_std=4.0 / np.sqrt(24))) > 2.0 * shortest(Effort())


# Belief in kernels


def test_belief_is_the_posterior_weight_averaged_over_regions():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (60, 1)), rng.standard_normal(60)
    gps = [ExactGP(kernel, 0.5) for kernel in (SquaredExponential(0.2), Matern(1.5, 0.2), Matern(0.5, 0.2))]
    regions = [np.arange(10), np.arange(10, 35), np.arange(35, 60)]
    expected = []
    for rows in regions:
        densities = np.array([np.exp(gp.condition(X[rows], y[rows]).log_evidence) for gp in gps])
        expected.append(densities / densities.sum())
    evidences = evidences_of(gps, blocks_of(regions, X, y, None), None)
    np.testing.assert_allclose(beliefs(evidences), np.mean(expected, axis=0), rtol=1e-9)


def test_kernels_that_evidence_does_not_need_are_left_out_but_never_all():
    gps = [ExactGP(SquaredExponential(length), 0.1) for length in (1.0, 2.0, 3.0)]
    known, weights = Alternatives(gps, gps[::-1], ["a", "b", "c"]), np.array([0.6, 0.005, 0.395])
    # the first and the third are needed in a region each, the second nowhere
    kept, left = without_unneeded(known, weights, np.array([[0.0, -9.0], [-1.0, -1.0], [-9.0, 0.0]]), 6000)
    assert (kept.starts, kept.gps, kept.labels) == ([gps[0], gps[2]], [gps[2], gps[0]], ["a", "c"])
    assert left.tolist() == [0.6, 0.395]
    # of many rows a few nats are nothing
    one_each = np.array([[0.0, -9.0], [-1.0, -1.0], [-9.0, 0.5]])
    assert without_unneeded(known, weights, one_each, 90_000)[0].labels == ["c"]
    # two that are the same have a factor of two in each region to lose
    alike = np.array([[5.0, 5.0], [-9.0, -9.0], [5.0, 5.0]])
    assert [without_unneeded(known, weights, alike, n)[0].labels for n in (2000, 20_000)] == [["a", "c"], ["c"]]
    no_use = np.array([[0.0, 0.0, -search._NONE], [-500.0, -500.0, -search._NONE], [-900.0, -900.0, -search._NONE]])
    assert without_unneeded(known, weights, no_use, 2000)[0].labels == ["a"]
    unusable = np.full((3, 2), -search._NONE)
    assert len(without_unneeded(known, weights, unusable, 2000)[0].labels) == 1


def test_a_kernel_far_behind_on_the_subset_is_left_out_and_a_near_one_is_not():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (80, 1))
    y = np.sin(6 * X[:, 0]) + 0.01 * rng.standard_normal(80)
    kernels = [SquaredExponential(0.3), SquaredExponential(0.4), Matern(0.5, 1e-3)]
    gps = [ExactGP(kernel, 1e-4) for kernel in kernels]
    known = Alternatives(gps, gps, ["good", "nearly", "hopeless"])
    blocks = blocks_of([np.arange(80)], X, y, None)
    behind = [evidence(gps[0], blocks) - evidence(gp, blocks) for gp in gps]
    assert 1.0 < behind[1] < 0.3 * 80 < behind[2]  # the second would have no weight here
    kept, weights = without_far_behind(known, np.array([0.9, 0.0, 0.1]), evidences_of(gps, blocks, None), 80)
    assert kept.labels == ["good", "nearly"]
    assert weights.tolist() == [0.9, 0.0]


def test_a_kernel_counts_in_the_metric_as_much_as_it_is_believed():
    gps = [ExactGP(SquaredExponential([1.0, 3.0]), 0.1), ExactGP(Matern(1.5, [0.2, 9.0]), 0.1)]
    spreads = np.ones(2)
    np.testing.assert_allclose(metric([gps], spreads, [np.array([1.0, 0.0])]), metric([gps[:1]], spreads))
    np.testing.assert_allclose(metric([gps], spreads, [np.array([0.5, 0.5])]), metric([gps], spreads))
    quarter = 1 / np.sqrt(0.75 * metric([gps[:1]], spreads) ** -2 + 0.25 * metric([gps[1:]], spreads) ** -2)
    np.testing.assert_allclose(metric([gps], spreads, [np.array([3.0, 1.0])]), quarter)


# Parts


FINDING = Finding(inputs=(1,), widths=(0.05,), share=0.4, score=20.0)


@pytest.mark.parametrize("kernel", default_kernels(3))
def test_a_further_part_is_short_along_the_input_found_and_comes_out_of_the_noise(kernel):
    gp = ExactGP(kernel, noise_parameter(1.0, 500))
    extended = with_less_noise(with_part(gp, 3, FINDING, 0.02), FINDING.share)
    new = parts_of(extended)[-1]
    assert type(new) is type(kernel.parts[-1])
    assert len(parts_of(extended)) == 3
    np.testing.assert_allclose(np.exp(new.theta), [6 * 3**0.5, 0.05, 6 * 3**0.5, 0.02])
    assert extended.noise_variance == pytest.approx(0.6 * gp.noise_variance)
    np.testing.assert_array_equal(extended.bounds[-1], gp.bounds[-1])  # the floor of the noise is kept
    assert without_part(with_part(gp, 3, FINDING, 0.02), 2).kernel == gp.kernel


def test_a_rougher_part_replaces_the_last_and_a_sum_may_shrink_to_one():
    gp = with_part(ExactGP(default_kernels(3)[0], 0.1), 3, FINDING, 0.02)
    rough = parts_of(with_rougher_parts(gp, 1))
    assert rough[:2] == parts_of(gp)[:2]
    assert isinstance(rough[2], Matern)
    assert rough[2].nu == 0.5
    alone = without_part(without_part(gp, 0), 0)
    assert not isinstance(alone.kernel, KernelSum)


def test_what_is_left_is_told_once_in_words():
    small = Finding(inputs=(0,), widths=(0.1,), share=0.04, score=9.0)
    pair = Finding(inputs=(2, 5), widths=(0.1, 0.2), share=0.13, score=9.0)
    with pytest.warns(StructureLeftWarning, match=r"depend on input 1 \(40%\), on input 2 and 5 \(13%\) of X") as told:
        warn_of_structure([FINDING, small, pair])
    assert len(told) == 1
    with pytest.warns(StructureLeftWarning, match=r"depend on b \(40%\), on c and f \(13%\); in brackets"):
        warn_of_structure([FINDING, small, pair], "abcdef")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_structure([small])


# Fits


@pytest.mark.parametrize(("n", "d", "seed", "max_leaf_size"), [(400, 5, 2, 500), (600, 6, 1, 150)])
def test_a_fit_sees_a_fine_wave_among_smooth_structure(n, d, seed, max_leaf_size):  # in one region, and in several
    X, y, _ = waves(n, seed, d=d, w=25.0)
    X_test, _, function = waves(1000, 99, d=d, w=25.0)
    model = SPNGPRegressor(max_leaf_size=max_leaf_size, random_state=0).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X_test) - function) ** 2)) < 0.12  # 0.5 without the wave


def test_a_found_part_is_the_same_bits_on_several_threads():
    X, y, _ = waves(400, 2, d=5, w=25.0)
    one, two = (SPNGPRegressor(random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert any("2.variance" in record["parameters"] for record in one.regions_)  # there is a further part
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize(("rough", "kept"), [(True, True), (False, False)])
def test_a_rough_kernel_is_kept_where_rows_speak_for_it(rough, kept):
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0, 1, (700, 1)), axis=0)
    steps = rng.standard_normal(700) * np.sqrt(np.diff(X[:, 0], prepend=0.0))
    y = np.cumsum(steps) if rough else np.sin(20 * X[:, 0]) + 0.1 * rng.standard_normal(700)
    model = SPNGPRegressor(max_leaf_size=150, random_state=0).fit(X, y)
    assert ("Matern(0.5)" in model.kernel_names_) == kept


def test_kernels_that_a_user_gives_stay_what_they_are():
    X, y, _ = waves(300, 2, d=4)
    model = SPNGPRegressor([SquaredExponential([1.0] * 4), Matern(1.5, [1.0] * 4)], random_state=0).fit(X, y)
    assert {len(record["parameters"]) for record in model.regions_} == {5}


def test_a_fit_tells_what_its_kernels_have_no_part_for():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (400, 7))
    y = np.sin(20 * X + np.arange(7)).sum(axis=1) + 0.3 * rng.standard_normal(400)  # seven waves, five parts
    table = pd.DataFrame(X, columns=[f"wave {j}" for j in range(7)])
    with pytest.warns(StructureLeftWarning, match=r"residuals still depend on wave \d") as told:
        SPNGPRegressor(random_state=0, n_jobs=2).fit(table, y)
    assert len([warning for warning in told if warning.category is StructureLeftWarning]) == 1


@pytest.mark.parametrize("hyperparameters", ["fixed", "tied"])
def test_the_search_leaves_fixed_noise_alone(hyperparameters):
    X, y, _ = waves(300, 2, d=5, w=25.0)
    model = SPNGPRegressor(noise_variance=0.04, hyperparameters=hyperparameters, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_noise(X), 0.2, rtol=1e-6)


@pytest.mark.parametrize(
    "X",
    [
        np.repeat([[0.0, 1.0], [1.0, 0.0]], 60, axis=0),
        np.vstack([np.zeros((119, 2)), np.ones((1, 2))]),
        np.indices((11, 11)).reshape(2, -1).T.astype(float),
        np.random.default_rng(0).standard_normal((120, 300)),
    ],
    ids=["two values", "all equal but one", "integer grid", "300 inputs"],
)
def test_odd_inputs_end_in_finite_predictions(X):
    y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(X.shape[0])
    mean, std = SPNGPRegressor(random_state=0, n_jobs=2).fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
