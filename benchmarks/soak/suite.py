"""The long tests of the suite: those marked ``long``, of which ``make test`` runs none but in this section's sample.

They fit dozens of models, start clusters of processes, or run benchmarks at toy size; for each of them a shorter one of
the same kind is among the tests that every change has to pass.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from collections import defaultdict
from pathlib import Path

import numpy as np

from soak import Effort, Table

SAMPLE = 0.01
_QUICK = "tests/gp/test_row_weights.py"  # for a sample: the time of `make test` must not hang on which file is drawn
ROOT = Path(__file__).resolve().parents[2]


def files() -> list[Path]:
    """Files of tests in which some are long."""
    return [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.long" in path.read_text("utf-8")]


def run(effort: Effort) -> Table:
    found = [str(path.relative_to(ROOT)) for path in files()]
    chosen = np.random.default_rng([effort.seed, 9]).permutation(len(found))[: effort.count(len(found))]
    tests = [found[i] for i in sorted(chosen)] if effort.share > SAMPLE else [_QUICK]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "tests.xml"
        options = ["-q", "-m", "long", "-p", "no:cacheprovider", f"--junitxml={record}"]
        if effort.n_jobs > 1:
            options += ["--numprocesses", str(effort.n_jobs), "--dist", "loadfile"]
        ended = subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, capture_output=True)
        cases = list(xml.etree.ElementTree.parse(record).iter("testcase")) if record.exists() else []
    if ended.returncode:
        print(ended.stdout.decode(errors="replace")[-4000:])
    by_folder: dict[str, list[xml.etree.ElementTree.Element]] = defaultdict(list)
    for case in cases:
        by_folder[".".join(case.get("classname", "").split(".")[:2])].append(case)
    rows = [(name, *_counted(own)) for name, own in sorted(by_folder.items())]
    passed, skipped, failed, _ = _counted(cases)
    verdict = f"{passed} tests of {len(tests)} files passed, {skipped} skipped, {failed} failed"
    notes = (
        "Skipped are tests whose data are not there. Seconds are those of the tests, which run on several processes.",
    )
    header = ("tests", "passed", "skipped", "failed", "seconds")
    return Table("Suite", header, rows, ended.returncode == 0 and bool(cases), verdict, notes)


def _counted(cases: list[xml.etree.ElementTree.Element]) -> tuple[str, str, str, str]:
    """How many passed, were skipped and failed, and the seconds of all."""
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    seconds = sum(float(case.get("time", "0")) for case in cases)
    return str(len(cases) - skipped - failed), str(skipped), str(failed), f"{seconds:.0f}"
