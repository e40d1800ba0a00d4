"""``docs/trust.md``: what each section found when it was last run. Sections may be run at different times.

A run of a section is a record, kept as JSON in ``benchmarks/results/soak``; the page is made of all records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from soak import SECTIONS, Table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "trust.md"
PYTHONPATH = os.pathsep.join(str(ROOT / name) for name in ("src", "benchmarks", "tests"))  # of processes of a section
RECORDS = ROOT / "benchmarks" / "results" / "soak"

_HEAD = """\
# Trust

Tests that take too long for every change, and what they found when they were last run. `make soak` runs them all and
writes this page; `make test` runs a small sample of each. The modules of `benchmarks/soak` say what is done.
"""


@dataclass(frozen=True)
class Record:
    """A section's table, and where it comes from."""

    table: Table
    date: str
    command: str
    origin: str
    seconds: str


def write_record(name: str, record: Record, folder: Path = RECORDS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(record), indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def read_records(folder: Path = RECORDS) -> dict[str, Record]:
    """Records of sections that there are, in their order."""
    found = {}
    for name in SECTIONS:
        path = folder / f"{name}.json"
        if path.exists():
            fields = json.loads(path.read_text(encoding="utf-8"))
            found[name] = Record(**{**fields, "table": Table(**fields["table"])})
    return found


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def page(records: Mapping[str, Record]) -> str:
    """One table of all sections, then a part for each."""
    summary = [
        [record.table.title, "passed" if record.table.passed else "FAILED", record.table.verdict, record.date]
        for record in records.values()
    ]
    lines = [_HEAD, *markdown_table(["section", "", "found", "run on"], summary)]
    for record in records.values():
        table = record.table
        lines += ["", f"## {table.title}", ""]
        lines += [f"**{'Passed' if table.passed else 'FAILED'}.** {table.verdict}", ""]
        lines += [f"Made on {record.date} by `{record.command}` with {record.origin}; it took {record.seconds}.", ""]
        lines += markdown_table(table.header, table.rows)
        for note in table.notes:
            lines += ["", note]
        if table.figure:
            lines += ["", f"![{table.title}]({table.figure})"]
    return "\n".join(lines) + "\n"
