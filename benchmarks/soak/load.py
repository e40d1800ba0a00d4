"""One model object asked by many threads, ten thousand times, and a hundred models at once.

Answers are compared bit by bit with those of one thread. Memory is the resident set of the process, so what the
allocator keeps counts as well.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import spngp
from soak import Effort, Table
from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.kernels import Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum

SAMPLE = 0.005
THREADS = 16
MOST_GROWTH = 4.0  # MB: less than 0.4 kB a call, about one object forgotten in each
MOST_PER_MODEL = 8.0  # MB: 14 experts, whose factors of up to 240 rows are kept, are 6.5 MB

Answers = Callable[[np.ndarray], list[np.ndarray]]


def resident() -> float:
    """Megabytes in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors() -> int:
    """Open files of this process."""
    return len(os.listdir("/proc/self/fd"))


def data(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 5])
    X = rng.uniform(-2.0, 2.0, (n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.standard_normal(n)


def models(seed: int) -> dict[str, Any]:
    """Fitted models of every kind that keeps or recomputes something when it predicts."""
    X, y = data(seed)
    kernels = [SquaredExponential([1.0, 1.0, 2.0]), Matern(1.5, [1.0, 1.0, 2.0])]
    given = {"kernels": kernels, "hyperparameters": "fixed", "noise_variance": 0.05, "random_state": seed}
    living = SPNGPRegressor(**given, max_leaf_size=60).fit(X, y)
    return {
        "default": SPNGPRegressor(random_state=seed).fit(X[:60], y[:60]),
        "regions with context": SPNGPRegressor(**given, max_leaf_size=60).fit(X, y),
        "no room for factors": SPNGPRegressor(**given, max_leaf_size=60, memory_limit=2e-3).fit(X, y),
        "after updates": living.partial_fit(X[:7] + 0.05, y[:7]).forget(rows=[3, 401]),
        "GPRegressor": GPRegressor(random_state=seed).fit(X[:60], y[:60]),
        "committee": RobustBayesianCommitteeMachine(random_state=seed, hyperparameters="fixed").fit(X, y),
    }


def answers_of(model: Any) -> Answers:
    """Everything a model says of rows, as arrays."""

    def ask(X: np.ndarray) -> list[np.ndarray]:
        mixture = model.predict_dist(X)
        found = [model.predict(X), mixture.mean, mixture.var, mixture.cdf(np.zeros(len(X)))]
        found += list(mixture.interval(0.9))
        if isinstance(model, SPNGPRegressor | GPRegressor):
            found += [model.sample_y(X[:5], 2, 0), model.predict_cov(X[:4])]
        return [np.asarray(part) for part in found]

    return ask


def network_answers(seed: int) -> Answers:
    X, y = data(seed, 120)
    leaves = [Leaf(SquaredExponential(1.0), 0.1), Leaf(Matern(1.5, 1.0), 0.1)]
    posterior = Sum([Split(0, [0.0], leaves), Split(1, [0.3], leaves[::-1])]).condition(X, y)

    def ask(X: np.ndarray) -> list[np.ndarray]:
        mixture = posterior.predict_dist(X)
        return [mixture.mean, mixture.var, posterior.covariance(X[:5]), posterior.sample(X[:5], 2, 0)]

    return ask


def differing(ask: Answers, calls: int, seed: int) -> int:
    """How many of so many calls, from sixteen threads at once, differ in any bit from those of one thread."""
    rng = np.random.default_rng([seed, 6])
    batches = [rng.uniform(-2.5, 2.5, (int(n), 3)) for n in rng.integers(5, 40, 8)]
    expected = [ask(batch) for batch in batches]

    def same(number: int) -> bool:
        found = ask(batches[number % len(batches)])
        known = expected[number % len(batches)]
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, known, strict=True))

    with ThreadPoolExecutor(THREADS) as pool:
        return calls - sum(pool.map(same, range(calls)))


def growth(model: Any, calls: int) -> float:
    """Megabytes by which the process grows over so many calls, after a tenth as many to warm up."""
    X = np.random.default_rng(7).uniform(-2.0, 2.0, (20, 3))

    def call(number: int) -> None:
        model.predict(X, return_std=True)
        if number % 10 == 0:
            model.predict_dist(X).logpdf(np.zeros(20))

    for number in range(max(30, calls // 10)):
        call(number)
    gc.collect()
    before = resident()
    for number in range(calls):
        call(number)
    gc.collect()
    return resident() - before


def opened(model: SPNGPRegressor, count: int, seed: int) -> tuple[int, float, int]:
    """So many models opened at once: answers that differ, megabytes each, and files that are still open."""
    X = np.random.default_rng([seed, 8]).uniform(-2.0, 2.0, (10, 3))
    expected = answers_of(model)(X)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"model{i}.spngp" for i in range(4)]
        for path in paths:
            model.save(path)
        before, files = resident(), descriptors()
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(lambda i: spngp.load(paths[i % len(paths)]), range(count)))
            answers = list(pool.map(lambda one: answers_of(one)(X), found))
        size, left = (resident() - before) / count, descriptors() - files
        wrong = sum(not all(map(np.array_equal, one, expected)) for one in answers)
    return wrong, size, left


def run(effort: Effort) -> Table:
    fitted = models(effort.seed)
    calls = effort.count(1600, 16)
    body: list[Sequence[str]] = []
    sound = True
    asked = {**{name: answers_of(model) for name, model in fitted.items()}, "network": network_answers(effort.seed)}
    for name, ask in asked.items():
        wrong = differing(ask, calls, effort.seed)
        sound &= wrong == 0
        body.append((f"{THREADS} threads: {name}", str(calls), f"{wrong} calls differ", "0"))
    many = effort.count(10_000, 60)
    for name in ("regions with context", "no room for factors", "after updates"):
        megabytes = growth(fitted[name], many)
        sound &= megabytes <= MOST_GROWTH
        body.append((f"growth: {name}", str(many), f"{megabytes:.1f} MB", f"{MOST_GROWTH:g} MB"))
    count = effort.count(100, 4)
    wrong, size, left = opened(fitted["regions with context"], count, effort.seed)
    sound &= wrong == 0 and size <= MOST_PER_MODEL and left <= count
    body.append(("models open at once: answers that differ", str(count), str(wrong), "0"))
    body.append(("models open at once: memory of each", str(count), f"{size:.2f} MB", f"{MOST_PER_MODEL:g} MB"))
    body.append(("models open at once: files held", str(count), str(left), f"{count}"))
    return Table(
        "Load",
        ("what", "calls or models", "found", "bound"),
        body,
        sound,
        f"{THREADS} threads on {len(asked)} models: {'the same bits' if sound else 'see below'}; {many} calls, "
        f"{count} models open at once",
        (
            "A call asks for mean, variance, cdf, 90 % interval, joint samples and covariances of 5 to 39 rows. Growth "
            "is that of the resident memory of the process after a tenth as many calls to warm up.",
        ),
    )
