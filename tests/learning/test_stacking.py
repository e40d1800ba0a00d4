"""Alternatives of a small set, weighed by what they predict: weights against a search, and those of a network."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from spngp import SPNGPRegressor
from spngp.learning import flow, stacking
from spngp.learning.held_out import Score
from spngp.learning.stacking import CUT, PLAIN, SMOOTH, stacking_weights, with_further


def two_natures(n, seed):
    """Smooth and quiet where the first input is low, rough and noisy where it is high."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 3))
    rough = X[:, 0] > 0.5
    y = np.where(rough, np.sin(12.0 * X[:, 1]), 2.0 * X[:, 1]) + np.where(rough, 0.3, 0.03) * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize("count", [1, 2, 3])
def test_weights_are_where_a_search_finds_the_maximum(count):
    rng = np.random.default_rng(count)
    log_densities = rng.normal(0.0, 1.0, (count, 80)) + 0.3 * np.arange(count)[:, np.newaxis]

    def minus(phi):
        log_weights = log_softmax(phi)
        value = np.logaddexp.reduce(log_densities + log_weights[:, np.newaxis]).sum()
        return -value - stacking._IMAGINARY * log_weights.sum()

    best = minimize(minus, np.zeros(count), method="BFGS", tol=1e-12).x
    np.testing.assert_allclose(stacking_weights(log_densities), np.exp(log_softmax(best)), atol=1e-4)


def test_alternatives_that_are_good_at_different_rows_share_the_weight():
    n = 100
    first = np.where(np.arange(n) < 50, 0.0, -3.0)[:, np.newaxis]
    scores = {PLAIN: Score(first, np.zeros((n, 1)))}
    found = with_further(scores, CUT, Score(first[::-1], np.zeros((n, 1))))
    assert list(found) == [PLAIN, CUT]
    assert stacking_weights(np.stack([first[:, 0], first[::-1, 0]])) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("better_by", "taken"), [(0.0, False), (9.0, False), (30.0, True)])
def test_a_further_alternative_pays_for_what_it_has_seen(better_by, taken):
    n = 200
    plain = Score(np.zeros((n, 1)), np.zeros((n, 1)))
    further = Score(np.full((n, 1), better_by / n), np.zeros((n, 1)))
    assert (SMOOTH in with_further({PLAIN: plain}, SMOOTH, further)) is taken


def test_missing_outputs_say_nothing():
    rng = np.random.default_rng(0)
    plain, cut = rng.normal(size=(2, 60, 2))
    missing = rng.random((60, 2)) < 0.3
    scores = [Score(np.where(missing, np.nan, own), np.where(missing, np.nan, 0.0)) for own in (plain, cut)]
    for k in range(2):
        parts = stacking._of_output(dict(zip((PLAIN, CUT), scores, strict=True)), k)
        np.testing.assert_array_equal(parts, [plain[~missing[:, k], k], cut[~missing[:, k], k]])
    assert scores[0].log_density == pytest.approx(plain[~missing].sum())


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
