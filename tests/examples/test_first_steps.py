"""The example that ``make demo`` runs: with what a lean install has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spngp

ROOT = Path(__file__).parents[2]
_LEAN = """
import runpy, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("typer", "rich", "pyarrow", "matplotlib", "pandas", "polars"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_demo_needs_the_core_and_the_report_only(tmp_path):
    pytest.importorskip("plotly")
    environment = {**os.environ, "PYTHONPATH": str(Path(spngp.__file__).parents[1])}
    command = [sys.executable, "-c", _LEAN, str(ROOT / "examples" / "first_steps.py"), str(tmp_path / "demo")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert "inside the 90 % intervals" in result.stdout
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"report.html", "predicted.csv", "crash.spngp"}
    assert len((tmp_path / "demo" / "predicted.csv").read_text(encoding="utf-8").splitlines()) == 34
