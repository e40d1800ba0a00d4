"""Benchmarks say where their figures come from, and measure as the experiments do."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spngp.experiments.origin import origin_text

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.stem not in ("reporting", "same_structure"))


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


@pytest.mark.long
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


ROOT = FOLDER.parent
PAGES = [
    *(FOLDER / "results").glob("*.md"),
    *(FOLDER / "results").glob("*.txt"),
    FOLDER / "defaults.md",
    *(ROOT / "results").glob("[!q]*/README.md"),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_page_of_results_states_its_commit(path):
    text = path.read_text(encoding="utf-8")
    stated = r"at commit [0-9a-f]{7,} \((clean tree|tree with uncommitted changes)\)"
    not_known = r"[Cc]ommit not recorded.*committed with [0-9a-f]{7,}"
    assert re.search(f"{stated}|{not_known}", text, re.DOTALL)
    assert "took 0 s" not in text


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout tells which files are kept")
def test_no_file_of_results_is_shown_by_no_page():
    for page in (ROOT / "results").glob("[!q]*/README.md"):
        tracked = ["git", "-C", str(page.parent), "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(tracked, capture_output=True, text=True, check=True).stdout.split()
        text = page.read_text(encoding="utf-8")
        assert [name for name in names if name != "README.md" and f"]({name})" not in text] == []
