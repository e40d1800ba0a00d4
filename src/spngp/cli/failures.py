"""From an exception to one line for people and an exit code for scripts.

2: the request or the data were wrong. 1: a check did not hold, or something failed that no input explains.
130: interrupted. 143: terminated by SIGTERM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from spngp.cli.characters import visible

# Which extra brings a package that the core does without.
EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "pyarrow": "cli",
    "matplotlib": "plot",
    "plotly": "report",
    "dask": "dask",
    "distributed": "dask",
}

_LONGEST, _END = 900, 200  # characters of a message, and of its end if it is longer


class CheckFailed(Exception):  # noqa: N818 - it is an outcome, not an error of the program
    """A command ran to its end and what it was to check does not hold: exit code 1."""


class Terminated(BaseException):
    """SIGTERM came. No code handles it, so everything is unwound and half-written files are removed."""


@contextmanager
def remedies_as_options(source: str) -> Iterator[None]:
    """Errors about a column of a table say where it stands and which option leaves it out."""
    try:
        yield
    except ValueError as error:
        found = re.match(r"column '([^']*)' .*leave it out", str(error))
        if found is None:
            raise
        raise ValueError(f"{source}: {error} (--id {found[1]})") from None


def describe(error: BaseException) -> tuple[str, int]:
    """One line that says what happened, and the exit code."""
    if isinstance(error, CheckFailed):
        return _one_line(str(error)), 1
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, Terminated):
        return "terminated", 143
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        if package in EXTRAS:
            return f"this needs {package}, which is not installed: pip install 'spngp[{EXTRAS[package]}]'", 1
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _one_line(f"{where}{error.strerror}"), 2
    if isinstance(error, ValueError | OSError):  # our own messages say it all
        return _one_line(str(error)), 2
    if isinstance(error, MemoryError):
        return "out of memory", 1
    return _one_line(f"unexpected {type(error).__name__}: {error} (--verbose shows where)"), 1


def _one_line(text: str) -> str:
    """Text in one line that a person reads: names and values of a file, which it may show, may have any length."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _END]} … {line[-_END:]}"
