"""The progress bar: one for a whole task, in words, with the time left; nothing where nobody looks."""

import io
import sys
import time

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp._support import progress
from spngp._support.progress import Bar, Progress, clear_line, whole_task
from spngp.kernels import SquaredExponential


class Terminal(io.StringIO):
    def isatty(self):
        return True


def at_terminal(monkeypatch):
    """A terminal, where the bar is drawn at once and often; pytest has its own between fixtures and tests."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_FIRST", 1e-3)
    monkeypatch.setattr(progress, "_INTERVAL", 1e-3)
    return terminal


@pytest.fixture
def model():
    return SPNGPRegressor(SquaredExponential(), max_leaf_size=20, random_state=0, verbose=1)


X = np.linspace(0, 1, 60)[:, np.newaxis]


def wait_for(text, terminal):
    for _ in range(2000):
        if text in terminal.getvalue():
            return
        time.sleep(1e-3)
    raise AssertionError(f"{text!r} never appeared")


def test_a_terminal_sees_stages_in_words_and_a_clear_line_at_the_end(model, monkeypatch):
    terminal = at_terminal(monkeypatch)
    drawn = []

    def stage(self, name, total):
        original(self, name, total)
        self._bar.draw()
        drawn.append((name, total))

    original = Progress.stage
    monkeypatch.setattr(Progress, "stage", stage)
    model.fit(X, np.sin(X[:, 0]))
    shown = terminal.getvalue()
    assert "spngp: learning what rows share" in shown
    assert "spngp: learning each region, 0 of 4" in shown
    assert "spngp: joining rows and regions" in shown
    assert ("experts", 4) in drawn
    assert shown.endswith("\r\x1b[K")


def test_the_share_only_grows_and_time_left_is_told(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = Bar(None)
    seen = []
    for name, total in (("tied parameters", 4), ("experts", 0), ("experts", 2), ("leaves", 0)):
        bar.stage(name, total, (0.25 * len(seen) / 6, 0.25 * len(seen) / 6 + 0.25))
        for _ in range(6):
            now[0] += 3.0
            bar.advance(1)
            seen.append(bar.share(now[0]))
    assert seen == sorted(seen)
    assert 0.8 < seen[-1] < 1.0
    line = bar.text(now[0], 100)
    assert line.startswith("spngp: leaves, 6 done [")
    assert line.endswith("about 10 s left")
    assert len(bar.text(now[0], 40)) < 40
    assert bar.text(now[0], 40).endswith("left")


@pytest.mark.parametrize(
    ("share", "passed", "said"),
    [
        (0.01, 1.0, "1 s so far"),
        (0.5, 8.0, "a few seconds left"),
        (0.25, 10.0, "about 30 s left"),
        (0.5, 600.0, "about 10 min left"),
        (0.1, 3600.0, "about 9.0 h left"),
    ],
)
def test_time_left_is_rounded(share, passed, said):
    assert progress._left(share, passed) == said


def test_a_task_of_several_parts_has_one_bar(model, monkeypatch):
    terminal = at_terminal(monkeypatch)
    with whole_task(enabled=True) as whole:
        whole.part("measuring", until=0.5)
        wait_for("spngp: measuring: ", terminal)
        model.fit(X, np.sin(X[:, 0]))
        half = whole.bar.share(time.monotonic())
        assert 0.2 < half <= 0.5
        clear_line()
        assert terminal.getvalue().count("\x1b[K") >= 1
        whole.part("saving", until=1.0)
        model.fit(X, np.sin(X[:, 0]))
        assert 0.5 <= whole.bar.share(time.monotonic()) < 1.0
        wait_for("saving: joining rows and regions", terminal)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_the_bar_appears_by_itself(monkeypatch):
    terminal = at_terminal(monkeypatch)
    with Progress(enabled=True):
        wait_for("spngp: starting", terminal)


def test_a_log_sees_nothing(model, capsys):
    model.fit(X, np.sin(X[:, 0]))
    with whole_task(enabled=True) as whole:
        whole.part("measuring", until=0.5)
        whole.bar.draw()
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
