"""``spngp evaluate``: how good a model's predictions are on rows with known targets."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet file with the targets; - reads input.")],
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; as in the fit by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure accuracy and calibration on a table that holds the targets.

    RMSE and CRPS are in the target's units, NLPD in nats; lower is better.

    A calibrated model's intervals hold as often as they say, and its PIT histogram is flat.
    """
    from spngp._support.outputs import one_output
    from spngp.cli.opening import TableForModel, open_model, rows_at_a_time, tell_absent
    from spngp.cli.scores import record
    from spngp.cli.terminal import check_printing, print_json
    from spngp.metrics import Tally

    check_printing()
    estimator = open_model(model)
    if jobs is not None:
        estimator.n_jobs = jobs
    table = TableForModel(data, estimator, targets=True)
    tell_absent(table)
    tallies = {name: Tally() for name in table.schema.targets}
    for batch in table.batches(rows_at_a_time(estimator)):
        mixture = estimator.predict_dist(batch.inputs)
        for k, name in enumerate(table.schema.targets):
            assert batch.outputs is not None
            tallies[name].add(one_output(mixture, k), batch.outputs[:, k])
    scores = {name: tally.scores() for name, tally in tallies.items()}
    empty = [name for name, found in scores.items() if not found.n]
    if empty:
        raise ValueError(f"{table.source.name}: target {empty[0]!r} has no values to compare with")
    summary = {name: record(found) for name, found in scores.items()}
    if as_json:
        print_json({"model": model, "data": table.source.name, "targets": summary})
    else:
        _show(table.source.name, summary)


def _show(source: str, summary: dict[str, Any]) -> None:
    from spngp.cli.terminal import print_bars, print_table
    from spngp.metrics import LEVELS

    print_table(
        f"Accuracy on {source}",
        ("target", "rows", "RMSE", "MAE", "std of target", "NLPD", "CRPS"),
        [
            (name, s["rows"], s["rmse"], s["mae"], s["std_of_target"], s["nlpd"], s["crps"])
            for name, s in summary.items()
        ],
    )
    print_table(
        "How often central intervals hold",
        ("target", *(f"{level:.0%}" for level in LEVELS)),
        [(name, *(f"{share:.1%}" for share in s["coverage"].values())) for name, s in summary.items()],
    )
    for name, s in summary.items():
        edges = [f"{j / len(s['pit']):.1f}–{(j + 1) / len(s['pit']):.1f}" for j in range(len(s["pit"]))]
        print_bars(f"PIT of {name}: share of rows, flat at {1 / len(s['pit']):.0%} if calibrated", edges, s["pit"])
