"""Provenance: the commit of a checkout, its changes, and what a version tells where there is none."""

import shutil
import subprocess

import pytest

import spngp
from spngp._support.provenance import Provenance, _of_checkout, _of_version, provenance

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder, *arguments):
    identity = ["-c", "user.name=A. Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository of one commit with code, results and ignored files."""
    folder = tmp_path / "checkout"
    for name in ("src/spngp/code.py", "benchmarks/speed.py", "benchmarks/results/speed.md", "results/page.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1\n")
    (folder / ".gitignore").write_text("__pycache__/\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "First")
    return folder


@needs_git
def test_a_checkout_tells_its_commit(checkout):
    assert _of_checkout(checkout, "0.1") == Provenance("0.1", git(checkout, "rev-parse", "HEAD"), True)


@needs_git
@pytest.mark.parametrize(
    ("written", "clean"),
    [
        ("src/spngp/code.py", False),
        ("src/spngp/new.py", False),
        ("benchmarks/speed.py", False),
        ("pyproject.toml", False),
        ("benchmarks/results/speed.md", True),
        ("results/page.md", True),
        ("src/spngp/__pycache__/code.pyc", True),
    ],
)
def test_changed_code_counts_and_written_results_do_not(checkout, written, clean):
    (checkout / written).parent.mkdir(exist_ok=True)
    (checkout / written).write_text("2\n")
    assert _of_checkout(checkout, "0.1").clean is clean
    git(checkout, "add", ".")
    assert _of_checkout(checkout, "0.1").clean is clean
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "Second")
    assert _of_checkout(checkout, "0.1").clean is True


@needs_git
def test_variables_of_a_git_hook_do_not_lead_elsewhere(checkout, tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    found = _of_checkout(checkout, "0.1")
    monkeypatch.undo()
    assert found.commit == git(checkout, "rev-parse", "HEAD")


@needs_git
def test_where_git_cannot_tell_the_version_does(checkout, tmp_path, monkeypatch):
    inside = checkout / "src"  # of a checkout, but not its top: somebody else's
    assert _of_checkout(inside, "0.1") is None
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")  # no commit yet
    assert _of_checkout(empty, "0.1") is None
    monkeypatch.setenv("PATH", str(empty))  # no git
    assert _of_checkout(checkout, "0.1") is None


@pytest.mark.parametrize(
    ("version", "commit", "clean"),
    [
        ("0.1.dev7+g1a2b3c4d5", "1a2b3c4d5", True),
        ("0.1.dev7+g1a2b3c4d5.d20260131", "1a2b3c4d5", False),
        ("0.1.0", None, None),
        ("0.1.0.dev0", None, None),
        ("0.1.0+local", None, None),
    ],
)
def test_a_version_tells_its_commit(version, commit, clean):
    assert _of_version(version) == Provenance(version, commit, clean)


def test_in_words():
    assert str(Provenance("0.1.dev7+g1a2b3c4d5", "0123456789abcdef", True)) == "spngp 0.1.dev7, commit 0123456789"
    assert str(Provenance("0.1.dev7", "0123456789abcdef", False)) == "spngp 0.1.dev7, commit 0123456789, modified"
    assert str(Provenance("0.1.0", None, None)) == "spngp 0.1.0"


def test_of_the_running_package():
    found = provenance()
    assert found.version == spngp.__version__
    assert found.commit is None or set(found.commit) <= set("0123456789abcdef")
