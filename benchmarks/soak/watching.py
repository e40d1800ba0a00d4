"""What a process does while it opens files of others: Python's audit events, those of running code above all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Events of running code, of other processes, of libraries and of the network.
_CODE = frozenset({"compile", "exec", "code.__new__", "function.__new__", "pickle.find_class", "marshal.loads"})
_ELSEWHERE = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "socket.")
_ELSEWHERE += ("ctypes.dlopen", "urllib.", "ftplib.", "http.", "smtplib.", "webbrowser.", "os.kill", "pty.")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Watch:
    """Notes what should not happen, from when it is made until :meth:`end`.

    Modules of ours, and of what we depend on, may be imported late; files may be written below ``folder`` only.
    """

    def __init__(self, folder: Path) -> None:
        self.seen: list[str] = []
        self._folder = os.path.realpath(folder)
        self._watching = True
        sys.addaudithook(self._hook)  # for good: a hook cannot be taken away

    def end(self) -> None:
        """Note nothing more."""
        self._watching = False

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and isinstance(path, str | bytes):
                where = os.path.realpath(os.fsdecode(path))
                if not where.startswith((self._folder, os.devnull)):
                    self._note(f"open {where} to write")
        elif event == "import":
            if arguments[0] not in sys.modules:
                self._note(f"import {arguments[0]}")
        elif event in _CODE or event.startswith(_ELSEWHERE):
            self._note(f"{event} {str(arguments)[:100]}")

    def _note(self, what: str) -> None:
        self.seen.append(what)
