"""The model drawn: a network of sums, splits and products with kernels at its leaves, and the covariance it stands for.

A split makes outputs on either side of its cut independent, so the covariance of each induced tree is block-diagonal.
The sum over trees with different cuts is a mixture of such matrices: blocks laid over each other, in the shades of
their weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp.experiments.cells import Cells
from spngp.experiments.page import Page
from spngp.kernels import Linear, Matern, Periodic, SquaredExponential
from spngp.kernels.names import short_name
from spngp.network import Leaf, Node, Product, Split, Sum

DATA: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """How finely the covariance is shown."""

    n_grid: int = 240


QUICK = Settings(n_grid=80)


def network() -> Node:
    """Two outputs over one input in [0, 10]: two ways to cut, products below the cuts, two kernels here and there."""
    smooth = Leaf(SquaredExponential(2.5))
    rough = Leaf(Matern(0.5, 3.0))
    waves = Leaf(Periodic(1.5, 1.0))
    other = Leaf(Matern(1.5, 2.0), output=1)
    trend = Leaf(Linear(0.02, 0.3), output=1)
    left = Product([Sum([smooth, rough], [0.6, 0.4]), other])
    right = Product([smooth, Sum([trend, other], [0.5, 0.5])])
    return Sum([Split(0, [4.0], [left, right]), Split(0, [7.0], [right, Product([waves, trend])])], [0.6, 0.4])


def run(settings: Settings, cells: Cells) -> Page:
    """Draw the network, and its covariance for the first output."""
    root = network()
    x = np.linspace(0.0, 10.0, settings.n_grid)
    total = _covariance(root, x)
    parts = _distinct_trees(root, x)
    rows = [
        {"part": name, "x": float(x[i]), "x'": float(x[j]), "covariance": float(matrix[i, j])}
        for name, matrix in [("network", total), *((f"tree of weight {w:.2f}", part) for w, part in parts)]
        for i in range(0, x.size, x.size // 20)
        for j in range(0, x.size, x.size // 20)
    ]
    error = float(np.abs(sum(weight * part for weight, part in parts) - total).max())
    text = f"""
The network has {root.n_induced_trees} induced trees, one choice at every sum, of which {len(parts)} differ in the first
output. Each is a product of independent GPs, so its covariance has zeros where a cut lies between two inputs. The
network's covariance is their weighted sum (to {error:.0e}): near the diagonal all trees agree that outputs are related,
across a cut only the trees without it.
"""
    caption = (
        "Left: an SPN-GP over one input and two outputs. Circles are sums (+) and products over outputs (×), white "
        "boxes splits with their cut, coloured boxes GP leaves. Right: prior covariance of the first output, the "
        "weighted sum of the block-diagonal matrices of its induced trees, below."
    )
    figure = _figure(root, x, total, parts)
    return Page("The model", text, {}, {"model": (figure, caption)}, further_tables={"covariance": rows})


def _covariance(root: Node, x: Array) -> Array:
    return root.covariance(x[:, np.newaxis], latent=True)[:, 0, :, 0]


def _distinct_trees(root: Node, x: Array) -> list[tuple[float, Array]]:
    """Weights and covariances of the induced trees, those that agree in the first output taken together."""
    found: dict[bytes, tuple[float, Array]] = {}
    for log_weight, tree in root.induced_trees():
        covariance = _covariance(tree, x)
        weight, _ = found.get(covariance.tobytes(), (0.0, covariance))
        found[covariance.tobytes()] = (weight + float(np.exp(log_weight)), covariance)
    return list(found.values())


def _figure(root: Node, x: Array, total: Array, parts: list[tuple[float, Array]]) -> Any:
    import matplotlib.pyplot as plt

    from spngp.plotting import NetworkDisplay

    def leaf_text(leaf: Leaf) -> str:
        return f"{short_name(leaf.kernel)}\noutput {leaf.output}"

    figure: Any = plt.figure(figsize=(11.5, 5.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.55, 1])
    NetworkDisplay.from_network(root, ax=left.subplots(), input_names=["x"], leaf_text=leaf_text)
    grid = right.add_gridspec(2, len(parts), height_ratios=[2.4, 1])
    panels = [(right.add_subplot(grid[0, :]), total, "")]
    panels += [(right.add_subplot(grid[1, i]), part, f"{w:.2f} ×") for i, (w, part) in enumerate(parts)]
    for ax, matrix, title in panels:
        image = ax.pcolormesh(x, x, matrix, cmap="Greys", vmin=0.0, vmax=1.0, rasterized=True)
        ax.set(aspect="equal", title=title, xticks=[0, 4, 7, 10], yticks=[0, 4, 7, 10])
        ax.invert_yaxis()
    panels[0][0].set(xlabel="x", ylabel="x′", title="prior covariance of output 0")
    right.colorbar(image, ax=panels[0][0], label="covariance")
    return figure
