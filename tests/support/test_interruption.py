"""Ctrl-C during a parallel fit: what is not begun is not begun any more, no thread goes on, the model is as before."""

import itertools
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from spngp import SPNGPRegressor
from spngp._support.threads import map_leaves
from spngp.gp.optimisation import LeafEvidence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are POSIX")


@pytest.fixture(autouse=True)
def interrupts_are_raised():
    """Also where the tests run in the background, whose processes ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    """As if Ctrl-C were pressed; the main thread handles it, whichever calls this."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class Items:
    """A thousand items, and an event that all have been handed to the threads; perhaps an interrupt on the way."""

    def __init__(self, interrupted):
        self.interrupted, self.handed_out = interrupted, threading.Event()

    def __len__(self):
        return 1000

    def __iter__(self):
        for i in range(1000):
            if self.interrupted and i == 900:
                interrupt()
            yield i
        self.handed_out.set()


@pytest.mark.parametrize("when", ["handed out", "worked on"])
def test_no_further_leaf_is_begun_and_those_begun_are_waited_for(when):
    items, begun, ended = Items(when == "handed out"), [], []

    def work(i):
        begun.append(i)
        if i == 5 and when == "worked on":
            assert items.handed_out.wait(60)
            interrupt()
        time.sleep(0.01)  # all of them would take five seconds: time enough to be told
        ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        map_leaves(work, items, 2)
    assert sorted(ended) == sorted(begun)
    assert 0 < len(begun) < 900


def rows(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(
    "evaluation", [1, pytest.param(100, marks=pytest.mark.long), 490]
)  # the last one by experts, the others by tied parameters
def test_an_interrupted_fit_leaves_the_model_as_it_was_and_no_thread(monkeypatch, evaluation):
    X, y = rows(3000)
    new = SPNGPRegressor(max_leaf_size=150, n_jobs=2, random_state=0)
    known = SPNGPRegressor(max_leaf_size=150, n_jobs=2, random_state=0).fit(X[:200], y[:200])
    before = known.predict(X[:50], return_std=True)
    evaluate = LeafEvidence.__call__
    threads = set(threading.enumerate())
    for model in (new, known):
        numbers = itertools.count(1)

        def interrupted(evidence, theta, numbers=numbers):
            if next(numbers) == evaluation:
                interrupt()
            return evaluate(evidence, theta)

        monkeypatch.setattr(LeafEvidence, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert next(numbers) > evaluation  # that is where it was interrupted
    for thread in set(threading.enumerate()) - threads:  # one that was just being started may end what it has begun
        thread.join(60)
        assert not thread.is_alive()
    with pytest.raises(NotFittedError):
        new.predict(X)
    for got, expected in zip(known.predict(X[:50], return_std=True), before, strict=True):
        np.testing.assert_array_equal(got, expected)
