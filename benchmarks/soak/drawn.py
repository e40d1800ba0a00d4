"""Kernels, rows and networks at random, for sections that need any of them."""

from __future__ import annotations

import numpy as np

from spngp.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern,
    Periodic,
    PiecewiseConstant,
    Polynomial,
    RandomSlopes,
    RationalQuadratic,
    SquaredExponential,
)
from spngp.network import Leaf, Node, Product, Split, Sum

Generator = np.random.Generator
Box = tuple[tuple[float, float], ...]

KERNELS = (
    "SquaredExponential",
    "Matern-1/2",
    "Matern-3/2",
    "Matern-5/2",
    "RationalQuadratic",
    "Periodic",
    "Linear",
    "Polynomial",
    "RandomSlopes",
    "PiecewiseConstant",
    "Constant",
)


def positive(rng: Generator, spread: float = 0.7) -> float:
    """A number around one."""
    return float(np.exp(spread * rng.standard_normal()))


def simple_kernel(rng: Generator, d: int, name: str | None = None) -> Kernel:
    """One kernel, with a length-scale for all inputs or one for each."""
    name = name or str(rng.choice(KERNELS))
    scales = positive(rng) if rng.random() < 0.5 else [positive(rng) for _ in range(d)]
    variance = positive(rng)
    if name.startswith("Matern"):
        return Matern({"1": 0.5, "3": 1.5, "5": 2.5}[name[7]], scales, variance)
    if name == "SquaredExponential":
        return SquaredExponential(scales, variance)
    if name == "RationalQuadratic":
        return RationalQuadratic(positive(rng), scales, variance)
    if name == "Periodic":
        return Periodic(positive(rng), scales, variance)
    if name == "Linear":
        slopes = variance if rng.random() < 0.5 else [positive(rng) for _ in range(d)]
        return Linear(slopes, positive(rng) * float(rng.integers(2)))
    if name == "Polynomial":
        return Polynomial(int(rng.integers(1, 4)), positive(rng) * float(rng.integers(2)), variance)
    if name == "RandomSlopes":
        return RandomSlopes(scales, variance)
    if name == "PiecewiseConstant":
        at = np.unique(rng.standard_normal(int(rng.integers(1, 5))))
        widths = 0.5 * np.min(np.diff(at), initial=1.0) * rng.random(at.size) if rng.random() < 0.5 else ()
        return PiecewiseConstant(int(rng.integers(d)), at.tolist(), variance, widths)
    return Constant(variance)


def kernel(rng: Generator, d: int, depth: int = 2) -> Kernel:
    """A kernel, or a sum or product of some."""
    what = rng.random()
    if depth == 0 or what < 0.5:
        return simple_kernel(rng, d)
    first, second = kernel(rng, d, depth - 1), kernel(rng, d, depth - 1)
    return first + second if what < 0.8 else first * second


def rows(rng: Generator, n: int, d: int) -> np.ndarray:
    """Inputs: uniform, Gaussian, on a coarse grid (rows repeat), or along a line."""
    what = rng.integers(4)
    if what == 0:
        return rng.uniform(-1.0, 1.0, (n, d))
    if what == 1:
        return rng.standard_normal((n, d))
    if what == 2:
        return rng.integers(-3, 4, (n, d)) / 3.0
    return rng.uniform(-1.0, 1.0, (n, 1)) * np.linspace(0.5, 1.5, d)


def network(rng: Generator, box: Box, outputs: tuple[int, ...], depth: int) -> Node:
    """Sums, splits and products at random; cuts may fall on rows of a grid, and nodes may stand in several places."""
    what = rng.random()
    if len(outputs) > 1 and (depth == 0 or what < 0.4):
        order = [int(output) for output in rng.permutation(outputs)]
        place = int(rng.integers(1, len(order)))
        groups = (tuple(sorted(order[:place])), tuple(sorted(order[place:])))
        return Product([network(rng, box, group, max(depth - 1, 0)) for group in groups])
    if depth == 0 or what < 0.4:
        return Leaf(kernel(rng, len(box), 1), noise_variance=float(rng.uniform(0.05, 0.5)), output=outputs[0])
    if what < 0.7:
        children = [network(rng, box, outputs, depth - 1) for _ in range(int(rng.integers(2, 4)))]
        children += [children[0]] * int(rng.random() < 0.2)  # the same node twice
        return Sum(children, weights=weights(rng, len(children)))
    axis = int(rng.integers(len(box)))
    low, high = box[axis]
    inside = [cut for cut in np.arange(-3, 4) / 3.0 if low < cut < high]
    cut = float(rng.choice(inside)) if inside and rng.random() < 0.5 else float(rng.uniform(low, high))
    if not low < cut < high:
        return network(rng, box, outputs, depth - 1)
    sides = [tuple(side if j == axis else box[j] for j in range(len(box))) for side in ((low, cut), (cut, high))]
    return Split(axis, [cut], [network(rng, side, outputs, depth - 1) for side in sides])


def weights(rng: Generator, n: int) -> np.ndarray:
    """Probabilities; now and then one of them is zero."""
    drawn = rng.dirichlet(np.ones(n))
    if rng.random() < 0.1:
        drawn[rng.integers(n)] = 0.0
    return drawn / drawn.sum()
