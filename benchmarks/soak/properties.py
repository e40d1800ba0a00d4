"""What must hold for every network, whatever its kernels, cuts, weights, outputs and units: hundreds of each at random.

``tests/network/test_properties.py`` lets hypothesis look for the smallest network that breaks a property.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from soak import Effort, Table
from soak.cases import each
from soak.drawn import Generator, network, rows
from spngp import SPNGPRegressor
from spngp.kernels import Kernel, PiecewiseConstant, Polynomial
from spngp.kernels.base import Combination
from spngp.network import Leaf, Node, Product, Split, Sum
from spngp.predictive import GaussianMixture

SAMPLE = 0.002
LEVELS = (1e-6, 0.01, 0.3, 0.5, 0.9, 0.999)


class Case(NamedTuple):
    """A network, rows to condition it on, some outputs missing, rows to predict at, and what else chance decides."""

    root: Node
    X: np.ndarray
    Y: np.ndarray
    X_new: np.ndarray
    rng: Generator


def case_of(seed: int, n: int, d: int, p: int, depth: int) -> Case:
    """The case with these sizes."""
    rng = np.random.default_rng([seed, n, d, p, depth])
    root = network(rng, ((-1.5, 1.5),) * d, tuple(range(p)), depth)
    Y = rng.standard_normal((n, p)) * np.exp(rng.normal(0.0, 0.5))
    Y[rng.random(Y.shape) < 0.15] = np.nan
    return Case(root, rows(rng, n, d), Y, np.vstack([rows(rng, 3, d), np.full((1, d), 50.0)]), rng)


def any_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 3])
    sizes = (int(rng.integers(1, 25)), int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(4)))
    return case_of(seed, *sizes)


class Said(NamedTuple):
    """What a posterior says: log evidence, and mean, variance and log density at new rows."""

    log_evidence: float
    mean: np.ndarray
    variance: np.ndarray
    density: np.ndarray


def said(posterior: Node, X_new: np.ndarray, unit: float = 1.0) -> Said:
    """With outputs measured in ``unit``."""
    mixture = posterior.predict_dist(X_new)
    density = mixture.logpdf(np.full(mixture.shape, 0.3 * unit)) + np.log(unit)
    return Said(posterior.log_evidence, mixture.mean / unit, mixture.var / unit**2, density)


def difference(one: Said, other: Said) -> float:
    """The largest difference, relative to the size of what is compared, or to one."""
    errors = []
    for a, b in zip(one, other, strict=True):
        errors.append(float(np.max(np.abs(np.asarray(a) - b)) / max(1.0, float(np.max(np.abs(b))))))
    return max(errors) if np.isfinite(errors).all() else np.inf


def posterior_of(case: Case) -> Node:
    return case.root.condition(case.X, case.Y)


def finite(case: Case) -> float:
    """Evidence, moments and densities are finite, variances positive: 0 if so."""
    answers = said(posterior_of(case), case.X_new)
    sound = all(np.isfinite(part).all() for part in answers) and bool((answers.variance > 0).all())
    latent = posterior_of(case).predict_dist(case.X_new, latent=True)
    return 0.0 if sound and (latent.var >= 0).all() else np.inf


def density_integrates_to_one(case: Case) -> float:
    """By Gauss-Legendre quadrature between the edges of all components."""
    mixture = posterior_of(case).predict_dist(case.X_new)
    return max(abs(_integral(mixture, index) - 1.0) for index in np.ndindex(mixture.shape))


def _integral(mixture: GaussianMixture, index: tuple[int, ...]) -> float:
    means, stds = mixture.means[index], np.sqrt(mixture.variances[index])
    used = mixture.log_weights[index] > -np.inf
    edges = np.unique(np.concatenate([means[used] + k * stds[used] for k in (-12, -8, -5, -3, -1, 0, 1, 3, 5, 8, 12)]))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    half = 0.5 * np.diff(edges)
    y = 0.5 * (edges[:-1] + edges[1:])[:, np.newaxis] + half[:, np.newaxis] * nodes
    density = np.exp(_at(mixture, index).logpdf(y.ravel())).reshape(y.shape)
    return float((density * weights * half[:, np.newaxis]).sum())


def _at(mixture: GaussianMixture, index: tuple[int, ...]) -> _Alone:
    return _Alone(mixture.log_weights[index], mixture.means[index], mixture.variances[index])


class _Alone(NamedTuple):
    """The mixture of one row, asked at many places."""

    log_weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        parts = [np.broadcast_to(part, (y.size, part.size)) for part in self]
        return GaussianMixture(*parts).logpdf(y)


def quantiles_invert_the_cdf(case: Case) -> float:
    mixture = posterior_of(case).predict_dist(case.X_new)
    return max(float(np.abs(mixture.cdf(mixture.quantile(q)) / q - 1.0).max()) for q in LEVELS)


def order_of_rows(case: Case) -> float:
    order = case.rng.permutation(len(case.X))
    other = case.root.condition(case.X[order], case.Y[order])
    return difference(said(other, case.X_new), said(posterior_of(case), case.X_new))


def batches(case: Case) -> float:
    """Rows that come in batches against all at once."""
    posterior = case.root
    for part in np.array_split(np.arange(len(case.X)), int(case.rng.integers(1, min(len(case.X), 5) + 1))):
        posterior = posterior.condition(case.X[part], case.Y[part])
    return difference(said(posterior, case.X_new), said(posterior_of(case), case.X_new))


def weight_zero(case: Case) -> float:
    """A child of weight zero changes nothing, however likely it would make the rows."""
    d, outputs = case.X.shape[1], case.root.outputs
    other = network(case.rng, ((-1.5, 1.5),) * d, outputs, 1)
    places = [case.root, other] if case.rng.random() < 0.5 else [other, case.root]
    both = Sum(places, weights=[float(child is case.root) for child in places]).condition(case.X, case.Y)
    return difference(said(both, case.X_new), said(posterior_of(case), case.X_new))


def repeated_rows(case: Case) -> float:
    """A row of weight w against w rows."""
    counts = case.rng.integers(0, 4, len(case.X))
    counts[0] += 1  # at least one row
    weighted = case.root.condition(case.X, case.Y, sample_weight=counts)
    repeated = case.root.condition(np.repeat(case.X, counts, axis=0), np.repeat(case.Y, counts, axis=0))
    return difference(said(weighted, case.X_new), said(repeated, case.X_new))


def rebuilt(
    node: Node,
    kernel: Callable[[Kernel], Kernel],
    noise: Callable[[float], float],
    cut: Callable[[int, float], tuple[int, float]],
    output: Callable[[int], int],
) -> Node:
    """The same network with other kernels, noise, cuts and outputs."""
    if isinstance(node, Leaf):
        return Leaf(kernel(node.kernel), noise(node.noise_variance), output(node.output))
    children = [rebuilt(child, kernel, noise, cut, output) for child in node.children]
    if isinstance(node, Sum):
        return Sum(children, weights=node.weights / node.weights.sum())
    if isinstance(node, Product):
        return Product(children)
    assert isinstance(node, Split)
    cuts = [cut(node.axis, at) for at in node.at]
    return Split(cuts[0][0], [at for _, at in cuts], children)


def units(case: Case) -> float:
    """Inputs and outputs in other units, from 1e-60 to 1e60; kernels, noise and cuts with them."""
    if _holds_polynomials(case.root):  # their terms of several degrees have no units
        return 0.0
    sizes = 10.0 ** case.rng.uniform(-60, 60, case.X.shape[1])
    size = float(10.0 ** case.rng.uniform(-60, 60))
    other = rebuilt(
        case.root,
        lambda k: k.rescaled(sizes, size),
        lambda noise: noise * size**2,
        lambda axis, at: (axis, float(at * sizes[axis])),
        lambda output: output,
    )
    posterior = other.condition(case.X * sizes, case.Y * size)
    found = said(posterior, case.X_new * sizes, size)
    lost = np.count_nonzero(~np.isnan(case.Y)) * np.log(size)  # of the density of y, which has the unit 1/size
    return difference(found._replace(log_evidence=found.log_evidence + lost), said(posterior_of(case), case.X_new))


def _holds_polynomials(node: Node) -> bool:
    if isinstance(node, Leaf):
        parts = getattr(node.kernel, "parts", (node.kernel,))
        return any(isinstance(part, Polynomial) for part in parts)
    return any(_holds_polynomials(child) for child in node.children)


def renaming(case: Case) -> float:
    """Inputs and outputs in another order."""
    d, p = case.X.shape[1], case.Y.shape[1]
    inputs, outputs = case.rng.permutation(d), case.rng.permutation(p)
    at, of = np.argsort(inputs), np.argsort(outputs)  # where each has gone

    def renamed(k: Kernel) -> Kernel:
        theta = k.theta.copy()
        place = {identity: i for i, identity in enumerate(k.free_parameters)}
        for i, identity in enumerate(k.free_parameters):
            if identity.input is not None:
                moved = type(identity)(identity.role, int(at[identity.input]), identity.part)
                theta[place[moved]] = k.theta[i]
        return elsewhere(k.with_theta(theta))

    def elsewhere(k: Kernel) -> Kernel:
        """With cuts along the input that has moved."""
        if isinstance(k, Combination):
            return type(k)([elsewhere(part) for part in k.parts])
        if isinstance(k, PiecewiseConstant):
            return PiecewiseConstant(int(at[k.axis]), k.at, k.variance, k.gaps)
        return k

    other = rebuilt(
        case.root, renamed, lambda noise: noise, lambda axis, cut: (int(at[axis]), cut), lambda output: int(of[output])
    )
    found = said(other.condition(case.X[:, inputs], case.Y[:, outputs]), case.X_new[:, inputs])
    if p > 1:
        found = found._replace(**{name: getattr(found, name)[:, of] for name in Said._fields[1:]})
    return difference(found, said(posterior_of(case), case.X_new))


def forgotten(case: Case) -> float:
    """Rows that a model has learnt and forgotten, against rows that it has never seen."""
    k = network(case.rng, ((-1.5, 1.5),) * case.X.shape[1], (0,), 0)
    assert isinstance(k, Leaf)
    X, y = rows(case.rng, 30, case.X.shape[1]), case.rng.standard_normal(30)
    sizes = {"max_leaf_size": int(case.rng.choice([12, 500])), "overlap": float(case.rng.choice([0.0, 1.0]))}
    model = SPNGPRegressor(k.kernel, hyperparameters="fixed", noise_variance=0.1, random_state=0, **sizes).fit(X, y)
    before = model.predict_dist(case.X_new)
    model.partial_fit(X[:2] + 0.01, case.rng.standard_normal(2)).forget(rows=[30, 31])
    if model.events_:  # a region was cut: what is promised holds given the structure
        return 0.0
    after = model.predict_dist(case.X_new)
    off = np.abs(after.mean - before.mean) / np.maximum(1.0, np.abs(before.mean))
    return float(max(off.max(), np.abs(after.var / before.var - 1.0).max()))


# property: how far off it may be
PROPERTIES: dict[Callable[[Case], float], float] = {
    finite: 0.0,
    density_integrates_to_one: 1e-6,
    quantiles_invert_the_cdf: 1e-8,
    order_of_rows: 1e-8,
    units: 1e-8,
    renaming: 1e-8,
    weight_zero: 1e-8,
    repeated_rows: 1e-8,
    batches: 1e-8,
    forgotten: 1e-8,
}


def error_of(which: Callable[[Case], float], seed: int, number: int) -> float:
    """How far a property is off in the case of this number."""
    return which(any_case(1_000_003 * seed + number))


def run(effort: Effort) -> Table:
    count = effort.count(1000, 2)
    body: list[Sequence[str]] = []
    sound, broken = True, 0
    for which, bound in PROPERTIES.items():
        errors = np.array(each(partial(error_of, which, effort.seed), count, effort.n_jobs))
        wrong = int((~(errors <= bound)).sum())
        sound, broken = sound and not wrong, broken + wrong
        body.append((which.__name__.replace("_", " "), str(count), f"{errors.max():.0e}", f"{bound:g}", str(wrong)))
    return Table(
        "Properties",
        ("property", "networks", "worst error", "bound", "broken"),
        body,
        sound,
        f"{len(PROPERTIES)} properties of {count} random networks each: {broken} broken",
        (
            "Networks have up to three levels of sums, splits and products, one to three inputs and outputs, up to 24 "
            "rows, kernels of all kinds with their sums and products, and outputs missing. Errors are of log evidence, "
            "mean, variance and log density at new rows, relative to their size or to one.",
        ),
    )
