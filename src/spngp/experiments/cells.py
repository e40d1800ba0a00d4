"""Finished parts of an experiment, kept on disk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from spngp._version import __version__
from spngp.experiments.files import write_text

Row: TypeAlias = dict[str, Any]  # plain numbers and strings: one line of a CSV file


class Cells:
    """Computes what is not there yet and remembers it, for one experiment with given settings.

    A cell counts as finished if its file says that it was made by the same settings and version; a file that cannot be
    read is made again. After a change of the code, remove the folder.

    Parameters
    ----------
    folder : Path
    settings : dataclass
    say : callable
        Gets a line of text about each cell.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from spngp.experiments.cells import Cells
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     size: int = 3
    >>> with TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         rows = Cells(Path(folder), Settings(), print).get("squares", lambda: [{"x": 3, "y": 9}])
    squares: done in 0 s
    squares: kept
    >>> rows
    [{'x': 3, 'y': 9}]
    """

    def __init__(self, folder: Path, settings: Any, say: Callable[[str], None]) -> None:
        self._folder = folder
        made_by = json.dumps([__version__, type(settings).__module__, asdict(settings)], sort_keys=True, default=str)
        self._made_by = hashlib.sha256(made_by.encode()).hexdigest()[:16]
        self._say = say

    def get(self, name: str, compute: Callable[[], list[Row]]) -> list[Row]:
        """The rows of a cell: kept ones, or computed and kept."""
        path = self._folder / f"{name.replace('*', ' star')}.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["made_by"] == self._made_by:
                self._say(f"{name}: kept")
                return list(kept["rows"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not there, not ours, or half-written by something else
        start = time.perf_counter()
        rows = compute()
        write_text(path, json.dumps({"made_by": self._made_by, "rows": rows}, indent=1))
        self._say(f"{name}: done in {time.perf_counter() - start:.0f} s")
        return rows
