"""Where commands write: no input and no other file is lost, and a place that cannot be written is noticed first."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spngp
from command_line import QUICK, ok, refused
from spngp import datasets

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(spngp.__file__).parents[1])}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A table and a model of it, to be copied by tests that might lose them."""
    folder = tmp_path_factory.mktemp("outputs")
    rng = np.random.default_rng(0)
    a = rng.uniform(-2, 2, 60)
    rows = [f"{x:.4f},{np.sin(x) + 0.1 * e:.4f}\n" for x, e in zip(a, rng.standard_normal(60), strict=True)]
    (folder / "d.csv").write_text("a,y\n" + "".join(rows))
    ok("fit", folder / "d.csv", "-t", "y", *QUICK, "-o", folder / "m.spngp")
    return {name: (folder / name).read_bytes() for name in ("d.csv", "m.spngp")}


@pytest.fixture
def folder(saved, tmp_path, monkeypatch):
    """The current folder, with a table d.csv, a model m.spngp and other names for both."""
    monkeypatch.chdir(tmp_path)
    for name, content in saved.items():
        Path(name).write_bytes(content)
    Path("fit.toml").write_text('target = "y"\n')
    os.link("d.csv", "hard.csv")
    os.symlink("d.csv", "soft.csv")
    os.link("m.spngp", "hard.spngp")
    Path("sub").mkdir()
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


OVER_AN_INPUT = [
    ["fit", "d.csv", "-t", "y", *QUICK, "-o", "d.csv"],
    ["fit", "d.csv", "-t", "y", *QUICK, "-o", "sub/../d.csv"],
    ["fit", "d.csv", "-t", "y", *QUICK, "-o", "hard.csv"],
    ["fit", "d.csv", "-t", "y", *QUICK, "-o", "soft.csv"],
    ["fit", "soft.csv", "-t", "y", *QUICK, "-o", "d.csv"],
    ["fit", "d.csv", "--config", "fit.toml", *QUICK, "-o", "fit.toml"],
    ["predict", "m.spngp", "d.csv", "-o", "d.csv"],
    ["predict", "m.spngp", "d.csv", "-o", "./hard.csv"],
    ["predict", "m.spngp", "soft.csv", "-o", "d.csv"],
    ["report", "m.spngp", "-o", "m.spngp"],
    ["report", "m.spngp", "-o", "hard.spngp"],
    ["report", "m.spngp", "d.csv", "-o", "m.spngp"],
    ["report", "m.spngp", "d.csv", "-o", "soft.csv"],
]


@pytest.mark.parametrize("arguments", OVER_AN_INPUT, ids=" ".join)
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "forced"])
def test_an_output_that_is_also_an_input_is_refused(folder, arguments, force):
    before = contents(folder)
    line = refused(*arguments, *force)
    assert line.startswith(f"spngp: {arguments[-1]} is also an input")
    assert "write to another file" in line
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [["fit", "-", "-t", "y"], pytest.param(["predict", "m.spngp", "/dev/stdin"], marks=pytest.mark.long)],
    ids=" ".join,
)
def test_an_output_that_is_standard_input_is_refused(folder, arguments):
    before = contents(folder)
    command = [sys.executable, "-m", "spngp", *arguments, "-o", "d.csv", "--force"]
    with open("d.csv", "rb") as file:
        result = subprocess.run(command, stdin=file, capture_output=True, text=True, env=ENVIRONMENT)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("spngp: d.csv is also an input")
    assert contents(folder) == before


@pytest.mark.long
def test_standard_output_that_appends_to_an_input_is_refused(folder):
    before = contents(folder)
    with open("d.csv", "ab") as file:
        command = [sys.executable, "-m", "spngp", "predict", "m.spngp", "d.csv"]
        result = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert result.returncode == 2
    assert result.stderr.startswith("spngp: standard output is also an input (d.csv)")
    assert contents(folder) == before


def test_a_model_replaces_only_models_unless_forced(folder):
    fit = ["fit", "d.csv", "-t", "y", *QUICK, "-o"]
    Path("notes.txt").write_text("three years of notes")
    line = refused(*fit, "notes.txt")
    assert line == "spngp: notes.txt is there and is not a spngp model; write to another file, or replace it by --force"
    assert Path("notes.txt").read_text() == "three years of notes"
    ok(*fit, "notes.txt", "--force")
    assert spngp.load("notes.txt").n_features_in_ == 1
    ok(*fit, "notes.txt")  # a model now
    Path("empty").touch()  # as mktemp makes it: nothing to lose
    ok(*fit, "empty")
    Path("cut.spngp").write_bytes(Path("m.spngp").read_bytes()[:5000])
    ok(*fit, "cut.spngp")  # what is left of a model


def test_a_table_or_a_report_replaces_no_model_unless_forced(folder):
    pytest.importorskip("plotly")
    Path("other.csv").write_bytes(Path("m.spngp").read_bytes())
    predict, report = ["predict", "m.spngp", "d.csv", "-o"], ["report", "m.spngp", "-o"]
    wanted = "spngp: other.csv is a spngp model; write to another file, or replace it by --force"
    assert refused(*predict, "other.csv") == wanted
    assert refused(*report, "other.csv") == wanted
    ok(*predict, "other.csv", "--force")
    assert Path("other.csv").read_text().startswith("a,y,y_mean")
    ok(*predict, "other.csv")  # a table over a table
    for _ in range(2):
        ok(*report, "page.html")


def test_a_pipe_or_a_device_is_nobodys_file(folder):
    ok("fit", "d.csv", "-t", "y", *QUICK, "-o", "/dev/null")
    ok("predict", "m.spngp", "d.csv", "-o", "-")


# Places that cannot be written

COMMANDS = {
    "fit": ["fit", "none.csv", "-t", "y", "-o"],
    "predict": ["predict", "none.spngp", "none.csv", "-o"],
    "report": ["report", "none.spngp", "-o"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_that_cannot_be_written_is_noticed_before_anything_is_read(folder, command):
    output = COMMANDS[command]
    assert refused(*output, "nowhere/x.csv") == "spngp: nowhere: No such directory; make it first"
    assert refused(*output, "d.csv/x.csv") == "spngp: d.csv: Not a directory"
    assert refused(*output, "sub") == "spngp: sub: Is a directory"
    assert refused(*output, "") == "spngp: the output must be the name of a file, got ''"
    if os.path.isdir("/proc/self"):
        assert refused(*output, "/proc/self/x.csv").startswith("spngp: /proc/self: no file can be made here (")


@pytest.mark.parametrize("command", ["fit", "report"])
def test_only_tables_go_to_standard_output(folder, command):
    kind = "model" if command == "fit" else command
    assert refused(*COMMANDS[command], "-") == f"spngp: a {kind} cannot be written to standard output; give a file"


@pytest.mark.parametrize("arguments", [["demo", "--no-compare", "--directory"], ["reproduce", "model", "-o"]])
def test_a_folder_that_cannot_be_written_is_noticed_first(folder, arguments):
    for path in ("d.csv", "d.csv/x"):
        assert refused(*arguments, path) == "spngp: d.csv: Not a directory"
    if os.path.isdir("/proc/self"):
        assert "/proc/self" in refused(*arguments, "/proc/self/demo")


def test_demo_keeps_tables_that_are_not_its_own(folder):
    Path("train.csv").write_text("mine")
    line = refused("demo", "--no-compare", "--directory", ".")
    assert line == "spngp: train.csv is there and is not the demo's; give another --directory"
    assert Path("train.csv").read_text() == "mine"


def test_a_full_disk_is_told_in_one_line_and_leaves_the_old_model(folder):
    before = contents(folder)
    command = [sys.executable, "-m", "spngp", "fit", "d.csv", "-t", "y", *QUICK, "--no-holdout", "-o", "m.spngp"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, preexec_fn=limit)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "spngp: m.spngp: File too large\n"
    assert contents(folder) == before


def test_a_full_disk_in_python_is_an_oserror_with_the_path(tmp_path):
    data = datasets.load("motorcycle")
    model = spngp.GPRegressor(hyperparameters="fixed").fit(data.X, data.Y[:, 0])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            model.save(tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.filename == str(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
