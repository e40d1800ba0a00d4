"""What a model knows at present: as it was learnt, or as a living model that rows have come to since."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from spngp._support.threads import one_blas_thread
from spngp._support.types import Array, Indices
from spngp.learning import Learnt
from spngp.learning.upkeep import Event
from spngp.network import Leaf, Node, prediction
from spngp.network.units import Units
from spngp.noise import NoiseShape
from spngp.streaming import Living, components, current_shapes, frozen, routed

Present: TypeAlias = Learnt | Living


def as_networks(now: Present, n_jobs: int | None) -> Learnt:
    """With all rows, as networks."""
    return frozen(now, n_jobs) if isinstance(now, Living) else now


def units_of(now: Present) -> Units:
    """The units that learning works in."""
    return (now.base if isinstance(now, Living) else now).units


def remembered(now: Present) -> tuple[Array, Array]:
    """Rows and outputs learnt from, without making networks."""
    return (now.log.X.values, now.log.Y.values) if isinstance(now, Living) else (now.X, now.Y)


def numbers_of(now: Present) -> tuple[Indices, int]:
    """The number of each row remembered, weights counted as repetition, and how many rows have ever come."""
    if isinstance(now, Living):
        return now.log.numbers.values, now.log.n_ever
    if now.upkeep is not None:
        return now.upkeep.numbers, now.upkeep.n_ever
    return np.arange(now.X.shape[0]), now.X.shape[0]


def events_of(now: Present) -> tuple[Event, ...]:
    """Changes of the structure since the fit."""
    if isinstance(now, Living):
        return now.events
    return () if now.upkeep is None else tuple(now.upkeep.events)


def own_noise_of(now: Present) -> Array | None:
    """In the shape of Y, noise variances of outputs in doubt, NaN elsewhere; None if none is."""
    return now.own_noise(now.log.numbers.values) if isinstance(now, Living) else now.own_noise


def noise_shapes_of(now: Present, n_jobs: int | None) -> list[NoiseShape]:
    """The shape of each output's noise, without surprises."""
    return list(current_shapes(now, n_jobs)) if isinstance(now, Living) else now.noise_shapes


def log_evidence_of(now: Present) -> float:
    """Of all rows remembered, in the units of the user."""
    return now.log_evidence if isinstance(now, Living) else float(now.network.log_evidence)


def shares_of(now: Present) -> Array | None:
    """The shares of a row that the rows remembered count as; None if all are whole."""
    return None if isinstance(now, Living) else now.shares


def components_of(now: Present, rows: Array, n_jobs: int | None) -> prediction.Components:
    """The predictions of the leaves that rows reach."""
    if isinstance(now, Living):
        return components(now, rows, n_jobs)
    with one_blas_thread():
        return prediction.components(now.network, rows, n_jobs)


def routed_of(now: Present, rows: Array, n_jobs: int | None) -> prediction.Routed:
    """The leaves that rows reach."""
    if isinstance(now, Living):
        return routed(now, rows, n_jobs)
    return prediction.route_to_leaves(now.network, rows)


def region_records(network: Node, shapes: list[NoiseShape], d: int) -> list[dict[str, Any]]:
    """One plain record per expert: box, rows, kernel, parameters, noise, evidence and weight."""
    records = []
    for leaf, box, weight in network.responsibilities():
        low, high = box.corners(d)
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
                "noise_std": noise_std(leaf, shapes),
                "log_evidence": leaf.log_evidence,
                "weight": weight,
            }
        )
    return records


def noise_std(leaf: Leaf, shapes: list[NoiseShape]) -> float:
    """Standard deviation of the noise of a leaf, without surprises."""
    return float(np.sqrt(leaf.noise_variance * shapes[leaf.output].variance))
