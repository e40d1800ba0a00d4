"""The README's quick start for the command line, copied into a fresh shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import spngp

README = Path(__file__).parents[1] / "README.md"


def test_the_quick_start_works_as_printed(tmp_path):
    section = README.read_text(encoding="utf-8").split("## From a table to predictions")[1]
    setup, *lines = re.search(r"```console\n(.*?)```", section, re.DOTALL).group(1).splitlines()
    assert setup == "make setup && source .venv/bin/activate"  # what this test stands in for
    command = tmp_path / "bin" / "spngp"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spngp "$@"\n')
    command.chmod(0o755)
    environment = {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(spngp.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
        "HOME": str(tmp_path),
    }
    script = "set -e -o pipefail\n" + "\n".join(lines)
    result = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )
    assert result.returncode == 0, result.stderr
    assert "On 10 rows held out" in result.stdout
    assert result.stdout.splitlines()[-3] == "accel_mean,accel_std,accel_q0.05,accel_q0.5,accel_q0.95"
    assert (
        (tmp_path / "predicted.csv").read_text().startswith("accel,accel_mean,accel_std,accel_low0.9,accel_high0.9\n")
    )
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert "\x1b" not in result.stdout
