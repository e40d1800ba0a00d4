"""What every benchmark does alike: read its arguments, print a table, and say where its figures come from."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from spngp.experiments.origin import origin_text, seconds_text


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the script's docstring, as it stands."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def names(text: str) -> list[str]:
    """An argument that is a list of names with commas between them."""
    return text.split(",")


def counts(text: str) -> list[int]:
    """An argument that is a list of whole numbers with commas between them."""
    return [int(part) for part in text.split(",")]


def print_head(columns: Sequence[str]) -> None:
    """The head of a Markdown table."""
    print_row(columns)
    print(f"|{'---|' * len(columns)}", flush=True)


def print_row(cells: Sequence[object]) -> None:
    """A row of a Markdown table, at once, so that a long run can be watched."""
    print(f"| {' | '.join(map(shown, cells))} |", flush=True)


def shown(value: object) -> str:
    """A cell: four digits of a number."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a benchmark, let it be followed by the command, the code, the machine and the time, and end the process."""
    start = time.perf_counter()
    code = main()
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    took = seconds_text(time.perf_counter() - start)
    print(f"\nMade by `{command}` with {origin_text()}; it took {took}.", flush=True)
    sys.exit(code)
