"""``spngp report``: a page about a model that anybody can open."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit.")],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Rows the model has not seen, with targets.")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")] = "report.html",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
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
    from spngp.tables.schema import TableSchema

    check_output(output, [model, data], "report", force)
    if as_json:
        check_printing()
    estimator = open_model(model)
    X = y = None
    schema = getattr(estimator, "table_", TableSchema())
    if data is not None:
        table = TableForModel(data, estimator, targets=True)
        batches, schema = list(table.batches(100_000)), table.schema
        tell_absent(table)
        X = np.concatenate([np.asarray(batch.inputs) for batch in batches])
        Y = np.concatenate([batch.outputs for batch in batches if batch.outputs is not None])
        y = Y[:, 0] if estimator.y_ndim_ == 1 else Y
    names = target_names(schema, estimator.n_outputs_)
    written = write_report(estimator, output, X, y, title=title or f"{', '.join(names)}: {model}", output_names=names)
    size = written.stat().st_size
    if as_json:
        print_json({"report": output, "bytes": size, "targets": names, "rows": 0 if X is None else len(X)})
    else:
        note(f"{output}: {megabytes(size)}, open it in a browser")
