"""Rows near boxes, group by group, against the distance of every row from every box."""

from __future__ import annotations

import numpy as np
import pytest

from spngp._linalg import compiled
from spngp.structure.grouped_rows import GroupedRows


def by_hand(W, low, high, squared, scales):
    gaps = np.maximum(np.maximum(low - W[:, np.newaxis], W[:, np.newaxis] - high), 0.0) / scales
    return ((gaps**2).sum(axis=2) <= squared).any(axis=1)


@pytest.mark.parametrize("with_library", [True, False])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_near_boxes(d, with_library, monkeypatch):
    if with_library and compiled.library is None:
        pytest.skip("spngp was installed without its compiled library")
    if not with_library:
        monkeypatch.setattr(compiled, "library", None)
    rng = np.random.default_rng(d)
    W, scales = rng.normal(size=(400, d)), rng.uniform(0.5, 2.0, d)
    number = rng.integers(0, 7, 400)
    groups = [np.flatnonzero(number == g) for g in range(7)]
    rows, order = GroupedRows.of(W, groups), np.concatenate(groups)
    for g, own in enumerate(groups):
        np.testing.assert_array_equal(rows.low[g], W[own].min(axis=0))
        np.testing.assert_array_equal(rows.high[g], W[own].max(axis=0))
    found = 0
    for n_boxes in (0, 1, 5):
        low = rng.normal(size=(n_boxes, d)) - 0.2
        high = low + rng.uniform(0.1, 1.0, (n_boxes, d))
        low[rng.random(low.shape) < 0.2] = -np.inf
        high[rng.random(high.shape) < 0.2] = np.inf
        squared = rng.uniform(-0.2, 0.6, n_boxes) * d  # a negative one sees nothing
        seen = rows.near(low, high, squared, scales)
        np.testing.assert_array_equal(seen, by_hand(W[order], low, high, squared, scales))
        found += seen.sum()
    assert 0 < found < 1200


def test_rows_inside_a_box_without_reach_around_it_are_near():
    rows = GroupedRows.of(np.array([[0.5], [2.0]]), [np.array([0, 1])])
    one = np.array([[1.0]])
    np.testing.assert_array_equal(rows.near(0.0 * one, one, np.array([0.0]), np.ones(1)), [True, False])
