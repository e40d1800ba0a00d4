"""Errors that are no farther off than sound outputs may be: whether they are found, and what they do to ordinary rows.

One output in a hundred is wrong by 3 to 8 standard deviations of y, to either side, among more rows than are averaged
over settings. Data are those of the section on errors, a table of 12 inputs, half of them whole
numbers, and a function with hardly any noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from honesty_sections import Settings
from honesty_sections.errors import KINDS, compared, drawn_of, judged

SIZES, ROWS = (3.0, 5.0, 8.0), (700, 1500, 3000)


def table(X: np.ndarray) -> np.ndarray:
    X[:, ::2] = np.round(4.0 * X[:, ::2])
    return X @ np.cos(np.arange(12.0)) + 2.0 * np.tanh(3.0 * X[:, 1])


def quiet(X: np.ndarray) -> np.ndarray:
    return np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2


KINDS_NEAR = {**KINDS, "table": (table, 12, 0.3), "quiet": (quiet, 2, 0.003)}


def near(settings: Settings) -> Iterator[str]:
    """Errors that are no farther off than sound outputs may be, to both sides."""
    yield "| data | rows | size in sd | RMSE / clean | worst | 90 % holds | named | innocent |"
    yield f"|{'---|' * 8}"
    warnings.simplefilter("ignore")
    rows, sizes, seeds = [n for n in ROWS if n <= settings.most_rows], SIZES, range(settings.seeds)
    if settings.quick:
        rows, sizes, seeds = [100], SIZES[:1], range(1)
    for number, kind in enumerate(KINDS_NEAR):
        for n in rows if not settings.kinds or kind in settings.kinds else []:
            clean = scores(kind, number, n, 0.0, seeds)
            for size in sizes:
                yield compared(f"| {kind} | {n} | {size:g}", scores(kind, number, n, size, seeds), clean)


def scores(kind: str, number: int, n: int, size: float, seeds: range) -> np.ndarray:
    generators = [np.random.default_rng([seed, n, number, 5]) for seed in seeds]
    tables = [drawn_of(*KINDS_NEAR[kind], n, size, "both", rng) for rng in generators]
    return np.array([judged(one, "at once", seed) for one, seed in zip(tables, seeds, strict=True)])
