"""One bar for the whole of a long task, for people at a terminal; silent everywhere else.

It appears with the first second and names the stage in words, how much is done and about how long it will take. How
long stages take is not known beforehand, so each is given a usual share of what remains; the bar never goes back.
"""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

_INTERVAL = 0.25  # seconds between two looks
_FIRST = 0.2  # seconds until the bar appears: what is done by then needs none
_BAR = 24  # characters, at most
_KNOWN_FROM = 0.04, 2.0  # share done and seconds passed from which on time left is told

# Stages of a fit in words, with their usual share of what remains.
_STAGES = {
    "sample": ("reading a sample", 0.05),
    "routing": ("sorting rows by cell", 0.1),
    "exchange": ("looking around cells", 0.1),
    "tied parameters": ("learning what rows share", 0.27),
    "experts": ("learning each region", 0.25),
    "settings": ("weighing settings", 0.8),
    "leaves": ("joining rows and regions", 0.98),
    "rows": ("predicting", 1.0),
}


class Bar:
    """A line on a terminal: words, a share from 0 to 1 that only grows, and the time left."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._lock = stream, threading.RLock()  # leaves report from several threads
        self._started = self._since = time.monotonic()
        self._share, self._stage = 0.0, (0.0, 0.0)  # done; from and to, of the present stage
        self._words, self._prefix = "starting", ""
        self._steps, self._total = 0, 0
        self._drawn, self._stop = False, threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True) if stream is not None else None
        if self._watch is not None:
            self._watch.start()

    def stage(self, words: str, total: int, share: tuple[float, float]) -> None:
        """Begin a stage that goes from one share of the whole to another, in ``total`` steps, 0 if not counted."""
        with self._lock:
            self._share = max(self._share, share[0])
            self._words, self._total, self._steps, self._stage = words, total, 0, share
            self._since = time.monotonic()

    def say(self, prefix: str) -> None:
        """What the stages to come belong to."""
        with self._lock:
            self._prefix = f"{prefix}: " if prefix else ""

    def advance(self, steps: int) -> None:
        """Count further steps as done."""
        with self._lock:
            self._steps += steps

    def share(self, now: float) -> float:
        """How much of the whole is done."""
        with self._lock:
            start, end = self._stage
            if self._total:
                inside = min(self._steps / self._total, 1.0)
            else:  # nobody counts: ever slower, and never there
                usual = max(1.0, 0.5 * (self._since - self._started))
                inside = 1.0 - math.exp(-(now - self._since) / usual)
            self._share = max(self._share, min(start + inside * (end - start), 0.99))
            return self._share

    def text(self, now: float, width: int) -> str:
        """The line."""
        with self._lock:
            share, passed = self.share(now), now - self._started
            count = f", {self._steps:,} of {self._total:,}" if self._total > 1 else ""
            if not self._total and self._steps:
                count = f", {self._steps:,} done"
            end = f" {100 * share:3.0f} %, {_left(share, passed)}"
            filled = round(share * _BAR)
            start = f"spngp: {self._prefix}{self._words}{count} "
            bar = f"[{'#' * filled}{'-' * (_BAR - filled)}]"
            room = width - 1 - len(end)
            if len(start) + len(bar) > room:
                bar = ""
            return (start[: max(room - len(bar), 0)] + bar + end)[: width - 1]

    def clear(self) -> None:
        """Take the line away; it comes back by itself."""
        with self._lock:
            if self._drawn and self._stream is not None:
                self._stream.write("\r\x1b[K")
                self._stream.flush()
                self._drawn = False

    def close(self) -> None:
        """Take the line away for good."""
        self._stop.set()
        if self._watch is not None and self._watch is not threading.current_thread():
            self._watch.join()
        self.clear()

    def _look(self) -> None:
        wait = _FIRST
        while not self._stop.wait(wait):
            wait = _INTERVAL
            self.draw()

    def draw(self) -> None:
        """Show the line as it is now."""
        if self._stream is None:
            return
        with self._lock:
            if self._stop.is_set():
                return
            width = shutil.get_terminal_size().columns
            self._stream.write(f"\r{self.text(time.monotonic(), width)}\x1b[K")
            self._stream.flush()
            self._drawn = True


def _left(share: float, passed: float) -> str:
    """How long it has taken, and about how long it will take; rounded, because nobody knows."""
    if share < _KNOWN_FROM[0] or passed < _KNOWN_FROM[1]:
        return f"{passed:.0f} s so far"
    left = passed * (1.0 - share) / share
    if left < 10:
        return "a few seconds left"
    if left < 90:
        return f"about {5 * round(left / 5)} s left"
    return f"about {left / 60:.0f} min left" if left < 5400 else f"about {left / 3600:.1f} h left"


class Whole:
    """The bar of a task of several parts, each of which may have a progress of its own."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self._from, self._to = 0.0, 1.0

    def part(self, words: str, until: float) -> None:
        """Begin a part that goes on until a share of the whole is done; its stages are named after ``words``."""
        self._from, self._to = (self._to if self._to < 1.0 else 0.0), until
        self.bar.say(words)
        self.bar.stage("", 0, (self._from, until))

    @property
    def range(self) -> tuple[float, float]:
        """From where to where the present part goes."""
        return self._from, self._to


_whole: ContextVar[Whole | None] = ContextVar("whole", default=None)


@contextmanager
def whole_task(enabled: bool) -> Iterator[Whole]:
    """One bar for everything inside that has a progress."""
    whole = Whole(Bar(_terminal() if enabled else None))
    token = _whole.set(whole)
    try:
        yield whole
    finally:
        _whole.reset(token)
        whole.bar.close()


def clear_line() -> None:
    """Take the line of the task that runs, if there is one, out of the way of other text."""
    whole = _whole.get()
    if whole is not None:
        whole.bar.clear()


def _terminal() -> TextIO | None:
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


class Progress:
    """The progress of one fit or one prediction: its own bar, or a part of a whole task's.

    Parameters
    ----------
    enabled : bool
        Whether to show anything. Nothing is ever shown where standard error is not a terminal.
    """

    def __init__(self, enabled: bool) -> None:
        whole = _whole.get() if enabled else None
        self._own = whole is None
        self._bar = Bar(_terminal() if enabled else None) if whole is None else whole.bar
        self._at, self._end = (0.0, 1.0) if whole is None else whole.range

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def stage(self, name: str, total: int) -> None:
        """Begin a stage of ``total`` steps; 0 if they are not counted."""
        words, share = _STAGES.get(name, (name, 0.25))
        until = self._at + share * (self._end - self._at)
        self._bar.stage(words, total, (self._at, until))
        self._at = until

    def advance(self, steps: int = 1) -> None:
        """Count ``steps`` more steps as done."""
        self._bar.advance(steps)

    def close(self) -> None:
        """Clear the line, unless other parts of the task go on."""
        if self._own:
            self._bar.close()
