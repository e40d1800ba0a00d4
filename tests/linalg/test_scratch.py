"""Memory lent to a thread while it works on one leaf."""

import threading

import numpy as np

from spngp._linalg import scratch as memory
from spngp._linalg.scratch import empty, lent_memory, scratch


def in_fresh_thread(work):
    """What a function returns in a thread of its own, which has no memory yet."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def addresses(*arrays):
    return [array.__array_interface__["data"][0] for array in arrays]


def test_the_next_leaf_gets_the_same_memory_array_by_array():
    def work():
        told = []
        for _ in range(3):
            with lent_memory():
                arrays = [empty(3), empty(5, 2), empty(16), empty(1)]
                for i, array in enumerate(arrays):
                    array[...] = i
                assert [set(array.ravel().tolist()) for array in arrays] == [{0.0}, {1.0}, {2.0}, {3.0}]  # none overlap
                assert arrays[1].flags.f_contiguous
                told.append(addresses(*arrays))
        return told

    first, second, third = in_fresh_thread(work)
    assert second == third != first
    assert np.diff(second).tolist() == [8 * 8, 16 * 8, 16 * 8]  # each on a cache line of its own


def test_more_than_before_is_not_lent_but_there():
    def work():
        for size in (4, 100, 4):
            with lent_memory():
                small, large = empty(4), empty(size)
                large[...] = 1.0
                small[...] = 2.0
                assert large.sum() == size
        with lent_memory():
            again = empty(4)
        return again.base is not None, empty(4).base is None  # outside nothing is lent

    assert in_fresh_thread(work) == (True, True)


def test_memory_is_kept_up_to_a_size(monkeypatch):
    monkeypatch.setattr(memory, "_LARGEST_SCRATCH", 64)

    def work():
        with lent_memory():
            empty(65)
        with lent_memory():
            beyond = empty(8).base
        with lent_memory():
            empty(64)
        with lent_memory():
            within = empty(8).base
        kept, fresh = scratch(64), scratch(65)
        assert kept.size == 64
        assert fresh.size == 65
        return beyond is None, within is not None, scratch(64).base is kept.base, scratch(65).base is None

    assert in_fresh_thread(work) == (True, True, True, True)


def test_threads_have_memory_of_their_own():
    mine = scratch(10)
    mine[:] = 1.0
    in_fresh_thread(lambda: scratch(10).fill(2.0))
    assert mine.tolist() == [1.0] * 10
    np.testing.assert_array_equal(scratch(4), mine[:4])
