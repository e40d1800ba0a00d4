"""Tests that take too long for ``make test``: each section of ``make soak`` is a module of this package.

A section is a module named in ``SECTIONS`` with a function ``run(effort: Effort) -> Table``. It draws its cases from
``effort.seed`` alone, so that a failure can be seen again, and judges itself: ``Table.passed`` decides about the exit
code of ``make soak``. ``make test`` runs each section with the share of its cases that its constant ``SAMPLE`` says
(``tests/benchmarks/test_soak.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SECTIONS = (
    "properties",
    "torture",
    "independent",
    "calibration",
    "load",
    "files",
    "faults",
    "mutants",
    "posture",
    "suite",
)


@dataclass(frozen=True)
class Effort:
    """How much is run.

    Attributes
    ----------
    share : float
        Of the full number of cases: one for all of them.
    seed : int
        What the cases are drawn from.
    n_jobs : int
        Processes that a section may use.
    """

    share: float = 1.0
    seed: int = 0
    n_jobs: int = 1

    def count(self, full: int, least: int = 1) -> int:
        """So many of this number of cases, at least the second.

        Examples
        --------
        >>> Effort(0.01).count(2000), Effort(0.01).count(20)
        (20, 1)
        """
        return max(min(least, full), round(self.share * full))


@dataclass(frozen=True)
class Table:
    """What a section found.

    Attributes
    ----------
    title : str
    header, rows : sequence of str
        A table of at most some thirty rows; cells are texts.
    passed : bool
    verdict : str
        One line: how many cases, the worst figure, the bound that it is held to.
    notes : sequence of str
        Paragraphs below the table: what the columns mean, what the bound means, what was not done.
    figure : str, optional
        A picture below the notes: its path from the page.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    passed: bool
    verdict: str
    notes: Sequence[str] = ()
    figure: str | None = None
