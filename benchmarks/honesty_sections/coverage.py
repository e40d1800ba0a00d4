"""How often intervals hold on small sets: data of seven kinds, from ten rows on, each set drawn anew.

Kinds of data, d inputs (uniform in every other set, Gaussian in the others), noise std drawn between .1 and 1 of the
function's:

gp
    A draw from a Gaussian process (squared exponential or Matérn-3/2), half of the inputs relevant.
heteroscedastic
    The same with a noise std that grows tenfold along one input.
student
    The same with noise of Student's t with 3 degrees of freedom.
gross
    The same with 2 % of the outputs (at least one) moved by 10 to 1,000 standard deviations; rows judged are sound.
noise
    Nothing but noise. Up to 20 rows ten times as many sets are drawn (from a hundred on): what is lost there is lost
    in one set of a hundred, whose rows lie on a curve by chance.
step
    Two levels, with a border across one input.
peak
    A narrow peak of 5 noise stds and more, in one or two inputs.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from honesty_sections import Settings
from spngp import SPNGPRegressor

LEVELS = (0.5, 0.8, 0.95)
N_TEST = 200
KINDS = ("gp", "heteroscedastic", "student", "gross", "noise", "step", "peak")
SHAPES = ((10, 1), (10, 2), (20, 1), (20, 2), (50, 1), (50, 2), (50, 5), (50, 10), (100, 5), (100, 10), (200, 10))
_RARE, _FEWEST, _JUDGED = 10, 20, 100  # times as many sets of pure noise, up to so many rows, where sets are that many


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Rows to learn from and rows to judge by; ``deviation`` is that of new outputs without errors."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    deviation: float


def gaussian_process(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw of a function with standard deviation one at these rows."""
    d = X.shape[1]
    relevant = rng.permutation(d)[: max(1, (d + 1) // 2)]
    scales = X.std(axis=0)[relevant] * np.sqrt(relevant.size) * np.exp(rng.normal(0.0, 0.5, relevant.size))
    Z = X[:, relevant] / scales
    r = np.sqrt(np.maximum(((Z[:, np.newaxis] - Z) ** 2).sum(axis=2), 0.0))
    smooth = rng.random() < 0.5
    K = np.exp(-0.5 * r**2) if smooth else (1.0 + np.sqrt(3.0) * r) * np.exp(-np.sqrt(3.0) * r)
    return np.linalg.cholesky(K + 1e-8 * np.eye(len(X))) @ rng.standard_normal(len(X))


def draw(kind: str, n: int, d: int, seed: int) -> Drawn:
    rng = np.random.default_rng([seed, n, d, KINDS.index(kind)])
    total = n + N_TEST
    X = rng.uniform(-1.0, 1.0, (total, d)) if seed % 2 else rng.standard_normal((total, d))
    std = np.full(total, np.exp(rng.uniform(np.log(0.1), 0.0)))
    noise = rng.standard_normal(total)
    if kind == "noise":
        function = np.zeros(total)
    elif kind == "step":
        function = np.where(X[:, 0] > np.quantile(X[:, 0], rng.uniform(0.25, 0.75)), 1.0, -1.0)
    elif kind == "peak":
        centre = X[rng.integers(total), : min(d, 2)]
        width = rng.uniform(0.1, 0.3) * X.std(axis=0)[: min(d, 2)] * min(d, 2)
        function = (5.0 + 5.0 * rng.random()) * np.exp(-0.5 * (((X[:, : min(d, 2)] - centre) / width) ** 2).sum(axis=1))
        std[:] = 1.0
    else:
        function = gaussian_process(X, rng)
    if kind == "heteroscedastic":
        unit = (X[:, -1] - X[:, -1].min()) / np.ptp(X[:, -1])
        std = std * 10.0 ** (unit - 0.5)
    if kind == "student":
        noise = rng.standard_t(3, total)
    y = function + std * noise
    deviation = float(y[n:].std())
    if kind == "gross":
        wrong = rng.choice(n, max(1, round(0.02 * n)), replace=False)
        sizes = np.exp(rng.uniform(np.log(10.0), np.log(1000.0), wrong.size))
        y[wrong] += rng.choice([-1.0, 1.0], wrong.size) * sizes
    return Drawn(X[:n], y[:n], X[n:], y[n:], deviation)


def default(data: Drawn, seed: int) -> tuple[np.ndarray, ...]:
    """Log densities, squared errors, and which intervals hold, of ``SPNGPRegressor()``."""
    mixture = SPNGPRegressor(random_state=seed).fit(data.X, data.y).predict_dist(data.X_new)
    below = mixture.cdf(data.y_new)  # an interval holds what lies between its two quantiles, which take longer to find
    holds = [np.abs(below - 0.5) <= 0.5 * level for level in LEVELS]
    return mixture.logpdf(data.y_new), (mixture.mean - data.y_new) ** 2, np.array(holds)


def scikit_learn(data: Drawn, seed: int) -> tuple[np.ndarray, ...]:
    """The same of scikit-learn's GP with one length-scale per input and learnt noise, inputs standardised."""
    from scipy.stats import norm

    kernel = ConstantKernel() * RBF(np.ones(data.X.shape[1]), (1e-2, 1e3)) + WhiteKernel(0.1, (1e-4, 4.0))
    centre, scale = data.X.mean(axis=0), data.X.std(axis=0)
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed)
    mean, std = model.fit((data.X - centre) / scale, data.y).predict((data.X_new - centre) / scale, return_std=True)
    holds = [_within(data.y_new, *norm.interval(level, mean, std)) for level in LEVELS]
    return norm.logpdf(data.y_new, mean, std), (mean - data.y_new) ** 2, np.array(holds)


def constant(data: Drawn, seed: int) -> tuple[np.ndarray, ...]:
    """The same of Student's t around the mean: all that n outputs say about the next if inputs say nothing.

    It knows that noise is Gaussian and that inputs tell nothing, so of pure noise no model can know more.
    """
    from scipy.stats import t

    n = data.y.size
    known = t(n - 1, data.y.mean(), data.y.std(ddof=1) * np.sqrt(1.0 + 1.0 / n))
    holds = [_within(data.y_new, *known.interval(level)) for level in LEVELS]
    return known.logpdf(data.y_new), (known.mean() - data.y_new) ** 2, np.array(holds)


def _within(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return (low <= y) & (y <= high)


MODELS: dict[str, Callable[[Drawn, int], tuple[np.ndarray, ...]]] = {
    "default": default,
    "scikit-learn": scikit_learn,
    "constant": constant,
}


def judged(kind: str, n: int, d: int, models: Sequence[str], seed: int) -> np.ndarray:
    """One row per model: NLPD and RMSE over the deviation of y, and the share of rows that each interval holds."""
    warnings.simplefilter("ignore")
    data = draw(kind, n, d, seed)
    rows = []
    for name in models:
        log_density, squares, holds = MODELS[name](data, seed)
        # in units of the outputs' deviation, so that sets can be averaged
        nlpd = -log_density.mean() - np.log(data.deviation)
        rows.append([nlpd, np.sqrt(squares.mean()) / data.deviation, *holds.mean(axis=1)])
    return np.array(rows)


def table(
    kinds: Sequence[str], shapes: Sequence[tuple[int, int]], sets: int, models: Sequence[str], n_jobs: int
) -> Iterator[str]:
    """A row per kind and shape: means over the sets, the standard error of the 95 % coverage in brackets."""
    others = "".join(f" NLPD {name} | RMSE |" for name in models[1:])
    yield f"| data | rows | inputs | 50 % | 80 % | 95 % | NLPD | RMSE |{others}"
    yield f"|{'---|' * (8 + 2 * (len(models) - 1))}"
    with ProcessPoolExecutor(n_jobs) as pool:
        for kind in kinds:
            for n, d in shapes:
                count = _RARE * sets if kind == "noise" and n <= _FEWEST and sets >= _JUDGED else sets
                found = np.array(list(pool.map(partial(judged, kind, n, d, models), range(count))))
                means = found.mean(axis=0)
                shares = [f"{100 * share:.1f}" for share in means[0, 2:]]
                error = 100 * found[:, 0, 4].std(ddof=1) / np.sqrt(count)
                scores = " | ".join(f"{nlpd:.3f} | {rmse:.3f}" for nlpd, rmse in means[:, :2])
                yield f"| {kind} | {n} | {d} | {' | '.join(shares)} ({error:.1f}) | {scores} |"


def coverage(settings: Settings) -> Iterator[str]:
    """How often intervals hold on small sets; NLPD and RMSE in units of the deviation of y."""
    asked = settings.shapes or SHAPES
    shapes = SHAPES[:1] if settings.quick else [shape for shape in asked if shape[0] <= settings.most_rows]
    sets = 2 if settings.quick else settings.sets
    models, kinds = settings.models or tuple(MODELS), settings.kinds or KINDS
    yield from table(kinds, shapes, sets, models, settings.n_jobs or 1)
