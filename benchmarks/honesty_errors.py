"""Gross errors among outputs: whether they are found, whatever their size, and what they do to ordinary rows.

Data of three kinds with a known function; one output in a hundred is wrong by ``size`` standard deviations of y, all to
one side, to both, or by sizes spread over a factor of six. Errors come with the other rows, or half of the rows, with
half of the errors, are added by ``partial_fit``. Beside it, what looks like errors and is none: a peak, a step and a rare
level (5 % of the rows), as told by the inputs.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from spngp import SPNGPRegressor

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
    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def drawn(kind: str, n: int, size: float, side: str, seed: int) -> Table:
    function, d, noise = KINDS[kind]
    rng = np.random.default_rng([seed, n, sorted(KINDS).index(kind)])
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
    if how == "update":
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


def clean(table: Table, kind: str, n: int, seed: int) -> Table:
    """The same rows without errors."""
    again = drawn(kind, n, 0.0, "one", seed)
    return dataclasses.replace(again, wrong=np.zeros(n, dtype=bool))


def errors(
    kinds: Sequence[str], rows: Sequence[int], sizes: Sequence[float], hows: Sequence[str], seeds: int
) -> Iterator[str]:
    yield "| data | rows | errors come | side | size in sd | RMSE / clean | worst | 90 % holds | named | innocent named |"
    yield f"|{'---|' * 10}"
    warnings.simplefilter("ignore")
    for kind in kinds:
        for n in rows:
            for how in hows:
                before = [judged(clean(drawn(kind, n, 1.0, "one", s), kind, n, s), how, s) for s in range(seeds)]
                worst_clean = np.array(before)
                yield (
                    f"| {kind} | {n} | none | | | 1 | | {100 * worst_clean[:, 1].mean():.1f} | | "
                    f"{100 * worst_clean[:, 3].mean():.2f} % |"
                )
                for side in SIDES:
                    for size in sizes if side != "any" else sizes[:1]:
                        found = np.array([judged(drawn(kind, n, size, side, s), how, s) for s in range(seeds)])
                        ratios = found[:, 0] / worst_clean[:, 0]
                        yield (
                            f"| {kind} | {n} | {how} | {side} | {size:g} | {ratios.mean():.3f} | {ratios.max():.3f} | "
                            f"{100 * found[:, 1].mean():.1f} | {100 * found[:, 2].mean():.1f} % | "
                            f"{100 * found[:, 3].mean():.2f} % |"
                        )


if __name__ == "__main__":
    import sys

    kinds, rows, sizes, hows, seeds = sys.argv[1:6]
    kinds = list(KINDS) if kinds == "all" else kinds.split(",")
    sizes = SIZES if sizes == "all" else [float(s) for s in sizes.split(",")]
    for line in errors(kinds, [int(r) for r in rows.split(",")], sizes, hows.split(","), int(seeds)):
        print(line, flush=True)
