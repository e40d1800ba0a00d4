"""Deliberately naive reference code. Only tests and ``benchmarks/soak`` import this module.

Everything is written from the formulas of the paper (Trapp et al., 2018) and, for kernels, of the docstrings in
``spngp.kernels``, with plain loops, explicit inverses and full enumeration, and reads nothing but public attributes of
the objects under test. A network is expanded into all its induced trees; each tree is a prior weight and a list of
(box, leaf). Fine for a dozen rows, useless beyond.
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

# --- kernels: one pair of inputs at a time --------------------------------------------------------


def per_input(value, d):
    """Expand a scalar to one value per input; an ARD array is returned as a list of floats."""
    values = np.asarray(value, dtype=float)
    return [float(values)] * d if values.ndim == 0 else [float(v) for v in values]


def squared_distance(a, b, length_scale):
    return sum(((x - z) / ell) ** 2 for x, z, ell in zip(a, b, per_input(length_scale, len(a)), strict=True))


def kernel_value(k, a, b):
    """k(a, b) for two single inputs, by formula."""
    name = type(k).__name__
    if name == "KernelSum":
        return sum(kernel_value(part, a, b) for part in k.parts)
    if name == "KernelProduct":
        return math.prod(kernel_value(part, a, b) for part in k.parts)
    if name == "Step":
        side_a, side_b = (0.5 if x[k.axis] > k.at else -0.5 for x in (a, b))
        return k.variance * side_a * side_b
    if name == "PiecewiseConstant":
        places = []
        for x in (a[k.axis], b[k.axis]):
            ramps = [
                (x > cut) if not width else min(1.0, max(0.0, (x - cut) / width + 0.5))
                for cut, width in itertools.zip_longest(k.at, k.gaps, fillvalue=0.0)
            ]
            places.append(sum(ramps))
        return k.variance * max(0.0, 1.0 - abs(places[0] - places[1]))
    if name == "Constant":
        return k.variance
    if name == "RandomSlopes":
        scales, is_code = per_input(k.length_scale, len(a)), [n > 0 for n in k.levels] or [False] * len(a)
        rows = list(zip(a, b, scales, is_code, strict=True))
        alike = math.exp(-sum(1 / ell**2 for x, z, ell, coded in rows if coded and x != z) / 2)
        return k.variance * alike * (1 + sum(x * z / ell**2 for x, z, ell, coded in rows if not coded))
    if name == "Linear":
        slopes = per_input(k.variance, len(a))
        return sum(v * x * z for v, x, z in zip(slopes, a, b, strict=True)) + k.bias_variance
    if name == "Polynomial":
        return k.variance * (sum(x * z for x, z in zip(a, b, strict=True)) + k.offset) ** k.degree
    if name == "Periodic":
        periods, scales = per_input(k.period, len(a)), per_input(k.length_scale, len(a))
        waves = sum(
            (math.sin(math.pi * (x - z) / p) / ell) ** 2 for x, z, p, ell in zip(a, b, periods, scales, strict=True)
        )
        return k.variance * math.exp(-2 * waves)
    r2 = squared_distance(a, b, k.length_scale)
    r = math.sqrt(r2)
    if name == "SquaredExponential":
        return k.variance * math.exp(-r2 / 2)
    if name == "RationalQuadratic":
        return k.variance * (1 + r2 / (2 * k.alpha)) ** -k.alpha
    if name == "Matern" and k.nu == 0.5:
        return k.variance * math.exp(-r)
    if name == "Matern" and k.nu == 1.5:
        return k.variance * (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    if name == "Matern" and k.nu == 2.5:
        return k.variance * (1 + math.sqrt(5) * r + 5 * r2 / 3) * math.exp(-math.sqrt(5) * r)
    raise NotImplementedError(f"no reference formula for {k!r}")


def gram(k, X1, X2=None):
    """The Gram matrix, entry by entry."""
    X2 = X1 if X2 is None else X2
    K = np.empty((len(X1), len(X2)))
    for i, a in enumerate(X1):
        for j, b in enumerate(X2):
            K[i, j] = kernel_value(k, [float(v) for v in a], [float(v) for v in b])
    return K


# --- derivatives --------------------------------------------------------------------------------


def central_differences(function, theta):
    """Fourth-order central differences with a step scaled to each parameter."""
    gradient = np.empty(len(theta))
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = h = 3e-4 * max(1.0, abs(theta[i]))
        near = function(theta + step) - function(theta - step)
        far = function(theta + 2 * step) - function(theta - 2 * step)
        gradient[i] = (8 * near - far) / (12 * h)
    return gradient


# --- one exact GP ---------------------------------------------------------------------------------


def gp_log_evidence(kernel, noise_variance, X, y):
    """Log N(y; 0, K + noise I) with an explicit inverse."""
    if len(X) == 0:
        return 0.0
    C = gram(kernel, X) + noise_variance * np.eye(len(X))
    quadratic = y @ np.linalg.inv(C) @ y
    return float(-0.5 * quadratic - 0.5 * np.linalg.slogdet(C)[1] - 0.5 * len(X) * math.log(2 * math.pi))


def gp_posterior(kernel, noise_variance, X, y, X_new, latent=False, row_noise=None):
    """Mean vector and covariance matrix at X_new given the rows (X, y), whose noise may differ row by row."""
    row_noise = np.full(len(X), noise_variance) if row_noise is None else row_noise
    covariance = gram(kernel, X_new)
    mean = np.zeros(len(X_new))
    if len(X) > 0:
        inverse = np.linalg.inv(gram(kernel, X) + np.diag(row_noise))
        cross = gram(kernel, X_new, X)
        mean = cross @ inverse @ y
        covariance = covariance - cross @ inverse @ cross.T
    if not latent:
        covariance = covariance + noise_variance * np.eye(len(X_new))
    return mean, covariance


# --- networks: every induced tree -----------------------------------------------------------------


class Tree(NamedTuple):
    """One induced tree: weight, child chosen at each sum (by its path from the root), experts (box, leaf)."""

    weight: float
    choices: dict[tuple[int, ...], int]
    experts: list[tuple[dict[int, tuple[float, float]], Any]]


def contains(box, x):
    """A box maps an axis to (low, high]: a row exactly on a cut belongs to the lower side."""
    return all(low < x[axis] <= high for axis, (low, high) in box.items())


def sub_boxes(box, axis, cuts):
    low, high = box.get(axis, (-math.inf, math.inf))
    edges = [low, *[float(c) for c in np.atleast_1d(cuts)], high]
    return [{**box, axis: (max(low, left), min(high, right))} for left, right in itertools.pairwise(edges)]


def induced_trees(node, box=None, path=()):
    box = {} if box is None else box
    kind = type(node).__name__
    if kind == "Leaf":
        return [Tree(1.0, {}, [(box, node)])]
    if kind == "Sum":
        return [
            Tree(float(weight) * tree.weight, {path: c, **tree.choices}, tree.experts)
            for c, (child, weight) in enumerate(zip(node.children, node.weights, strict=True))
            for tree in induced_trees(child, box, (*path, c))
        ]
    if kind == "Split":
        boxes = sub_boxes(box, node.axis, node.at)
    elif kind == "Product":
        boxes = [box] * len(node.children)
    else:
        raise NotImplementedError(kind)
    options = [
        induced_trees(child, child_box, (*path, c))
        for c, (child, child_box) in enumerate(zip(node.children, boxes, strict=True))
    ]
    return [
        Tree(
            math.prod(part.weight for part in parts),
            {place: c for part in parts for place, c in part.choices.items()},
            [expert for part in parts for expert in part.experts],
        )
        for parts in itertools.product(*options)
    ]


def log(weight):
    """The log of a weight, which may be zero."""
    return math.log(weight) if weight > 0 else -math.inf


def log_sum_exp(values):
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


def log_normal(y, mean, variance):
    return -0.5 * (y - mean) ** 2 / variance - 0.5 * math.log(2 * math.pi * variance)


def normal_cdf(y, mean, variance):
    return 0.5 * math.erfc((mean - y) / math.sqrt(2 * variance))


class Enumeration:
    """A network, its data (none: the prior), and every answer by summing over all induced trees."""

    def __init__(self, root, X=None, Y=None):
        self.trees = induced_trees(root)
        self.outputs = sorted({leaf.output for _, leaf in self.trees[0].experts})
        self.X = np.empty((0, 1)) if X is None else np.asarray(X, dtype=float)
        Y = np.empty((0, len(self.outputs))) if Y is None else np.asarray(Y, dtype=float)
        self.Y = Y[:, None] if Y.ndim == 1 else Y
        self.log_joint = [
            log(tree.weight) + sum(self.expert_log_evidence(box, leaf) for box, leaf in tree.experts)
            for tree in self.trees
        ]
        self.log_evidence = log_sum_exp(self.log_joint)
        self.tree_posterior = [math.exp(value - self.log_evidence) for value in self.log_joint]

    def expert_rows(self, box, leaf):
        """The rows of a leaf: inside its box, and its output is there."""
        rows = [i for i in range(len(self.X)) if contains(box, self.X[i]) and not math.isnan(self.Y[i, leaf.output])]
        return self.X[rows], self.Y[rows, leaf.output]

    def expert_log_evidence(self, box, leaf):
        return gp_log_evidence(leaf.kernel, leaf.noise_variance, *self.expert_rows(box, leaf))

    def sum_weights(self):
        """For every place of a sum: P(child | the tree passes this place, data), one value per child."""
        passing = {}
        for probability, tree in zip(self.tree_posterior, self.trees, strict=True):
            for place, child in tree.choices.items():
                passing.setdefault(place, {}).setdefault(child, 0.0)
                passing[place][child] += probability
        return {
            place: np.array([by_child[c] for c in sorted(by_child)]) / sum(by_child.values())
            for place, by_child in passing.items()
        }

    def responsibilities(self):
        """List of (box, leaf, posterior probability that a tree contains it), equal experts merged."""
        merged = {}
        for probability, tree in zip(self.tree_posterior, self.trees, strict=True):
            for box, leaf in tree.experts:
                key = (id(leaf), tuple(sorted(box.items())))
                merged[key] = (box, leaf, merged.get(key, (None, None, 0.0))[2] + probability)
        return list(merged.values())

    def components(self, x, output, latent=False):
        """The predictive mixture at one input: a list of (probability, mean, variance), one per tree."""
        mixture = []
        for probability, tree in zip(self.tree_posterior, self.trees, strict=True):
            ((box, leaf),) = [(box, leaf) for box, leaf in tree.experts if leaf.output == output and contains(box, x)]
            mean, covariance = gp_posterior(
                leaf.kernel, leaf.noise_variance, *self.expert_rows(box, leaf), np.array([x]), latent
            )
            mixture.append((probability, float(mean[0]), float(covariance[0, 0])))
        return mixture

    def predict(self, X_new, y_new, latent=False):
        """Arrays (n, p) of the mixture's mean, variance, log density and cdf at y_new (n, p)."""
        shape = (len(X_new), len(self.outputs))
        answer = {name: np.empty(shape) for name in ("mean", "var", "logpdf", "cdf")}
        for i, x in enumerate(X_new):
            for j, output in enumerate(self.outputs):
                mixture = self.components(x, output, latent)
                y = float(y_new[i, j])
                mean = sum(p * m for p, m, _ in mixture)
                answer["mean"][i, j] = mean
                answer["var"][i, j] = sum(p * (v + (m - mean) ** 2) for p, m, v in mixture)
                answer["logpdf"][i, j] = log_sum_exp(
                    [math.log(p) + log_normal(y, m, v) for p, m, v in mixture if p > 0]
                )
                answer["cdf"][i, j] = sum(p * normal_cdf(y, m, v) for p, m, v in mixture)
        return answer

    def joint_components(self, X_new, latent=True):
        """One (probability, mean (n·p,), covariance (n·p, n·p)) per tree; rows vary slowest."""
        n, p = len(X_new), len(self.outputs)
        answer = []
        for probability, tree in zip(self.tree_posterior, self.trees, strict=True):
            mean, covariance = np.zeros(n * p), np.zeros((n * p, n * p))
            for box, leaf in tree.experts:
                rows = [i for i in range(n) if contains(box, X_new[i])]
                places = [i * p + self.outputs.index(leaf.output) for i in rows]
                m, S = gp_posterior(leaf.kernel, leaf.noise_variance, *self.expert_rows(box, leaf), X_new[rows], latent)
                mean[places] = m
                covariance[np.ix_(places, places)] = S
            answer.append((probability, mean, covariance))
        return answer

    def joint_moments(self, X_new, latent=True):
        """Joint mean (n·p,) and covariance (n·p, n·p) over rows and outputs."""
        components = self.joint_components(X_new, latent)
        mean = sum(p * m for p, m, _ in components)
        covariance = sum(p * (S + np.outer(m - mean, m - mean)) for p, m, S in components)
        return mean, covariance

    def joint_product_variances(self, X_new, latent=True):
        """Var[(f_a − E f_a)(f_b − E f_b)] for all a, b: what the error of a sampled covariance depends on."""
        mean, covariance = self.joint_moments(X_new, latent)
        fourth = np.zeros_like(covariance)
        for probability, m, S in self.joint_components(X_new, latent):
            delta, v = m - mean, np.diag(S)
            second = delta**2 + v
            fourth += probability * (np.outer(second, second) + 4 * np.outer(delta, delta) * S + 2 * S**2)
        return fourth - covariance**2
