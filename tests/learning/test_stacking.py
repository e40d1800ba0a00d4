"""Alternatives of a small set, weighed by what they predict: weights against a search, and those of a network."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from spngp import SPNGPRegressor, metrics
from spngp.gp import ExactGP
from spngp.kernels import SquaredExponential
from spngp.learning import flow, stacking
from spngp.learning.held_out import Score
from spngp.learning.laplace import LEFT_AWAY, FreeExpert
from spngp.learning.stacking import CUT, PLAIN, SMOOTH, stacking_weights, with_further


def two_natures(n, seed):
    """Smooth and quiet where the first input is low, rough and noisy where it is high."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 3))
    rough = X[:, 0] > 0.5
    y = np.where(rough, np.sin(12.0 * X[:, 1]), 2.0 * X[:, 1]) + np.where(rough, 0.3, 0.03) * rng.standard_normal(n)
    return X, y


def one_noisy_side(n, seed):
    """A wave along one input, with noise that grows along the other."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 2))
    return X, np.sin(6.0 * X[:, 1]) + 0.05 * np.exp(3.0 * X[:, 0]) * rng.standard_normal(n)


@pytest.mark.parametrize(("count", "n", "spread"), [(1, 80, 1.0), (2, 80, 1.0), (3, 80, 1.0), (3, 1000, 0.1)])
def test_weights_are_where_a_search_finds_the_maximum(count, n, spread):
    rng = np.random.default_rng(count)
    log_densities = rng.normal(0.0, spread, (count, n)) + 0.3 * spread**2 * np.arange(count)[:, np.newaxis]

    def minus(phi):
        log_weights = log_softmax(phi)
        value = np.logaddexp.reduce(log_densities + log_weights[:, np.newaxis]).sum()
        return -value - stacking._IMAGINARY * log_weights.sum()

    best = minimize(minus, np.zeros(count), method="BFGS", tol=1e-12).x
    np.testing.assert_allclose(stacking_weights(log_densities), np.exp(log_softmax(best)), atol=1e-3)


def test_alternatives_that_are_good_at_different_rows_share_the_weight():
    n = 100
    first = np.where(np.arange(n) < 50, 0.0, -3.0)[:, np.newaxis]
    scores = {PLAIN: Score(first, np.zeros((n, 1)))}
    found = with_further(scores, CUT, Score(first[::-1], np.zeros((n, 1))), [19])
    assert list(found) == [PLAIN, CUT]
    assert stacking_weights(np.stack([first[:, 0], first[::-1, 0]])) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("outputs", [1, 5])
@pytest.mark.parametrize(("better_by", "taken"), [(0.0, False), (9.0, False), (30.0, True)])
def test_a_further_alternative_pays_for_what_it_has_seen(better_by, taken, outputs):
    n = 200
    plain = Score(np.zeros((n, outputs)), np.zeros((n, outputs)))
    further = Score(np.full((n, outputs), better_by / n), np.zeros((n, outputs)))
    assert (SMOOTH in with_further({PLAIN: plain}, SMOOTH, further, [67] * outputs)) is taken


@pytest.mark.parametrize(
    ("n_parameters", "better_by", "taken"), [(35, 30.0, True), (36, 30.0, False), (67, 60.0, False), (67, 80.0, True)]
)
def test_parameters_that_are_many_for_the_rows_cost_a_nat_each(n_parameters, better_by, taken):
    n = 70
    plain = Score(np.zeros((n, 1)), np.zeros((n, 1)))
    further = Score(np.full((n, 1), better_by / n), np.zeros((n, 1)))
    assert (CUT in with_further({PLAIN: plain}, CUT, further, [n_parameters])) is taken


def test_intervals_of_few_rows_with_many_inputs_hold():
    holds = []
    for seed in range(4):
        rng = np.random.default_rng([60, seed])
        X = rng.uniform(-1.0, 1.0, (570, 25))
        y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(570)
        mixture = SPNGPRegressor(random_state=seed).fit(X[:70], y[:70]).predict_dist(X[70:])
        holds.append(metrics.coverage(mixture, y[70:], 0.9))
    assert np.mean(holds) > 0.86


def test_missing_outputs_say_nothing():
    rng = np.random.default_rng(0)
    plain, cut = rng.normal(size=(2, 60, 2))
    missing = rng.random((60, 2)) < 0.3
    scores = [Score(np.where(missing, np.nan, own), np.where(missing, np.nan, 0.0)) for own in (plain, cut)]
    for k in range(2):
        parts = stacking._of_output(dict(zip((PLAIN, CUT), scores, strict=True)), k)
        np.testing.assert_array_equal(parts, [plain[~missing[:, k], k], cut[~missing[:, k], k]])


@pytest.fixture(scope="module")
def weighed():
    """A model that may be cut, with the scores that its alternatives were weighed by."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        before = flow.stacked
        patch.setattr(flow, "stacked", lambda *given: seen.append(given) or before(*given))
        X, y = two_natures(250, 0)
        model = SPNGPRegressor(random_state=0).fit(X, np.column_stack([y, -2.0 * y]))
    return model, seen[0]


def test_given_the_rows_alternatives_have_their_stacking_weights(weighed):
    model, (scores, *_) = weighed
    assert CUT in scores
    for k, root in enumerate(model.network_.children):
        known = dict(zip(scores, stacking_weights(stacking._of_output(scores, k)), strict=True))
        shares = dict.fromkeys([PLAIN, SMOOTH, CUT], 0.0)
        for child, weight in zip(root.children, root.weights, strict=True):
            for leaf, _, share in child.responsibilities():
                name = CUT if child.cut_ranges else SMOOTH if leaf.gp.noise_profile is not None else PLAIN
                if name != CUT:
                    shares[name] += weight * share
            shares[CUT] += weight if child.cut_ranges else 0.0
        for name, share in shares.items():  # what is improbable was pruned
            assert share == pytest.approx(known.get(name, 0.0), abs=2e-4)


def test_weights_are_not_those_of_evidence_but_the_evidence_is(weighed):
    model, _ = weighed
    learnt = model._learnt
    assert learnt.seeing.log_evidence == learnt.own.log_evidence
    assert not np.allclose(learnt.seeing.children[0].weights[0], learnt.own.children[0].weights[0], atol=1e-3)


def test_only_alternatives_that_lead_are_left_when_rows_come_or_go():
    n = 60
    better, worse = np.full((n, 1), 0.5), np.zeros((n, 1))
    better[:20], worse[:20] = 0.0, 1.0
    scores = {PLAIN: Score(worse, np.zeros((n, 1))), CUT: Score(better, np.zeros((n, 1)))}
    plain, cut = stacking_weights(stacking._of_output(scores, 0))
    assert plain > 0.5 * cut > 0.0
    region, gp = object(), ExactGP(SquaredExponential(), 0.1)
    tied = SimpleNamespace(regions=region, gps=[[gp]])
    experts = {(id(region), 0): [FreeExpert(gp, 0.25)]}
    assert stacking.leading(scores, experts, tied) == experts
    certain = {**scores, CUT: Score(better + 1.0, np.zeros((n, 1)))}
    assert stacking.leading(certain, experts, tied)[id(region), 0][0].log_correction == 0.25 + LEFT_AWAY
    hardly = {**scores, CUT: Score(better - 1.0, np.zeros((n, 1)))}
    assert stacking.leading(hardly, experts, tied)[id(region), 0][0].log_correction == 0.25 - LEFT_AWAY


@pytest.mark.parametrize("rows", [two_natures, one_noisy_side])
def test_what_is_forgotten_takes_no_alternative_with_it(rows):
    """Weights that evidence gives, of alternatives that evidence does not turn over."""
    X, y = rows(150, 2)
    X_new, y_new = rows(600, 3)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    fitted = metrics.nlpd(model.predict_dist(X_new), y_new)
    model.forget(rows=np.arange(0, 150, 10))
    assert metrics.nlpd(model.predict_dist(X_new), y_new) < fitted + 0.15
