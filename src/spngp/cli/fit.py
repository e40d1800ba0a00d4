"""``spngp fit``: from a table to a saved model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_COLUMNS, _MODEL = "Columns", "Model"


def fit(
    data: Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet file with a header; - reads CSV input.")],
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", metavar="NAME", help="Column to predict; may be repeated.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Model file to write, such as model.spngp.")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="TOML file with any of these options.")] = None,
    holdout: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Rows held out to measure accuracy; 0.1 by default."),
    ] = None,
    no_holdout: Annotated[bool, typer.Option("--no-holdout", help="Hold out and measure nothing.")] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of everything random; 0 by default.")] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; one on each core by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    features: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", rich_help_panel=_COLUMNS, help="Inputs; all but targets and ids by default."),
    ] = None,
    id_: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="A,B", rich_help_panel=_COLUMNS, help="Not inputs."),
    ] = None,
    one_hot: Annotated[
        list[str] | None, typer.Option(metavar="A,B", rich_help_panel=_COLUMNS, help="Categories without order.")
    ] = None,
    ordinal: Annotated[
        list[str] | None, typer.Option(metavar="A=S,M,L", rich_help_panel=_COLUMNS, help="Categories in their order.")
    ] = None,
    date: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=PARTS",
            rich_help_panel=_COLUMNS,
            help="Dates, turned into any of days,year,month,day,weekday,dayofyear,hour; days by default.",
        ),
    ] = None,
    date_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", rich_help_panel=_COLUMNS, help="Such as %d.%m.%Y; ISO by default.")
    ] = None,
    impute: Annotated[
        bool | None,
        typer.Option("--impute", rich_help_panel=_COLUMNS, help="Fill missing inputs: median or usual category."),
    ] = None,
    max_leaf_size: Annotated[
        int | None, typer.Option(metavar="N", rich_help_panel=_MODEL, help="Most rows in a region.")
    ] = None,
    overlap: Annotated[
        float | None,
        typer.Option(metavar="X", rich_help_panel=_MODEL, help="Rows seen beyond a region's border, per own row."),
    ] = None,
    structure: Annotated[
        str | None, typer.Option(metavar="NAME", rich_help_panel=_MODEL, help="compact, random or equal-width.")
    ] = None,
    n_partitions: Annotated[
        int | None, typer.Option(metavar="N", rich_help_panel=_MODEL, help="Alternative cuts of every region.")
    ] = None,
    hyperparameters: Annotated[
        str | None, typer.Option(metavar="NAME", rich_help_panel=_MODEL, help="adaptive, tied, independent or fixed.")
    ] = None,
    noise_variance: Annotated[
        float | None, typer.Option(metavar="X", rich_help_panel=_MODEL, help="Of the target's noise, if it is known.")
    ] = None,
    memory_limit: Annotated[
        float | None,
        typer.Option(metavar="GB", rich_help_panel=_MODEL, help="That the model may hold, factors included."),
    ] = None,
) -> None:
    """Fit a model to a table and save it.

    A share of the rows is held out to measure how well it predicts; they are added to the model afterwards.
    """
    from spngp.cli.settings import assignments, comma_separated, fit_settings

    settings = fit_settings(
        config,
        {
            "target": target or None,
            "output": output,
            "features": comma_separated(features or None),
            "id": comma_separated(id_ or None),
            "one_hot": comma_separated(one_hot or None),
            "ordinal": assignments(ordinal or None),
            "date": assignments(date or None),
            "date_format": date_format,
            "impute": impute,
            "holdout": 0.0 if no_holdout else holdout,
            "max_leaf_size": max_leaf_size,
            "overlap": overlap,
            "structure": structure,
            "n_partitions": n_partitions,
            "hyperparameters": hyperparameters,
            "noise_variance": noise_variance,
            "memory_limit": memory_limit,
            "jobs": jobs,
            "seed": seed,
        },
    )
    if settings.output is None:
        raise typer.BadParameter("give the file to write, such as -o model.spngp", param_hint="--output")
    if not settings.target:
        raise typer.BadParameter("give the column to predict", param_hint="--target")
    if not 0.0 <= settings.holdout < 1.0:
        raise typer.BadParameter(f"must be at least 0 and below 1, got {settings.holdout}", param_hint="--holdout")
    if settings.seed < 0:
        raise typer.BadParameter(f"must be a whole number >= 0, got {settings.seed}", param_hint="--seed")
    _show(_fit(data, settings, quiet=as_json), as_json)


def _fit(data: str, settings: Any, quiet: bool) -> dict[str, Any]:
    """Fit, measure, save; returns the summary."""
    import os
    import time

    import numpy as np

    from spngp import SPNGPRegressor, metrics
    from spngp._support.outputs import one_output
    from spngp.cli.scores import record
    from spngp.cli.terminal import note
    from spngp.tables.reading import Source
    from spngp.tables.schema import Declaration, learn_schema
    from spngp.tables.values import Reader

    started = time.perf_counter()
    check_writable(settings.output)
    source = Source(data)
    declaration = Declaration(
        targets=settings.target,
        features=settings.features,
        ids=settings.id,
        one_hot=settings.one_hot,
        ordinal=settings.ordinal,
        dates=settings.date,
        date_format=settings.date_format,
        impute=settings.impute,
    )
    declaration.check(source.columns, source.name)
    table, reader = source.table(), Reader(source.name, source.decimal)
    schema = learn_schema(declaration, table, reader)
    X, Y = schema.inputs(table, reader), schema.outputs(table, reader)
    known = ~np.isnan(Y).all(axis=1)
    _check_targets(Y, schema.targets, source.name)
    if not known.all():
        note(f"spngp: {source.name}: {int((~known).sum()):,} rows without a target are left out")
        X, Y = X.filter(known), Y[known]

    n_held_out = min(round(settings.holdout * Y.shape[0]), Y.shape[0] - 1)  # one row at least is learnt from
    order = np.random.default_rng(settings.seed).permutation(Y.shape[0])
    test, train = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    flat = Y.shape[1] == 1
    model = SPNGPRegressor(**settings.of_estimator(), verbose=0 if quiet else 1)
    model.fit(X.take(train), Y[train, 0] if flat else Y[train])
    held_out = {}
    if n_held_out:
        mixture = model.predict_dist(X.take(test))
        for k, name in enumerate(schema.targets):
            scores = metrics.scores(one_output(mixture, k), Y[test, k])
            held_out[name] = record(scores) if scores.n else None
        model.partial_fit(X.take(test), Y[test, 0] if flat else Y[test])
    model.verbose = 0
    model.table_ = schema
    model.save(settings.output)
    experts = model.regions_
    return {
        "data": source.name,
        "rows": int(Y.shape[0]),
        "inputs": schema.input_names,
        "targets": list(schema.targets),
        "held_out": held_out,
        "regions": len({(*record["low"], *record["high"]) for record in experts}),
        "experts": len(experts),
        "log_evidence": model.log_evidence_,
        "model": str(settings.output),
        "bytes": os.path.getsize(settings.output),
        "seconds": time.perf_counter() - started,
    }


def check_writable(path: str) -> None:
    """Before hours of work: whether there is a place for the result."""
    from pathlib import Path

    if str(path) == "-":
        raise ValueError("a model cannot be written to standard output")
    if Path(path).is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not Path(path).resolve().parent.is_dir():
        raise FileNotFoundError(2, "No such directory", str(Path(path).parent))


def _check_targets(Y: Any, names: Any, source: str) -> None:
    import numpy as np

    for k, name in enumerate(names):
        values = Y[~np.isnan(Y[:, k]), k]
        if values.size == 0:
            raise ValueError(f"{source}: target {name!r} has no values")
        if (values == values[0]).all():
            raise ValueError(f"{source}: target {name!r} is constant ({values[0]:g} in {values.size:,} rows)")


def _show(summary: dict[str, Any], as_json: bool) -> None:
    from spngp.cli.terminal import console, megabytes, print_json, print_table, shortened

    if as_json:
        print_json(summary)
        return
    inputs = summary["inputs"]
    console().print(
        f"{summary['data']}: {summary['rows']:,} rows, {len(inputs)} input{'s' if len(inputs) > 1 else ''} "
        f"({shortened(inputs)}), {summary['regions']:,} regions, {summary['experts']:,} experts"
    )
    scores = {name: item for name, item in summary["held_out"].items() if item is not None}
    if scores:
        print_table(
            f"On {max(item['rows'] for item in scores.values()):,} rows held out",
            ("target", "RMSE", "std of target", "NLPD", "CRPS", "90 % interval holds"),
            [
                (name, s["rmse"], s["std_of_target"], s["nlpd"], s["crps"], f"{s['coverage']['0.9']:.0%}")
                for name, s in scores.items()
            ],
        )
        console().print()
    console().print(f"{summary['model']}: {megabytes(summary['bytes'])}, in {summary['seconds']:.1f} s")
