"""Colours and axes shared by all figures.

Colours are Okabe and Ito's, told apart by people with any common colour blindness. Greys run from the background of
the axes to the colour of its text, so a figure suits a dark style as well as a light one.
"""

from __future__ import annotations

from typing import Any

from spngp._support.types import Array

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#f0e442",
)
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)


def axes(ax: Any, **figure: Any) -> Any:
    """The axes to draw on: as given, or those of a new figure."""
    return ax if ax is not None else _pyplot().subplots(layout="constrained", **figure)[1]


def foreground() -> Any:
    """The colour of text in the present style."""
    import matplotlib

    return matplotlib.rcParams["text.color"]


def mean_colour(ax: Any) -> str:
    """A blue that stands out from the background of the axes."""
    red, green, blue, _ = ax.get_facecolor()
    return BLUE if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else SKY


def two_axes(axes: Any, **figure: Any) -> Any:
    """The two axes to draw on: as given, or those of a new figure, side by side."""
    return axes if axes is not None else _pyplot().subplots(1, 2, layout="constrained", **figure)[1]


def grid_of_axes(n: int, columns: int) -> list[Any]:
    """Axes for ``n`` panels of a new figure, in rows of ``columns``; places left over stay empty."""
    columns = min(n, columns)
    rows = -(-n // columns)
    _, axes = _pyplot().subplots(
        rows,
        columns,
        figsize=(max(6.4, 3.6 * columns), 3.4 * rows if n > 1 else 4.2),
        layout="constrained",
        squeeze=False,
    )
    panels = list(axes.ravel())
    for spare in panels[n:]:
        spare.set_axis_off()
    return panels[:n]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: install spngp[plot]") from error
    return plt


def greys(ax: Any) -> Any:
    """A colour map from the background of the axes to the colour of text."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("density", [ax.get_facecolor(), foreground()])


def colours(names: list[str]) -> dict[str, str]:
    """A colour for each name, by its place in the list."""
    return {name: CYCLE[i % len(CYCLE)] for i, name in enumerate(names)}


def widened(low: float, high: float, share: float = 0.03) -> tuple[float, float]:
    """Limits with a margin on either side; of width one where they coincide."""
    margin = share * (high - low) if high > low else 0.5
    return low - margin, high + margin


def limits(values: Array) -> tuple[float, float]:
    """Limits that hold all the values, with a margin."""
    return widened(float(values.min()), float(values.max()))
