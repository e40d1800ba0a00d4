"""``spngp report``: a page about a model that anybody can open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer


def report(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit.")],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Rows the model has not seen, with targets.")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")] = "report.html",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]UNIT", help="Unit of the target, or of a column or target by name; repeatable."),
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column of DATA that names its rows; found by itself if unused."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write even over a model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write an interactive report: one HTML file that needs no network.

    With rows the model has not seen it also tells how well they were predicted.
    """
    import numpy as np

    from spngp.cli.opening import TableForModel, open_model, target_names, tell_absent
    from spngp.cli.outputs import check_output
    from spngp.cli.terminal import check_printing, megabytes, note, print_json
    from spngp.report import write_report
    from spngp.tables.schema import TableSchema, columns_of

    check_output(output, [model, data], "report", force)
    if as_json:
        check_printing()
    estimator = open_model(model)
    X = y = row_names = None
    schema = getattr(estimator, "table_", TableSchema())
    if data is not None:
        table = TableForModel(data, estimator, targets=True)
        batches, schema = list(table.batches(100_000)), table.schema
        tell_absent(table)
        row_names = _row_names(row_id, estimator, batches, table.schema.targets, data)
        columns = columns_of(estimator)
        tables = (batch.inputs for batch in batches)
        X = np.concatenate([np.asarray(part if columns.is_plain else columns.encode(part)) for part in tables])
        Y = np.concatenate([batch.outputs for batch in batches if batch.outputs is not None])
        y = Y[:, 0] if estimator.y_ndim_ == 1 else Y
    names = target_names(schema, estimator.n_outputs_)
    units = _units(unit or [], names)
    written = write_report(estimator, output, X, y, title=title, output_names=names, row_names=row_names, units=units)
    size = written.stat().st_size
    if as_json:
        print_json({"report": output, "bytes": size, "targets": names, "rows": 0 if X is None else len(X)})
    else:
        note(f"{output}: {megabytes(size)}, open it in a browser")


def _row_names(given: str | None, model: Any, batches: list[Any], targets: Sequence[str], source: str) -> Any:
    """The names of the table's rows: the column asked for, or one that is no input and tells all rows apart."""
    from spngp.report import RowNames

    available = batches[0].rows.schema.names
    if given is not None and given not in available:
        raise ValueError(f"{source} has no column {given!r} to name its rows by; it has {', '.join(available[:12])}")
    used = {*model.columns_.names, *targets}
    for name in [given] if given is not None else [name for name in available if name not in used]:
        names = [str(value) for batch in batches for value in batch.rows.column(name).to_pylist()]
        if given is not None or len(set(names)) == len(names):
            return RowNames(name, names)
    return None


def _units(given: Sequence[str], targets: Sequence[str]) -> dict[str, str] | None:
    """Units by name; a unit without a name is that of the target."""
    units = {}
    for text in given:
        name, mark, unit = text.partition("=")
        if not mark and len(targets) > 1:
            raise ValueError(f"--unit of one of {len(targets)} targets must be given as NAME=UNIT, got {text!r}")
        units[name if mark else targets[0]] = unit if mark else text
    return units or None
