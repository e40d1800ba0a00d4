"""Mutation testing: whether the tests of a room notice when its code means something else.

A sample of all small changes is drawn for each room. For each of them, the tests of the room that run the changed
statement are run, the quickest first, until one fails; those marked ``long`` are left out. One room, with other mutants
than those of ``make soak``:

    PYTHONPATH=benchmarks:tests:src python -m soak.mutants gp --count 40 --seed 3
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from soak import Effort, Table
from soak.mutation import Mutant, mutant, sites
from soak.page import ROOT
from soak.surviving import EXPLAINED

SAMPLE = 0.004
_BOUND = 0.85
_SECONDS = 3000
_OF_TESTS = 30.0  # seconds of tests for one mutant, the quickest first


@dataclass(frozen=True)
class Room:
    """Modules, their tests, and how many mutants are drawn."""

    name: str
    modules: str
    tests: Sequence[str]
    count: int


ROOMS = (
    Room(
        "gp",
        "src/spngp/gp/*.py",
        [
            *("tests/gp", "tests/learning/test_noise.py", "tests/learning/test_outliers.py", "tests/io/test_io.py"),
            *("tests/estimators/test_row_facts.py", "tests/estimators/test_fractional_weights.py"),
            *("tests/streaming/test_exact.py", "tests/io/test_model_records.py"),
        ],
        32,
    ),
    Room(
        "network",
        "src/spngp/network/*.py",
        ["tests/network", "tests/learning/test_outliers.py", "tests/io/test_model_records.py"],
        32,
    ),
    Room("predictive", "src/spngp/predictive.py", ["tests/test_predictive.py", "tests/test_metrics.py"], 32),
    Room(
        "linear algebra",
        "src/spngp/_linalg/*.py",
        ["tests/linalg", "tests/gp", "tests/structure/test_grouped_rows.py"],
        32,
    ),
    Room(
        "streaming",
        "src/spngp/streaming/*.py",
        [
            *("tests/streaming", "tests/estimators/test_updates.py", "tests/estimators/test_levels_to_come.py"),
            *("tests/estimators/test_row_facts.py", "tests/learning/test_proportion.py"),
        ],
        32,
    ),
)


_SMALL = Room("boxes", "src/spngp/box.py", ["tests/test_box.py"], 20)  # for a sample: others take too long


@dataclass(frozen=True)
class Drawn:
    """A mutant of a file, and the tests that may notice it, with their seconds."""

    file: str
    mutant: Mutant
    tests: list[str]
    seconds: float

    @property
    def key(self) -> str:
        """What tells it from others, wherever its line stands."""
        return f"{Path(self.file).relative_to('src/spngp')}, {self.mutant.text}: {self.mutant.what}"


@dataclass(frozen=True)
class Judged:
    """What became of a room's mutants."""

    room: Room
    of: int
    drawn: int
    survivors: list[Drawn]
    broken: int

    @property
    def share(self) -> float:
        """Of those drawn, how many were killed."""
        return 1.0 - len(self.survivors) / max(self.drawn, 1)

    def row(self) -> list[str]:
        """Cells of a table."""
        killed, known = self.drawn - len(self.survivors), len(self.survivors) - len(self.unknown())
        counts = [known, len(self.unknown()), self.broken]
        return [self.room.name, f"{self.of:,}", str(self.drawn), str(killed), f"{self.share:.0%}", *map(str, counts)]

    def unknown(self) -> list[Drawn]:
        """Survivors without an explanation."""
        return [one for one in self.survivors if one.key not in EXPLAINED]


def judged(room: Room, seed: Sequence[int], n_jobs: int, whole: bool = True) -> Judged:
    """Draw mutants of a room and run its tests with them."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        trees = [Path(folder) / f"tree{job}" for job in range(n_jobs)]
        for tree in trees:
            _copy(tree)
        drawn, of = _drawn(room, trees[0], room.count, rng, _tests_by_line if whole else _whole_files)
        codes = np.zeros(len(drawn), dtype=int)
        with ThreadPoolExecutor(n_jobs) as pool:  # each waits for a process
            shares = [drawn[job::n_jobs] for job in range(n_jobs)]
            for job, found in enumerate(pool.map(_run, shares, trees)):
                codes[job::n_jobs] = found
    survivors = [one for one, code in zip(drawn, codes, strict=True) if code == 0]
    broken = sum(code not in (0, 1, 2, 4, -9, -24) for code in codes)  # 2 and 4: the room cannot be imported
    found = Judged(room, of, len(drawn), survivors, broken)
    for one in found.unknown():
        print(f"survived: {one.file}:{one.mutant.line}: {one.key} ({len(one.tests)} tests)", file=sys.stderr)
    return found


def run(effort: Effort) -> Table:
    whole = effort.share >= 0.1
    rooms = [replace(room, count=effort.count(room.count, 2)) for room in (ROOMS if whole else [_SMALL])]
    n_jobs = max(1, effort.n_jobs // len(rooms))

    def of_room(place: int) -> Judged:
        return judged(rooms[place], [effort.seed, place], n_jobs, whole)

    # rooms side by side: one process finds which tests run which lines; the last of them, which takes longest, first
    with ThreadPoolExecutor(effort.n_jobs) as pool:
        found = list(pool.map(of_room, reversed(range(len(rooms)))))[::-1]
    total, left = sum(one.drawn for one in found), sum(len(one.survivors) for one in found)
    share, least = 1.0 - left / max(total, 1), min(found, key=lambda one: one.share)
    error = 1.96 * math.sqrt(share * (1 - share) / max(total, 1))
    explained = left - sum(len(one.unknown()) for one in found)
    drawn = {one.key for part in found for one in part.survivors}
    told = "; ".join(f"`{key}` – {why}" for key, why in EXPLAINED.items() if key in drawn)
    return Table(
        "Mutation testing",
        ("room", "mutants", "drawn", "killed", "share", "survivors explained", "not explained", "errors of the run"),
        [one.row() for one in found],
        least.share >= _BOUND or not whole,
        f"{total - left} of {total} drawn mutants killed, {share:.1%} ± {error:.1%}, the least in {least.room.name} "
        f"({least.share:.0%}, bound {_BOUND:.0%}); of {left} survivors {explained} are explained below",
        (
            "A mutant is killed if a test of its room fails with it, or takes twice its usual time and 20 s. "
            "± is the sampling error of 95 %. Run are tests of the room, and of others that are about what it does: "
            f"those that run the changed statement, the quickest first, up to {_OF_TESTS:g} s. More would kill more.",
            *([f"Survivors, and why: {told}."] if told else []),
        ),
    )


def _copy(tree: Path) -> None:
    """The sources, tests and benchmarks, with the compiled library."""
    tree.mkdir()
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "results", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", tree / "pyproject.toml")


def _drawn(
    room: Room, tree: Path, count: int, rng: np.random.Generator, tests_of: Callable[[Room, Path], _Tests]
) -> tuple[list[Drawn], int]:
    """A sample of a room's mutants, and how many there are."""
    files = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(room.modules) if path.name != "__init__.py")
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
    every = [(file, site) for file, text in texts.items() for site in sites(text)]
    chosen = sorted(rng.choice(len(every), min(count, len(every)), replace=False).tolist())
    tests = tests_of(room, tree)
    found = []
    for place in chosen:
        file, site = every[place]
        change = mutant(texts[file], site)
        first, last = change.lines
        names = {name for line in range(first, last + 1) for name in tests.lines.get((file, line), tests.always)}
        ordered, total = [], 0.0
        for name in sorted(names, key=lambda name: (tests.seconds.get(name, 0.0), name)):
            total += tests.seconds.get(name, 0.0)
            if total > _OF_TESTS and ordered:
                break
            ordered.append(name)
        found.append(Drawn(file, change, ordered, sum(tests.seconds.get(name, 0.0) for name in ordered)))
    return found, len(every)


@dataclass(frozen=True)
class _Tests:
    lines: dict[tuple[str, int], set[str]]
    seconds: dict[str, float]
    always: Sequence[str] = ()


def _whole_files(room: Room, tree: Path) -> _Tests:
    """All tests, without looking which of them run a line."""
    return _Tests({}, {}, room.tests)


def _tests_by_line(room: Room, tree: Path) -> _Tests:
    """Which tests run which lines, and how long they take: from one run of the room's tests."""
    import coverage

    data, times = tree / ".coverage", tree / "times.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov=src/spngp", "--cov-context=test"]
    command += ["--cov-report=", f"--junitxml={times}", *room.tests]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(tree / "src")}
    ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"tests of {room.name} fail without any change: {ended.stdout[-1500:]}")
    found = coverage.CoverageData(str(data))
    found.read()
    lines: dict[tuple[str, int], set[str]] = {}
    every = {context.rpartition("|")[0] for context in found.measured_contexts() if context}
    for path in found.measured_files():
        name = str(Path(path).relative_to(tree.resolve()))
        for line, contexts in found.contexts_by_lineno(path).items():
            tests = {context.rpartition("|")[0] for context in contexts if context}
            lines[name, line] = every if "" in contexts and not tests else tests
    seconds = {}
    for case in ElementTree.parse(times).iter("testcase"):
        file = str(case.get("classname", "")).replace(".", "/") + ".py"
        seconds[f"{file}::{case.get('name')}"] = float(case.get("time", 0.0))
    data.unlink()
    return _Tests(lines, seconds)


def _run(drawn: Sequence[Drawn], tree: Path) -> list[int]:
    """Exit codes of the tests of each mutant: 0 if all pass; a statement that no test runs is not noticed."""
    if not drawn:
        return []
    cases: list[dict[str, Any]] = [
        {"mutant": i, "file": one.file, "code": one.mutant.code, "tests": one.tests, "seconds": one.seconds}
        for i, one in enumerate(drawn)
        if one.tests
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "soak.mutant_runs"]
    names = sorted({name for one in drawn for name in one.tests})
    honest = {"mutant": -1, "file": drawn[0].file, "code": (ROOT / drawn[0].file).read_text(encoding="utf-8")}
    honest |= {"tests": ["--collect-only", *names], "seconds": 0.0}  # whether they are called so
    job = json.dumps({"tree": str(tree), "cases": [honest, *cases]})
    ended = subprocess.run(
        command, input=job, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=True
    )
    codes = dict.fromkeys(range(len(drawn)), 0)
    first, *others = map(json.loads, ended.stdout.splitlines())
    if first["code"]:
        raise RuntimeError(f"tests cannot be found by their names: code {first['code']}, {names[:3]}")
    for line in others:
        codes[line["mutant"]] = line["code"]
    return list(codes.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=[room.name for room in ROOMS])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=1)
    given = parser.parse_args()
    (place,) = (place for place, room in enumerate(ROOMS) if room.name == given.room)
    found = judged(replace(ROOMS[place], count=given.count), [given.seed, place], given.n_jobs)
    print(" | ".join(found.row()))


if __name__ == "__main__":
    main()
