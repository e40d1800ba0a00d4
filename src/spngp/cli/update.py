"""``spngp update``: rows of a table added to a saved model, all at once or line by line as they come."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_ROWS = 1000  # rows of a batch that is added at once


def update(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet file; - reads standard input.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the model here, not over MODEL.")
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option("--keep-last", metavar="N", help="Forget all but the last N rows.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Predict each line as it comes, print the prediction, then add the line."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write even over a file that is no model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Add rows to a model, exactly, and save it.

    With --follow, each line of CSV or JSON is predicted, the prediction printed, and the line added if it has a target.

    The model is saved at the end of the input.
    """
    import time

    from spngp._support.wording import counted
    from spngp.cli.following import Lines, follow_lines
    from spngp.cli.opening import open_model
    from spngp.cli.outputs import check_output
    from spngp.cli.terminal import check_printing, note, print_json, print_line

    if keep_last is not None and keep_last < 1:
        raise typer.BadParameter(f"must be at least 1, got {keep_last}", param_hint="--keep-last")
    target = model if output is None else output
    check_output(target, [data] if output is None else [model, data], "model", force or output is None)
    check_printing()
    started = time.perf_counter()
    estimator = open_model(model)
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(f"{model} is a {type(estimator).__name__}, which rows cannot be added to")
    before = len(estimator.events_)
    try:
        n_rows = follow_lines(estimator, Lines.of(data), keep_last) if follow else _add(estimator, data, keep_last)
    except BaseException:
        if follow:  # lines that came before the one that failed, or before Ctrl-C, are not lost
            estimator.save(target)
        raise
    estimator.save(target)
    changes = estimator.events_[before:]
    summary = {
        "added": n_rows,
        "rows": int(estimator.row_numbers_.size),
        "changes": changes,
        "model": str(target),
        "seconds": time.perf_counter() - started,
    }
    if as_json and not follow:
        print_json(summary)
        return
    say = note if follow else print_line
    say(f"{target}: {counted(n_rows, 'row')} added, {summary['rows']:,} in all, in {summary['seconds']:.1f} s")
    for kind, text in _TOLD.items():
        count = sum(change["kind"] == kind for change in changes)
        if count:
            say(f"{count:,} {text}")


_TOLD = {
    "model": "times everything was learnt again",
    "cut": "times a region was cut",
    "region": "times a region was learnt again",
    "past": "times later rows contradicted earlier ones, which hardly count any more",
}


def _add(estimator: Any, data: str, keep_last: int | None) -> int:
    """Add the rows of a table that have a target; returns their number."""
    import numpy as np

    from spngp.cli.opening import TableForModel

    table = TableForModel(data, estimator, targets=True)
    n_rows = 0
    for batch in table.batches(_ROWS):
        Y = np.asarray(batch.outputs)
        known = ~np.isnan(Y).all(axis=1)
        if known.any():
            X = batch.inputs.filter(known) if hasattr(batch.inputs, "filter") else batch.inputs[known]
            estimator.partial_fit(X, Y[known, 0] if estimator.y_ndim_ == 1 else Y[known])
            n_rows += int(known.sum())
        if keep_last is not None and estimator.row_numbers_.size > keep_last:
            estimator.forget(keep_last=keep_last)
    if not n_rows:
        raise ValueError(f"{table.source.name} has no row with a target")
    return n_rows
