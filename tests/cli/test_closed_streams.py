"""Standard streams that are closed or full, and settings that no computer can follow: one line, exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spngp
from command_line import QUICK, ok, refused
from spngp.cli.app import app


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    (folder / "d.csv").write_text("a,y\n" + "".join(f"{x:.4f},{np.sin(x):.4f}\n" for x in rng.uniform(-2, 2, 40)))
    ok("fit", folder / "d.csv", "-t", "y", *QUICK, "-o", folder / "m.spngp")
    return folder


CLOSED_INPUT = "spngp: standard input is closed; give a file, or pipe the rows in\n"
CLOSED_OUTPUT = "spngp: standard output is closed; give a file or /dev/null\n"
FIT = ["fit", "d.csv", "-t", "y", *QUICK, "-o", "new"]


@pytest.fixture
def outcome(folder, monkeypatch, capsys):
    """Runs a command with a standard stream replaced; returns its exit code and what it said on standard error."""
    monkeypatch.chdir(folder)

    def run(arguments, **streams):
        with monkeypatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as end:
                app(arguments)
        return end.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize("arguments", [["fit", "-", "-t", "y", "-o", "new"], ["predict", "m.spngp", "-"]], ids=" ".join)
def test_closed_standard_input(outcome, folder, arguments):
    assert outcome(arguments, stdin=None) == (2, CLOSED_INPUT)  # Python's word for a closed stream
    assert not (folder / "new").exists()


USES_OUTPUT = [
    ["--version"],
    ["--help"],
    FIT,
    [*FIT, "--json"],
    ["predict", "m.spngp", "d.csv"],
    ["predict", "m.spngp", "d.csv", "-o", "new.csv", "--json"],
    ["evaluate", "m.spngp", "d.csv"],
    ["inspect", "m.spngp"],
    ["inspect", "m.spngp", "--json"],
    ["report", "m.spngp", "-o", "new.html", "--json"],
    ["data", "list"],
    ["demo"],
    ["reproduce", "model"],
]


@pytest.mark.parametrize("arguments", USES_OUTPUT, ids=" ".join)
def test_closed_standard_output_is_noticed_before_the_work(outcome, folder, arguments):
    assert outcome(arguments, stdout=None) == (2, CLOSED_OUTPUT)
    assert sorted(path.name for path in folder.iterdir()) == ["d.csv", "m.spngp"]


def test_closed_standard_output_where_nothing_is_printed(outcome, tmp_path):
    code, line = outcome(["predict", "m.spngp", "d.csv", "-o", str(tmp_path / "p.csv")], stdout=None)
    assert (code, "40 rows predicted" in line) == (0, True)


def test_closed_standard_error_does_not_stop_a_command(outcome, tmp_path):
    code, _ = outcome([*FIT[:-1], str(tmp_path / "new")], stderr=None)
    assert (code, (tmp_path / "new").exists()) == (0, True)
    assert outcome(["inspect", "none"], stderr=None) == (2, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["predict", "m.spngp", "d.csv"], ["inspect", "m.spngp"], ["--version"]])
def test_a_full_disk_behind_standard_output(outcome, arguments):
    with open("/dev/full", "w") as full:
        assert outcome(arguments, stdout=full) == (2, "spngp: standard output: No space left on device\n")


def test_a_reader_that_has_enough_gets_no_complaint(outcome):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        assert outcome(["inspect", "m.spngp", "--json"], stdout=pipe) == (1, "")


def test_a_real_process_without_standard_streams(folder):
    environment = {**os.environ, "PYTHONPATH": str(Path(spngp.__file__).parents[1])}
    script = 'exec "$0" -m spngp inspect m.spngp <&- >&-'
    result = subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert (result.returncode, result.stderr) == (2, CLOSED_OUTPUT)


def test_settings_nested_too_deep(folder, tmp_path):
    (tmp_path / "deep.toml").write_text("ordinal = " + "[" * 500 + "]" * 500)
    line = refused("fit", folder / "d.csv", "-t", "y", "-o", tmp_path / "m", "--config", tmp_path / "deep.toml")
    assert line == f"spngp: {tmp_path / 'deep.toml'} is not TOML that can be read: it is nested too deep"
    (tmp_path / "deep.toml").write_text("holdout" + ".a" * 900 + " = 1")
    line = refused("fit", folder / "d.csv", "-t", "y", "-o", tmp_path / "m", "--config", tmp_path / "deep.toml")
    assert "holdout must be a number, got {'a': {'a': {" in line
    assert len(line) < 300


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--overlap", "1e300", "must be at least 0 and at most 1e+09, got 1e+300"),
        ("--overlap", "-1", "must be at least 0 and at most 1e+09, got -1"),
        ("--overlap", "nan", "must be at least 0 and at most 1e+09, got nan"),
        ("--max-leaf-size", "0", "must be at least 1, got 0"),
        ("--n-partitions", "-2", "must be at least 1, got -2"),
        ("--noise-variance", "-1", "must be at least 0, got -1"),
        ("--noise-variance", "inf", "must be at least 0, got inf"),
        ("--memory-limit", "0", "must be above 0, got 0"),
        ("--jobs", "0", "must be a number other than 0, -1 for one on each core, got 0"),
        ("--structure", "kompact", "must be compact, random or equal-width, got 'kompact'"),
        ("--hyperparameters", "tight", "must be adaptive, tied, independent or fixed, got 'tight'"),
    ],
)
def test_values_that_are_not_allowed(folder, tmp_path, option, value, message):
    fit = ["fit", folder / "d.csv", "-t", "y", "-o", tmp_path / "m"]
    wanted = f"spngp fit: Invalid value for {option}: {message} (see spngp fit --help)"
    assert refused(*fit, option, value) == wanted
    text = f'"{value}"' if value.isalpha() and value not in ("nan", "inf") else value
    (tmp_path / "c.toml").write_text(f"{option[2:]} = {text}\n")
    assert refused(*fit, "--config", tmp_path / "c.toml") == wanted
