"""The network drawn: sums, splits and products as nodes, kernels at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np

from spngp._support.wording import counted
from spngp.kernels.names import short_name
from spngp.network import Leaf, Node, Product, Split, Sum
from spngp.plotting import _style
from spngp.plotting.layout import Layout, layered
from spngp.plotting.lines import input_names
from spngp.plotting.names import leaf_name

# To a child: it, a label and a weight.
_Edge: TypeAlias = tuple[Node, str, float]

_MOST_NODES = 300
_FEWEST_GROUPED = 4  # leaves of one kernel under one sum
# In inches, at a font size of 8 points.
_RADIUS, _LAYER, _GAP, _LETTER = 0.14, 0.8, 0.22, 0.068


@dataclass
class _Drawn:
    """A node as it will be drawn."""

    node: Node
    lines: list[str]  # of text; none for a circle
    children: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # of the edges to the children
    weights: list[float] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max([len(line) for line in self.lines], default=0) * _LETTER + 0.16 if self.lines else 2 * _RADIUS

    @property
    def height(self) -> float:
        return 0.13 * len(self.lines) + 0.12 if self.lines else 2 * _RADIUS


class NetworkDisplay:
    """A network, prior or posterior. A node with several parents is drawn once.

    Circles with + are sums, with their children's weights at the edges; circles with × are products over outputs;
    boxes with an input's name are splits: their edges leave in the order of the parts, low to high, between the cuts;
    coloured boxes are leaves.

    Parameters
    ----------
    network : Node
    input_names : sequence of str, optional
        x0, x1, … by default.
    position : callable, optional
        ``position(axis, cut)`` turns a cut into the units to show; as it is by default.
    leaf_text : callable, optional
        ``leaf_text(leaf)`` gives the text of a leaf, lines separated by newlines; by default the kernel's short name
        and the number of rows if there are any.
    max_depth : int, optional
        Number of edges from the root to the lowest nodes drawn; what is below these is left out. By default as large as
        possible with at most 300 nodes.
    least_weight : float
        Children of sums with a smaller weight are left out.
    group_settings : bool
        Whether four or more leaves of one kernel under one sum, which differ in their parameters only, are drawn as
        one, with their number and their weights added up.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    n_drawn_ : int
        Nodes drawn.

    Examples
    --------
    >>> from spngp.kernels import Linear, SquaredExponential
    >>> from spngp.network import Leaf, Split, Sum
    >>> from spngp.plotting import NetworkDisplay
    >>> smooth = Leaf(SquaredExponential())
    >>> display = NetworkDisplay.from_network(Sum([Split(0, [35.0], [smooth, Leaf(Linear())]), smooth]))
    >>> display.n_drawn_
    4
    """

    def __init__(
        self,
        network: Node,
        *,
        input_names: Sequence[str] | None = None,
        position: Callable[[int, float], float] | None = None,
        leaf_text: Callable[[Leaf], str] | None = None,
        max_depth: int | None = None,
        least_weight: float = 0.0,
        group_settings: bool = False,
    ) -> None:
        self.network = network
        self._names = input_names
        self._position = position or (lambda axis, cut: cut)
        self._leaf_text = leaf_text or _leaf_text
        self._max_depth, self._least_weight = max_depth, least_weight
        self._groups_settings = group_settings
        self._settings: dict[int, int] = {}  # of a leaf that stands for others: how many they are

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, least_weight: float = 1e-3, **options: Any) -> Self:
        """Draw the posterior network of a fitted model, cuts in the units of X; unlikely alternatives are left out."""
        options = {"input_names": input_names(estimator), "group_settings": True, **options}
        return cls(estimator.network_, least_weight=least_weight, **options).plot(ax)

    @classmethod
    def from_network(cls, network: Node, *, ax: Any = None, **options: Any) -> Self:
        """Draw a network, in its own units."""
        return cls(network, **options).plot(ax)

    def plot(self, ax: Any = None, *, colours: dict[str, str] | None = None) -> Self:
        """Draw; ``colours`` maps names of leaves (labels, or short names of kernels) to colours.

        Without ``ax`` the figure is made as large as the network needs.
        """
        drawn = self._fitting() if self._max_depth is None else self._drawn(self._kept(self._max_depth)[0])
        layout = layered([item.children for item in drawn], [item.width for item in drawn], _GAP)
        left = min(float(x) - 0.5 * item.width for x, item in zip(layout.x, drawn, strict=True)) - 0.1
        right = max(float(x) + 0.5 * item.width for x, item in zip(layout.x, drawn, strict=True)) + 0.1
        # wide networks get more height, so that long edges are not flat
        self._step = _LAYER * float(np.clip((right - left) / 12.0, 1.0, 1.8))
        bottom, top = -self._step * max(layout.layer) - 0.35, 0.3
        ax = _style.axes(ax, figsize=(max(right - left, 1.0), top - bottom))
        ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        ax.axis("off")
        box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
        scale = min(box.width / (right - left), box.height / (top - bottom), 1.25)
        names = list(dict.fromkeys(leaf_name(item.node) for item in drawn if isinstance(item.node, Leaf)))
        self._draw_edges(ax, drawn, layout, 8.0 * scale)
        self._draw_nodes(ax, drawn, layout, 8.0 * scale, _style.colours(names) | (colours or {}))
        self.n_drawn_ = len(drawn)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _fitting(self) -> list[_Drawn]:
        """All nodes, or as many layers of them as can be told apart."""
        kept, whole = self._kept(1)
        depth = 1
        while not whole:
            deeper, whole = self._kept(depth + 1)
            if len(deeper) > _MOST_NODES:
                break
            depth, kept = depth + 1, deeper
        return self._drawn(kept)

    def _kept(self, max_depth: int) -> tuple[dict[int, list[_Edge]], bool]:
        """The edges of each node down to a depth, breadth first, and whether that is the whole network."""
        depth, kept = {id(self.network): 0}, {}
        whole = True
        queue = [self.network]
        for node in queue:  # grows while it is walked
            kept[id(node)] = self._edges(node) if depth[id(node)] < max_depth else []
            whole &= depth[id(node)] < max_depth or not node.children
            for child, _, _ in kept[id(node)]:
                if id(child) not in depth:
                    depth[id(child)] = depth[id(node)] + 1
                    queue.append(child)
        return kept, whole

    def _drawn(self, kept: dict[int, list[_Edge]]) -> list[_Drawn]:
        """The nodes to draw, parents before children."""
        order: list[Node] = []
        seen: set[int] = set()
        stack: list[tuple[Node, bool]] = [(self.network, False)]
        while stack:  # depth first; the reverse of the order in which nodes are left has parents first
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack += [(child, False) for child, _, _ in kept[id(node)]]
        order.reverse()
        place = {id(node): i for i, node in enumerate(order)}
        drawn = []
        for node in order:
            edges = kept[id(node)]
            item = _Drawn(node, self._lines(node, bool(edges)))
            item.children = [place[id(child)] for child, _, _ in edges]
            item.labels = [label for _, label, _ in edges]
            item.weights = [weight for _, _, weight in edges]
            drawn.append(item)
        return drawn

    def _edges(self, node: Node) -> list[_Edge]:
        if isinstance(node, Sum):
            weights = node.weights.tolist()
            pairs = self._grouped(list(zip(node.children, weights, strict=True)))
            kept = [(child, _share(weight), weight) for child, weight in pairs if weight >= self._least_weight]
            return kept or [(node.children[int(np.argmax(weights))], "", max(weights))]
        return [(child, "", 1.0) for child in node.children]

    def _grouped(self, pairs: list[tuple[Node, float]]) -> list[tuple[Node, float]]:
        """Children of a sum, with weights; many leaves of one kernel become the heaviest, with the weight of all."""
        if not self._groups_settings:
            return pairs
        by_name: dict[str, list[tuple[Leaf, float]]] = {}
        for child, weight in pairs:
            if isinstance(child, Leaf):
                by_name.setdefault(leaf_name(child), []).append((child, weight))
        found: list[tuple[Node, float]] = []
        for child, weight in pairs:
            members = by_name[leaf_name(child)] if isinstance(child, Leaf) else []
            if len(members) < _FEWEST_GROUPED:
                found.append((child, weight))
            elif child is members[0][0]:
                heaviest = max(members, key=lambda member: member[1])[0]
                self._settings[id(heaviest)] = len(members)
                found.append((heaviest, sum(share for _, share in members)))
        return found

    def _lines(self, node: Node, has_children: bool) -> list[str]:
        if isinstance(node, Leaf):
            settings = [counted(self._settings[id(node)], "setting")] if id(node) in self._settings else []
            return [*self._leaf_text(node).split("\n"), *settings]
        if not has_children:
            return [counted(sum(1 for _ in node.responsibilities()), "leaf", "leaves")]
        if isinstance(node, Split):
            name = f"x{node.axis}" if self._names is None else str(self._names[node.axis])
            return [name, " | ".join(f"{self._position(node.axis, cut):.4g}" for cut in node.at)]
        return []

    def _draw_edges(self, ax: Any, drawn: list[_Drawn], layout: Layout, size: float) -> None:
        colour = _style.foreground()
        for i, item in enumerate(drawn):
            for place, (label, weight) in enumerate(zip(item.labels, item.weights, strict=True)):
                points = [(x, -self._step * level) for x, level in layout.routes[i, place]]
                if isinstance(item.node, Split):
                    share = (place + 0.5) / len(item.children) - 0.5
                    points[0] = (points[0][0] + share * item.width, points[0][1] - 0.5 * item.height)
                strength = 0.25 + 0.55 * weight**0.5
                ax.plot(*zip(*points, strict=True), color=colour, lw=0.5 + 1.1 * weight, alpha=strength, zorder=1)
                if label:
                    (x0, y0), (x1, y1) = points[0], points[1]
                    ax.text(
                        x0 + 0.55 * (x1 - x0),
                        y0 + 0.55 * (y1 - y0),
                        label,
                        ha="center",
                        va="center",
                        fontsize=size,
                        parse_math=False,
                        zorder=2,
                        bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8},
                    )

    def _draw_nodes(self, ax: Any, drawn: list[_Drawn], layout: Layout, size: float, colours: dict[str, str]) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Circle, FancyBboxPatch

        background = np.array(to_rgb(ax.get_facecolor()))
        for item, x, level in zip(drawn, layout.x, layout.layer, strict=True):
            y = -self._step * level
            edge = colours[leaf_name(item.node)] if isinstance(item.node, Leaf) else _style.foreground()
            face = 0.75 * background + 0.25 * np.array(to_rgb(edge)) if isinstance(item.node, Leaf) else background
            style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "lw": 1.2, "zorder": 3}
            if item.lines:
                corner = (x - 0.5 * item.width, y - 0.5 * item.height)
                shape = "round,pad=0,rounding_size=0.06" if isinstance(item.node, Leaf) else "square,pad=0"
                ax.add_patch(FancyBboxPatch(corner, item.width, item.height, boxstyle=shape, **style))
                text = "\n".join(item.lines)
                ax.text(x, y, text, ha="center", va="center", fontsize=size, zorder=4, parse_math=False)
                continue
            ax.add_patch(Circle((x, y), _RADIUS, **style))
            arm = 0.5 * _RADIUS
            strokes = [((-arm, arm), (0, 0)), ((0, 0), (-arm, arm))]
            if isinstance(item.node, Product):
                diagonal = (-0.75 * arm, 0.75 * arm)
                strokes = [(diagonal, diagonal), (diagonal, diagonal[::-1])]
            for dx, dy in strokes:
                ax.plot([x + d for d in dx], [y + d for d in dy], color=edge, lw=1.2, zorder=4)


def _leaf_text(leaf: Leaf) -> str:
    rows = f"\n{counted(leaf.gp.n_own, 'row')}" if leaf.gp.n_own else ""
    return short_name(leaf.kernel).replace(" + ", "\n+ ") + rows


def _share(weight: float) -> str:
    if weight < 0.005:
        return f"{weight:.0e}".replace("e-0", "e−").replace("e-", "e−") if weight > 0 else "0"
    return f"{weight:.2f}".lstrip("0") if weight < 0.995 else "1"
