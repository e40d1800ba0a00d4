"""Run the sections of ``benchmarks/soak``, print one table, and write ``docs/trust.md``.

    make soak
    make soak SECTIONS=independent,load
    PYTHONPATH=benchmarks:tests python -m soak --sections torture --share 0.01 --seed 7 --dry-run

Exits with 1 if a section fails.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import time
import traceback
from collections.abc import Sequence

import reporting
from soak import SECTIONS, Effort, Table
from soak.page import PAGE, RECORDS, Record, markdown_table, page, read_records, write_record
from spngp.experiments.origin import origin_text, seconds_text

_FULL_MINUTES = 40.0  # what all sections take on two cores


def available() -> list[str]:
    """Sections whose modules are there."""
    return [name for name in SECTIONS if importlib.util.find_spec(f"soak.{name}") is not None]


def found_by(name: str, effort: Effort) -> Table:
    """What a section found; one that ends in an error has failed."""
    try:
        return importlib.import_module(f"soak.{name}").run(effort)
    except Exception as error:
        traceback.print_exc()
        return Table(name.capitalize(), ("error",), ((repr(error)[:200],),), False, "ended in an error")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sections", type=reporting.names, default=available(), help=f"of {', '.join(available())}")
    parser.add_argument("--share", type=float, default=1.0, help="of all cases, between 0 and 1")
    parser.add_argument("--minutes", type=float, help=f"instead of a share: minutes of {_FULL_MINUTES:g}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=2, help="processes")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--page-only", action="store_true", help="run nothing, write the page from earlier runs")
    given = parser.parse_args(arguments)
    if unknown := set(given.sections) - set(available()):
        raise SystemExit(f"soak: sections must be of {', '.join(available())}, got {', '.join(sorted(unknown))}")
    share = given.share if given.minutes is None else min(1.0, given.minutes / _FULL_MINUTES)
    effort = Effort(share, given.seed, given.n_jobs)
    tables = {} if given.page_only else {name: _run(name, effort, given) for name in given.sections}
    if not given.dry_run:
        PAGE.write_text(page(read_records(RECORDS)), encoding="utf-8")
    rows = [[table.title, "passed" if table.passed else "FAILED", table.verdict] for table in tables.values()]
    print("\n" + "\n".join(markdown_table(["section", "", "found"], rows)), flush=True)
    return 0 if all(table.passed for table in tables.values()) else 1


def _run(name: str, effort: Effort, given: argparse.Namespace) -> Table:
    start = time.perf_counter()
    table = found_by(name, effort)
    seconds = seconds_text(time.perf_counter() - start)
    print(f"\n{table.title}: {table.verdict} ({seconds})")
    print("\n".join(markdown_table(table.header, table.rows)), flush=True)
    if not given.dry_run:
        command = f"make soak SECTIONS={name}"
        if effort != Effort(n_jobs=effort.n_jobs):
            command = f"python -m soak --sections {name} --share {effort.share:g} --seed {effort.seed}"
        write_record(name, Record(table, datetime.date.today().isoformat(), command, origin_text(), seconds))
    return table


if __name__ == "__main__":
    raise SystemExit(main())
