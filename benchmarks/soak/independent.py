"""Leaves against fifty digits, and networks against all their induced trees.

Leaf problems: a kernel at random (sums and products included), one to nine rows in one to three inputs, noise between
3e-9 and 3 of the prior variance, weights of rows in every third. Networks: up to three levels of sums, splits and
products over one to three outputs, some of them missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np

import reference
from soak import Effort, Table
from soak.cases import each
from soak.drawn import kernel, network, rows
from soak.fifty_digits import exact_gp
from spngp.gp.evidence import Evidence
from spngp.gp.exact import ExactGP

SAMPLE = 0.01
BOUND = 1e-8
EPS = float(np.finfo(float).eps)
# No code in floating point has more digits than rounding the covariance itself leaves: a problem that costs more than
# about five digits is allowed this many rounding errors times its cost, instead of BOUND.
ROUNDINGS = 100.0
QUANTITIES = ("evidence", "gradient", "mean", "variance")
DECADES = (0.0, 1e2, 1e4, 1e6, 1e8, np.inf)
NETWORK_QUANTITIES = ("evidence", "weights", "mean", "variance", "density", "cdf", "covariance")


def leaf_errors(seed: int, index: int) -> tuple[float, ...]:
    """How many digits a problem costs, and errors of evidence, gradient, mean and variance, relative to their sizes."""
    rng = np.random.default_rng([seed, index, 1])
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 10))
    k, X = kernel(rng, d), rows(rng, n, d)
    X_new = np.vstack([rows(rng, 2, d), X[:1]])
    prior = float(k.diagonal(X).mean()) or 1.0
    noise = prior * float(10.0 ** rng.uniform(-8.5, 0.5))
    gp = ExactGP(k, noise)
    y = gp.sample(X, 1, rng)[:, 0]
    weights = rng.uniform(0.1, 3.0, n) if index % 3 == 0 else np.ones(n)
    plain = bool((weights == 1.0).all())
    posterior = gp.condition(X, y, weights=None if plain else weights)
    truth = exact_gp(k, noise, weights, X, y, X_new, gp.parameter_names if plain else ())
    exact, sound = float(truth.log_evidence), []
    size = max(1.0, abs(exact))
    evidences = [abs(posterior.log_evidence - exact) / size]
    if plain:
        slopes = np.array([float(slope) for slope in truth.gradient])
        for value, gradient in _both_ways(gp, X, y):
            evidences.append(abs(value - exact) / size)
            sound.append(float(np.abs(gradient - slopes).max()) / max(1.0, float(np.abs(slopes).max())))
    mean, covariance = posterior.joint(X_new, latent=True)
    exact_mean = np.array([float(value) for value in truth.mean])
    exact_covariance = np.array([[float(value) for value in row] for row in truth.covariance])
    observed_mean, observed_variance = posterior.predict(X_new)
    expected = exact_covariance.diagonal() + noise
    means = np.abs(np.array([mean, observed_mean]) - exact_mean).max() / max(float(np.abs(y).max()), np.sqrt(prior))
    variances = max(
        float((np.abs(observed_variance - expected) / expected).max()),
        float(np.abs(covariance - exact_covariance).max()) / max(prior, float(k.diagonal(X_new).max())),
    )
    # a variance that is small beside the prior's is a difference of two numbers that nearly agree
    costs = max(truth.condition, float((k.diagonal(X_new) / expected).max()))
    return costs, max(evidences), max(sound, default=0.0), float(means), variances


def _both_ways(gp: ExactGP, X: np.ndarray, y: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Evidence and gradient by the compiled library, where it knows the kernel, and by NumPy."""
    value, by_kernel, by_noise = Evidence(gp.kernel, X, y)(gp.kernel.parameters.values, gp.noise_variance)
    return [
        gp.log_evidence_with_gradient(X, y),
        (value, np.append(by_kernel[gp.kernel.parameters.free], by_noise)),
    ]


def network_errors(seed: int, index: int) -> tuple[float, ...]:
    """Number of induced trees, and errors of what a posterior network says, relative to their sizes."""
    rng = np.random.default_rng([seed, index, 2])
    d, p = int(rng.integers(1, 3)), int(rng.choice([1, 1, 2, 3]))
    box = ((-1.5, 1.5),) * d
    while (root := network(rng, box, tuple(range(p)), 3)).n_induced_trees > 40:
        pass
    X, X_new = rows(rng, int(rng.integers(1, 9)), d), rows(rng, 3, d)
    Y = rng.standard_normal((len(X), p)) * np.exp(rng.normal(0.0, 0.5))
    Y[rng.random(Y.shape) < 0.15] = np.nan
    posterior, truth = root.condition(X, Y), reference.Enumeration(root, X, Y)
    y_new = rng.standard_normal((3, p))
    expected, mixture = truth.predict(X_new, y_new), posterior.predict_dist(X_new)
    _, covariance = truth.joint_moments(X_new)
    merged = sorted(weight for *_, weight in truth.responsibilities())
    found = sorted(leaf.weight for leaf in posterior.responsibilities())
    y = y_new if p > 1 else y_new[:, 0]
    pairs = (
        (posterior.log_evidence, truth.log_evidence),
        (found, merged),
        (mixture.mean, expected["mean"]),
        (mixture.var, expected["var"]),
        (mixture.logpdf(y), expected["logpdf"]),
        (mixture.cdf(y), expected["cdf"]),
        (posterior.covariance(X_new), covariance),
    )
    return root.n_induced_trees, *(_relative(actual, exact) for actual, exact in pairs)


def _relative(actual: object, exact: object) -> float:
    a, b = np.ravel(np.asarray(actual)), np.ravel(np.asarray(exact))
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) if a.shape == b.shape else np.inf


def allowed(costs: np.ndarray) -> np.ndarray:
    """How far a leaf's answers may be off, by what the problem costs in digits."""
    return np.maximum(BOUND, ROUNDINGS * EPS * costs)


def run(effort: Effort) -> Table:
    leaves = np.array(each(partial(leaf_errors, effort.seed), effort.count(2000, 30), effort.n_jobs))
    networks = np.array(each(partial(network_errors, effort.seed), effort.count(2000, 30), effort.n_jobs))
    costs, errors = leaves[:, 0], leaves[:, 1:]
    inside = (errors <= allowed(costs)[:, np.newaxis]).all(axis=1)
    body: list[Sequence[str]] = []
    for low, high in itertools.pairwise(DECADES):
        chosen = (costs > low) & (costs <= high)
        if chosen.any():
            what = f"leaves, cost {low:.0e} to {high:.0e}" if high < np.inf else f"leaves, above {low:.0e}"
            body.append((what, *_told(errors[chosen], inside[chosen])))
    sound = (networks[:, 1:] <= BOUND).all(axis=1)
    body.append(("networks", *_told(networks[:, 1:], sound)))
    close = (errors <= BOUND).all(axis=1)
    return Table(
        "Independent check",
        ("problems", "number", "worst errors", "all within 1e-8", "beyond what is allowed"),
        body,
        bool(inside.all() and sound.all()),
        f"{len(leaves)} leaves: {close.sum()} within {BOUND:g}, worst {errors.max():.0e}, {(~inside).sum()} beyond "
        f"what is allowed; {len(networks)} networks: worst {networks[:, 1:].max():.0e}",
        (
            f"Worst errors of leaves: {', '.join(QUANTITIES)}; of networks: {', '.join(NETWORK_QUANTITIES)}. Errors "
            "are relative to the size of the quantity (evidences, gradients and networks: at least one; means: to the "
            "largest output; variances of observations: to themselves; covariances of the latent function: to the "
            "prior variance).",
            f"Allowed is {BOUND:g}, or {ROUNDINGS:g} rounding errors (2e-16) times the cost of the problem where that "
            "is more, from a cost of about 5e5 on. The cost is the condition number of the covariance (an upper bound, "
            "by Frobenius norms), or the ratio of prior to posterior variance at the rows predicted where that is "
            "larger: rounding the entries of a covariance alone loses that many digits.",
        ),
    )


def _told(errors: np.ndarray, inside: np.ndarray) -> tuple[str, ...]:
    """Cells of a row: how many, their worst errors, the share within the bound, how many are not allowed."""
    worst = " / ".join(f"{value:.0e}" for value in errors.max(axis=0))
    close = (errors <= BOUND).all(axis=1).mean()
    return str(len(errors)), worst, f"{100 * close:.1f} %", str((~inside).sum())
