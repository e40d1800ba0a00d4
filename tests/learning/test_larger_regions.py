"""The last regions that tied parameters are learnt from: larger ones, unless the noise differs between regions."""

from typing import NamedTuple

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.learning import tied
from spngp.structure import Compact

N_ROWS, LEAF = 3000, 100


class Stage(NamedTuple):
    """What tied parameters were learnt from: rows of the blocks, evaluations, kernels, and whether curvatures go on."""

    sizes: list[int]
    evaluations: int
    labels: list[str]
    goes_on: bool


@pytest.fixture
def stages(monkeypatch):
    found, original = [], tied.fit

    def fit(known, blocks, evaluations, *others):
        found.append(Stage([block.y.size for block in blocks], evaluations, known.labels, bool(known.curvatures)))
        return original(known, blocks, evaluations, *others)

    monkeypatch.setattr(tied, "fit", fit)
    return found


def rows(noise, n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + noise(X) * rng.standard_normal(n)


def even(X):
    return 0.2


def fitted(X, y, **options):
    return SPNGPRegressor(**{"max_leaf_size": LEAF, "random_state": 0, **options}).fit(X, y)


def test_where_noise_is_the_same_parameters_are_at_last_learnt_from_larger_regions(stages):
    fitted(*rows(even))
    subset, regions, larger = stages[:3]
    assert (len(subset.sizes), subset.goes_on, regions.goes_on) == (1, False, False)
    assert max(regions.sizes) <= LEAF < min(larger.sizes) <= max(larger.sizes) <= 2 * LEAF
    # as many rows as twelve leaf regions may have, or half a region more; there are 3,000
    assert abs(sum(larger.sizes) - 12 * LEAF) <= LEAF
    assert larger.goes_on
    assert larger.evaluations == 12 < regions.evaluations


def test_where_it_differs_between_regions_they_stay_as_small(stages):
    fitted(*rows(lambda X: np.where(X[:, 1] > 0, 0.5, 0.02), 1200))
    for stage in stages[1:3]:
        assert max(stage.sizes) <= LEAF
        assert not stage.goes_on


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_few_gross_errors_are_no_noise_that_differs(stages, seed):
    """If they were trusted, regions would stay small with each of these seeds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (900, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(900)
    errors = np.flatnonzero(rng.random(900) < 0.005)
    y[errors] += rng.choice([-1, 1], errors.size) * rng.uniform(2, 4, errors.size)
    model = fitted(X, y, hyperparameters="tied")
    assert set(errors) <= set(model.outliers_[:, 0])
    assert min(stages[2].sizes) > LEAF


# two regions, which together are all rows; regions of which two are too many rows
@pytest.mark.parametrize(("n", "leaf"), [(180, 100), (520, 70)])
def test_regions_that_cannot_be_larger_are_learnt_from_as_the_others_are(stages, monkeypatch, n, leaf):
    monkeypatch.setattr(tied, "_LARGE_REGION", 100 if leaf == 70 else 1000)
    SPNGPRegressor(structure=Compact(leaf), hyperparameters="tied", random_state=0).fit(*rows(even, n))
    _, before, last = stages[:3]
    assert (last.goes_on, last.evaluations, len(last.sizes)) == (False, before.evaluations, len(before.sizes))


def test_a_hopeless_kernel_is_not_learnt_from_regions(stages):
    X, y = rows(lambda X: 1e-4)
    fitted(X, y)
    subset, regions = stages[:2]
    assert "Matern(0.5)" in subset.labels
    assert "Matern(0.5)" not in regions.labels
