"""The last regions that tied parameters are learnt from: larger ones, unless the noise differs between regions."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.learning import tied

N_ROWS, LEAF = 1200, 100


@pytest.fixture
def learnt_from(monkeypatch):
    """Numbers of rows of the blocks, stage by stage."""
    stages, original = [], tied.fit

    def fit(known, blocks, *others):
        stages.append([block.y.size for block in blocks])
        return original(known, blocks, *others)

    monkeypatch.setattr(tied, "fit", fit)
    return stages


def rows(noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N_ROWS, 2))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + noise(X) * rng.standard_normal(N_ROWS)


def test_where_noise_is_the_same_parameters_are_at_last_learnt_from_larger_regions(learnt_from):
    SPNGPRegressor(max_leaf_size=LEAF, random_state=0).fit(*rows(lambda X: 0.2))
    subset, regions, larger = learnt_from[:3]
    assert len(subset) == 1
    assert max(regions) <= LEAF < min(larger) <= max(larger) <= 2 * LEAF
    assert sum(larger) <= 13 * LEAF  # as many rows as twelve leaf regions may have, or one region more


def test_where_it_differs_between_regions_they_stay_as_small(learnt_from):
    SPNGPRegressor(max_leaf_size=LEAF, random_state=0).fit(*rows(lambda X: np.where(X[:, 1] > 0, 0.5, 0.02)))
    assert max(learnt_from[1]) <= LEAF
    assert max(learnt_from[2]) <= LEAF


def test_regions_that_are_large_already_grow_no_further(learnt_from, monkeypatch):
    monkeypatch.setattr(tied, "_LARGE_REGION", LEAF)
    SPNGPRegressor(max_leaf_size=LEAF, random_state=0).fit(*rows(lambda X: 0.2))
    assert max(learnt_from[2]) <= LEAF
