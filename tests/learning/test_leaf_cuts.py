"""Leaf regions of a large set that are cut once more, where the noise changes within them."""

from dataclasses import replace

import numpy as np
import pytest

from spngp import SPNGPRegressor, metrics
from spngp.estimators.updates import Relearning, living_of
from spngp.learning import cutting, ground, leaf_cuts
from spngp.network import Box
from spngp.structure import leaf_regions
from spngp.structure.regions import Partition, Region

WIDTH = 0.34


def chessboard(n, seed=0, quiet=0.02):
    """Outputs that follow the first input, quiet on the white squares of the two others and noisy on the black."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 3))
    noisy = (np.floor(X[:, 1] / WIDTH) + np.floor(X[:, 2] / WIDTH)) % 2 == 1
    return X, np.sin(3.0 * X[:, 0]) + np.where(noisy, 1.0, quiet) * rng.standard_normal(n)


def halves(W):
    """Rows of a quiet square and the noisy one beside it."""
    return np.flatnonzero((W[:, 2] < np.quantile(W[:, 2], 0.3)) & (W[:, 1] < np.quantile(W[:, 1], 0.66)))


def fitted(X, y, **patches):
    """A model with leaves of 250 rows, and what the question for cuts within regions was asked with."""
    asked = []

    def changes(*given):
        asked.append(given)
        return leaf_cuts.noise_changes_within(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "noise_changes_within", patches.get("changes", changes))
        patch.setattr(ground, "context_share", lambda *given: 1.0)
        model = SPNGPRegressor(max_leaf_size=250, random_state=0).fit(X, y)
    return model, asked


@pytest.fixture(scope="module")
def board():
    X, y = chessboard(2500)
    return fitted(X, y)


def test_regions_are_cut_within_and_predict_better(board):
    model, asked = board
    X, y = chessboard(2500)
    plain, _ = fitted(X, y, changes=lambda *given: False)
    X_new, y_new = chessboard(2000, seed=1)
    scores = [metrics.nlpd(one.predict_dist(X_new), y_new) for one in (model, plain)]
    assert scores[0] < scores[1] - 0.1
    assert len(model.regions_) > 1.3 * len(plain.regions_)
    assert model._learnt.overlap == plain._learnt.overlap  # smaller regions see no more rows each for it
    assert len(asked) == 1


def test_one_noise_for_all_rows_is_no_reason(board):
    X, y = chessboard(1200, quiet=1.0)
    _, ((tied, W, Z, plan),) = fitted(X, y)
    assert not leaf_cuts.noise_changes_within(tied, W, Z, plan)


def test_parts_tile_the_region_at_the_border_of_the_noise(board):
    _, ((tied, W, Z, plan),) = board
    inside = halves(W)
    region = Region(Box(), inside)
    found = leaf_cuts._cut(region, tied, W, Z, plan)
    cut = found.partitions[0]
    assert cut.axis == 1
    assert np.mean(W[:, 1] <= cut.at[0]) == pytest.approx(WIDTH, abs=0.03)
    parts = [leaf.rows for leaf in leaf_regions(found)]
    assert min(map(len, parts)) >= leaf_cuts._FEWEST
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), inside)
    for leaf in leaf_regions(found):
        assert leaf.box.contains(W[leaf.rows]).all()


def test_every_output_stays_known_often_enough_on_both_sides(board):
    _, ((tied, W, Z, plan),) = board
    inside = halves(W)
    known = np.isin(np.arange(len(Z)), inside[:100])
    region, both = Region(Box(), inside), np.column_stack([Z[:, 0], np.where(known, Z[:, 0], np.nan)])
    twice = replace(tied, gps=tied.gps * 2, labels=tied.labels * 2)
    assert leaf_cuts._cut(region, tied, W, Z, plan).partitions
    assert not leaf_cuts._cut(region, twice, W, both, plan).partitions
    never = np.column_stack([Z[:, 0], np.full(len(Z), np.nan)])
    assert leaf_cuts._cut(region, twice, W, never, plan).partitions


def test_a_part_that_is_another_region_is_that_region(board):
    _, ((tied, W, Z, plan),) = board
    whole = halves(W)
    cut = leaf_cuts._cut(Region(Box(), whole), tied, W, Z, plan)
    (partition,) = cut.partitions
    twins = [Region(part.box, part.rows) for part in partition.parts]
    root = Region(
        Box(), whole, (Partition(0, (-9.0,), (Region(Box(), whole),)), replace(partition, parts=tuple(twins)))
    )
    found = leaf_cuts.cut_leaves(replace(tied, regions=root), W, Z, plan)
    leaves = leaf_regions(found.regions)
    assert len({leaf.box for leaf in leaves}) == len(leaves) > 2


def test_small_leaves_are_not_asked_about(board):
    _, ((tied, W, Z, plan),) = board
    assert leaf_cuts.noise_changes_within(tied, W, Z, plan)
    assert not leaf_cuts.noise_changes_within(tied, W, Z, replace(plan, block_size=2 * leaf_cuts._FEWEST - 1))


def test_regions_that_are_learnt_again_keep_their_freedom(board):
    model, ((*_, plan),) = board
    now = living_of(model._learnt)
    again = Relearning(model, model._request(), now).plan()
    assert model._learnt.noise_prior_std == again.noise_prior_std == plan.freedom[-1] > plan.noise_prior_std


def test_regions_that_share_a_part_share_what_it_becomes(board):
    _, ((tied, W, Z, plan),) = board
    below, above = Box().cut(0, (0.0,))
    rows = [np.flatnonzero(box.contains(W)) for box in (below, above)]
    halves = [Region(box, own[:250]) for box, own in zip((below, above), rows, strict=True)]
    whole = np.concatenate([half.rows for half in halves])
    root = Region(Box(), whole, (Partition(0, (0.0,), tuple(halves)), Partition(0, (0.0,), tuple(halves))))
    found = leaf_cuts.cut_leaves(
        tied.__class__(tied.starts, tied.gps, tied.labels, root, tied.scales, tied.sampled), W, Z, plan
    )
    first, second = (one.parts for one in found.regions.partitions)
    assert any(part.partitions for part in first)
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_outputs_without_noise_say_nothing():
    rng = np.random.default_rng(3)
    X = rng.uniform(0.0, 1.0, (1500, 2))
    y = np.sin(3.0 * X[:, 0]) * np.where(X[:, 1] > 0.5, 1.0, 0.2)
    _, asked = fitted(X, y)
    assert not any(leaf_cuts.noise_changes_within(*given) for given in asked)
