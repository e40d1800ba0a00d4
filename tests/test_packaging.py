"""The version and what tells about the project: one source each, and they agree."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import spngp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(program):
    """What a Python program prints, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(spngp.__file__).parents[1])}
    return subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)


def test_the_version_is_the_one_that_was_built():
    program = """
import sys, types
sys.modules["spngp._support._built"] = types.SimpleNamespace(__version__="7.8.9")
import spngp
print(spngp.__version__)
"""
    assert run(program).stdout == "7.8.9\n"


def test_sources_that_were_never_built_have_the_version_of_an_archive():
    program = """
import sys
sys.modules["spngp._support._built"] = None  # as if it had not been written
import spngp
print(spngp.__version__)
"""
    assert run(program).stdout.strip() == PROJECT["tool"]["setuptools_scm"]["fallback_version"]


def test_the_version_is_told_without_importing_numpy():
    program = """
import sys
sys.argv = ["spngp", "--version"]
from spngp.cli import main
try:
    main()
finally:
    print({"numpy", "scipy", "spngp._support.provenance"} & set(sys.modules))
"""
    assert run(program).stdout == f"spngp {spngp.__version__}\nset()\n"


def test_the_version_is_one_that_installers_can_compare():
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?(\.dev\d+)?(\+[a-z0-9.]+)?", spngp.__version__)


def test_a_build_writes_the_version_where_it_is_looked_for():
    written = ROOT / PROJECT["tool"]["setuptools_scm"]["version_file"]
    assert written == ROOT / "src" / "spngp" / "_support" / "_built.py"
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    ignored = subprocess.run(["git", "-C", str(ROOT), "check-ignore", "--quiet", str(written)], check=False)
    assert ignored.returncode == 0
