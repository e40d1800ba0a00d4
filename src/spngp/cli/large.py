"""``spngp fit`` of tables that are larger than memory: which engine does it, and the fit itself."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

ENGINES = ("memory", "outofcore", "dask")
_ROWS_LOOKED_AT = 20_000  # by which columns are guessed
_SHARE_OF_WORKERS = 0.6  # of the memory limit; the rest is for the process that has the sample, and for the scheduler


def chosen_engine(
    engine: str | None, data: str, memory_limit: float | None, resume: bool, scheduler: str | None
) -> str:
    """The engine asked for; by default memory, unless the table is a Parquet file or folder that does not fit."""
    if engine is not None and engine not in ENGINES:
        raise typer.BadParameter(
            f"must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}, got {engine!r}", param_hint="--engine"
        )
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("goes with --engine dask", param_hint="--scheduler")
    if resume and engine == "memory":
        raise typer.BadParameter("goes with --engine outofcore or dask", param_hint="--resume")
    if engine is not None:
        return engine
    if data == "-" or not _is_parquet(Path(data)):
        return "memory"
    from spngp.outofcore.datasets import as_dataset, fits_in_memory

    dataset = as_dataset(data, Path())
    fits = not resume and not Path(data).is_dir() and fits_in_memory(dataset, len(dataset.schema.names), memory_limit)
    return "memory" if fits else "outofcore"


def _is_parquet(path: Path) -> bool:
    if path.is_dir():
        return True
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def check_directory(output: str, force: bool) -> None:
    """Raise an error unless a model in shards may be written there."""
    from spngp.cli.outputs import check_output
    from spngp.io.shards import is_model_directory

    path = Path(output)
    if not path.is_dir():
        check_output(output, [], "model", force)
        if path.exists():
            raise ValueError(f"{output} is a file, but a model out of core is a directory; write to another name")
    elif any(path.iterdir()) and not is_model_directory(path):
        raise ValueError(f"{output} is a directory that is no model; write to another name")


def fit_large(
    data: str, settings: Any, declaration: Any, engine: str, scheduler: str | None, resume: bool, quiet: bool
) -> dict[str, Any]:
    """Fit out of core and save; returns the summary."""
    import time

    from spngp import SPNGPRegressor
    from spngp.cli.settings import estimator_parameters
    from spngp.estimators.elsewhere import sharded_of
    from spngp.outofcore import Job, fit
    from spngp.outofcore.datasets import as_dataset
    from spngp.tables.schema import TableSchema

    started = time.perf_counter()
    dataset = as_dataset(data, Path())
    inputs, declared = _inputs(dataset, declaration, data)
    model = SPNGPRegressor(**estimator_parameters(settings), columns=declared or None, verbose=0 if quiet else 1)
    job = Job(
        dataset=dataset,
        inputs=inputs,
        targets=declaration.targets,
        output=Path(settings.output),
        resume=resume,
        table=TableSchema(tuple(declaration.targets), declaration.date_format),
        weight=settings.weight,
        variance=settings.variance,
    )
    with ExitStack() as held:
        held.callback(_tell_resume, job.directory)
        model = fit(model, job, _doing(engine, scheduler, settings, job, held))
    sharded = sharded_of(model)
    assert sharded is not None
    return {
        "data": data,
        "rows": sharded.n_rows,
        "inputs": model.columns_.input_names,
        "targets": list(declaration.targets),
        "held_out": {},
        "regions": sharded.n_regions,
        "experts": sharded.n_experts,
        "log_evidence": model.log_evidence_,
        "model": str(settings.output),
        "bytes": int(sharded.sizes.sum()),
        "seconds": time.perf_counter() - started,
    }


def _tell_resume(directory: Path) -> None:
    """Where there is something to go on with, say so."""
    from spngp.cli.terminal import note

    if directory.exists():
        note(f"spngp: what was done is kept in {directory}; --resume goes on with it")


def _doing(engine: str, scheduler: str | None, settings: Any, job: Any, held: ExitStack) -> Any:
    """Who does the steps, until the stack is left."""
    from spngp._support.memory import default_limit
    from spngp._support.threads import n_threads
    from spngp.outofcore.engines import Threads

    if engine == "outofcore":
        return Threads(settings.jobs)
    from spngp.dask.engine import Workers, cluster

    limit = _SHARE_OF_WORKERS * (settings.memory_limit or default_limit())
    client = held.enter_context(cluster(scheduler, n_threads(settings.jobs), limit))
    workers = Workers(client, job.directory.with_suffix(".steps"))
    held.callback(workers.close)
    return workers


def _inputs(dataset: Any, declaration: Any, data: str) -> tuple[list[str], dict[str, Any]]:
    """The input columns, as the first rows look; and what an estimator must be told about them."""
    import pyarrow as pa

    from spngp.cli.terminal import note
    from spngp.tables.guessing import options
    from spngp.tables.schema import learn_table
    from spngp.tables.values import Reader

    head = first_rows(dataset)
    found, guessed = learn_table(declaration, head, Reader(data, "."))
    if guessed:
        note(f"spngp: {data}: guessed {options(guessed)}")
    declared: dict[str, Any] = dict(declaration.orders_and_parts)
    for name in found.schema.names:
        before, after = head.schema.field(name).type, found.schema.field(name).type
        was_text, is_text = _holds_text(before), _holds_text(after)
        if was_text and not is_text:
            kind = "dates" if pa.types.is_temporal(after) else "numbers"
            raise ValueError(f"{data}: column {name!r} holds {kind} as text; out of core, store it as {kind}")
        if is_text and not was_text and name not in declared:
            declared[name] = "category"
    return list(found.schema.names), declared


def first_rows(dataset: Any) -> Any:
    """The first rows; an error names a partition among them whose columns are of other kinds."""
    import pyarrow as pa

    from spngp.outofcore.pieces import pieces_of

    try:
        return dataset.head(_ROWS_LOOKED_AT)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pieces_of(dataset, dataset.schema.names)
        raise


def _holds_text(of: Any) -> bool:
    import pyarrow as pa

    of = of.value_type if pa.types.is_dictionary(of) else of
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))
