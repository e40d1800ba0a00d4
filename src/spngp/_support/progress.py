"""A progress bar for people at a terminal; silent everywhere else."""

from __future__ import annotations

import sys
import threading
from typing import Any


class Progress:
    """Stage, steps done and time left, on one line of standard error (drawn by tqdm, the extra ``progress``).

    Parameters
    ----------
    enabled : bool
        Whether to show anything. Nothing is ever shown where standard error is not a terminal.
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()  # leaves report from several threads
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stage(self, name: str, total: int) -> None:
        """Begin a stage of ``total`` steps; 0 if they are not counted."""
        self.close()
        if not self._enabled:
            return
        try:
            from tqdm import tqdm
        except ImportError:
            sys.stderr.write(f"spngp: {name} (install tqdm for a progress bar)\n")
            return
        self._bar = tqdm(total=total or None, desc=f"spngp: {name}", leave=False, file=sys.stderr, dynamic_ncols=True)

    def advance(self, steps: int = 1) -> None:
        """Count ``steps`` more steps as done."""
        with self._lock:
            if self._bar is not None:
                self._bar.update(steps)

    def close(self) -> None:
        """Clear the line."""
        with self._lock:
            if self._bar is not None:
                self._bar.close()
                self._bar = None
