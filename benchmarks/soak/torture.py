"""Ten thousand data sets that break careless numerics: every answer is finite, or refused in one line of our own.

Each case takes a kind of data, small in rows, and asks everything of a GP, of a network built by hand, or of an
estimator: evidence, gradient, mean, variance, covariance, samples, density, cdf and quantiles, at rows of the set,
between them and far away. An answer fails if it has a NaN or an infinity, a negative variance, a cdf outside 0 to 1 or
quantiles out of order; a refusal fails unless it is an error that spngp itself raised, in one line, about what it was
given.
"""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spngp
from soak import Effort, Table
from soak.cases import each
from soak.drawn import Generator, kernel, network, positive, rows, simple_kernel
from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.gp.exact import ExactGP
from spngp.kernels import Kernel, Linear, Polynomial, SquaredExponential
from spngp.network import Node

SAMPLE = 0.004
FOLDER = str(Path(spngp.__file__).parent)
INTERNAL = ("log_weights must", "means must", "variances must")  # how checks begin that no user's numbers should meet
SHARES = {"gp": 5000, "network": 2900, "fixed": 900, "learnt": 800, "gp regressor": 200, "committee": 200}


class Rows(NamedTuple):
    """A data set, rows to predict at, and what it says about the kernel, if anything."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    kernel: Kernel | None = None


def _with_new(rng: Generator, X: np.ndarray, y: np.ndarray, k: Kernel | None = None) -> Rows:
    """Predict at rows of the set, at means of two of them, and far away."""
    pairs = rng.integers(len(X), size=(2, 2))
    between = 0.5 * X[pairs[:, 0]] + 0.5 * X[pairs[:, 1]]
    size = np.abs(X).max(axis=0, keepdims=True)
    far = X[:1] + 1e3 * np.where(size > 0, size, 1.0)
    return Rows(X, y, np.vstack([X[:2], between, far]), k)


def _size(rng: Generator, most: int = 12) -> tuple[int, int]:
    return int(rng.integers(2, most)), int(rng.integers(1, 4))


def hilbert(rng: Generator) -> Rows:
    """Gram matrices like Hilbert's: powers and very long length-scales on a few points in [0, 1]."""
    n = int(rng.integers(2, 16))
    X = 1.0 / (1.0 + np.arange(n))[:, np.newaxis]
    choices = (
        Polynomial(int(rng.integers(3, 9)), 1.0, positive(rng)),
        SquaredExponential(float(10.0 ** rng.uniform(1, 9)), positive(rng)),
        Linear(positive(rng), positive(rng)),
    )
    return _with_new(rng, X, rng.standard_normal(n), choices[rng.integers(3)])


def duplicated(rng: Generator) -> Rows:
    """Equal rows whose outputs contradict each other."""
    n, d = _size(rng)
    X = rows(rng, n, d)[rng.integers(max(1, n // 3), size=n)]
    return _with_new(rng, X, rng.standard_normal(n))


def nearly_duplicated(rng: Generator) -> Rows:
    """Rows that differ in their last bits."""
    n, d = _size(rng)
    X = rows(rng, n, d)[rng.integers(max(1, n // 3), size=n)]
    return _with_new(rng, X + rng.integers(-2, 3, X.shape) * np.spacing(X), rng.standard_normal(n))


def collinear(rng: Generator) -> Rows:
    """All inputs are multiples of one."""
    n = _size(rng)[0]
    return _with_new(rng, rng.standard_normal((n, 1)) * rng.standard_normal(int(rng.integers(2, 9))), rng.random(n))


def wide(rng: Generator) -> Rows:
    """300 inputs, few rows."""
    n = int(rng.integers(2, 9))
    return _with_new(rng, rng.standard_normal((n, 300)), rng.standard_normal(n))


def few(rng: Generator) -> Rows:
    """One to five rows."""
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return _with_new(rng, rows(rng, n, d), rng.standard_normal(n))


def outputs_of_any_size(rng: Generator) -> Rows:
    """Outputs between 1e-150 and 1e150."""
    n, d = _size(rng)
    return _with_new(rng, rows(rng, n, d), rng.standard_normal(n) * 10.0 ** rng.uniform(-150, 150))


def inputs_of_any_size(rng: Generator) -> Rows:
    """Inputs between 1e-150 and 1e150, another size for each."""
    n, d = _size(rng)
    return _with_new(rng, rows(rng, n, d) * 10.0 ** rng.uniform(-150, 150, d), rng.standard_normal(n))


def any_magnitude(rng: Generator) -> Rows:
    """Inputs and outputs of all magnitudes in one set."""
    n, d = _size(rng)
    X = rng.choice([-1.0, 1.0], (n, d)) * 10.0 ** rng.uniform(-100, 100, (n, d))
    return _with_new(rng, X, rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-100, 100, n))


def offset(rng: Generator) -> Rows:
    """Inputs far from zero, compared with how they differ."""
    n, d = _size(rng)
    return _with_new(
        rng, rows(rng, n, d) + 10.0 ** rng.uniform(6, 15, d), rng.standard_normal(n) + 10.0 ** rng.uniform(0, 15)
    )


def spike(rng: Generator) -> Rows:
    """One output of any size among zeros."""
    n, d = _size(rng)
    y = np.zeros(n)
    y[rng.integers(n)] = 10.0 ** rng.uniform(-100, 100)
    return _with_new(rng, rows(rng, n, d), y)


def two_valued(rng: Generator) -> Rows:
    """Outputs of two values."""
    n, d = _size(rng)
    return _with_new(rng, rows(rng, n, d), rng.integers(0, 2, n) * positive(rng))


def constant(rng: Generator) -> Rows:
    """Constant inputs, constant outputs, or both."""
    n, d = _size(rng)
    X, what = rows(rng, n, d), rng.integers(3)
    if what != 1:
        X[:, rng.integers(d) :] = positive(rng)
    return _with_new(rng, X, np.full(n, positive(rng)) if what else rng.standard_normal(n))


def subnormal(rng: Generator) -> Rows:
    """Inputs that differ by the smallest numbers there are."""
    n, d = _size(rng)
    return _with_new(rng, rng.integers(-9, 10, (n, d)) * 10.0 ** rng.uniform(-323, -300), rng.standard_normal(n))


def extreme_kernel(rng: Generator) -> Rows:
    """Ordinary rows under kernels with parameters of any size."""
    n, d = _size(rng)
    k = simple_kernel(rng, d)
    size = float(rng.choice([5.0, 50.0, 330.0]))  # in logs
    k = k.with_theta(np.clip(rng.normal(0.0, size, k.theta.size), -700.0, 700.0))
    return _with_new(rng, rows(rng, n, d), rng.standard_normal(n), k)


KINDS: tuple[Callable[[Generator], Rows], ...] = (
    *(hilbert, duplicated, nearly_duplicated, collinear, wide, few, outputs_of_any_size, inputs_of_any_size),
    *(any_magnitude, offset, spike, two_valued, constant, subnormal, extreme_kernel),
)


def _finite(**answers: object) -> list[str]:
    """Names of answers that hold a NaN or an infinity."""
    return [f"{name} not finite" for name, value in answers.items() if not np.isfinite(np.asarray(value)).all()]


def ask_gp(rng: Generator, data: Rows) -> list[str]:
    """Everything of one GP, whose noise may be tiny or none."""
    k = data.kernel or kernel(rng, data.X.shape[1])
    noise = float(rng.choice([0.0, 1e-300, 1e-12, 1e-6, 0.1, 1e6]))
    gp = ExactGP(k, noise)
    value, gradient = gp.log_evidence_with_gradient(data.X, data.y)
    posterior = gp.condition(data.X, data.y)
    mean, variance = posterior.predict(data.X_new)
    joint_mean, covariance = posterior.joint(data.X_new, latent=True)
    samples = posterior.sample(data.X_new, 3, rng)
    faults = _finite(value=value, evidence=posterior.log_evidence, mean=mean, variance=variance, samples=samples)
    # the gradient may overflow where the evidence does not: an optimiser is told so by infinities, not by NaN
    faults += _finite(gradient=np.nan_to_num(gradient, nan=np.nan, posinf=1.0, neginf=-1.0))
    faults += _finite(joint=joint_mean, covariance=covariance)
    return faults + (["variance below zero"] if (variance < 0).any() else [])


def ask_network(rng: Generator, data: Rows) -> list[str]:
    """Everything of a network at random."""
    d = data.X.shape[1]
    root = network(rng, ((-1.5, 1.5),) * d, (0,), 2)
    return _ask_posterior(rng, root.condition(data.X, data.y), data)


def _ask_posterior(rng: Generator, posterior: Node, data: Rows) -> list[str]:
    faults = _finite(evidence=posterior.log_evidence, covariance=posterior.covariance(data.X_new))
    faults += _finite(samples=posterior.sample(data.X_new, 2, rng))
    return faults + _ask_mixture(posterior.predict_dist(data.X_new), float(data.y[0]))


def _ask_mixture(mixture: Any, y: float) -> list[str]:
    levels = np.array([0.001, 0.05, 0.5, 0.95, 0.999])
    quantiles, alone = np.moveaxis(mixture.quantile(levels), -1, 0), np.array([mixture.quantile(q) for q in levels])
    mean, variance = np.asarray(mixture.mean), np.asarray(mixture.var)
    cdf = np.asarray(mixture.cdf(np.full(mean.shape, y)))
    density = np.asarray(mixture.logpdf(np.full(mean.shape, y)))
    faults = _finite(mean=mean, variance=variance, quantiles=quantiles, std=mixture.std)
    # far from all components a density underflows: its log may be -inf, which says so; above it is a fault
    faults += ["density not finite"] if np.isnan(density).any() or (density == np.inf).any() else []
    faults += ["variance below zero"] if (variance < 0).any() else []
    faults += ["cdf outside 0 to 1"] if not ((cdf >= 0) & (cdf <= 1)).all() else []
    # one by one, quantiles of a mixture narrower than a rounding error of its mean are known to that error
    rounding = 4.0 * np.spacing(np.abs(quantiles[1:]))
    in_order = (np.diff(quantiles, axis=0) >= 0).all() and (np.diff(alone, axis=0) >= -rounding).all()
    return faults + ([] if in_order else ["quantiles out of order"])


def _ask_estimator(model: Any, rng: Generator, data: Rows) -> list[str]:
    model.fit(data.X, data.y)
    faults = _finite(evidence=getattr(model, "log_evidence_", 0.0))
    faults += _ask_mixture(model.predict_dist(data.X_new), float(data.y[0]))
    if isinstance(model, SPNGPRegressor):
        faults += _finite(noise=model.predict_noise(data.X_new), samples=model.sample_y(data.X_new, 2, 0))
        model.partial_fit(data.X[:1], data.y[:1])
        faults += _ask_mixture(model.predict_dist(data.X_new), float(data.y[-1]))
    return faults


def ask_fixed(rng: Generator, data: Rows) -> list[str]:
    given = data.kernel or (None if rng.random() < 0.5 else kernel(rng, data.X.shape[1], 1))
    noise = 0.1 if given is not None else None
    model = SPNGPRegressor(
        given, hyperparameters="fixed", noise_variance=noise, max_leaf_size=int(rng.choice([2, 5, 500])), random_state=0
    )
    return _ask_estimator(model, rng, data)


def ask_learnt(rng: Generator, data: Rows) -> list[str]:
    return _ask_estimator(SPNGPRegressor(random_state=0), rng, data)


def ask_gp_regressor(rng: Generator, data: Rows) -> list[str]:
    return _ask_estimator(GPRegressor(hyperparameters="fixed", random_state=0), rng, data)


def ask_committee(rng: Generator, data: Rows) -> list[str]:
    model = RobustBayesianCommitteeMachine(hyperparameters="fixed", random_state=0)
    return _ask_estimator(model, rng, data)


ASKED = {
    "gp": ask_gp,
    "network": ask_network,
    "fixed": ask_fixed,
    "learnt": ask_learnt,
    "gp regressor": ask_gp_regressor,
    "committee": ask_committee,
}


# why a case was refused, by words of the error
REASONS = {
    "is not finite: it overflows": "covariance overflows",
    "is not positive definite": "covariance not positive definite",
    "overflows at row": "kernel overflows",
    "log evidence of a leaf": "evidence out of range",
    "must have spreads between": "spread of X",
    "must have a spread between": "spread of y",
    "too far from the rows": "row too far away",
    "the variance overflows": "variance overflows",
    "the covariance overflows": "variance overflows",
}


def reason(words: str) -> str:
    """Why a case was refused, in short."""
    return next((short for part, short in REASONS.items() if part in words), words[:60])


class Outcome(NamedTuple):
    """What became of a case: which kind, who was asked, and ``answered``, ``refused`` or what was wrong."""

    kind: str
    asked: str
    what: str
    words: str = ""


def outcome(asked: str, seed: int, number: int) -> Outcome:
    """The case of this number."""
    rng = np.random.default_rng([seed, number, list(ASKED).index(asked)])
    make = KINDS[number % len(KINDS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's: somebody forgot to think of overflow
        try:
            faults = ASKED[asked](rng, make(rng))
        except Exception as error:
            return Outcome(make.__name__, asked, _judged(error), f"{type(error).__name__}: {error}")
    return Outcome(make.__name__, asked, "; ".join(faults) or "answered")


def _judged(error: Exception) -> str:
    """``refused`` if spngp itself raised this error, in one line."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = last.filename.startswith(FOLDER) and (last.line or "").startswith("raise")
    told = "\n" not in str(error) and not str(error).startswith(INTERNAL)
    if ours and told and isinstance(error, ValueError | np.linalg.LinAlgError):
        return "refused"
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}"


def run(effort: Effort) -> Table:
    found: list[Outcome] = []
    for asked, full in SHARES.items():
        count = effort.count(full, len(KINDS) if asked in ("gp", "network") else 1)
        found += each(partial(outcome, asked, effort.seed), count, effort.n_jobs)
    body, wrong = [], [case for case in found if case.what not in ("answered", "refused")]
    for make in KINDS:
        of_kind = [case for case in found if case.kind == make.__name__]
        told = Counter(case.what for case in of_kind)
        refused = Counter(reason(case.words) for case in of_kind if case.what == "refused")
        reasons = "; ".join(f"{words} ({number})" for words, number in refused.most_common(3))
        failed = len(of_kind) - told["answered"] - told["refused"]
        body.append((make.__name__.replace("_", " "), *map(str, (told["answered"], told["refused"], failed)), reasons))
    for case in wrong[:20]:
        print(f"torture: {case}", flush=True)
    return Table(
        "Torture",
        ("data", "answered", "refused", "failed", "most frequent refusals"),
        body,
        not wrong,
        f"{len(found)} cases: {sum(case.what == 'answered' for case in found)} answered in finite numbers, "
        f"{sum(case.what == 'refused' for case in found)} refused in one line of our own, {len(wrong)} failed",
        (
            "Asked were "
            + ", ".join(f"{name} ({sum(case.asked == name for case in found)})" for name in SHARES)
            + ": a GP and a network with kernels at random and noise from none to 1e6, `SPNGPRegressor` with fixed and "
            "with learnt hyper-parameters (one more row is added to it), `GPRegressor`, and a robust committee.",
        ),
    )
