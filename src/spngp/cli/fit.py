"""``spngp fit``: from a table to a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spngp.cli.settings import estimator_parameters, fit_settings, with_settings

if TYPE_CHECKING:
    from spngp._support.progress import Whole

_ABSURD = 100.0  # standard deviations: a value so far off is an error, and would be all that scores tell about


@with_settings
def fit(
    data: Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet file with a header; - reads CSV input.")],
    config: Annotated[str | None, typer.Option(metavar="FILE", help="TOML file with any of these options.")] = None,
    no_holdout: Annotated[bool, typer.Option("--no-holdout", help="Hold out and measure nothing.")] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Start from nothing: predict each line as it comes, print it, then learn it."),
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="memory, outofcore or dask; by default outofcore for a Parquet file or folder that does not fit into "
            "--memory-limit, else memory. Out of core and with Dask the model is a directory.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of a Dask cluster; a local one by default.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a fit out of core that was killed.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write even over a file that is no model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    **given: Any,
) -> None:
    """Fit a model to a table and save it.

    A share of the rows is held out to measure a model of the rest; the model that is saved is learnt from all rows.

    That takes about twice as long as --no-holdout, which measures nothing and saves the same model.

    A fit out of core holds out nothing: spngp evaluate measures it on other rows.
    """
    from spngp._support.progress import whole_task
    from spngp.cli.large import check_directory, chosen_engine, fit_large
    from spngp.cli.outputs import check_output
    from spngp.cli.row_facts import fact_columns
    from spngp.cli.terminal import check_printing, print_json

    settings = fit_settings(config, {**given, **({"holdout": 0.0} if no_holdout else {})})
    if settings.output is None:
        raise typer.BadParameter("give the file to write, such as -o model.spngp", param_hint="--output")
    if not settings.target:
        raise typer.BadParameter("give the column to predict", param_hint="--target")
    engine = chosen_engine(engine, data, settings.memory_limit, resume, scheduler)
    if engine != "memory" and not follow:
        check_directory(settings.output, force)
        check_printing()
        with whole_task(enabled=not as_json) as whole:
            whole.part("", until=1.0)
            declaration = _declaration(settings, fact_columns(settings))
            summary = fit_large(data, settings, declaration, engine, scheduler, resume, as_json)
        print_json(summary) if as_json else _show_saved(summary)
        return
    check_output(settings.output, [data, config], "model", force)
    check_printing()
    if follow:
        _follow(data, settings)
        return
    with whole_task(enabled=not as_json) as whole:
        summary = _fit(data, settings, as_json, whole)
    if as_json:
        print_json(summary)
    else:
        _show_saved(summary)


def _fit(data: str, settings: Any, quiet: bool, whole: Whole) -> dict[str, Any]:
    """Fit, measure, save; returns the summary. Unless it is quiet, scores are shown before the final fit begins."""
    import os
    import time

    import numpy as np

    from spngp import SPNGPRegressor
    from spngp.cli.failures import remedies_as_options

    started = time.perf_counter()
    whole.part("reading the table", until=0.03)
    name, schema, declared, X, Y, left_out, facts = _rows(data, settings)

    def fitted(rows: Any) -> SPNGPRegressor:
        model = SPNGPRegressor(**estimator_parameters(settings), columns=declared, verbose=0 if quiet else 1)
        known = {fact: values[rows] for fact, values in facts.items()}
        with remedies_as_options(name):
            return model.fit(X.take(rows), Y[rows, 0] if Y.shape[1] == 1 else Y[rows], **known)

    n_held_out = min(round(settings.holdout * Y.shape[0]), Y.shape[0] - 1)  # one row at least is learnt from
    order = np.random.default_rng(settings.seed).permutation(Y.shape[0])
    test, train = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    held_out = {}
    if n_held_out:
        whole.part("trial model", until=0.48)
        held_out = _scores(fitted(train), X.take(test), Y[test], schema.targets)
        if not quiet:
            whole.bar.clear()
            _show_scores(held_out, n_learnt=train.size)
    # learnt again from all rows, not updated with those held out: so outliers among these are judged as in any fit
    whole.part("final model", until=0.97)
    model = fitted(np.arange(Y.shape[0]))
    model.verbose = 0
    model.table_ = schema
    model.rows_left_out_ = left_out
    whole.part("writing the file", until=1.0)
    model.save(settings.output, with_factors=settings.with_factors)
    experts = model.regions_
    return {
        "data": name,
        "rows": int(Y.shape[0]),
        "inputs": model.columns_.input_names,
        "targets": list(schema.targets),
        "held_out": held_out,
        "regions": len({(*record["low"], *record["high"]) for record in experts}),
        "experts": len(experts),
        "log_evidence": model.log_evidence_,
        "model": str(settings.output),
        "bytes": os.path.getsize(settings.output),
        "seconds": time.perf_counter() - started,
    }


def _rows(data: str, settings: Any) -> tuple[str, Any, Any, Any, Any, Any, dict[str, Any]]:
    """The table's name and schema, declared columns, inputs and targets, the numbers of rows without a target, facts.

    Facts are what ``fit`` is told about rows besides, by its names.
    """
    import numpy as np

    from spngp._support.wording import counted
    from spngp.cli.row_facts import fact_columns, row_facts
    from spngp.cli.terminal import note
    from spngp.tables.guessing import options
    from spngp.tables.reading import Source
    from spngp.tables.schema import TableSchema, learn_table
    from spngp.tables.values import Reader

    source = Source(data)
    declaration = _declaration(settings, fact_columns(settings))
    declaration.check(source.columns, source.name)
    table, reader = source.table(), Reader(source.name, source.decimal)
    schema = TableSchema(tuple(declaration.targets), declaration.date_format)
    X, guessed = learn_table(declaration, table, reader)
    if guessed:
        note(f"spngp: {source.name}: guessed {options(guessed)}")
    ids = [name for name, role in guessed.items() if role == "id"]
    if ids:
        like, it = ("they look like identifiers", "them") if len(ids) > 1 else ("it looks like an identifier", "it")
        listed = ", ".join(map(repr, ids))
        note(f"spngp: {source.name}: left out, as {like}: {listed}; --category or --number takes {it} in")
    Y = schema.outputs(table, reader)
    facts = row_facts(table, reader, settings)
    known = ~np.isnan(Y).all(axis=1)
    _check_targets(Y, schema.targets, source.name, settings.target_scale)
    if not known.all():
        missing = int((~known).sum())
        left_out = f"{counted(missing, 'row')} without a target {'is' if missing == 1 else 'are'} left out"
        note(f"spngp: {source.name}: {left_out}")
        X, Y = X.filter(known), Y[known]
    facts = {fact: values[known] for fact, values in facts.items()}
    declared = declaration.orders_and_parts or None
    return source.name, schema, declared, X, Y, np.flatnonzero(~known), facts


def _declaration(settings: Any, facts: Sequence[str] = ()) -> Any:
    """What the options say about the columns; ``facts`` are columns about rows, which are no inputs."""
    from spngp.tables.schema import Declaration

    return Declaration(
        targets=settings.target,
        features=settings.features,
        ids=[*settings.id, *facts],
        numbers=settings.number,
        categories=settings.category,
        ordinal=settings.ordinal,
        dates=settings.date,
        date_format=settings.date_format,
    )


def _follow(data: str, settings: Any) -> None:
    """Learn line by line, and save the model at the end of the input."""
    from spngp import SPNGPRegressor
    from spngp._support.wording import counted
    from spngp.cli.following import Lines, follow_from_nothing
    from spngp.cli.terminal import note

    declaration = _declaration(settings)
    model = SPNGPRegressor(**estimator_parameters(settings), columns=declaration.orders_and_parts or None)
    schema, n_rows = follow_from_nothing(model, Lines.of(data), declaration)
    if not n_rows:
        raise ValueError("no line has a target: nothing was learnt")
    model.table_ = schema
    model.save(settings.output, with_factors=settings.with_factors)
    note(f"{settings.output}: learnt from {counted(n_rows, 'row')}, one by one")


def _scores(model: Any, X: Any, Y: Any, targets: Any) -> dict[str, Any]:
    """For each target, how well rows that the model has not seen are predicted; None if none of them has it."""
    import numpy as np

    from spngp import metrics
    from spngp._support.outputs import one_output
    from spngp._support.wording import counted
    from spngp.cli.scores import record
    from spngp.cli.terminal import note

    mixture, found = model.predict_dist(X), {}
    for k, name in enumerate(targets):
        one = one_output(mixture, k)
        absurd = np.abs(Y[:, k] - one.mean) > _ABSURD * one.std
        if absurd.any():
            which = f"{counted(int(absurd.sum()), 'value')} of {name!r} held out, {_ABSURD:g} or more"
            note(f"spngp: {which} standard deviations from the prediction, not counted in the scores")
        scores = metrics.scores(one, np.where(absurd, np.nan, Y[:, k]))
        found[name] = record(scores) if scores.n else None
    return found


def _check_targets(Y: Any, names: Any, source: str, scale: str | None) -> None:
    import numpy as np

    from spngp._support.wording import counted

    for k, name in enumerate(names):
        values = Y[~np.isnan(Y[:, k]), k]
        if values.size == 0:
            raise ValueError(f"{source}: target {name!r} has no values")
        if scale == "log" and not (values > 0).all():
            low = int(np.flatnonzero(Y[:, k] <= 0)[0])
            problem = f"{name!r} must be positive under --target-scale log, got {Y[low, k]:g} in row {low + 1}"
            raise ValueError(f"{source}: {problem}; use --target-scale auto, or none")
        if (values == values[0]).all():
            raise ValueError(f"{source}: target {name!r} is constant ({values[0]:g} in {counted(values.size, 'row')})")


def _show_scores(held_out: dict[str, Any], n_learnt: int) -> None:
    from spngp._support.wording import counted
    from spngp.cli.terminal import print_line, print_table

    scores = {name: item for name, item in held_out.items() if item is not None}
    if scores:
        n_rows = counted(max(item["rows"] for item in scores.values()), "row")
        print_table(
            f"On {n_rows} held out, by a model of the other {n_learnt:,}",
            ("target", "RMSE", "std of target", "NLPD", "CRPS", "90 % interval holds"),
            [
                (name, s["rmse"], s["std_of_target"], s["nlpd"], s["crps"], f"{s['coverage']['0.9']:.0%}")
                for name, s in scores.items()
            ],
        )
        print_line()


def _show_saved(summary: dict[str, Any]) -> None:
    from spngp._support.wording import counted
    from spngp.cli.terminal import megabytes, print_line, shortened

    inputs = summary["inputs"]
    if summary["held_out"]:
        print_line(f"The model saved is learnt from all {counted(summary['rows'], 'row')}, those held out included.")
    print_line(
        f"{summary['data']}: {counted(summary['rows'], 'row')}, {counted(len(inputs), 'input')} ({shortened(inputs)}), "
        f"{counted(summary['regions'], 'region')}, {counted(summary['experts'], 'expert')}",
        wrap=True,
    )
    print_line(f"{summary['model']}: {megabytes(summary['bytes'])}, in {summary['seconds']:.1f} s")
