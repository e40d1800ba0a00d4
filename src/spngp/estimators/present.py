"""What a model knows at present: as it was learnt, as a living model that rows have come to since, or in shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from spngp._support.threads import map_leaves, one_blas_thread
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.estimators.completion import cut_categories
from spngp.kernels import Kernel, PiecewiseConstant, Step
from spngp.kernels.located import of_kind
from spngp.learning import Learnt
from spngp.learning.sharded import Group, Sharded
from spngp.learning.upkeep import Event
from spngp.network import Leaf, Node, prediction
from spngp.network.units import Units
from spngp.noise import NoiseShape
from spngp.streaming import Living, components, current_shapes, frozen, routed

Present: TypeAlias = Learnt | Living | Sharded

_NOT_AT_ONCE = "a model in shards has {} in its shards, not in memory; {}"


def as_networks(now: Present, n_jobs: int | None) -> Learnt:
    """With all rows, as networks."""
    if isinstance(now, Sharded):
        raise ValueError(_NOT_AT_ONCE.format("its network", "it predicts, and regions_ lists its experts"))
    return frozen(now, n_jobs) if isinstance(now, Living) else now


def units_of(now: Present) -> Units:
    """The units that learning works in."""
    return (now.base if isinstance(now, Living) else now).units


def remembered(now: Present) -> tuple[Array, Array]:
    """Rows and outputs learnt from, without making networks."""
    if isinstance(now, Sharded):
        raise ValueError(_NOT_AT_ONCE.format("its rows", "give rows where they are asked for"))
    return (now.log.X.values, now.log.Y.values) if isinstance(now, Living) else (now.X, now.Y)


def numbers_of(now: Present) -> tuple[Indices, int]:
    """The number of each row remembered, weights counted as repetition, and how many rows have ever come."""
    if isinstance(now, Living):
        return now.log.numbers.values, now.log.n_ever
    if isinstance(now, Sharded):
        return np.arange(now.n_rows), now.n_rows
    if now.upkeep is not None:
        return now.upkeep.numbers, now.upkeep.n_ever
    return np.arange(now.X.shape[0]), now.X.shape[0]


def events_of(now: Present) -> tuple[Event, ...]:
    """Changes of the structure since the fit."""
    if isinstance(now, Living):
        return now.events
    return () if isinstance(now, Sharded) or now.upkeep is None else tuple(now.upkeep.events)


def doubted_of(now: Learnt | Living) -> tuple[Indices, Indices]:
    """Outputs in doubt: the position of the row, and which output."""
    own_noise = now.own_noise(now.log.numbers.values) if isinstance(now, Living) else now.own_noise
    if own_noise is None:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    rows, outputs = np.nonzero(~np.isnan(own_noise))
    return rows, outputs


def donors_of(now: Present) -> Array:
    """Rows that lack nothing, of which rows that lack inputs take them."""
    return now.donors if isinstance(now, Sharded) else remembered(now)[0]


def cut_categories_of(now: Present, levels: Sequence[int], n_jobs: int | None) -> list[int]:
    """The inputs of levels along which regions are cut; ``levels`` are the numbers of them."""
    if not any(count > 2 for count in levels):
        return []
    if isinstance(now, Sharded):
        return [j for j, count in enumerate(levels) if count > 2 and j in now.cut_axes]
    return cut_categories(levels, as_networks(now, n_jobs).network)


def noise_shapes_of(now: Present, n_jobs: int | None) -> list[NoiseShape]:
    """The shape of each output's noise, without surprises."""
    return list(current_shapes(now, n_jobs)) if isinstance(now, Living) else now.noise_shapes


def log_evidence_of(now: Present) -> float:
    """Of all rows remembered, in the units of the user."""
    return float(now.network.log_evidence) if isinstance(now, Learnt) else now.log_evidence


def shares_of(now: Present) -> Array | None:
    """The shares of a row that the rows remembered count as; None if all are whole."""
    return now.shares if isinstance(now, Learnt) else None


def components_of(now: Present, rows: Array, n_jobs: int | None) -> prediction.Components:
    """The predictions of the leaves that rows reach."""
    if isinstance(now, Living):
        return components(now, rows, n_jobs)
    with one_blas_thread():
        if isinstance(now, Sharded):
            groups = now.by_region(rows)

            def predicted(group: Group) -> prediction.Components:
                return prediction.components(now.network_of(group.cell, group.region), rows[group.rows], None)

            found = map_leaves(predicted, groups, n_jobs)
            return prediction.joined([(group.rows, part) for group, part in zip(groups, found, strict=True)])
        return prediction.components(now.network, rows, n_jobs)


def averaged_of(now: Present, rows: Array, value: prediction.Value, n_jobs: int | None) -> Array:
    """Average of a value over the leaves that rows reach, shape (n, outputs)."""
    if isinstance(now, Living):
        return prediction.averaged(routed(now, rows, n_jobs), rows, value, n_jobs)
    if isinstance(now, Learnt):
        return prediction.average(now.network, rows, value, n_jobs)
    found = np.zeros((rows.shape[0], now.counts.size))

    def average(group: Group) -> None:
        network = now.network_of(group.cell, group.region)
        found[group.rows] = prediction.average(network, rows[group.rows], value)

    map_leaves(average, now.by_region(rows), n_jobs)
    return found


def records_of(now: Present, n_jobs: int | None) -> list[dict[str, Any]]:
    """One plain record per expert, see :func:`region_records`."""
    shapes, d = noise_shapes_of(now, n_jobs), units_of(now).inputs.mean.size
    if not isinstance(now, Sharded):
        return region_records(as_networks(now, n_jobs).network, shapes, d)
    records = []
    for cell, region, network in now.regions():
        records += region_records(network, shapes, d, now.box_of(cell, region))
    return records


def region_records(
    network: Node, shapes: list[NoiseShape], d: int, whole: Box = Box.EVERYWHERE
) -> list[dict[str, Any]]:
    """One plain record per expert of a network in the box ``whole``: box, rows, kernel, noise, evidence and so on."""
    records = []
    for leaf, box, weight in network.responsibilities():
        low, high = box.intersection(whole).corners(d)
        table = leaf.kernel.parameters
        records.append(
            {
                "low": low.tolist(),
                "high": high.tolist(),
                "output": leaf.output,
                "rows": leaf.gp.n_own,
                "context_rows": leaf.gp.n_context,
                "kernel": leaf.label,
                "parameters": dict(zip(table.names, table.values.tolist(), strict=True)),
                "identities": [asdict(identity) for identity in table.identities],
                "steps": [{"input": step.axis, "at": step.at} for step in of_kind(leaf.kernel, Step)],
                "jumps": _jumps_of(leaf.kernel, low, high),
                "noise_std": noise_std(leaf, shapes),
                "noise_varies": leaf.gp.noise_profile is not None,
                "log_evidence": leaf.log_evidence,
                "weight": weight,
            }
        )
    return records


def _jumps_of(kernel: Kernel, low: Array, high: Array) -> list[dict[str, Any]]:
    """Inputs along which a kernel is constant between cuts, and its cuts in a box."""
    found = of_kind(kernel, PiecewiseConstant)
    inside = [[cut for cut in part.at if low[part.axis] < cut < high[part.axis]] for part in found]
    return [{"input": part.axis, "at": cuts} for part, cuts in zip(found, inside, strict=True) if cuts]


def noise_std(leaf: Leaf, shapes: list[NoiseShape]) -> float:
    """Standard deviation of the noise of a leaf, without surprises."""
    return float(np.sqrt(leaf.noise_variance * shapes[leaf.output].variance))
