import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from spngp import SPNGPRegressor
from spngp._linalg.square import NotPositiveDefiniteError
from spngp.gp import optimisation
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import (
    Block,
    Convergence,
    GaussianPrior,
    LeafEvidence,
    climb,
    fit_adaptive,
    fit_gp,
    maximise,
    mean_curvature,
)
from spngp.kernels import Matern, Parameter, SquaredExponential
from spngp.learning.tied_evidence import TiedEvidence, fit_tied
from spngp.network import Leaf, Split, Sum

pytestmark = pytest.mark.usefixtures("formulas")


def rows(n, seed, d=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.3 * rng.standard_normal(n)


def central_differences(objective, theta):
    step = 1e-5
    return np.array(
        [(objective(theta + step * e)[0] - objective(theta - step * e)[0]) / (2 * step) for e in np.eye(theta.size)]
    )


TEMPLATES = [
    ExactGP(SquaredExponential([1.0, 2.0]), 0.2),
    ExactGP(Matern(1.5, Parameter([0.7, 1.0], fixed=[True, False])), Parameter(0.1, fixed=True)),
]


@pytest.mark.parametrize("gp", TEMPLATES)
def test_untied_gradient_equals_central_differences(gp):
    objective = LeafEvidence(gp, *rows(25, 0))
    np.testing.assert_allclose(objective(gp.theta)[1], central_differences(objective, gp.theta), rtol=1e-6, atol=1e-6)


def test_tied_gradient_through_responsibilities_equals_central_differences():
    objective = TiedEvidence(TEMPLATES, [rows(12, seed) for seed in range(3)])
    theta = objective.theta + 0.1
    gradient = objective(theta)[1]
    np.testing.assert_allclose(gradient, central_differences(objective, theta), rtol=1e-6, atol=1e-6)
    assert all(np.abs(part).max() > 1e-3 for part in objective.parts(gradient))  # both kernels have a say


def test_tied_evidence_is_the_evidence_of_the_network():
    X, y = rows(40, 1)
    left = X[:, 0] <= 0
    blocks = [(X[left], y[left]), (X[~left], y[~left])]
    region = Sum([Leaf.of(gp) for gp in TEMPLATES])
    posterior = Split(0, [0.0], [region, region]).condition(X, y)
    objective = TiedEvidence(TEMPLATES, blocks)
    value, gradient = objective(objective.theta)
    assert value == pytest.approx(posterior.log_evidence, rel=1e-12)
    # ∇ log Z = Σ r ∇ log Z_leaf, with the responsibilities of the posterior network
    expected = [np.zeros(gp.theta.size) for gp in TEMPLATES]
    for record in posterior.responsibilities():
        k = 0 if isinstance(record.leaf.kernel, SquaredExponential) else 1
        inside = record.box.contains(X)
        expected[k] += record.weight * TEMPLATES[k].log_evidence_with_gradient(X[inside], y[inside])[1]
    np.testing.assert_allclose(gradient, np.concatenate(expected), rtol=1e-9)


def test_adaptive_gradient_equals_central_differences():
    gp = TEMPLATES[0]
    prior = GaussianPrior(gp.theta + 0.3, np.array([0.1, 0.5, np.inf, 1.0]))
    objective = prior.added_to(LeafEvidence(gp, *rows(25, 0)))
    np.testing.assert_allclose(objective(gp.theta)[1], central_differences(objective, gp.theta), rtol=1e-6, atol=1e-6)


def test_a_prior_may_hold_one_side_only():
    gp = TEMPLATES[0]
    centre = gp.theta + np.array([0.3, -0.3, 0.3, -0.3])
    prior = GaussianPrior(centre, np.full(4, np.inf), np.full(4, 0.2))
    evidence = LeafEvidence(gp, *rows(25, 0))
    objective = prior.added_to(evidence)
    (value, gradient), (plain, plain_gradient) = objective(gp.theta), evidence(gp.theta)
    assert value == pytest.approx(plain - 2 * 0.5 * (0.3 / 0.2) ** 2, rel=1e-12)  # two are below their centres
    np.testing.assert_allclose(gradient - plain_gradient, [0.3 / 0.2**2, 0.0, 0.3 / 0.2**2, 0.0], rtol=1e-9)
    np.testing.assert_allclose(gradient, central_differences(objective, gp.theta), rtol=1e-6, atol=1e-6)


def test_priors_of_several_gps_are_one_after_the_other():
    first, second = TEMPLATES[0], TEMPLATES[1]
    one_sided = GaussianPrior.of(first, lambda _: np.inf, lambda _: 0.5)
    both_sides = GaussianPrior.of(second, lambda _: 2.0)
    together = GaussianPrior.together([one_sided, both_sides])
    assert together.centre.tolist() == [*first.theta, *second.theta]
    assert together.std.tolist() == [np.inf] * first.theta.size + [2.0] * second.theta.size
    assert together.below.tolist() == [0.5] * first.theta.size + [2.0] * second.theta.size


def test_training_climbs_to_a_stationary_point():
    X, y = rows(80, 3)
    fitted = fit_gp(TEMPLATES[0], X, y)
    assert np.abs(fitted.log_evidence_with_gradient(X, y)[1]).max() < 0.05
    assert fitted.condition(X, y).log_evidence > TEMPLATES[0].condition(X, y).log_evidence


def test_a_tight_prior_holds_and_a_wide_one_lets_go():
    gp, block = TEMPLATES[0], rows(80, 3)
    curvature = mean_curvature(gp, [block])
    tight = fit_adaptive(gp, block, GaussianPrior(gp.theta, np.full(4, 1e-4)), curvature, 50, 1e-6)
    np.testing.assert_allclose(tight.theta, gp.theta, atol=1e-4)
    wide = fit_adaptive(gp, block, GaussianPrior(gp.theta, np.full(4, np.inf)), curvature, 200, 1e-6)
    gain = wide.condition(*block).log_evidence - gp.condition(*block).log_evidence
    best = fit_tied([gp], [block], 200)[0].condition(*block).log_evidence - gp.condition(*block).log_evidence
    assert 0.95 * best < gain <= best + 0.1


def test_mean_curvature_is_minus_the_hessian_per_row():
    gp, blocks = TEMPLATES[0], [rows(80, 3), rows(50, 4)]
    gp = fit_tied([gp], blocks, 200)[0]  # near a maximum, where no direction curves upwards
    expected = np.zeros((gp.theta.size, gp.theta.size))
    for X, y in blocks:
        for i, unit in enumerate(np.eye(gp.theta.size)):
            ahead, behind = (
                gp.with_theta(gp.theta + h * unit).log_evidence_with_gradient(X, y)[1] for h in (1e-4, -1e-4)
            )
            expected[i] -= (ahead - behind) / (2e-4 * y.size * len(blocks))
    values, vectors = np.linalg.eigh(0.5 * (expected + expected.T))
    expected = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    np.testing.assert_allclose(mean_curvature(gp, blocks), expected, rtol=0.1, atol=0.05 * np.abs(expected).max())


def test_climbing_a_parabola_of_known_curvature_takes_one_step_and_stops_at_bounds():
    curvature, top = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.4])
    visited = []

    def parabola(theta):
        visited.append(theta)
        return -0.5 * (theta - top) @ curvature @ (theta - top), curvature @ (top - theta)

    wide = np.array([[-5.0, 5.0], [-5.0, 5.0]])
    np.testing.assert_allclose(climb(parabola, np.zeros(2), wide, curvature, 20, 1e-9).theta, top, rtol=1e-9)
    assert len(visited) == 2
    wrong = climb(
        parabola, np.zeros(2), wide, 0.01 * np.eye(2), 50, 1e-12
    ).theta  # far too flat: overshoots, and learns
    np.testing.assert_allclose(wrong, top, atol=1e-5)
    bounded = climb(parabola, np.zeros(2), np.array([[-1.0, 0.1], [-1.0, 1.0]]), curvature, 50, 1e-12).theta
    np.testing.assert_allclose(bounded, [0.1, -0.4 + 0.5 * 0.2], atol=1e-6)  # the maximum along the edge


def indefinite_beyond(limit):
    """A parabola with its top at 0.4; beyond the limit there is no covariance matrix to take the evidence of."""

    def objective(theta):
        if theta[0] > limit:
            raise NotPositiveDefiniteError("the covariance matrix is not positive definite")
        return -((theta[0] - 0.4) ** 2), -2 * (theta - 0.4)

    return objective


def test_climbing_turns_back_where_the_covariance_is_indefinite():
    found = climb(indefinite_beyond(0.5), np.array([-3.0]), np.array([[-5.0, 5.0]]), np.array([[0.1]]), 50, 1e-12).theta
    assert found[0] == pytest.approx(0.4, abs=1e-4)


def test_a_climb_steps_back_from_a_gradient_that_overflows_and_ends_where_it_begins_with_one():
    def objective(theta):
        steep = np.inf if theta[0] > 0.5 else -theta[0] + 0.4
        return -0.5 * float((theta[0] - 0.4) ** 2), np.array([steep])

    bounds, flat = np.array([[-5.0, 5.0]]), np.array([[0.1]])
    assert climb(objective, np.zeros(1), bounds, flat, 50, 1e-12).theta[0] == pytest.approx(0.4, abs=1e-4)
    assert climb(objective, np.ones(1), bounds, flat, 50, 1e-12).theta.tolist() == [1.0]


def test_after_an_indefinite_covariance_a_step_is_a_quarter_as_long():
    visited = []

    def objective(theta):
        visited.append(float(theta[0]))
        return indefinite_beyond(0.5)(theta)

    climb(objective, np.array([0.0]), np.array([[-5.0, 5.0]]), np.array([[0.1]]), 3, 1e-12)
    assert visited == [0.0, 1.5, 0.375]


def test_climbing_stops_where_the_curvature_has_lost_a_direction():
    flat = np.array([[1.0, 0.0], [0.0, 0.0]])
    found = climb(lambda theta: (0.0, np.ones(2)), np.zeros(2), np.array([[-5.0, 5.0]] * 2), flat, 20, 1e-9).theta
    np.testing.assert_array_equal(found, np.zeros(2))


def test_a_gp_without_free_parameters_has_nothing_to_learn():
    fixed = Parameter(1.0, fixed=True)
    gp = ExactGP(SquaredExponential(fixed, fixed), fixed)
    block = rows(20, 4)
    assert mean_curvature(gp, [block]).shape == (0, 0)
    prior = GaussianPrior.of(gp, lambda name: 1.0)
    assert fit_adaptive(gp, block, prior, np.empty((0, 0)), 5, 1e-3) is gp


def test_maximising_turns_back_where_the_covariance_is_indefinite():
    visited = []

    def objective(theta):
        visited.append(theta[0])
        return indefinite_beyond(0.5)(theta)

    found = maximise(objective, np.array([-3.0]), np.array([[-5.0, 5.0]]), 1, 50, 1e-12)
    assert max(visited) > 0.5  # it went there
    assert found[0] == pytest.approx(0.4, abs=1e-4)


def test_an_indefinite_start_is_an_error():
    with pytest.raises(NotPositiveDefiniteError, match="not positive definite"):
        maximise(indefinite_beyond(0.5), np.array([1.0]), np.array([[-5.0, 5.0]]), 1, 50, 1e-12)


def test_a_run_that_is_cut_short_warns_once_in_words():
    X, y = rows(60, 4)
    convergence = Convergence()
    for _ in range(2):
        fit_tied([TEMPLATES[0]], [(X, y)], 2, convergence=convergence)
    with pytest.warns(ConvergenceWarning, match=r"2 of 2 optimisations were still improving .* nats per row") as caught:
        convergence.warn()
    assert len(caught) == 1


def test_the_warning_names_the_line_of_whoever_called_a_fit():
    convergence = Convergence(1, [0.5])

    def fit():
        convergence.warn()

    with pytest.warns(ConvergenceWarning, match="still improving") as caught:
        fit()
    assert caught[0].filename == __file__
    assert caught[0].lineno == fit.__code__.co_firstlineno + 4


def test_regions_are_cut_where_the_learnt_length_scales_are_short():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2500, 2))
    y = np.sin(15 * X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(2500)
    model = SPNGPRegressor(
        Matern(1.5, [1.0, 1.0]), max_leaf_size=300, hyperparameters="tied", random_state=0, n_jobs=2
    ).fit(X, y)
    assert model.score(X, y) > 0.98
    for record in model.regions_:
        assert record["parameters"]["length_scale[0]"] < 0.2 * record["parameters"]["length_scale[1]"]
    finite = np.isfinite([record["low"] + record["high"] for record in model.regions_]).reshape(-1, 2, 2)
    assert finite[:, :, 0].any(axis=1).all()  # every box is bounded along the short one


@pytest.mark.parametrize(
    ("theta", "message"),
    [([800.0, 0.0, 0.0], "logs of positive finite numbers, got 800"), ([0.0], r"shape \(\d,\), got \(1,\)")],
)
def test_evidence_of_a_leaf_refuses_what_are_no_parameters(theta, message):
    evidence = LeafEvidence(ExactGP(SquaredExponential(), 0.1), np.arange(4.0)[:, np.newaxis], np.arange(4.0))
    with pytest.raises(ValueError, match=message):
        evidence(np.array(theta))


def bowl(centre, steepness):
    """A concave objective in nats with its gradient, and how often it was asked for."""
    asked = []

    def objective(theta):
        asked.append(theta.copy())
        away = theta - centre
        return -0.5 * float(away @ (steepness * away)), -steepness * away

    return objective, asked


@pytest.mark.parametrize("n_rows", [1, 1000])
def test_the_maximum_is_found_in_few_evaluations_however_many_rows(n_rows):
    centre, steepness = np.array([0.5, -1.0, 2.0]), n_rows * np.array([1.0, 3.0, 0.5])
    objective, asked = bowl(centre, steepness)
    found = maximise(objective, np.zeros(3), np.full((3, 2), [-5.0, 5.0]), n_rows, 50, tolerance=1e-8)
    np.testing.assert_allclose(found, centre, atol=1e-3)
    assert len(asked) <= 12


def test_a_curvature_that_is_far_too_large_is_corrected_on_the_way():
    centre = np.array([0.6, -0.4])
    objective, asked = bowl(centre, np.array([1.0, 2.0]))
    bounds = np.full((2, 2), [-5.0, 5.0])
    found = climb(objective, np.zeros(2), bounds, 25.0 * np.eye(2), 9, tolerance=1e-9).theta
    assert len(asked) <= 9
    np.testing.assert_allclose(found, centre, atol=1e-3)
    exact = climb(objective, np.zeros(2), bounds, np.diag([1.0, 2.0]), 3, tolerance=1e-9).theta
    np.testing.assert_allclose(exact, centre, atol=1e-12)


def test_a_climb_ends_at_its_bounds_and_leaves_what_is_held_there():
    objective, _ = bowl(np.array([3.0, 0.5]), np.array([1.0, 1.0]))
    found = climb(objective, np.zeros(2), np.array([[-1.0, 1.0], [-1.0, 1.0]]), np.eye(2), 10, tolerance=1e-10).theta
    np.testing.assert_allclose(found, [1.0, 0.5], atol=1e-9)


def test_without_blocks_nothing_is_curved():
    gp = ExactGP(SquaredExponential([1.0, 2.0]), 0.1)
    np.testing.assert_array_equal(mean_curvature(gp, []), 1e-6 * np.eye(4))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_climb_asks_as_often_as_it_may_and_no_more(most):
    objective, asked = bowl(np.array([40.0, -30.0]), np.array([1.0, 1.0]))
    climb(objective, np.zeros(2), np.full((2, 2), [-50.0, 50.0]), np.eye(2), most, tolerance=1e-12)
    assert len(asked) == most


@pytest.mark.parametrize(("max_evaluations", "stopped"), [(1, True), (2, True), (200, False)])
def test_what_an_optimisation_gained_last_if_it_was_stopped(max_evaluations, stopped):
    """In nats per row, over the best value before; of one that ended by itself, nothing is told."""
    values = []

    def objective(theta):
        values.append(-float((theta[0] - 3.0) ** 2))
        return values[-1], -2.0 * (theta - 3.0)

    convergence, bounds = Convergence(), np.array([[-9.0, 9.0]])
    maximise(objective, np.zeros(1), bounds, 10, max_evaluations, convergence=convergence)
    assert convergence.runs == 1
    assert convergence.unfinished == ([pytest.approx((values[-1] - values[-2]) / 10)] if stopped else [])
    assert values == sorted(values)  # each step was a gain


def test_a_parameter_at_its_bound_stays_there_while_others_climb():
    centre, asked = np.array([-3.0, 0.7]), []

    def objective(theta):
        asked.append(theta.copy())
        return -0.5 * float(np.sum((theta - centre) ** 2)), centre - theta

    bounds = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    found = climb(objective, np.array([-1.0, -0.5]), bounds, np.eye(2), 10, 1e-9).theta
    np.testing.assert_allclose(found, [-1.0, 0.7], atol=1e-6)
    assert all(theta[0] == -1.0 for theta in asked)


def test_a_block_that_cannot_be_factored_says_nothing_about_the_curvature(monkeypatch):
    gp = ExactGP(SquaredExponential([1.0, 2.0]), 0.2)
    block = Block(*rows(30, 0))
    known = mean_curvature(gp, [block])

    class Sometimes(LeafEvidence):
        def __call__(self, theta):
            if self.fails:
                raise NotPositiveDefiniteError("singular")
            return super().__call__(theta)

        def __init__(self, gp, X, y, known=None):
            super().__init__(gp, X, y, known)
            self.fails = y.size == 20

    monkeypatch.setattr(optimisation, "LeafEvidence", Sometimes)
    np.testing.assert_allclose(mean_curvature(gp, [block, Block(*rows(20, 1))]), 0.5 * known, atol=1e-6)
