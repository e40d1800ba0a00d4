"""Whether a fine part of a function is found among smooth ones.

y = sin(4x₀)cos(2x₁) + x₂² + a fine part + noise of standard deviation exp(−1.5 + x₄), inputs uniform in [−1, 1]. RMSE
is that against the function without noise; ``without`` is what a model has that misses the fine part and nothing else.
Above .12 a fit counts as missed, in brackets where a peak or a sawtooth need not be followed that closely. Generators
from "sine everywhere" on were not looked at while the search was built.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator

import numpy as np

from honesty_sections import Settings
from spngp import SPNGPRegressor

Function = Callable[[np.ndarray, float], np.ndarray]

LIMIT = 0.12  # RMSE to the truth of a fit that missed nothing
N_TEST = 4000


def upper(wave: Function) -> Function:
    """A wave along one input where that is positive."""
    return lambda x, w: np.where(x > 0, wave(x, w), 0.0)


def sine(x: np.ndarray, w: float) -> np.ndarray:
    return np.sin(w * x)


def square(x: np.ndarray, w: float) -> np.ndarray:
    return np.sign(np.sin(w * x))


def sawtooth(x: np.ndarray, w: float) -> np.ndarray:
    return 2.0 * np.mod(w * x / (2.0 * np.pi), 1.0) - 1.0


def bump(x: np.ndarray, w: float) -> np.ndarray:
    return 3.0 * np.exp(-0.5 * ((x - 0.3) * w) ** 2)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A fine part in so many inputs; ``fine`` takes the inputs along which it may vary, as columns, and a frequency."""

    name: str
    d: int
    frequencies: tuple[float, ...]
    rows: tuple[int, ...]
    seeds: tuple[int, ...]
    fine: Callable[[np.ndarray, float], np.ndarray]
    judged: bool = True  # whether the limit holds

    def draw(self, n: int, w: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, the function, and the standard deviation of the noise."""
        X = rng.uniform(-1.0, 1.0, (n, self.d))
        smooth = np.sin(4 * X[:, 0]) * np.cos(2 * X[:, 1])
        if self.d > 4:
            return X, smooth + X[:, 2] ** 2 + self.fine(X[:, [3, 5]], w), np.exp(-1.5 + X[:, 4])
        return X, smooth + self.fine(X[:, [2, 0]], w), np.exp(-1.5 + X[:, 1])


RISING, SEEDS = (2000, 5000, 20_000), (0, 1, 2, 3)
PROBLEMS = [
    Problem("sine", 8, (10.0, 15.0, 25.0), RISING, SEEDS, lambda Z, w: upper(sine)(Z[:, 0], w)),
    Problem("two sines", 8, (15.0,), RISING, SEEDS[:2], lambda Z, w: upper(sine)(Z, w).sum(axis=1)),
    Problem("square wave", 8, (10.0, 15.0, 25.0), RISING[:2], SEEDS, lambda Z, w: upper(square)(Z[:, 0], w)),
    Problem("square wave", 8, (15.0, 25.0), RISING[2:], SEEDS[:2], lambda Z, w: upper(square)(Z[:, 0], w)),
    Problem("two square waves", 8, (15.0,), RISING[:2], SEEDS[:2], lambda Z, w: upper(square)(Z, w).sum(axis=1)),
    Problem("sine", 3, (10.0, 25.0), RISING[:2], SEEDS[:2], lambda Z, w: upper(sine)(Z[:, 0], w)),
    Problem("sine", 15, (10.0, 25.0), RISING[:2], SEEDS[:2], lambda Z, w: upper(sine)(Z[:, 0], w)),
    Problem("square wave", 3, (10.0, 25.0), RISING[:1], SEEDS[:2], lambda Z, w: upper(square)(Z[:, 0], w)),
    Problem("square wave", 15, (10.0, 25.0), RISING[:1], SEEDS[:2], lambda Z, w: upper(square)(Z[:, 0], w)),
    # generators that the search was not built with
    Problem("sine everywhere", 8, (20.0,), RISING[:2], (10, 11), lambda Z, w: sine(Z[:, 0], w)),
    Problem("bump", 8, (20.0,), RISING[:2], (10, 11), lambda Z, w: bump(Z[:, 0], w), judged=False),
    Problem("sawtooth", 8, (12.0,), RISING[:2], (10, 11), lambda Z, w: sawtooth(Z[:, 0], w), judged=False),
    Problem("sine times line", 8, (15.0,), RISING[:2], (10, 11), lambda Z, w: 1.5 * sine(Z[:, 0], w) * Z[:, 1]),
]
QUICK = [dataclasses.replace(p, frequencies=p.frequencies[-1:], rows=p.rows[:1], seeds=p.seeds[:1]) for p in PROBLEMS]


def fitted(problem: Problem, n: int, w: float, seed: int, n_jobs: int | None) -> tuple[float, float, float]:
    """RMSE to the truth, nats a row lost against the truth, and seconds of CPU to fit."""
    rng = np.random.default_rng([seed, n, int(w), problem.d])
    X, function, std = problem.draw(n, w, rng)
    y = function + std * rng.standard_normal(n)
    X_test, function, std = problem.draw(N_TEST, w, rng)
    y_test = function + std * rng.standard_normal(N_TEST)
    start = time.process_time()
    model = SPNGPRegressor(random_state=seed, n_jobs=n_jobs).fit(X, y)
    seconds = time.process_time() - start
    mixture = model.predict_dist(X_test)
    truth = np.mean(0.5 * np.log(2 * np.pi * std**2) + 0.5 * ((y_test - function) / std) ** 2)
    lost = -float(np.mean(mixture.logpdf(y_test))) - float(truth)
    return float(np.sqrt(np.mean((mixture.mean - function) ** 2))), lost, seconds


def search(settings: Settings) -> Iterator[str]:
    """Fine structure along one input or two, among smooth structure along others."""
    yield "| fine part | inputs | w | rows | fits | missed | worst RMSE | mean RMSE | without | nats lost | CPU s |"
    yield f"|{'---|' * 11}"
    for problem in QUICK if settings.quick else PROBLEMS:
        for w in problem.frequencies:
            for n in problem.rows:
                figures = np.array([fitted(problem, n, w, seed, settings.n_jobs) for seed in problem.seeds])
                rmse, lost, seconds = figures.T
                size = problem.fine(np.random.default_rng(0).uniform(-1.0, 1.0, (N_TEST, 2)), w).std()
                missed = f"{int((rmse > LIMIT).sum())}" if problem.judged else f"({int((rmse > LIMIT).sum())})"
                yield (
                    f"| {problem.name} | {problem.d} | {w:g} | {n} | {rmse.size} | {missed} | {rmse.max():.3f} | "
                    f"{rmse.mean():.3f} | {size:.2f} | {lost.mean():.3f} | {seconds.mean():.1f} |"
                )
