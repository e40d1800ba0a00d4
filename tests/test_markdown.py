"""Every code block of the README and of the other pages works as printed."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import typer.main

import spngp
from markdown_blocks import PAGES, ROOT, Block, blocks, commands, run_python
from spngp.cli.app import app
from spngp.experiments import NAMES

README = ROOT / "README.md"
MAKE_TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def pages_with(language):
    return [path for path in PAGES if any(block.language == language for block in blocks(path))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_block_says_what_it_is(path):
    for block in blocks(path):
        assert block.language in ("python", "console", "text", "toml"), f"{path.name}, line {block.line}"


@pytest.mark.parametrize("path", pages_with("python"), ids=lambda path: path.name)
def test_python_runs_as_printed(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        run_python(path)
    finally:
        plt.close("all")


@pytest.mark.parametrize("path", pages_with("console"), ids=lambda path: path.name)
def test_commands_exist(path):
    for number, line in commands(path):
        for command in re.split(r"&&|\|", line):
            problem = what_is_wrong_with(shlex.split(command))
            assert problem is None, f"{path.name}, line {number}: {command.strip()}: {problem}"


def what_is_wrong_with(words):
    """None if the program is known and takes these arguments; it is not run."""
    program, *arguments = words
    if program == "make":
        unknown = set(arguments) - MAKE_TARGETS
        return f"the Makefile has no {', '.join(sorted(unknown))}" if unknown else None
    if program == "spngp":
        return what_is_wrong_with_arguments(arguments)
    if program.startswith(".venv/bin/"):
        name = program.removeprefix(".venv/bin/")
        installed = {script.name for script in entry_points(group="console_scripts")} | {"python"}
        return None if name in installed else f"{name} is not installed"
    return None if program in ("source", "cut", "head", "git", "cd") else "no test knows this program"


def what_is_wrong_with_arguments(arguments):
    """What the command line says to them, without running the command."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):  # a group of commands
        name, *arguments = arguments
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    try:
        context = command.make_context(command.name, arguments)
    except Exception as error:  # of Click, or of the copy inside Typer
        return str(error)
    if command.name == "reproduce" and context.params["name"] not in (*NAMES, "all"):
        return f"there is no experiment {context.params['name']}"
    return None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("make nothing", "the Makefile has no nothing"),
        ("spngp fot data.csv", "there is no command"),
        ("spngp fit data.csv --targets y -o m.spngp", "No such option"),
        ("spngp data lost", "there is no command"),
        ("spngp reproduce nothing", "there is no experiment nothing"),
        ("rm -r results", "no test knows this program"),
        (".venv/bin/no-such-program", "is not installed"),
    ],
)
def test_a_command_that_does_not_exist_is_found(words, problem):
    assert problem in what_is_wrong_with(shlex.split(words))


def test_blocks_are_read_with_language_and_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nx = 1\n```\ntext\n```console\nmake test  # all\n```\n")
    assert blocks(page) == [Block("python", "x = 1\n", 4), Block("console", "make test  # all\n", 8)]
    assert commands(page) == [(8, "make test")]
    page.write_text("```python\nx = 1\n")
    with pytest.raises(ValueError, match="begins in line 2 is not closed"):
        blocks(page)


def test_a_block_that_fails_points_to_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\ny = 2\nx + y\n```\n")  # x is another block's
    with pytest.raises(NameError, match="'x' is not defined") as caught:
        run_python(page)
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == (page, 7)


def run_in_a_shell(lines, folder):
    """Run lines in a fresh shell that has the command ``spngp``."""
    command = folder / "bin" / "spngp"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spngp "$@"\n')
    command.chmod(0o755)
    environment = {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(spngp.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
        "HOME": str(folder),
    }
    script = "set -e -o pipefail\n" + "\n".join(lines)
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=100
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
def test_the_quick_start_works_as_printed(tmp_path):
    section = README.read_text(encoding="utf-8").split("## From a table to predictions")[1]
    setup, *lines = re.search(r"```console\n(.*?)```", section, re.DOTALL).group(1).splitlines()
    assert setup == "make setup && source .venv/bin/activate"  # what this test stands in for
    result = run_in_a_shell(lines, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "On 10 rows held out" in result.stdout
    assert result.stdout.splitlines()[-3] == "times,accel_mean,accel_std,accel_q0.05,accel_q0.5,accel_q0.95"
    assert (
        (tmp_path / "predicted.csv")
        .read_text()
        .startswith("times,accel,accel_mean,accel_std,accel_low0.9,accel_high0.9\n")
    )
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert "\x1b" not in result.stdout
