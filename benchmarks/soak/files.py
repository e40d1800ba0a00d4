"""Files: model files, shards, tables and settings that are not what was written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from soak import Effort, Table
from soak.honest_models import FACTORS, MODELS, save_model, save_shards
from soak.model_mutants import KINDS
from soak.page import PYTHONPATH
from soak.table_mutants import KINDS as TABLES
from soak.table_mutants import write_honest

SAMPLE = 0.002
_MODEL_MUTANTS, _TABLE_MUTANTS = 20_000, 5_000
_NAMES = (*MODELS, "one GP" + FACTORS, "committee" + FACTORS, "shards")
_SWAPPED = "files swapped or gone"
_OUTCOMES = ("refused", "of use", "of use, but for a request", "of use, but for overflow", "FAULT")
_MOST_MEMORY = 2.0  # times that of the honest files

_NOTES = (
    "`refused`: `load(path, verify=True)` raised a `ModelFileError` of one line that names the file, or the command "
    "line ended with code 2 and one line. `of use`: it was opened; predictions, intervals, samples, regions, an "
    "update and another save then worked. `but for a request`: one of these was refused by an error of our own, such "
    "as that a kernel overflows. `but for overflow`: a number of an array became another of 1e160 or 1e300, which "
    "files of extreme data hold, and a prediction with it is infinite. A fault is anything else: another exception, a "
    "message of several lines, a crash, more than 30 s, or damage that is found later.",
    "Every tenth model that was refused was opened again without `verify`, where arrays are compared with their "
    "checksums when they are first used: it must then be refused, by `load` or by the first prediction that the damage "
    "would matter to.",
    "Mutants are opened in processes whose address space is limited to 1 GB more than they begin with. Memory is the "
    "most that a process ever took, divided by the most after it had opened and used the honest files.",
)


def run(effort: Effort) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        jobs = _jobs(effort, _honest(home), home)
        shares = [jobs[i :: effort.n_jobs] for i in range(min(effort.n_jobs, len(jobs)))]
        with ThreadPoolExecutor(len(shares)) as pool:
            found = list(pool.map(_opened, shares, range(len(shares)), [home] * len(shares)))
    counts: dict[str, dict[str, int]] = {}
    faults = [fault for one in found for fault in one["faults"]]
    for one in found:
        for row, outcomes in one["counts"]:
            kept = counts.setdefault(row, {})
            for outcome, count in outcomes.items():
                kept[outcome] = kept.get(outcome, 0) + count
    memory = max(one["memory"] for one in found)
    rows = [
        [row, f"{sum(kept.values()):,}", *(f"{kept.get(outcome, 0):,}" for outcome in _OUTCOMES)]
        for row, kept in counts.items()
    ]
    total = sum(sum(kept.values()) for kept in counts.values())
    for fault in faults[:40]:
        print("fault:", *fault, file=sys.stderr)
    return Table(
        "Files",
        ("what was changed", "files", *_OUTCOMES[:-1], "faults"),
        rows,
        not faults and memory <= _MOST_MEMORY,
        f"{total:,} mutants, {len(faults)} faults; memory at most {memory:.2f} times that of the honest files (bound "
        f"{_MOST_MEMORY:g})",
        _NOTES,
    )


def _honest(home: Path) -> Path:
    honest = home / "honest"
    (honest / "tables").mkdir(parents=True)
    for name in _NAMES[:-1]:
        save_model(name, honest / name)
    save_shards(honest / "shards")
    write_honest(honest / "tables")
    return honest


def _jobs(effort: Effort, honest: Path, home: Path) -> list[dict[str, Any]]:
    """Mutants of every kind of every model; kinds of mutants of tables are those of the table."""
    pairs = [(name, kind) for kind in KINDS for name in _NAMES] + [("shards", _SWAPPED)]
    cases = [("models", name, kind, honest / name) for name, kind in pairs]
    cases += [("tables", name, name, honest / "tables") for name in TABLES]
    each = {"models": effort.count(_MODEL_MUTANTS) / len(pairs), "tables": effort.count(_TABLE_MUTANTS) / len(TABLES)}
    jobs = []
    for place, (of, name, kind, path) in enumerate(cases):
        first, last = (round(each[of] * (place + i)) for i in (0, 1))  # so that their sum is the number asked for
        if last > first:
            jobs.append({"of": of, "model": name, "kind": kind, "honest": str(path), "count": last - first})
            jobs[-1] |= {"seed": effort.seed, "place": place, "first": 0}
    return jobs


def _opened(jobs: Sequence[dict[str, Any]], worker: int, home: Path) -> dict[str, Any]:
    """What became of the jobs in a process; one that dies is a fault, and another goes on after it."""
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    jobs = [{**job, "folder": str(home / f"{worker}-{job['of']}-{job['model']}")} for job in jobs]
    counts: list[tuple[str, dict[str, int]]] = []
    faults: list[Sequence[str]] = []
    memory = 0.0
    while jobs:
        command = [sys.executable, "-m", "soak.opening"]
        ended = subprocess.run(command, input=json.dumps(jobs), env=environment, capture_output=True, text=True)
        out, how = ended.stdout, f"exit code {ended.returncode}: {ended.stderr[-300:]}"
        lines = [json.loads(line) for line in out.splitlines()]
        done = [line for line in lines if "job" in line]
        for line in done:
            job = jobs[line["job"]]
            counts.append((_row(job), line["counts"]))
            faults += [[job["model"], job["kind"], *fault] for fault in line["faults"]]
        if len(lines) > len(done):
            at_first, at_last = lines[-1]["memory"]
            faults += lines[-1]["faults"]
            return {"counts": counts, "faults": faults, "memory": max(memory, at_last / at_first)}
        dead = jobs[len(done)]
        number = int((Path(dead["folder"]) / "number").read_text())
        faults.append([dead["model"], dead["kind"], str(number), how])
        counts.append((_row(dead), {"FAULT": 1}))
        rest = {**dead, "first": number + 1, "count": dead["first"] + dead["count"] - number - 1}
        jobs = [*([rest] if rest["count"] > 0 else []), *jobs[len(done) + 1 :]]
    return {"counts": counts, "faults": faults, "memory": memory}


def _row(job: dict[str, Any]) -> str:
    if job["of"] == "tables":
        return f"{job['model']}: bytes, fields, types"
    where = "shards" if job["model"] == "shards" else "models"
    return f"{where}: {job['kind']}"
