"""Cuts that gain only together, against a search over all of them."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from spngp import SPNGPRegressor, metrics
from spngp.learning import cut_candidates, leaf_cuts
from spngp.learning.paired_cuts import first_of_two
from spngp.network import Box
from spngp.structure import leaf_regions
from spngp.structure.regions import Region


def log_likelihood(sizes):
    known = sizes[~np.isnan(sizes)]
    return -0.5 * known.size * math.log((known.sum() + 1e-3) / max(known.size, 1))


def by_search(X, sizes, fewest):
    """The largest gain of a first cut at a quartile and the best second ones along another input, if they gain."""
    best = -np.inf
    edges = [
        np.unique(x)[:-1] if np.unique(x).size < 5 else np.quantile(x, [0.25, 0.5, 0.75], method="lower") for x in X.T
    ]
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


@pytest.mark.parametrize("n", [800, 6000])
def test_the_cut_is_along_one_of_both_inputs_at_the_border(n):
    rng = np.random.default_rng(4)
    X = np.column_stack(
        [rng.uniform(0, 1, n), np.ones(n), rng.uniform(0, 1, n), rng.random(n) < 0.89, rng.uniform(0, 1, n)]
    )
    for axis, other, border in ((2, 4, 0.25), (4, 2, 0.25), (3, 0, 0.0)):
        quiet = (X[:, axis] <= border) == (X[:, other] < 0.5)
        (cut,) = first_of_two(X, np.where(quiet, 0.02, 2.0)[:, np.newaxis] * rng.chisquare(1, (n, 1)), 0.1 * n, 20)
        assert cut.axis in (axis, other)
        assert cut.at[0] == pytest.approx(border if cut.axis == axis else 0.5, abs=0.04)


def test_parts_have_enough_rows():
    X = np.column_stack([np.arange(600) >= 595, np.arange(600) % 2]).astype(float)
    sizes = np.where(X[:, :1] == X[:, 1:], 0.01, 2.0)
    assert all(cut.axis == 1 for cut in first_of_two(X, sizes, -1e9, 60))
    assert first_of_two(X[:0], sizes[:0], 1.0, 5) == []


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


def test_leaf_regions_are_cut_where_two_cuts_gain_together(monkeypatch):
    """Rows of a region that spans both inputs, told by what the residuals under the tied parameters would be."""
    X, _ = product(500, 2)
    quiet = X[:, 1] * X[:, 2] <= 0
    sizes = np.where(quiet, 0.01, 2.0)[:, np.newaxis]
    monkeypatch.setattr(leaf_cuts, "residual_sizes", lambda *given, **known: sizes)
    monkeypatch.setattr(leaf_cuts, "noisy_outputs", lambda tied, Y: Y)
    found = leaf_cuts._cut(Region(Box(), np.arange(500)), None, X, np.ones((500, 1)), SimpleNamespace(variances=None))
    leaves = leaf_regions(found)
    assert len(leaves) == 4
    assert all(np.mean(quiet[leaf.rows]) < 0.1 or np.mean(quiet[leaf.rows]) > 0.9 for leaf in leaves)


def test_noise_that_depends_on_two_inputs_together_is_found(monkeypatch):
    (X, y), (X_new, y_new) = product(3000, 0), product(2000, 1)
    settings = {"max_leaf_size": 200, "random_state": 0}
    model = SPNGPRegressor(**settings).fit(X, y)
    for module in (cut_candidates, leaf_cuts):
        monkeypatch.setattr(module, "first_of_two", lambda *given: [])
    plain = SPNGPRegressor(**settings).fit(X, y)
    scores = [metrics.nlpd(one.predict_dist(X_new), y_new) for one in (model, plain)]
    assert scores[0] < scores[1] - 0.2
