"""Cuts that gain only together, against a search over all of them."""

import itertools
import math

import numpy as np
import pytest

from spngp import SPNGPRegressor, metrics
from spngp.learning import cut_candidates, leaf_cuts
from spngp.learning.paired_cuts import first_of_two


def log_likelihood(sizes):
    known = sizes[~np.isnan(sizes)]
    return -0.5 * known.size * math.log((known.sum() + 1e-3) / max(known.size, 1))


def by_search(X, sizes, fewest):
    """The largest gain of a first cut at a quartile and the best second ones along another input, if they gain."""
    best = -np.inf
    edges = [np.unique(np.quantile(x, [0.25, 0.5, 0.75], method="lower")) for x in X.T]
    for j, k in itertools.permutations(range(X.shape[1]), 2):
        for at in edges[j]:
            gain = -sum(log_likelihood(column) for column in sizes.T)
            for side in (X[:, j] <= at, X[:, j] > at):
                options = [sum(log_likelihood(column) for column in sizes[side].T)]
                for second in edges[k]:
                    parts = (side & (X[:, k] <= second), side & (X[:, k] > second))
                    if min(part.sum() for part in parts) >= fewest:
                        options.append(sum(log_likelihood(column) for part in parts for column in sizes[part].T))
                gain += max(options)
            best = max(best, gain)
    return best


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_two_cuts_gain_is_what_a_search_finds(seed, n_outputs):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 1, 200), rng.integers(0, 3, 200), rng.exponential(1, 200)])
    sizes = rng.chisquare(1, (200, n_outputs)) * np.where((X[:, 0] > 0.4) ^ (X[:, 1] > 0), 3.0, 1.0)[:, np.newaxis]
    sizes[rng.random(sizes.shape) < 0.1] = np.nan
    gain = by_search(X, sizes, fewest=15)
    assert len(first_of_two(X, sizes, gain - 1e-6, 15)) == 1
    assert first_of_two(X, sizes, gain + 1e-6, 15) == []


def test_equal_sizes_and_single_inputs_are_not_cut():
    rng = np.random.default_rng(3)
    X, sizes = rng.uniform(0, 1, (2500, 5)), rng.chisquare(1, (2500, 1))
    assert first_of_two(X, sizes, 20.0, 20) == []
    assert first_of_two(X[:, :1], sizes, -1e9, 20) == []
    assert first_of_two(np.ones((50, 3)), sizes[:50], -1e9, 5) == []


def product(n, seed):
    """Noise that depends on the product of two inputs, whose means it leaves alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    std = np.where(X[:, 1] * X[:, 2] > 0, 0.5, 0.03)
    return X, np.sin(3 * X[:, 0]) + std * rng.standard_normal(n)


def test_noise_that_depends_on_two_inputs_together_is_found(monkeypatch):
    (X, y), (X_new, y_new) = product(3000, 0), product(2000, 1)
    settings = {"max_leaf_size": 200, "random_state": 0}
    model = SPNGPRegressor(**settings).fit(X, y)
    for module in (cut_candidates, leaf_cuts):
        monkeypatch.setattr(module, "first_of_two", lambda *given: [])
    plain = SPNGPRegressor(**settings).fit(X, y)
    scores = [metrics.nlpd(one.predict_dist(X_new), y_new) for one in (model, plain)]
    assert scores[0] < scores[1] - 0.2
