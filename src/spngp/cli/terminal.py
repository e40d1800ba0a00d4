"""What the commands print: tables for people, JSON for machines; results on standard output, the rest on error.

All of it may hold names from data and arguments, so control characters are made visible here.

Rich leaves colours out where the stream is no terminal or ``NO_COLOR`` is set.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spngp._support.progress import clear_line
from spngp.cli.characters import escaped_json, visible


def _console() -> Console:
    """Standard output, for results. Names from data go in as plain text: markup and emoji codes are off."""
    return Console(markup=False, highlight=False, emoji=False)


def note(text: str) -> None:
    """A line on standard error: for people, and out of the way of what is piped."""
    if sys.stderr is not None:  # closed: nobody listens
        clear_line()
        sys.stderr.write(f"{visible(text)}\n")


class ClosedOutput(io.TextIOBase):
    """In place of a standard output that is closed, which Python calls None: whatever is printed is an error."""

    def write(self, text: str) -> int:
        """Raise the error."""
        raise ValueError("standard output is closed; give a file or /dev/null")


def check_printing() -> None:
    """Raise an error now, before long work, if nothing can be printed at its end."""
    sys.stdout.write("")


def flush_output() -> None:
    """Send what was printed on its way, and raise an error that names standard output if that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again at exit, and complain; what could not be sent goes nowhere instead
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # head, say, has read enough: as Typer does, leave without a word
            sys.exit(1)
        raise OSError(error.errno, error.strerror, "standard output") from None


def print_line(text: str = "", *, style: str = "", wrap: bool = False) -> None:
    """A line on standard output; ``wrap`` breaks it at the terminal's width, which would cut a path in two."""
    _console().print(Text(visible(text), style=style), soft_wrap=not wrap)


def print_json(value: Any) -> None:
    """One JSON document on standard output; numbers that JSON does not know become null."""
    sys.stdout.write(escaped_json(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], text_columns: int = 1) -> None:
    """A table whose first ``text_columns`` columns are text and the rest numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(Text(visible(column)), justify="left" if i < text_columns else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))
    _print_titled(title, table)


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Names and values, one a line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(visible(name)), Text(shown(value)))
    _print_titled(title, table)


def _print_titled(title: str, table: Table) -> None:
    print_line()
    print_line(title, style="bold", wrap=True)
    _console().print(table)


def print_bars(title: str, labels: Sequence[str], shares: Sequence[float]) -> None:
    """A bar for each share, drawn with characters."""
    longest = max([*shares, 1e-12])
    rows = zip(labels, shares, strict=True)
    print_line()
    print_line(title, style="bold", wrap=True)
    for label, share in rows:
        print_line(f"  {label:>8} {share:6.1%} {'█' * round(40 * share / longest)}")


def shortened(names: Sequence[str], most: int = 6) -> str:
    """The first names of a list, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def megabytes(size: int) -> str:
    """A file's size as people read it."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def shown(value: Any) -> str:
    """A value as people read it: four significant digits, dashes for what is missing, no control characters."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, float | int):
        return visible(str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return _plain(value.tolist())
    return [_plain(item) for item in value]
