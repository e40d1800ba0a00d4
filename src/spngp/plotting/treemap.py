"""Regions as a treemap: how many rows each has, and how well its experts explain them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from spngp._support.checks import as_count
from spngp._support.wording import counted
from spngp.box import sides_text
from spngp.plotting import _style
from spngp.plotting.expert_regions import ExpertRegion, expert_regions
from spngp.plotting.lines import input_names

_SHOWN = 300  # regions, at most: smaller ones could not be told apart


def squarified(areas: Sequence[float], width: float, height: float) -> list[tuple[float, float, float, float]]:
    """Divide a rectangle into smaller ones of given areas, each as square as possible (Bruls et al., 2000).

    Areas are in descending order; only their ratios count. Returns (x, y, width, height) of each.

    Examples
    --------
    >>> from spngp.plotting.treemap import squarified
    >>> squarified([2.0, 1.0, 1.0], width=4.0, height=2.0)
    [(0.0, 0.0, 2.0, 2.0), (2.0, 0.0, 2.0, 1.0), (2.0, 1.0, 2.0, 1.0)]
    """
    total = float(np.sum(areas))
    left = [area * width * height / total for area in areas]
    rectangles: list[tuple[float, float, float, float]] = []
    x = y = 0.0
    while left:
        side = min(width, height)
        count = 1
        while count < len(left) and _worst(left[: count + 1], side) <= _worst(left[:count], side):
            count += 1
        strip, left = left[:count], left[count:]
        depth = sum(strip) / side
        at = 0.0
        for area in strip:
            length = area / depth
            rectangles.append((x, y + at, depth, length) if width >= height else (x + at, y, length, depth))
            at += length
        if width >= height:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth
    return rectangles


def _worst(strip: Sequence[float], side: float) -> float:
    """The largest ratio of sides among the rectangles of a strip along ``side``."""
    depth = sum(strip) / side
    return max(max(area / depth**2, depth**2 / area) for area in strip)


class RegionsDisplay:
    """Each region a rectangle: its area the training rows (times the region's weight), its colour the evidence per row.

    Dark rectangles are where the model explains its data least well, in nats per row.

    Parameters
    ----------
    regions : sequence of ExpertRegion
    input_names : list of str

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure

    Examples
    --------
    >>> from spngp import SPNGPRegressor, datasets
    >>> from spngp.plotting import RegionsDisplay
    >>> data = datasets.load("motorcycle")
    >>> model = SPNGPRegressor(max_leaf_size=50, hyperparameters="fixed", random_state=0).fit(data.X, data.Y[:, 0])
    >>> len(RegionsDisplay.from_estimator(model).ax_.patches)
    4
    """

    def __init__(self, regions: Sequence[ExpertRegion], input_names: list[str]) -> None:
        self.regions = [region for region in regions if region.rows * region.weight > 0][:_SHOWN]
        if not self.regions:
            raise ValueError("regions must hold at least one with training rows, got none")
        self._names = input_names

    @classmethod
    def from_estimator(cls, estimator: Any, *, output: int = 0, ax: Any = None) -> Self:
        """Draw the regions of a fitted model, the 300 largest if there are more."""
        output = as_count(output, "output", 0)
        if output >= estimator.n_outputs_:
            raise ValueError(f"output must be less than {estimator.n_outputs_}, got {output}")
        return cls(expert_regions(estimator, output), input_names(estimator)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, with text in the rectangles that have room for it."""
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from matplotlib.patches import Rectangle

        ax = _style.axes(ax, figsize=(8.0, 5.0))
        evidence = np.array([region.log_evidence_per_row for region in self.regions])
        low, high = _style.widened(evidence.min(), evidence.max())
        colour = ScalarMappable(Normalize(low, high), colormaps["cividis"])
        rectangles = squarified([region.rows * region.weight for region in self.regions], 1.6, 1.0)
        for region, value, (x, y, width, height) in zip(self.regions, evidence, rectangles, strict=True):
            face = colour.to_rgba(value)
            ax.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=ax.get_facecolor(), lw=1.5))
            if width > 0.16 and height > 0.09:
                text = "\n".join([counted(region.rows, "row"), *self._sides(region, width, height)])
                ink = "white" if value < 0.5 * (low + high) else "black"
                ax.text(x + 0.012, y + 0.015, text, color=ink, fontsize=7.5, va="top", parse_math=False, clip_on=True)
        ax.set(xlim=(0, 1.6), ylim=(1, 0))
        ax.axis("off")
        ax.figure.colorbar(colour, ax=ax, label="log evidence per row (nats)", pad=0.02)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _sides(self, region: ExpertRegion, width: float, height: float) -> list[str]:
        """The sides of the box, as many as there is room for."""
        sides = sides_text(region.low, region.high, self._names, "{:.4g}".format)
        room = int(width / 0.0145), int(height / 0.045) - 1
        shown = [side if len(side) <= room[0] else side[: room[0] - 1] + "…" for side in sides]
        return shown if len(shown) <= room[1] else [*shown[: max(room[1] - 1, 0)], "…"][: room[1]]
