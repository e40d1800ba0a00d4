"""Faults: processes that are killed, disks without room, folders that cannot be written, streams that are closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from soak import Effort, Table
from soak.killed_work import WORK
from soak.page import PYTHONPATH

SAMPLE = 0.02
_KILLS = (60, 50, 40, 30, 50, 30, 20)  # of each kind of work
_WORKER_KILLS = 20
_TROUBLES = 10  # sizes of a disk that is full
_SECONDS = 2400  # of all kills; they take some minutes
_WHOLE = 0.1  # the share of cases from which on all kinds of work are killed

_NOTES = (
    "Half of the kills (SIGKILL) come at a moment drawn from the time that the work takes, half at a step drawn from "
    "those that it takes in the file system: before it opens, renames or removes a file, makes or lists a directory. "
    "Two of five are followed by a second one, in the next run. After each, what a user sees must be byte for byte "
    "what it was before the work or what it is after it; the next run must end with what an undisturbed one makes, and "
    "nothing else may be left: no part file, no hidden folder.",
    "`no room`: files may not grow beyond a size drawn between 100 bytes and 300 kB. `tmpfs`: a disk with so much room "
    "left, where the system lets one be made. `read-only`: a folder without the right to write, by a user who is not "
    "root. `no streams`: standard input, output and error are closed. In all of them the work either ends as usual, or "
    "with an `OSError`, everything as before and nothing left.",
)


def run(effort: Effort) -> Table:
    kills = [effort.count(full) for full in _KILLS]
    if effort.share < _WHOLE:  # what fits out of core or draws a page takes too long for a sample
        quick = ("save", "update")
        kills = [count if work.name in quick else 0 for count, work in zip(kills, WORK, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        job = {"seed": effort.seed, "home": folder, "kills": kills, "troubles": effort.count(_TROUBLES)}
        found = _told("killing", job)
        if effort.share >= _WHOLE:
            home = str(Path(folder) / "dask")
            found += _told("killing_workers", {**job, "home": home, "kills": effort.count(_WORKER_KILLS)})
    rows, wrong, total, tried = [], [], 0, 0
    for one in found:
        other = {kind: [what for what in each if what] for kind, each in one["troubles"].items()}
        absent = {kind for kind, each in other.items() if set(each) == {"not allowed"}}
        bad = [what for what in one["kills"] if what]
        wrong += [f"{one['work']}, {what}" for what in bad]
        wrong += [f"{one['work']}, {kind}: {what}" for kind in other if kind not in absent for what in other[kind]]
        cells = []
        for kind in ("no room", "full disk (tmpfs)", "read-only", "no streams"):
            count = len(one["troubles"].get(kind, ()))
            tried += count if kind not in absent else 0
            cells.append(
                "not allowed" if kind in absent else f"{count - len(other[kind])} of {count}" if count else "–"
            )
        total += len(one["kills"])
        rows.append([one["work"], str(len(one["kills"])), str(len(one["kills"]) - len(bad)), *cells])
    for what in wrong[:40]:
        print("fault:", what, file=sys.stderr)
    return Table(
        "Faults",
        ("work", "kills", "survived", "no room", "full disk (tmpfs)", "read-only", "no streams"),
        rows,
        not wrong and len(found) == (len(WORK) + 1 if effort.share >= _WHOLE else 2),
        f"{total} kills and {tried} other faults; {len(wrong)} times something was lost, torn or left behind (bound 0)",
        _NOTES,
    )


def _told(module: str, job: dict[str, Any]) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"soak.{module}"]
    ended = subprocess.run(
        command, input=json.dumps(job), env=environment, capture_output=True, text=True, timeout=_SECONDS
    )
    if ended.returncode:
        raise RuntimeError(f"soak.{module} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return [json.loads(line) for line in ended.stdout.splitlines()]
