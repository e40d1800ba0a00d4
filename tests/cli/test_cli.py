"""The command line itself: its way out of errors, versions, help, streams."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import spngp
from spngp.cli import data
from spngp.cli.app import add_command, app
from spngp.cli.failures import CheckFailed, describe


def run(*arguments: str, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"spngp {spngp.__version__}\n")


def test_no_arguments_show_help_and_fail():
    result = run()
    assert result.exit_code == 2
    assert "Usage: spngp" in result.stdout


@pytest.mark.parametrize("name", sorted(command.name for command in app.registered_commands))
def test_every_command_has_help_with_an_example(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Example: spngp {name}" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_help_text_wraps_by_itself():
    """Typer keeps the line breaks within a paragraph of a docstring, so there should be none."""
    commands = [*app.registered_commands, *data.commands.registered_commands]
    for command in commands:
        paragraphs = [paragraph.strip() for paragraph in command.callback.__doc__.split("\n\n")]
        assert [paragraph for paragraph in paragraphs if "\n" in paragraph] == [], command.callback.__name__


@pytest.mark.parametrize("arguments", [["fot"], ["demo", "--no-such-option"], ["--no-such-option"]])
def test_wrong_usage_is_one_line_on_standard_error(arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "--help" in result.stderr


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (ValueError("y must be\nfinite"), "y must be finite", 2),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "a.csv: No such file or directory", 2),
        (CheckFailed("coverage is 0.5"), "coverage is 0.5", 1),
        (ZeroDivisionError("division"), "unexpected ZeroDivisionError: division (--verbose shows where)", 1),
        (
            ModuleNotFoundError("no", name="pyarrow.csv"),
            "this needs pyarrow, which is not installed: pip install 'spngp[cli]'",
            1,
        ),
        (KeyboardInterrupt(), "interrupted", 130),
        (MemoryError(), "out of memory", 1),
    ],
)
def test_failures_become_a_line_and_a_code(error, line, code):
    assert describe(error) == (line, code)


@pytest.fixture
def failing_command():
    def explode() -> None:
        """Fail."""
        raise ZeroDivisionError("division by nothing")

    add_command(explode, "spngp explode")
    yield "explode"
    app.registered_commands.pop()


def test_verbose_adds_the_traceback_wherever_it_stands(failing_command):
    quiet = run(failing_command)
    assert quiet.exit_code == 1
    assert len(quiet.stderr.splitlines()) == 1
    for arguments in ([failing_command, "--verbose"], ["--verbose", failing_command]):
        loud = run(*arguments)
        assert loud.exit_code == 1
        assert "Traceback" in loud.stderr
        assert loud.stderr.splitlines()[-1] == quiet.stderr.splitlines()[-1]


def test_a_missing_extra_is_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    source = os.path.dirname(os.path.dirname(spngp.__file__))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source])}
    result = subprocess.run([sys.executable, "-m", "spngp"], env=environment, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == "spngp: this needs typer, which is not installed: pip install 'spngp[cli]'\n"


def test_names_and_modules_are_there_without_being_imported():
    code = (
        "import sys, spngp; assert 'scipy' not in sys.modules; spngp.kernels.Matern(); spngp.load; spngp.datasets.load"
    )
    source = os.path.dirname(os.path.dirname(spngp.__file__))
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, check=True)
    assert {"load", "SPNGPRegressor", "metrics"} <= set(dir(spngp))
    with pytest.raises(AttributeError, match="module 'spngp' has no attribute 'nothing'"):
        spngp.nothing  # noqa: B018
