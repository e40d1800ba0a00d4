"""Noise that changes with the input: what a default model loses against the truth, and where it does not notice.

step
    One input, noise .02 left of .5 and 1 right of it; nats a row lost against the true density within .1 of it.
growing
    One input, 400 rows, std of the noise from .05 to 2.05; share of 90 % intervals that hold in each fifth.
motorcycle
    Ten folds, drawn eight times, since 133 rows leave much to how they are dealt; NLPD and RMSE, beside one GP.
series
    The non-stationary series; correlation of the logs of learnt and true noise, largest jump of the log std between
    neighbouring points of a fine grid. Beside it, how far anybody can get: squares of the true noise, which no model
    knows, smoothed by a Gaussian of the best width, over 50 seeds.
inputs
    Eight inputs, noise that depends on the fifth alone; nats a row lost against the true density.
odd
    Inputs with hardly any values, 300 inputs, half without noise: finite, and how long it took.

All rows that are judged are new ones. Figures are means over seeds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from scipy.ndimage import gaussian_filter1d

from honesty_sections import Settings
from spngp import GPRegressor, SPNGPRegressor, datasets

FOLDS, DEALT = 10, 8  # of the motorcycle data, and how often its rows are dealt into folds

Generator = np.random.Generator


def log_normal(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    return -0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)


def quick_fit(model: SPNGPRegressor, X: np.ndarray, y: np.ndarray) -> tuple[SPNGPRegressor, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, time.process_time() - start


def step(seeds: int) -> Iterator[str]:
    def draw(n: int, rng: Generator) -> tuple[np.ndarray, ...]:
        x = rng.uniform(0, 1, n)
        mean, std = np.sin(6 * x), np.where(x > 0.5, 1.0, 0.02)
        return x[:, np.newaxis], mean + std * rng.standard_normal(n), mean, std

    for rows, leaf in ((600, 500), (600, 100), (3000, 500)):
        lost, elsewhere, seconds = [], [], []
        for seed in range(seeds):
            rng = np.random.default_rng([11, seed])
            X, y, _, _ = draw(rows, rng)
            X_new, y_new, mean, std = draw(4000, rng)
            model, took = quick_fit(SPNGPRegressor(max_leaf_size=leaf, random_state=seed), X, y)
            loss = log_normal(y_new, mean, std) - model.predict_dist(X_new).logpdf(y_new)
            near = np.abs(X_new[:, 0] - 0.5) < 0.1
            lost.append(loss[near].mean())
            elsewhere.append(loss[~near].mean())
            seconds.append(took)
        yield (
            f"{rows} rows, leaves of {leaf}: nats lost near the step {np.mean(lost):.3f} (worst {max(lost):.3f}), "
            f"elsewhere {np.mean(elsewhere):.3f}; fit {np.mean(seconds):.1f} s"
        )


def growing(seeds: int) -> Iterator[str]:
    shares, lost, seconds = [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng([12, seed])

        def draw(n: int, rng: Generator = rng) -> tuple[np.ndarray, ...]:
            x = rng.uniform(0, 1, n)
            mean, std = np.sin(6 * x), 0.05 + 2 * x
            return x[:, np.newaxis], mean + std * rng.standard_normal(n), mean, std

        X, y, _, _ = draw(400)
        X_new, y_new, mean, std = draw(5000)
        model, took = quick_fit(SPNGPRegressor(random_state=seed), X, y)
        mixture = model.predict_dist(X_new)
        low, high = mixture.interval(0.9)
        holds, fifth = (low <= y_new) & (y_new <= high), (5 * X_new[:, 0]).astype(int)
        shares.append([holds[fifth == i].mean() for i in range(5)])
        lost.append((log_normal(y_new, mean, std) - mixture.logpdf(y_new)).mean())
        seconds.append(took)
    text = ", ".join(f"{100 * share:.1f}" for share in np.mean(shares, axis=0))
    worst = np.abs(np.array(shares) - 0.9).max()
    yield (
        f"90 % intervals hold {text} % by fifths (single fits off by up to {100 * worst:.1f} points); "
        f"{np.mean(lost):.3f} nats a row lost; fit {np.mean(seconds):.1f} s"
    )


def motorcycle(seeds: int) -> Iterator[str]:
    data = datasets.load("motorcycle")
    X, y = data.X, data.Y[:, 0]
    models: dict[str, Callable[[int], SPNGPRegressor | GPRegressor]] = {
        "default": lambda seed: SPNGPRegressor(random_state=seed),
        "one GP": lambda seed: GPRegressor(random_state=seed),
    }
    for name, make in models.items():
        densities, errors, start = [], [], time.process_time()
        for seed in range(DEALT if seeds > 1 else 1):
            order = np.random.default_rng(seed).permutation(len(y))
            for test in np.array_split(order, FOLDS):
                train = np.setdiff1d(order, test)
                mixture = make(seed).fit(X[train], y[train]).predict_dist(X[test])
                densities.append(mixture.logpdf(y[test]))
                errors.append(mixture.mean - y[test])
        dealt = np.concatenate(densities).reshape(-1, len(y)).mean(axis=1)  # of every time
        rmse = np.sqrt(np.square(np.concatenate(errors)).mean())
        yield (
            f"{name}: NLPD {-dealt.mean():.3f} ({-dealt.max():.3f} to {-dealt.min():.3f}), RMSE {rmse:.2f}; "
            f"{(time.process_time() - start) / len(errors):.2f} s a fold"
        )


def series(seeds: int) -> Iterator[str]:
    from spngp.datasets import synthetic

    for seed in range(seeds):
        data = synthetic.nonstationary(random_state=seed)
        model, took = quick_fit(SPNGPRegressor(random_state=seed), data.X, data.Y[:, 0])
        learnt = np.log(model.predict_noise(data.X))
        grid = np.linspace(data.X.min(), data.X.max(), 4000)[:, np.newaxis]
        jump = np.abs(np.diff(np.log(model.predict(grid, return_std=True)[1]))).max()
        correlation = np.corrcoef(learnt, np.log(data.noise_std[:, 0]))[0, 1]
        yield f"seed {seed}: log-correlation {correlation:.3f}, largest jump of log std {jump:.2f}; fit {took:.1f} s"
    found: dict[int, list[float]] = {width: [] for width in (10, 15, 20, 25)}  # rows
    for seed in range(50):
        data = synthetic.nonstationary(random_state=seed)
        true, noise = np.log(data.noise_std[:, 0]), data.Y[:, 0] - data.function[:, 0]
        for width, correlations in found.items():
            learnt = np.log(gaussian_filter1d(noise**2, width, mode="nearest"))
            correlations.append(np.corrcoef(learnt, true)[0, 1])
    best = max(found.values(), key=lambda correlations: float(np.mean(correlations)))
    least = np.quantile(best, 0.1)
    yield f"true noise, smoothed: log-correlation {np.mean(best):.3f}, a tenth of the seeds below {least:.3f}"


def inputs(seeds: int) -> Iterator[str]:
    def draw(n: int, rng: Generator) -> tuple[np.ndarray, ...]:
        X = rng.uniform(-1, 1, (n, 8))
        mean = np.sin(4 * X[:, 0]) * np.cos(2 * X[:, 1]) + X[:, 2] ** 2
        std = np.exp(-1.5 + X[:, 4])
        return X, mean + std * rng.standard_normal(n), mean, std

    for rows in (500, 1000, 5000):
        lost, errors, seconds = [], [], []
        for seed in range(seeds):
            rng = np.random.default_rng([13, seed])
            X, y, _, _ = draw(rows, rng)
            X_new, y_new, mean, std = draw(2000, rng)
            model, took = quick_fit(SPNGPRegressor(random_state=seed), X, y)
            mixture = model.predict_dist(X_new)
            lost.append((log_normal(y_new, mean, std) - mixture.logpdf(y_new)).mean())
            errors.append(np.sqrt(np.mean((mixture.mean - mean) ** 2)))
            seconds.append(took)
        yield (
            f"{rows} rows: {np.mean(lost):.3f} nats a row lost, RMSE to the truth {np.mean(errors):.3f}; "
            f"fit {np.mean(seconds):.1f} s"
        )


def odd(seeds: int) -> Iterator[str]:
    rng = np.random.default_rng(14)
    n = 300
    sets = {
        "two distinct values": (rng.integers(0, 2, (n, 1)), rng.standard_normal(n)),
        "all rows equal but one": (np.eye(n)[:, :1], rng.standard_normal(n)),
        "an integer grid": (rng.integers(0, 12, (n, 2)), rng.standard_normal(n)),
        "300 inputs": (rng.standard_normal((n, 300)), rng.standard_normal(n)),
    }
    x = np.sort(rng.uniform(0, 1, n))
    sets["no noise in one half"] = (x[:, np.newaxis], np.sin(6 * x) + np.where(x > 0.5, rng.standard_normal(n), 0.0))
    for name, (X, y) in sets.items():
        model, took = quick_fit(SPNGPRegressor(random_state=0), X.astype(float), y)
        mixture = model.predict_dist(X.astype(float))
        sound = np.isfinite(mixture.logpdf(y)).all() and (mixture.std > 0).all()
        yield f"{name}: {'finite' if sound else 'NOT SOUND'}; {len(model.regions_)} experts, fit {took:.1f} s"


PARTS = (step, growing, motorcycle, series, inputs, odd)


def noise(settings: Settings) -> Iterator[str]:
    """Noise that changes with the input."""
    for part in PARTS[2:3] if settings.quick else PARTS:
        for line in part(1 if settings.quick else settings.seeds):
            yield f"- {part.__name__}: {line}"
