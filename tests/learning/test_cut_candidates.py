"""Cuts that the evidence chooses: segmentations, Laplace's formula, pruning, and what a model makes of them."""

import itertools
import math

import numpy as np
import pytest

import reference
from spngp import SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.kernels import Linear, Matern, Parameter, SquaredExponential
from spngp.learning.cut_candidates import best_cut, cuts_along
from spngp.learning.laplace import Freedom, fit_free
from spngp.network import Box, Leaf, Split, Sum
from spngp.network.pruning import prune
from spngp.structure import Compact, build_network, leaf_regions
from spngp.structure.regions import Cut
from spngp.structure.segments import segmentations

CUTS = [-0.5, 0.1, 0.6]
PROBABILITY = 0.2


def line(n=13, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-1, 1, n))[:, None]
    return X, np.sin(4 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def experts(region, output):
    """Two alternatives in every segment, which differ from segment to segment."""
    width = 0.3 + 0.01 * region.rows.size
    return [
        ("smooth", ExactGP(SquaredExponential(width), 0.05 + 0.01 * region.rows.size)),
        ("rough", ExactGP(Matern(1.5, 2 * width), 0.1)),
    ]


def log_factors(region, output):
    return [-0.3 * region.rows.size, -1.0 - 400.0 * (region.rows.size == 2)]


def brute_force(X, y, X_new):
    """Log evidence and density at new rows by listing every segmentation and every choice of experts in it."""
    edges = [-np.inf, *CUTS, np.inf]
    log_prior, log_joint, densities = [], [], []
    for chosen in itertools.product([False, True], repeat=len(CUTS)):
        ends = [0, *[i + 1 for i, cut in enumerate(chosen) if cut], len(CUTS) + 1]
        segments = [(edges[low], edges[high]) for low, high in itertools.pairwise(ends)]
        inside = [np.flatnonzero((X[:, 0] > low) & (X[:, 0] <= high)) for low, high in segments]
        for which in itertools.product([0, 1], repeat=len(segments)):
            weight = sum(math.log(PROBABILITY if cut else 1 - PROBABILITY) for cut in chosen)
            evidence, density = 0.0, np.zeros(len(X_new))
            for (low, high), rows, expert in zip(segments, inside, which, strict=True):
                place = type("Place", (), {"rows": rows})
                gp = experts(place, 0)[expert][1]
                weight += log_factors(place, 0)[expert] - math.log(2)
                evidence += reference.gp_log_evidence(gp.kernel, gp.noise_variance, X[rows], y[rows])
                for i, x in enumerate(X_new):
                    if low < x[0] <= high:
                        mean, covariance = reference.gp_posterior(
                            gp.kernel, gp.noise_variance, X[rows], y[rows], X_new[[i]]
                        )
                        density[i] = math.exp(reference.log_normal(0.3, mean[0], covariance[0, 0]))
            log_prior.append(weight)
            log_joint.append(weight + evidence)
            densities.append(density)
    total = reference.log_sum_exp(log_joint)
    posterior = np.exp(np.array(log_joint) - total)
    return total - reference.log_sum_exp(log_prior), posterior @ np.array(densities)


def segmented(X):
    return build_network(segmentations(X, 0, CUTS, PROBABILITY), experts, log_factors=log_factors)


def test_the_mixture_over_segmentations_is_the_brute_force_sum():
    X, y = line()
    X_new = np.array([[-0.9], [-0.2], [0.3], [0.61], [0.95]])
    log_evidence, density = brute_force(X, y, X_new)
    posterior = segmented(X).condition(X, y)
    assert posterior.log_evidence == pytest.approx(log_evidence, rel=1e-10)
    np.testing.assert_allclose(np.exp(posterior.predict_dist(X_new).logpdf(np.full(5, 0.3))), density, rtol=1e-8)


def test_segmentations_share_what_lies_above_a_cut():
    X, _ = line()
    regions = segmentations(X, 0, CUTS, PROBABILITY)
    assert len(leaf_regions(regions)) == 10  # (m + 1)(m + 2) / 2
    assert build_network(regions, lambda region, k: [("", ExactGP(Linear()))]).n_induced_trees == 2 ** len(CUTS)
    assert sum(regions.weights) == pytest.approx(1.0, abs=1e-12)


def test_one_region_without_cuts_is_one_segment():
    X, _ = line()
    regions = segmentations(X, 0, [], PROBABILITY)
    assert regions.is_leaf
    assert not regions.partitions
    assert regions.rows.size == 13


# --- Laplace's formula ------------------------------------------------------------------------------


def quadrature(gp, X, y, std, points=37):
    """Log of the integral of evidence times prior over the two log-parameters of a GP, on a grid around the prior."""
    steps = np.linspace(-4.0, 2.5, points)
    values = np.empty((points, points))
    for i, j in itertools.product(range(points), repeat=2):
        theta = gp.theta + np.array([steps[i] * std[0], steps[j] * std[1]])
        values[i, j] = gp.with_theta(theta).condition(X, y).log_evidence - 0.5 * (steps[i] ** 2 + steps[j] ** 2)
    cell = (steps[1] - steps[0]) ** 2 / (2 * math.pi)
    return float(np.logaddexp.reduce(values.ravel())) + math.log(cell)


def test_laplace_corrected_evidence_of_two_parameters_is_the_integral():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (60, 1))
    y = np.sin(3 * X[:, 0]) * 2.0 + 0.5 * rng.standard_normal(60)
    gp = ExactGP(
        SquaredExponential(Parameter(0.4, fixed=True), Parameter(1.0, (1e-8, 1e8))), Parameter(0.1, (1e-8, 10))
    )
    std = (1.0, 0.8)
    expert = fit_free(gp, (X, y), Freedom.of(gp, 0.5, *std))
    corrected = expert.gp.condition(X, y).log_evidence + expert.log_correction
    assert abs(math.expm1(corrected - quadrature(gp, X, y, std))) < 0.02


def test_a_parameter_at_its_bound_counts_the_half_of_the_axis_that_it_has():
    rng = np.random.default_rng(2)
    X, std = np.linspace(0, 1, 40)[:, None], 1.5
    y = np.full(40, 1.0) + 0.05 * rng.standard_normal(40)
    kernel = SquaredExponential(Parameter(5.0, fixed=True), Parameter(1.0, fixed=True))
    gp = ExactGP(kernel, Parameter(0.1, (0.05, 10.0)))
    expert = fit_free(gp, (X, y), Freedom.of(gp, 1.0, 1.0, std))
    assert expert.gp.noise_variance == pytest.approx(0.05, rel=1e-9)
    steps = np.linspace(math.log(0.05 / 0.1) / std, 5.0, 2001)
    values = [
        gp.with_theta(gp.theta + std * s).condition(X, y).log_evidence - 0.5 * s * s - 0.5 * math.log(2 * math.pi)
        for s in steps
    ]
    integral = float(np.logaddexp.reduce(values)) + math.log(steps[1] - steps[0])
    corrected = expert.gp.condition(X, y).log_evidence + expert.log_correction
    assert abs(corrected - integral) < 0.1


def test_freedom_moves_length_scales_together():
    kernel = SquaredExponential([1.0, 2.0], 1.0) + Matern(1.5, [3.0, 4.0], 0.5)
    freedom = Freedom.of(ExactGP(kernel, 0.1), 0.5, 1.0, 2.0)
    np.testing.assert_array_equal(freedom.std, [0.5, 1.0, 2.0])
    np.testing.assert_array_equal(freedom.directions.sum(axis=0), np.ones(7))
    assert freedom.directions[0].sum() == 4
    assert freedom.directions[1].sum() == 2


def test_many_rows_end_where_the_search_with_all_rows_ends():
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(-2, 2, 700))[:, None]
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(700)
    gp = ExactGP(SquaredExponential(0.8), 0.5)
    freedom = Freedom.of(gp, 0.85, 1.75, 1.75)
    found = fit_free(gp, (X, y), freedom).gp
    assert found.noise_variance == pytest.approx(0.04, rel=0.15)
    best = found.condition(X, y).log_evidence
    for step in ([0, 0, 0.1], [0, 0, -0.1], [0.2, 0, 0], [-0.2, 0, 0], [0, 0.5, 0], [0, -0.5, 0]):
        assert found.with_theta(found.theta + step).condition(X, y).log_evidence < best + 0.5


# --- pruning ----------------------------------------------------------------------------------------


def test_pruning_changes_no_probability_by_more_than_its_bound():
    X, y = line(40)
    posterior = segmented(X).condition(X, y)
    X_new = np.linspace(-1, 1, 21)[:, None]
    for bound in (1e-4, 1e-2, 0.2):
        pruned = prune(posterior, bound)
        assert len(pruned.responsibilities()) < len(posterior.responsibilities())
        assert pruned.log_evidence == posterior.log_evidence
        difference = pruned.predict_dist(X_new).cdf(np.full(21, 0.4)) - posterior.predict_dist(X_new).cdf(
            np.full(21, 0.4)
        )
        assert 0 < np.abs(difference).max() <= bound / (1 - bound)


def test_what_is_left_after_pruning_is_the_posterior_given_that_it_holds():
    X, y = line(20)
    prior = Sum(
        [Leaf(Linear()), Split(0, [0.0], [Leaf(SquaredExponential(), 0.1), Leaf(Matern(), 0.1)]), Leaf(Matern())]
    )
    posterior = prior.condition(X, y)
    order = np.argsort(posterior.weights)
    pruned = prune(posterior, 1.001 * float(posterior.weights[order[0]]))
    kept = np.delete(posterior.weights, order[0])
    np.testing.assert_allclose(pruned.weights, kept / kept.sum(), rtol=1e-12)
    assert prune(posterior, 0.0) is posterior


# --- where to cut -----------------------------------------------------------------------------------


def test_the_best_cut_is_where_residuals_change_their_size():
    rng = np.random.default_rng(4)
    values = np.sort(rng.uniform(0, 1, 200))
    sizes = np.where(values > 0.3, 4.0, 0.1) * rng.standard_normal(200) ** 2
    gain, below = best_cut(values, sizes[:, None], 8)
    assert abs(below - int((values <= 0.3).sum())) <= 3
    n, m = 200, below
    naive = n * np.log(sizes.mean()) - m * np.log(sizes[:m].mean()) - (n - m) * np.log(sizes[m:].mean())
    assert gain == pytest.approx(0.5 * naive, rel=1e-3)


def test_equal_values_are_never_separated():
    values = np.repeat([0.0, 1.0, 2.0], 20)
    assert best_cut(values, np.arange(60.0)[:, None], 8)[1] in (20, 40)
    assert best_cut(np.zeros(60), np.ones((60, 1)), 8) is None
    assert cuts_along(values, np.full((60, 1), np.nan), 14) == [0.5, 1.5]


def test_a_large_set_is_cut_as_told_and_then_for_size():
    X = np.random.default_rng(0).uniform(0, 1, (400, 2))
    first = {Box(): Cut(1, (0.2,))}
    regions = Compact(100).regions(X, np.random.default_rng(0), first)
    assert [(partition.axis, partition.at) for partition in regions.partitions] == [(1, (0.2,))]
    assert max(leaf.rows.size for leaf in leaf_regions(regions)) <= 100


# --- models -----------------------------------------------------------------------------------------


def step_in_noise(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 1))
    std = np.where(X[:, 0] > 0.5, 1.0, 0.02)
    return X, np.cos(5 * X[:, 0]) + std * rng.standard_normal(n), std


@pytest.mark.parametrize(("rows", "leaf"), [pytest.param(250, 500, marks=pytest.mark.long), (400, 100)])
def test_a_step_in_the_noise_is_found(rows, leaf):
    X, y, _ = step_in_noise(rows, 7)
    X_new, y_new, std = step_in_noise(1000, 8)
    model = SPNGPRegressor(max_leaf_size=leaf, random_state=0).fit(X, y)
    truth = -0.5 * ((y_new - np.cos(5 * X_new[:, 0])) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    lost = (truth - model.predict_dist(X_new).logpdf(y_new)).mean()
    assert lost < 0.15  # one noise for all loses more than 1.5
    noise = model.predict_noise([[0.2], [0.8]])
    assert noise[0] < 0.05
    assert noise[1] == pytest.approx(1.0, rel=0.3)


def test_noise_that_depends_on_an_input_of_no_other_use_is_found():
    rng = np.random.default_rng(9)
    X = rng.uniform(-1, 1, (1500, 3))
    y = np.sin(3 * X[:, 0]) + np.where(X[:, 2] > 0.3, 0.6, 0.1) * rng.standard_normal(1500)
    model = SPNGPRegressor(max_leaf_size=150, random_state=0).fit(X, y)
    noise = model.predict_noise([[0.0, 0.0, -0.5], [0.0, 0.0, 0.8]])
    np.testing.assert_allclose(noise, [0.1, 0.6], rtol=0.25)


def test_a_model_with_chosen_cuts_can_be_looked_into_and_updated(tmp_path):
    from spngp import load

    X, y, _ = step_in_noise(150, 10)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert len(model.regions_) > 2
    np.testing.assert_allclose(model.predict_kernel_weights(X[:20]).sum(axis=1), 1.0, rtol=1e-9)
    model.save(tmp_path / "model.spngp")
    np.testing.assert_array_equal(load(tmp_path / "model.spngp").predict(X), model.predict(X))
    before = model.log_evidence_
    model.partial_fit([[0.25]], [np.cos(1.25)])
    assert np.isfinite(model.predict_dist(X).logpdf(y)).all()
    assert model.log_evidence_ > before


@pytest.mark.parametrize(
    "X",
    [
        np.repeat([[0.0], [1.0]], 30, axis=0),
        np.eye(60)[:, :1],
        np.random.default_rng(0).integers(0, 4, (60, 2)).astype(float),
        np.random.default_rng(0).standard_normal((60, 100)),
    ],
    ids=["two values", "all equal but one", "integers", "100 inputs"],
)
def test_odd_inputs_end_in_a_sound_model(X):
    y = np.random.default_rng(1).standard_normal(60) * np.where(X[:, 0] > 0.5, 1.0, 0.1)
    mixture = SPNGPRegressor(random_state=0).fit(X, y).predict_dist(X)
    assert np.isfinite(mixture.logpdf(y)).all()
    assert (mixture.std > 0).all()


def test_no_noise_in_one_half():
    x = np.linspace(0, 1, 120)
    y = np.sin(6 * x) + np.where(x > 0.5, np.random.default_rng(2).standard_normal(120), 0.0)
    model = SPNGPRegressor(random_state=0).fit(x[:, None], y)
    mean, std = model.predict([[0.25], [0.75]], return_std=True)
    assert abs(mean[0] - np.sin(1.5)) < 0.05
    assert std[0] < 0.1 < std[1]
