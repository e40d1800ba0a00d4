"""Gross errors among outputs: whether they are found, whatever their size, and what they do to ordinary rows.

Data of three kinds with a known function; one output in a hundred is wrong by ``size`` standard deviations of y, all to
one side, to both, or by sizes spread over a factor of six, or of any size from 10 to 10⁶. Errors come with the other
rows, or half of the rows, with half of the errors, are added by ``partial_fit``.

What looks like errors and is none: a peak, a step and a rare level (5 % of the rows), as told by the inputs.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from honesty_sections import Settings
from spngp import SPNGPRegressor

Function = Callable[[np.ndarray], np.ndarray]

SIZES = (10.0, 30.0, 100.0, 1e3, 1e4, 1e6)
SIDES = ("one", "both", "spread", "any")
N_TEST = 2000


def friedman(X: np.ndarray) -> np.ndarray:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def waves(X: np.ndarray) -> np.ndarray:
    return 3.0 * np.sin(8 * X[:, 0]) + np.cos(5 * X[:, 1]) * X[:, 2]


def exponential(X: np.ndarray) -> np.ndarray:
    return np.exp(3.0 * X[:, 0]) * (1.0 + X[:, 1])


KINDS = {"friedman": (friedman, 5, 1.0), "waves": (waves, 8, 0.5), "exponential": (exponential, 3, 1.0)}


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows to learn from, which of their outputs are wrong, and rows to judge by."""

    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def drawn(kind: str, n: int, size: float, side: str, seed: int) -> Table:
    return drawn_of(*KINDS[kind], n, size, side, np.random.default_rng([seed, n, sorted(KINDS).index(kind)]))


def drawn_of(
    function: Function, d: int, noise: float, n: int, size: float, side: str, rng: np.random.Generator
) -> Table:
    X = rng.uniform(0.0, 1.0, (n + N_TEST, d))
    y = function(X) + noise * rng.standard_normal(n + N_TEST)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(n, max(1, n // 100), replace=False)] = True
    sizes = np.full(int(wrong.sum()), size)
    if side == "both":
        sizes *= rng.choice([-1.0, 1.0], sizes.size)
    elif side == "spread":
        sizes *= np.exp(rng.uniform(0.0, np.log(6.0), sizes.size))
    elif side == "any":
        sizes = np.exp(rng.uniform(np.log(10.0), np.log(1e6), sizes.size)) * rng.choice([-1.0, 1.0], sizes.size)
    deviation = y[:n].std()
    y_wrong = y[:n].copy()
    y_wrong[wrong] += sizes * deviation
    return Table(X[:n], y_wrong, wrong, X[n:], y[n:])


def judged(table: Table, how: str, seed: int) -> np.ndarray:
    """RMSE, share of 90 % intervals that hold, share of errors named, share of innocent rows named."""
    model = SPNGPRegressor(random_state=seed)
    half = table.y.size // 2
    if how == "by update":
        model.fit(table.X[:half], table.y[:half]).partial_fit(table.X[half:], table.y[half:])
    else:
        model.fit(table.X, table.y)
    mixture = model.predict_dist(table.X_new)
    low, high = mixture.interval(0.9)
    named = np.zeros(table.y.size, dtype=bool)
    named[model.outliers_[:, 0]] = True
    errors = named[table.wrong].mean() if table.wrong.any() else np.nan
    rmse = np.sqrt(np.mean((mixture.mean - table.y_new) ** 2))
    holds = np.mean((low <= table.y_new) & (table.y_new <= high))
    return np.array([rmse, holds, errors, named[~table.wrong].mean()])


def sound(kind: str, n: int, seed: int) -> Table:
    """The same rows without errors."""
    return dataclasses.replace(drawn(kind, n, 0.0, "one", seed), wrong=np.zeros(n, dtype=bool))


def real(n: int, seed: int) -> dict[str, Table]:
    """A peak, a step and a rare level: far from all other outputs, and no errors."""
    tables = {}
    for name in ("peak", "step", "rare level"):
        rng = np.random.default_rng([seed, n, len(name)])
        X = rng.uniform(0.0, 1.0, (n + N_TEST, 3))
        far = np.exp(-0.5 * ((X[:, 0] - 0.4) / 0.02) ** 2)
        if name == "step":
            far = (X[:, 0] > 0.9).astype(float)
        elif name == "rare level":
            X[:, 2] = rng.random(n + N_TEST) < 0.05
            far = X[:, 2]
        y = np.sin(6 * X[:, 1]) + 30.0 * far + 0.1 * rng.standard_normal(n + N_TEST)
        tables[name] = Table(X[:n], y[:n], np.zeros(n, dtype=bool), X[n:], y[n:])
    return tables


def compared(what: str, found: np.ndarray, clean: np.ndarray) -> str:
    """A row of the table: judgements with errors, and of the same rows without."""
    ratios, shares = found[:, 0] / clean[:, 0], 100 * found[:, 1:].mean(axis=0)
    named = f"{shares[0]:.1f} | {shares[1]:.1f} % | {shares[2]:.2f} % |"
    return f"{what} | {ratios.mean():.3f} | {ratios.max():.3f} | {named}"


def errors(settings: Settings) -> Iterator[str]:
    """Gross errors among outputs, and what looks like them."""
    yield "| data | rows | errors come | side | size in sd | RMSE / clean | worst | 90 % holds | named | innocent |"
    yield f"|{'---|' * 10}"
    warnings.simplefilter("ignore")
    sizes, seeds = SIZES, range(settings.seeds)
    rows: tuple[int, ...] = tuple(n for n in (300, 3000) if n <= settings.most_rows)
    if settings.quick:
        sizes, rows, seeds = SIZES[:1], (100,), range(1)
    for kind in settings.kinds or KINDS:
        for n in rows:
            for how in ("at once", "by update"):
                before = np.array([judged(sound(kind, n, seed), how, seed) for seed in seeds])
                told, holds = 100 * before[:, 3].mean(), 100 * before[:, 1].mean()
                yield f"| {kind} | {n} | none | | | 1 | | {holds:.1f} | | {told:.2f} % |"
                for side in SIDES:
                    for size in sizes if side != "any" else sizes[:1]:
                        found = np.array([judged(drawn(kind, n, size, side, seed), how, seed) for seed in seeds])
                        shown = "10 to 1e6" if side == "any" else f"{size:g}"
                        yield compared(f"| {kind} | {n} | {how} | {side} | {shown}", found, before)
    for n in rows:
        for name in real(n, 0):
            found = np.array([judged(real(n, seed)[name], "at once", seed) for seed in seeds])
            rmse, holds, told = found[:, 0].mean(), 100 * found[:, 1].mean(), 100 * found[:, 3].mean()
            worst = found[:, 0].max()
            yield f"| {name} | {n} | none | | | RMSE {rmse:.3f} | {worst:.3f} | {holds:.1f} | | {told:.2f} % |"
