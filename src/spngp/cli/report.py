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
    impute: Annotated[bool, typer.Option("--impute", help="Fill missing inputs as the fit would have.")] = False,
) -> None:
    """Write an interactive report: one HTML file that needs no network.

    With rows the model has not seen it also tells how well they were predicted.
    """
    from importlib import import_module

    import numpy as np

    from spngp._atomic import replacing
    from spngp.cli.fit import check_writable
    from spngp.cli.opening import TableForModel, open_model
    from spngp.cli.terminal import megabytes, note

    write_report = import_module("spngp.report").write_report
    check_writable(output)
    estimator = open_model(model)
    X = y = None
    if data is not None:
        blocks = list(TableForModel(data, estimator, targets=True, impute=impute).blocks(100_000))
        X = np.concatenate([np.asarray(block.inputs) for block in blocks])
        Y = np.concatenate([block.outputs for block in blocks if block.outputs is not None])
        y = Y[:, 0] if estimator._y_is_flat else Y
    with replacing(output) as temporary:
        write_report(estimator, temporary, X, y, title=title or f"Model {model}")
        size = temporary.stat().st_size
    note(f"{output}: {megabytes(size)}, open it in a browser")
