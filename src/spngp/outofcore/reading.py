"""The first two steps: a sample of the rows, and every row on its way to its cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from spngp._support.types import Array, Indices
from spngp.columns import InputColumns
from spngp.estimators.scaling import check_inputs, check_outputs
from spngp.estimators.table_inputs import encoded
from spngp.outofcore.pieces import Piece, sampled, write_table
from spngp.outofcore.spill import grouped, numbered, write_groups
from spngp.outofcore.work import Frame, Summary, Work

_ROWS = 262_144  # rows of a routed part


def take_sample(share: float, seed: int, columns: list[str], work: Work, piece: Piece) -> Summary:
    """Write the rows of a piece that belong to the sample."""
    tables = []
    for first, table in piece.batches(columns):
        tables.append(table.take(sampled(first, table.num_rows, share, seed)))
    write_table(work.sample(piece.number), pa.concat_tables(tables, promote_options="permissive"))
    return {"rows": np.array([sum(table.num_rows for table in tables)])}


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
    counts: list[Indices] = []
    held: list[tuple[int, Array, Array]] = []
    n_held = 0

    def write() -> None:
        nonlocal held, n_held
        if held:
            counts.append(_write_part(work, frame, piece, len(counts), held))
            held, n_held = [], 0

    for first, table in piece.batches([*frame.inputs, *frame.targets]):
        X = inputs_of(table.select(list(frame.inputs)), frame.columns, piece.name)
        Y = outputs_of(table, list(frame.targets), piece.name)
        plan = frame.ground.plan
        check_inputs(X, plan.units)
        check_outputs(Y, plan.units, plan.output_spreads)
        beyond = beyond + (np.abs(plan.units.outputs.apply(Y)) > plan.reach).sum(axis=0)
        known = known + (~np.isnan(Y)).sum(axis=0)
        held.append((first, X, Y))
        n_held += X.shape[0]
        if n_held >= _ROWS:
            write()
    write()
    return {"counts": np.array(counts), "beyond": beyond, "known": known}


def _write_part(work: Work, frame: Frame, piece: Piece, place: int, held: list[tuple[int, Array, Array]]) -> Indices:
    """Write rows by cell; returns how many each cell has."""
    X, Y = np.concatenate([part[1] for part in held]), np.concatenate([part[2] for part in held])
    numbers = np.concatenate([np.arange(first, first + rows.shape[0]) for first, rows, _ in held])
    cells = frame.tree.cell_of(frame.ground.plan.units.inputs.apply(X))
    order, offsets = grouped(cells, frame.tree.n_cells)
    columns = {**numbered("x", X[order]), **numbered("y", Y[order]), "row": numbers[order]}
    write_groups(work.part(piece.number, place), columns, offsets)
    return np.diff(offsets)


def share_of(n_rows: int, n_columns: int, limit: float, most: int) -> float:
    """The share of the rows that is sampled: all, or as many as a third of the limit holds, at most ``most``."""
    copies = 6.0  # of every row, while hyper-parameters are learnt and regions are cut
    fitting = int(limit * 1e9 / 3.0 / (8.0 * n_columns * copies))
    wanted = min(most, fitting)
    return 1.0 if n_rows <= wanted else wanted / n_rows
