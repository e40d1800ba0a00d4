"""A progress bar for people at a terminal; silent everywhere else."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO


class Progress:
    """Stage, steps done and time left, on one line of standard error.

    Parameters
    ----------
    enabled : bool
        Whether to show anything. Nothing is ever shown where standard error is not a terminal.
    """

    def __init__(self, enabled: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._enabled = enabled and self._stream.isatty()
        self._lock = threading.Lock()  # leaves report from several threads
        self._name, self._total, self._done = "", 0, 0
        self._start = self._drawn = 0.0

    def stage(self, name: str, total: int) -> None:
        """Begin a stage of so many steps; 0 if they are not counted."""
        with self._lock:
            self._name, self._total, self._done, self._start = name, total, 0, time.monotonic()
            self._draw()

    def advance(self) -> None:
        """One step is done."""
        with self._lock:
            self._done += 1
            if time.monotonic() - self._drawn > 0.1 or self._done == self._total:
                self._draw()

    def close(self) -> None:
        """Clear the line."""
        if self._enabled:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _draw(self) -> None:
        if not self._enabled:
            return
        self._drawn = time.monotonic()
        text = f"spngp: {self._name}"
        if self._total:
            filled = 24 * self._done // self._total
            text += f" [{'#' * filled}{'.' * (24 - filled)}] {self._done}/{self._total}"
        if 0 < self._done < self._total:
            left = (self._drawn - self._start) / self._done * (self._total - self._done)
            text += f", {left:.0f} s left"
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()
