"""Sections of ``make soak``: a sample of each passes, and the page tells what was found."""

import importlib

import pytest

from soak import SECTIONS, Effort, Table
from soak.__main__ import available, main
from soak.page import Record, page, read_records, write_record


def record(passed=True, title="Load"):
    table = Table(
        title, ("what", "worst"), (("a|b", "1"),), passed, "3 cases, worst 1 (bound 2)", ("A note.",), "a.png"
    )
    return Record(table, "2026-01-31", "make soak SECTIONS=load", "spngp 0.1.0 at commit 1a2b", "3 s")


@pytest.mark.parametrize("name", available())
def test_a_sample_of_every_section_passes(name):
    section = importlib.import_module(f"soak.{name}")
    table = section.run(Effort(section.SAMPLE, seed=1))
    assert table.passed, f"{table.verdict}\n{table.rows}"
    assert table.rows
    assert all(len(row) == len(table.header) for row in table.rows)


def test_an_effort_is_a_share_of_the_cases():
    assert Effort(0.01).count(2000) == 20
    assert Effort(0.01).count(20) == 1
    assert Effort(0.01).count(20, least=5) == 5
    assert Effort(0.01).count(3, least=5) == 3


def test_records_are_kept_and_told_section_by_section(tmp_path):
    write_record("load", record(), tmp_path)
    write_record(SECTIONS[0], record(False, "Properties"), tmp_path)
    found = read_records(tmp_path)
    assert list(found) == [SECTIONS[0], "load"]
    text = page(found)
    assert "| Properties | FAILED | 3 cases, worst 1 (bound 2) | 2026-01-31 |" in text
    assert text.index("## Properties") < text.index("## Load")
    assert "**Passed.** 3 cases" in text
    assert "| a\\|b | 1 |" in text
    assert "![Load](a.png)" in text
    assert "Made on 2026-01-31 by `make soak SECTIONS=load` with spngp 0.1.0 at commit 1a2b; it took 3 s." in text


def test_a_section_that_fails_or_ends_in_an_error_is_told_by_the_exit_code(monkeypatch, capsys):
    section = importlib.import_module(f"soak.{available()[0]}")
    arguments = ["--sections", available()[0], "--dry-run"]
    monkeypatch.setattr(section, "run", lambda effort: record().table)
    assert main(arguments) == 0
    monkeypatch.setattr(section, "run", lambda effort: record(passed=False).table)
    assert main(arguments) == 1
    monkeypatch.setattr(section, "run", lambda effort: 1 / 0)
    assert main(arguments) == 1
    assert "ended in an error" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="sections must be of"):
        main(["--sections", "nonsense"])
