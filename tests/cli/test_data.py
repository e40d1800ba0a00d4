"""``spngp data`` in a terminal and for machines."""

import json

import pytest
from typer.testing import CliRunner

from spngp import datasets
from spngp.cli.app import app
from spngp.datasets.originals import ORIGINALS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPNGP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPNGP_DATA_URL", raising=False)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def run(*arguments):
    return CliRunner().invoke(app, ["data", *arguments])


def test_the_list_is_the_papers_table(folder):
    (folder / "yacht.csv").write_text("not the yachts")
    result = run("list")
    assert result.exit_code == 0
    lines = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    assert lines["motorcycle"][-4:] == ["package", "133", "1", "1"]
    assert lines["energy"][-4:] == ["missing", "768", "8", "2"]
    assert lines["kin40k"][-3:] == ["40,000", "8", "1"]
    assert lines["yacht"][-4] == "damaged"
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_the_list_for_machines():
    records = json.loads(run("list", "--json").stdout)
    assert [record["name"] for record in records] == list(datasets.REGISTRY)
    assert {record["where"] for record in records} == {"package", "generated", "missing"}


def test_fetch_prints_paths_or_one_line_of_advice(folder, monkeypatch):
    monkeypatch.delitem(ORIGINALS, "wine")  # as if no address were known
    assert run("fetch", "motorcycle").stdout == "motorcycle: nothing to fetch (package)\n"
    missing = run("fetch", "wine")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert missing.stderr.startswith("spngp: the data set 'wine' is not on this machine")
    assert str(folder / "wine.csv") in missing.stderr
    unknown = run("fetch", "iris")
    assert unknown.exit_code == 2
    assert "known are motorcycle, nonstationary" in unknown.stderr
    for result in (missing, unknown):
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["list", "fetch"])
def test_help_has_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: spngp data {command}" in result.stdout
