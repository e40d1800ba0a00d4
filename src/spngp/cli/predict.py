"""``spngp predict``: predictions for the rows of a table, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import typer

_DRAWS = 2**20  # rows times samples held at a time


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet file; - reads standard input.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="A .csv or .parquet file; - prints CSV.")
    ] = "-",
    quantiles: Annotated[
        str | None, typer.Option(metavar="Q,Q", help="Also these quantiles, such as 0.05,0.5,0.95.")
    ] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="P", help="Also the central interval that holds with probability P.")
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Also N draws for each row, rows independent.")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the draws.")] = 0,
    keep: Annotated[
        str,
        typer.Option(metavar="WORD", help="Columns of the table to copy: all, ids (those that are no inputs) or none."),
    ] = "all",
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="Put ' before text in CSV that a spreadsheet may run: = + - @ first, and no number. "
            "Text is copied as it is by default, so that ids can be joined.",
        ),
    ] = False,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; as in the fit by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write even over a model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict the rows of a table: mean and standard deviation of each, and more on request.

    Rows are read, predicted and written in batches, so a file may be larger than memory.
    """
    import time
    from contextlib import closing

    import numpy as np

    from spngp._support.progress import Progress
    from spngp._support.wording import counted
    from spngp.cli.opening import TableForModel, open_model, target_names, tell_absent
    from spngp.cli.outputs import check_output
    from spngp.cli.terminal import check_printing, note, print_json
    from spngp.tables.writing import TableWriter

    if as_json and output == "-":
        raise typer.BadParameter("needs a file to write predictions to: -o out.csv", param_hint="--json")
    for name, value in (("--samples", samples), ("--seed", seed)):
        if value < 0:
            raise typer.BadParameter(f"must be at least 0, got {value}", param_hint=name)
    if keep not in ("all", "ids", "none"):
        raise typer.BadParameter(f"must be all, ids or none, got {keep!r}", param_hint="--keep")
    levels = _levels(quantiles)
    if interval is not None and not 0.0 < interval < 1.0:
        raise typer.BadParameter(f"must lie between 0 and 1, got {interval}", param_hint="--interval")
    check_output(output, [model, data], "table", force)
    if as_json or output == "-":
        check_printing()
    started = time.perf_counter()
    estimator = open_model(model)
    if jobs is not None:
        estimator.n_jobs = jobs
    table = TableForModel(data, estimator, targets=False)
    names = target_names(table.schema, estimator.n_outputs_)
    tell_absent(table)
    kept = _kept(keep, table)
    rng = np.random.default_rng(seed)
    with TableWriter.open(output, escape_formulas) as writer, closing(Progress(not as_json)) as progress:
        progress.stage("rows", 0)
        answer = partial(_columns, names, levels, interval, samples, rng)
        for rows, predicted in _predicted(estimator, table, answer, step=max(1, _DRAWS // max(samples, 1))):
            writer.write(_joined(rows, kept, predicted))
            progress.advance(rows.num_rows)
    seconds = time.perf_counter() - started
    if as_json:
        print_json({"rows": writer.n_rows, "output": output, "targets": names, "seconds": seconds})
    elif output != "-":
        note(f"{output}: {counted(writer.n_rows, 'row')} predicted in {seconds:.1f} s")


def _predicted(
    model: Any, table: Any, answer: Callable[[Any], dict[str, Any]], step: int
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Rows of the table with the columns predicted for them, at most ``step`` at a time."""
    from spngp.cli.opening import rows_at_a_time
    from spngp.io.shards import is_sharded

    n_rows = rows_at_a_time(model)
    if is_sharded(model) and table.source.name != "standard input":
        from spngp.outofcore import predictions

        found = predictions(model, (batch.inputs for batch in table.batches(n_rows)), answer)
        for batch, predicted in zip(table.batches(n_rows), found, strict=True):
            yield batch.rows, predicted
        return
    for batch in table.batches(n_rows):
        mixture = model.predict_dist(batch.inputs)
        for start in range(0, batch.rows.num_rows, step):
            yield batch.rows.slice(start, step), answer(mixture[start : start + step])


def _kept(keep: str, table: Any) -> list[str]:
    """Names of the columns that are copied."""
    if keep == "none":
        return []
    return [name for name in table.source.columns if keep == "all" or name not in table.input_columns]


def _levels(quantiles: str | None) -> list[float]:
    if quantiles is None:
        return []
    try:
        levels = [float(part) for part in quantiles.split(",")]
    except ValueError:
        levels = [-1.0]
    if not all(0.0 < level < 1.0 for level in levels):
        raise typer.BadParameter(
            f"must be numbers between 0 and 1, such as 0.05,0.5,0.95, got {quantiles!r}", param_hint="--quantiles"
        )
    return levels


def _columns(
    names: list[str], levels: list[float], interval: float | None, samples: int, rng: Any, mixture: Any
) -> dict[str, Any]:
    """The predicted columns by name."""
    from spngp._support.outputs import one_output

    columns: dict[str, Any] = {}
    for k, name in enumerate(names):
        one = one_output(mixture, k)
        columns[f"{name}_mean"], columns[f"{name}_std"] = one.mean, one.std
        if levels:
            values = one.quantile(levels)
            columns.update({f"{name}_q{level:g}": values[:, j] for j, level in enumerate(levels)})
        if interval is not None:
            columns[f"{name}_low{interval:g}"], columns[f"{name}_high{interval:g}"] = one.interval(interval)
        if samples:
            draws = one.sample(samples, rng)
            columns.update({f"{name}_sample{j + 1}": draws[:, j] for j in range(samples)})
    return columns


def _joined(rows: Any, kept: list[str], predicted: dict[str, Any]) -> Any:
    import pyarrow as pa

    for name in kept:
        if name in predicted:
            raise ValueError(f"the input has a column {name!r} already; --keep none leaves it out")
    arrays = [rows.column(name) for name in kept] + [pa.array(values) for values in predicted.values()]
    return pa.RecordBatch.from_arrays(arrays, names=[*kept, *predicted])
