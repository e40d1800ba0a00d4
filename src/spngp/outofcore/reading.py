"""The first two steps: a sample of the rows, and every row on its way to its cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spngp._support.types import Array, Indices
from spngp.columns import InputColumns
from spngp.estimators.scaling import check_inputs, check_outputs
from spngp.estimators.table_inputs import encoded
from spngp.estimators.targets import log_slopes, transformed
from spngp.outofcore.facts import Facts
from spngp.outofcore.pieces import Piece, sampled, write_table
from spngp.outofcore.spill import grouped, numbered, write_groups
from spngp.outofcore.work import Frame, Summary, Work
from spngp.transformed import Log

_ROWS = 262_144  # rows of a routed part


class Routed(NamedTuple):
    """Rows on their way to their cells: inputs, outputs, numbers, and what is known of their noise."""

    X: Array
    Y: Array
    numbers: Indices
    noted: Array


def take_sample(share: float, seed: int, columns: list[str], facts: Facts, work: Work, piece: Piece) -> Summary:
    """Write the rows of a piece that belong to the sample; tells how many rows its rows count as."""
    tables, n_rows, has_fractions = [], 0, False
    for first, table in piece.batches([*columns, *facts.columns]):
        tables.append(table.take(sampled(first, table.num_rows, share, seed)))
        weights = facts.weights_of(table, piece.name)
        n_rows += table.num_rows if weights.counts is None else int(weights.counts.sum())
        has_fractions = has_fractions or weights.shares is not None
    write_table(work.sample(piece.number), pa.concat_tables(tables, promote_options="permissive"))
    return {"rows": np.array([n_rows]), "has_fractions": np.array([has_fractions])}


def outputs_of(table: Any, targets: list[str] | tuple[str, ...], name: str) -> Array:
    """The outputs (n, p) of a table; null and NaN are missing."""
    columns = []
    for target in targets:
        values = table.column(target)
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            raise ValueError(f"partition {name}: target {target!r} must hold numbers, got {values.type}")
        values = values.cast(pa.float64()).combine_chunks().to_numpy(zero_copy_only=False)
        if np.isinf(values).any():
            raise ValueError(f"partition {name}: target {target!r} must be finite, got {values[np.isinf(values)][0]}")
        columns.append(values)
    return np.column_stack(columns)


def learnt_outputs(Y: Array, transforms: Sequence[Any], targets: Sequence[str], name: str) -> Array:
    """Outputs on the scale that is learnt."""
    for k, target in enumerate(targets):
        if isinstance(transforms[k], Log) and (low := Y[:, k] <= 0).any():
            raise ValueError(
                f"partition {name}: target {target!r} must be positive to be learnt on a logarithmic scale, "
                f"got {Y[low, k][0]:g}"
            )
    return transformed(Y, transforms)


def inputs_of(table: Any, columns: InputColumns, name: str) -> Array:
    """The inputs (n, d) of a table; an error tells the partition and the column."""
    try:
        return encoded(table, columns, complete=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"partition {name}: {error}") from None


def route(work: Work, piece: Piece) -> Summary:
    """Write the rows of a piece in the order of their cells, a file for every so many rows."""
    frame = work.known()
    beyond: Any = 0
    known: Any = 0
    slopes = 0.0
    counts: list[Indices] = []
    held: list[Routed] = []
    n_held = 0

    def write() -> None:
        nonlocal held, n_held
        if held:
            counts.append(_write_part(work, frame, piece, len(counts), held))
            held, n_held = [], 0

    for first, table in piece.batches([*frame.inputs, *frame.targets, *frame.facts.columns]):
        rows, slope = _routed(frame, first, table, piece.name)
        beyond = beyond + (np.abs(frame.ground.plan.units.outputs.apply(rows.Y)) > frame.ground.plan.reach).sum(axis=0)
        known = known + (~np.isnan(rows.Y)).sum(axis=0)
        slopes += slope
        held.append(rows)
        n_held += rows.X.shape[0]
        if n_held >= _ROWS:
            write()
    write()
    return {"counts": np.array(counts), "beyond": beyond, "known": known, "log_slopes": np.array([slopes])}


def _routed(frame: Frame, first: int, table: Any, name: str) -> tuple[Routed, float]:
    """Rows of a table as they are learnt from, each as often as it counts; and the log slopes of their scale."""
    X = inputs_of(table.select(list(frame.inputs)), frame.columns, name)
    given, plan = outputs_of(table, list(frame.targets), name), frame.ground.plan
    Y = learnt_outputs(given, frame.transforms, frame.targets, name)
    check_inputs(X, plan.units)
    check_outputs(Y, plan.units, plan.output_spreads)
    weights = frame.facts.weights_of(table, name)
    noted = frame.facts.noted(table, given, weights, name)
    numbers = weights.of(np.arange(first, first + X.shape[0]))
    slope = log_slopes(frame.transforms, weights.of(given), weights.shares)
    return Routed(weights.of(X), weights.of(Y), numbers, noted), slope


def _write_part(work: Work, frame: Frame, piece: Piece, place: int, held: list[Routed]) -> Indices:
    """Write rows by cell; returns how many each cell has."""
    X, Y, numbers, noted = (np.concatenate(part) for part in zip(*held, strict=True))
    cells = frame.tree.cell_of(frame.ground.plan.units.inputs.apply(X))
    order, offsets = grouped(cells, frame.tree.n_cells)
    columns = {**numbered("x", X[order]), **numbered("y", Y[order]), **numbered("noted", noted[order])}
    columns["row"] = numbers[order]
    write_groups(work.part(piece.number, place), columns, offsets)
    return np.diff(offsets)


def share_of(n_rows: int, n_columns: int, limit: float, most: int) -> float:
    """The share of the rows that is sampled: all, or as many as a third of the limit holds, at most ``most``."""
    copies = 6.0  # of every row, while hyper-parameters are learnt and regions are cut
    fitting = int(limit * 1e9 / 3.0 / (8.0 * n_columns * copies))
    wanted = min(most, fitting)
    return 1.0 if n_rows <= wanted else wanted / n_rows
