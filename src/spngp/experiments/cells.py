"""Finished parts of an experiment, kept on disk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from spngp._support.provenance import Provenance
from spngp.experiments.files import write_text
from spngp.experiments.origin import libraries_text, running_code, seconds_text
from spngp.experiments.sources import sources_hash

Row: TypeAlias = dict[str, Any]  # plain numbers and strings: one line of a CSV file


class Cells:
    """Computes what is not there yet and remembers it, for one experiment with given settings.

    A cell counts as finished if its file says that it was made by the same settings, the same sources and the same
    libraries; everything else is computed again, as is a file that cannot be read.

    Parameters
    ----------
    folder : Path
    settings : dataclass
    say : callable
        Gets a line of text about each cell.

    Attributes
    ----------
    seconds : float
        What the cells asked for took when they were computed, in this run or an earlier one.
    seconds_now : float
        The part of it that was spent in this run.
    codes : list of Provenance
        The code that computed them, each commit once.

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
    ...     first, second = (Cells(Path(folder), Settings(), lambda line: None) for _ in range(2))
    ...     rows = first.get("squares", lambda: [{"x": 3, "y": 9}])
    ...     again = second.get("squares", lambda: [])
    >>> again, second.seconds == first.seconds, second.seconds_now
    ([{'x': 3, 'y': 9}], True, 0.0)
    """

    def __init__(self, folder: Path, settings: Any, say: Callable[[str], None]) -> None:
        self.seconds, self.seconds_now = 0.0, 0.0
        self.codes: list[Provenance] = []
        self._folder, self._say = folder, say
        made_by = [sources_hash(), libraries_text(), type(settings).__module__, asdict(settings)]
        text = json.dumps(made_by, sort_keys=True, default=str)
        self._made_by = hashlib.sha256(text.encode()).hexdigest()[:16]

    def get(self, name: str, compute: Callable[[], list[Row]]) -> list[Row]:
        """The rows of a cell: kept ones, or computed and kept."""
        path = self._folder / f"{name.replace('*', ' star')}.json"
        kept = self._kept(path)
        if kept is None:
            start = time.perf_counter()
            rows = compute()
            seconds, code = time.perf_counter() - start, running_code()
            cell = {"made_by": self._made_by, "code": asdict(code), "seconds": seconds, "rows": rows}
            write_text(path, json.dumps(cell, indent=1))
            self.seconds_now += seconds
            self._say(f"{name}: done in {seconds_text(seconds)}")
        else:
            rows, seconds, code = kept
            self._say(f"{name}: kept")
        self.seconds += seconds
        if code not in self.codes:
            self.codes.append(code)
        return rows

    def _kept(self, path: Path) -> tuple[list[Row], float, Provenance] | None:
        """Rows, seconds and code of a finished cell; None if it is not there, not ours or damaged."""
        try:
            cell = json.loads(path.read_text(encoding="utf-8"))
            if cell["made_by"] != self._made_by:
                return None
            return list(cell["rows"]), float(cell["seconds"]), Provenance(**cell["code"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
