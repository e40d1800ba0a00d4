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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import spngp
from soak import Effort, Table
from soak.cases import each
from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.kernels import Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum

SAMPLE = 0.002
THREADS = 16
MOST_GROWTH = 4.0  # MB: less than 0.4 kB a call, about one object forgotten in each
MOST_PER_MODEL = 8.0  # MB: 14 experts, whose factors of up to 240 rows are kept, are 6.5 MB

_CALLS_AT_ONCE = 480  # of each model, from all threads together
# One after the other; what grows by an object in each of 2,000 calls is seen as well.
_CALLS = {"regions with context": 10_000, "no room for factors": 2_000, "after updates": 2_000}

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


MODELS = (
    "default",
    "regions with context",
    "no room for factors",
    "after updates",
    "GPRegressor",
    "committee",
)  # of every kind that keeps or recomputes something when it predicts


def fitted(name: str, seed: int) -> Any:
    """One of the models."""
    X, y = data(seed)
    if name == "default":
        return SPNGPRegressor(random_state=seed).fit(X[:60], y[:60])
    if name == "GPRegressor":
        return GPRegressor(random_state=seed).fit(X[:60], y[:60])
    if name == "committee":
        return RobustBayesianCommitteeMachine(random_state=seed, hyperparameters="fixed").fit(X, y)
    kernels = [SquaredExponential([1.0, 1.0, 2.0]), Matern(1.5, [1.0, 1.0, 2.0])]
    limit = 2e-3 if name == "no room for factors" else None
    given = {"hyperparameters": "fixed", "noise_variance": 0.05, "random_state": seed, "memory_limit": limit}
    model = SPNGPRegressor(kernels, max_leaf_size=60, **given).fit(X, y)
    return model.partial_fit(X[:7] + 0.05, y[:7]).forget(rows=[3, 401]) if name == "after updates" else model


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


Row = tuple[Sequence[str], bool]  # cells, and whether the bound is kept


def same_bits(name: str, effort: Effort) -> list[Row]:
    calls = effort.count(_CALLS_AT_ONCE, 16)
    ask = network_answers(effort.seed) if name == "network" else answers_of(fitted(name, effort.seed))
    wrong = differing(ask, calls, effort.seed)
    return [((f"{THREADS} threads: {name}", str(calls), f"{wrong} calls differ", "0"), wrong == 0)]


def no_growth(name: str, effort: Effort) -> list[Row]:
    calls = effort.count(_CALLS[name], 60)
    megabytes = growth(fitted(name, effort.seed), calls)
    cells = (f"growth: {name}", str(calls), f"{megabytes:.1f} MB", f"{MOST_GROWTH:g} MB")
    return [(cells, megabytes <= MOST_GROWTH)]


def many_open(name: str, effort: Effort) -> list[Row]:
    count = effort.count(100, 4)
    wrong, size, left = opened(fitted(name, effort.seed), count, effort.seed)
    what, models = "models open at once", str(count)
    return [
        ((f"{what}: answers that differ", models, str(wrong), "0"), wrong == 0),
        ((f"{what}: memory of each", models, f"{size:.2f} MB", f"{MOST_PER_MODEL:g} MB"), size <= MOST_PER_MODEL),
        ((f"{what}: files held", models, str(left), models), left <= count),
    ]


PARTS = (
    *(partial(same_bits, name) for name in (*MODELS, "network")),
    *(partial(no_growth, name) for name in _CALLS),
    partial(many_open, "regions with context"),
)


def part(effort: Effort, number: int) -> list[Row]:
    return PARTS[number](effort)


def run(effort: Effort) -> Table:
    rows = [row for found in each(partial(part, effort), len(PARTS), effort.n_jobs, 1) for row in found]
    sound = all(kept for _, kept in rows)
    return Table(
        "Load",
        ("what", "calls or models", "found", "bound"),
        [cells for cells, _ in rows],
        sound,
        f"{THREADS} threads on {len(MODELS) + 1} models: {'the same bits' if sound else 'see below'}; "
        f"{effort.count(max(_CALLS.values()), 60)} calls, {effort.count(100, 4)} models open at once",
        (
            "A call asks for mean, variance, cdf, 90 % interval, joint samples and covariances of 5 to 39 rows. Growth "
            "is that of the resident memory of the process after a tenth as many calls to warm up.",
        ),
    )
