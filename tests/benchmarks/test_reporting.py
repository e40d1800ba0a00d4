"""Benchmarks say where their figures come from, and measure as the experiments do."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from spngp.experiments.origin import origin_text

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "reporting.py")


def run(name, *arguments):
    command = [sys.executable, str(FOLDER / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_ends_by_saying_where_its_figures_come_from(path):
    assert path.read_text(encoding="utf-8").endswith('if __name__ == "__main__":\n    reporting.run(main)\n')


def test_command_code_and_machine_are_said():
    last = run("exponential.py").splitlines()[-1]
    assert last.startswith("Made by `python benchmarks/exponential.py` with ")
    assert origin_text() in last


def test_scale_prints_its_figures_and_writes_them_as_csv(tmp_path):
    path = tmp_path / "scale.csv"
    options = ["--rows", "200", "--test-rows", "50", "--models", "tied", "--threads", "1", "--csv", str(path)]
    printed = run("scale.py", *options)
    assert "| tied | 200 | 1 |" in printed
    with path.open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert float(row["fit/floor"]) == pytest.approx(float(row["fit s"]) / float(row["floor s"]), rel=1e-3)
    assert float(row["truth"]) < float(row["RMSE"]) < 1.5
    assert f"`python benchmarks/scale.py {' '.join(options)}`" in printed
