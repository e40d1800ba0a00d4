"""A sequence of many versions is a tuple, of which versions share what has not changed."""

from __future__ import annotations

import pickle

import pytest

from spngp._support.versions import VersionedSequence


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100])
@pytest.mark.parametrize("more", [0, 1, 40])
def test_versions_are_as_tuples(n, more):
    items = tuple(range(n))
    before = VersionedSequence(items)
    changed = {i: -i for i in range(0, n, 7)}
    after = before.with_items(changed).followed_by(range(1000, 1000 + more))
    expected = tuple(changed.get(i, i) for i in items) + tuple(range(1000, 1000 + more))
    assert tuple(before) == items
    assert tuple(after) == expected
    assert len(after) == len(expected)
    assert [after[i] for i in range(len(after))] == list(expected)
    assert tuple(pickle.loads(pickle.dumps(after))) == expected


@pytest.mark.parametrize("i", [-1, 3, 40])
def test_positions_beyond_the_end_are_refused(i):
    with pytest.raises(IndexError, match=f"between 0 and 2, got {i}"):
        VersionedSequence("abc")[i]
