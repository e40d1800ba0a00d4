"""A process that runs the tests of a room against mutants, each in a copy of itself.

It has imported everything but the package, which each copy imports from a tree of its own. It reads what to do from
standard input, as JSON: the tree, files with their changed text, and the tests for each; it prints what became of them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_CPU = 20  # seconds of processor time that a mutant's tests may take beyond what they usually do


def _test(tree: Path, tests: list[str], extra: list[str], seconds: float) -> int:
    """Run tests in this process; their exit code."""
    import pytest

    limit = int(_CPU + 2 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree / "tests"), str(tree / "benchmarks")]
    os.environ["PYTHONPATH"] = str(tree / "src")
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *extra, *tests]))


def _ended(child: int, deadline: float) -> int:
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


def main() -> None:
    job: dict[str, Any] = json.loads(sys.stdin.read())
    sys.dont_write_bytecode = True
    import numpy
    import pandas
    import pytest
    import scipy.linalg
    import scipy.optimize
    import scipy.special
    import scipy.stats
    import sklearn.gaussian_process
    import sklearn.utils.estimator_checks

    assert all((numpy, pandas, pytest, scipy, sklearn))  # they are there before the copies are made
    tree, out = Path(job["tree"]), os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    if not job.get("verbose"):
        os.dup2(quiet, 2)
    for case in job["cases"]:
        path = tree / case["file"]
        before = path.read_text(encoding="utf-8")
        path.write_text(case["code"], encoding="utf-8")
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            cached.unlink()
        child = os.fork()
        if not child:
            code = 99
            try:
                code = _test(tree, case["tests"], job.get("extra", []), case["seconds"])
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        code = _ended(child, time.monotonic() + 20 * (_CPU + case["seconds"]))
        path.write_text(before, encoding="utf-8")
        print(json.dumps({"mutant": case["mutant"], "code": code}), file=out, flush=True)


if __name__ == "__main__":
    main()
