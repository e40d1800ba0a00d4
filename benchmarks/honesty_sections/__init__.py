"""Sections of ``benchmarks/honesty.py``: each draws data whose truth is known, and tells what a default model misses.

A section is a function of ``Settings`` that yields lines of Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How much is run.

    Attributes
    ----------
    quick : bool
        A few fits of each kind, in a minute or two.
    n_jobs : int or None
        Threads of a fit; where sets are many and small, processes.
    sets : int
        Data sets of each kind and shape in the section on coverage.
    seeds : int
        Seeds in other sections.
    most_rows : int
        Larger sets are left out of the sections on coverage and errors.
    shapes : tuple of (int, int)
        Rows and inputs in the section on coverage; all of its shapes if empty.
    models, kinds : tuple of str
        In the section on coverage, kinds also in that on errors; all models and kinds of data if empty.
    """

    quick: bool = False
    n_jobs: int | None = None
    sets: int = 100
    seeds: int = 3
    most_rows: int = 10_000
    shapes: tuple[tuple[int, int], ...] = ()
    models: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
