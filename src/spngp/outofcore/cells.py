"""The steps of a cell: its regions learn from their own rows, then see the rows around them.

What is done for a region is what a fit in memory does, by the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from spngp._support.progress import Progress
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.estimators.rows import canonical_order
from spngp.gp.optimisation import Convergence
from spngp.io.shards import read_network, shard_path, write_cell, write_network
from spngp.learning.defaults import MOST_OVERLAP
from spngp.learning.learnt import LEAST_WEIGHT
from spngp.learning.plan import Plan
from spngp.learning.regional import learn_regions, prior_of
from spngp.network import Node, conditioning
from spngp.network.placement import place, route
from spngp.network.pruning import prune
from spngp.network.rescaling import in_units
from spngp.network.row_noise import RowNoise
from spngp.noise import GAUSSIAN
from spngp.outofcore.spill import matrix, numbered, read_group, write_groups
from spngp.outofcore.work import Frame, Summary, Work
from spngp.structure import Compact, tiling
from spngp.structure.cells import regions_of
from spngp.structure.context import NearestContext


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows of a cell, or rows around it, in the units of the user, with their noise in those of learning.

    Attributes
    ----------
    X, Y : ndarray
    numbers : ndarray
        The number of each row in the data set.
    local : ndarray of shape (n, kinds)
        The variance of the noise of each row, as the experts of its region know it; a column for each kind
        (:func:`spngp.network.row_noise.kinds_of`).
    own_noise : ndarray of shape (n, p)
        The noise variance of outputs in doubt, NaN elsewhere.
    noted : ndarray
        What is known of their noise beside it, see :meth:`spngp.outofcore.facts.Facts.noted`.
    """

    X: Array
    Y: Array
    numbers: Indices
    local: Array
    own_noise: Array
    noted: Array

    def columns(self) -> dict[str, Any]:
        """As columns of a spill file."""
        parts = {"x": self.X, "y": self.Y, "local": self.local, "doubt": self.own_noise, "noted": self.noted}
        named = [numbered(prefix, values) for prefix, values in parts.items()]
        return {"row": self.numbers, **{name: values for columns in named for name, values in columns.items()}}

    @staticmethod
    def of(columns: dict[str, Any], frame: Frame) -> CellRows:
        """From columns of a spill file."""
        d, p = frame.sizes
        X, Y, noted = matrix(columns, "x", d), matrix(columns, "y", p), matrix(columns, "noted", frame.facts.count(p))
        local = matrix(columns, "local", len(frame.noise_kinds))
        return CellRows(X, Y, columns["row"], local, matrix(columns, "doubt", p), noted)

    @staticmethod
    def joined(parts: list[CellRows]) -> CellRows:
        """One after the other."""
        return CellRows(*(np.concatenate([getattr(part, of.name) for part in parts]) for of in fields(CellRows)))

    def taken(self, rows: Indices) -> CellRows:
        """Some of them."""
        return CellRows(*(getattr(self, of.name)[rows] for of in fields(self)))


def own_rows(work: Work, cell: int) -> CellRows:
    """The rows of a cell that has been learnt."""
    return CellRows.of(read_group(work.cell(cell), 0), work.known())


def learn_cell(work: Work, cell: int) -> Summary:
    """Cut a cell into regions, learn their experts and judge their outputs, and condition them on their rows."""
    frame = work.known()
    X, Y, numbers, noted = _gathered(work, frame, cell)
    plan, box = replace(frame.ground.plan, n_jobs=None, variances=frame.known(noted)), frame.tree.boxes()[cell]
    W, Z = plan.units.inputs.apply(X), plan.units.outputs.apply(Y)
    beyond = np.abs(Z) > frame.reach
    own_noise = np.where(beyond, Z * Z, np.nan) if beyond.any() else None
    rng = np.random.default_rng([frame.seed, cell])
    strategy = plan.strategy(frame.ground.tied.scales)
    assert isinstance(strategy, Compact)
    with one_blas_thread():
        regions = replace(strategy, whole_size=0).regions(W, rng, whole=box)
        tied = replace(frame.ground.tied, regions=regions)
        found = learn_regions(
            *(tied, W, Z, own_noise, frame.ground.curvatures, plan, rng, Convergence(), Progress(False)),
            doubts=plan.doubts_outliers and plan.hyperparameters != "fixed",
            part=True,
            again=frame.again,
        )
        prior = prior_of(found.tied.regions, found.experts, plan)
        own = conditioning.condition(
            *(prior, W, Z),
            own_noise=found.own_noise,
            variances=plan.variances,
            known=found.own,
            keep=conditioning.no_factors,
        )
        noise = RowNoise.of(place(own), W, None, frame.noise_kinds)
        own = prune(own, 0.0)  # experts of no weight at all, as in memory
        placed = place(own)
    doubted = np.full(Z.shape, np.nan) if found.own_noise is None else found.own_noise
    kept = _copies_that_count(X, plan)
    rows = CellRows(X, Y, numbers, noise.local, doubted, noted).taken(kept)
    write_groups(work.cell(cell), rows.columns(), np.array([0, kept.size]))
    write_network(work.own(cell), own, rows.X, rows.Y, plan.units)
    boxes = list(dict.fromkeys(item.box for item in placed if not item.children))
    inside = {item.box: own_rows for item, own_rows in zip(placed, route(placed, W), strict=True)}
    corners = [at.intersection(box).corners(W.shape[1]) for at in boxes]
    return {
        "low": np.array([low for low, _ in corners]),
        "high": np.array([high for _, high in corners]),
        "rows": np.array([inside[at].size for at in boxes]),
        "cut_for_size": np.array(len(tiling(regions))),
        "tied": np.array(noise.tied).reshape(-1, 2),
        "in_doubt": _in_doubt(numbers, doubted),
        "widens": (~np.isnan(doubted) & ~beyond).any(axis=0),
    }


def _copies_that_count(X: Array, plan: Plan) -> Indices:
    """Rows without the copies of equal ones that are too many to be context, or to be told from as many as that.

    Equal rows are seen together or not at all: more of them than a leaf may see are not seen
    (:func:`spngp.structure.context.nearest`), however many more.
    """
    overlap = MOST_OVERLAP if plan.overlap is None else float(np.asarray(plan.overlap))
    most = max(int(2.0 * overlap * plan.block_size), plan.block_size) + 2
    new = np.flatnonzero(np.concatenate([[True], (X[1:] != X[:-1]).any(axis=1)]))
    rank = np.arange(X.shape[0]) - np.repeat(new, np.diff(np.append(new, X.shape[0])))
    return np.flatnonzero(rank < most)


def _in_doubt(numbers: Indices, doubted: Array) -> Indices:
    rows, outputs = np.nonzero(~np.isnan(doubted))
    return np.stack([numbers[rows], outputs], axis=1)


def _gathered(work: Work, frame: Frame, cell: int) -> tuple[Array, Array, Indices, Array]:
    """The rows of a cell from all parts, in the canonical order: inputs, outputs, numbers, what is known of noise."""
    d, p = frame.sizes
    parts = [
        read_group(work.part(*numbers), cell)
        for numbers, rows in zip(frame.parts.tolist(), frame.part_rows[:, cell], strict=True)
        if rows
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    X, Y, noted = matrix(columns, "x", d), matrix(columns, "y", p), matrix(columns, "noted", frame.facts.count(p))
    order = canonical_order(X, Y)
    return X[order], Y[order], columns["row"][order], noted[order]


def see_around(work: Work, cell: int) -> Summary:
    """Let the regions of a cell see the rows around them, and write the shard."""
    frame, network = work.known(), read_network(work.own(cell))
    units, own = frame.ground.plan.units, own_rows(work, cell)
    rows = own
    with one_blas_thread():
        if frame.overlap:
            sources = [source for source in np.flatnonzero(frame.halos[:, cell]).tolist() if source != cell]
            halos = [CellRows.of(read_group(work.halo(source), cell), frame) for source in sources]
            rows = CellRows.joined([own, *halos])
            network = _seeing(frame, network, cell, rows, dict(zip(sources, halos, strict=True)), own.numbers.size)
    tree, regions = regions_of(network)
    size = write_cell(shard_path(work.shards, cell), tree, regions, rows.X, rows.Y, units)
    leaves = [(region, placed) for region, node in enumerate(regions) for placed in node.responsibilities()]
    return {
        "size": np.array([size]),
        "log_evidence": np.array([in_units(network, units, lambda leaf: GAUSSIAN).log_evidence]),
        "region": np.array([region for region, _ in leaves]),
        "output": np.array([placed.leaf.output for _, placed in leaves]),
        "weight": np.array([placed.weight for _, placed in leaves]),
        "own": np.array([placed.leaf.gp.n_own for _, placed in leaves]),
        "alone": np.array([placed.leaf.gp.rows_seen_once.size for _, placed in leaves]),
        "noise": np.array([placed.leaf.noise_variance for _, placed in leaves]),
    }


def _seeing(frame: Frame, network: Node, cell: int, rows: CellRows, halos: dict[int, CellRows], n_own: int) -> Node:
    """The network of a cell with leaves that see context among ``rows``: the cell's own, then those around it."""
    plan, cells = frame.ground.plan, frame.tree.boxes()
    W, Z = plan.units.inputs.apply(rows.X), plan.units.outputs.apply(rows.Y)
    placed = place(network)
    inside = {
        item.box.intersection(cells[cell]): own for item, own in zip(placed, route(placed, W[:n_own]), strict=True)
    }
    tiles = list(dict.fromkeys(item.box.intersection(cells[cell]) for item in placed if not item.children))
    start = n_own
    for source, halo in halos.items():
        tiles.append(cells[source])
        inside[cells[source]] = np.arange(start, start + halo.numbers.size)
        start += halo.numbers.size
    most = int(frame.overlap * plan.block_size)
    nearest = NearestContext(W, inside, tiles, frame.ground.tied.scales, frame.overlap, most)

    def context(box: Box) -> Indices:
        return nearest(box.intersection(cells[cell]))

    doubted = None if np.isnan(rows.own_noise).all() else rows.own_noise
    noise = RowNoise(dict(zip(frame.noise_kinds, rows.local.T, strict=True)), frame.tied_noise, doubted)
    return conditioning.add_context(
        *(network, W, Z, context),
        least_weight=LEAST_WEIGHT,
        variances=frame.known(rows.noted),
        keep=conditioning.no_factors,
        row_noise=noise,
    )
