"""``spngp inspect``: what is inside a saved model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_TOLD = 3  # regions whose settings are told in words
_COUNTS, _JUMPS = 0.05, 20  # weight of an expert whose jumps are told; jumps along an input


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit or model.save.")],
    experts: Annotated[
        int,
        typer.Option(metavar="N", help="How many experts to list, weightiest first; settings of one kernel are one."),
    ] = 12,
    importance: Annotated[
        bool, typer.Option("--importance", help="Also how much each column matters; takes some seconds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every expert.")] = False,
) -> None:
    """Show a model's settings, inputs, regions, experts, evidence and kernel weights."""
    from spngp.cli.opening import open_model
    from spngp.cli.terminal import print_json

    estimator = open_model(model)
    facts = _facts(model, estimator)
    if importance:
        facts["importance"] = _importances(estimator, facts["targets"])
    if as_json:
        print_json(facts)
    else:
        _show(facts, experts)


def _facts(path: str, model: Any) -> dict[str, Any]:
    from dataclasses import asdict

    import numpy as np

    from spngp.cli.opening import size_of, target_names
    from spngp.estimators.elsewhere import sharded_of
    from spngp.tables.schema import TableSchema

    if not hasattr(model, "regions_"):
        raise ValueError(f"{path} holds a {type(model).__name__}; only SPNGPRegressor and GPRegressor have regions")

    schema = getattr(model, "table_", None)
    inputs = model.columns_.input_names
    known = schema if isinstance(schema, TableSchema) else TableSchema()
    targets = target_names(known, model.n_outputs_)
    sharded = sharded_of(model)
    known_rows = model.X_train_ if sharded is None else sharded.donors
    records = sorted(model.regions_, key=lambda record: (-record["weight"], record["output"]))
    return {
        "model": path,
        "bytes": size_of(path),
        "kind": type(model).__name__,
        "settings": {name: _simple(value) for name, value in model.get_params().items()},
        "inputs": inputs,
        "targets": targets,
        "columns": [asdict(column) for column in model.columns_.columns],
        "rows": int(known_rows.shape[0]) if sharded is None else sharded.n_rows,
        "log_evidence": model.log_evidence_,
        "regions": len({(*record["low"], *record["high"]) for record in records}),
        "in_doubt": [{"row": int(row) + 1, "target": targets[output]} for row, output in model.outliers_],
        "spans": np.ptp(known_rows, axis=0),
        "kernel_weights": _kernel_weights(records, model.kernel_names_),
        "experts": [
            {
                **record,
                "output": targets[record["output"]],
                "where": ", ".join(model.columns_.sides_text(record["low"], record["high"])) or "everywhere",
            }
            for record in records
        ],
    }


def _simple(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _kernel_weights(records: list[dict[str, Any]], names: list[str]) -> dict[str, float]:
    """Share of the rows that each kernel explains."""
    total = sum(record["weight"] * record["rows"] for record in records)
    return {
        name: sum(record["weight"] * record["rows"] for record in records if record["kernel"] == name) / total
        for name in names
    }


def _show(facts: dict[str, Any], n_experts: int) -> None:
    from spngp.cli.terminal import megabytes, print_facts, print_table, shortened

    changed = {name: value for name, value in facts["settings"].items() if value is not None}
    print_facts(
        f"{facts['kind']} in {facts['model']} ({megabytes(facts['bytes'])})",
        {
            "rows": facts["rows"],
            "inputs": shortened(facts["inputs"], 12),
            "targets": shortened(facts["targets"], 12),
            "regions": facts["regions"],
            "experts": len(facts["experts"]),
            "log evidence": facts["log_evidence"],
            "in doubt": _in_doubt(facts),
            "settings": ", ".join(f"{name}={value}" for name, value in changed.items()),
        },
    )
    _show_importances(facts)
    letters = {name: _letter(i) for i, name in enumerate(facts["kernel_weights"])}
    print_table(
        "Kernels, by the share of rows they explain",
        ("", "kernel", "weight"),
        [(letters[name], name, f"{weight:.1%}") for name, weight in facts["kernel_weights"].items()],
        text_columns=2,
    )
    _show_columns(facts["columns"])
    _show_experts(facts, letters, n_experts)


def _show_experts(facts: dict[str, Any], letters: dict[str, str], n_experts: int) -> None:
    """The experts, weightiest first: those of one kernel in one region on one line, however many settings it has."""
    from spngp.cli.terminal import print_line, print_table, shown
    from spngp.plotting.settings import grouped, in_words

    regions: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for expert in facts["experts"]:
        regions.setdefault((expert["output"], *expert["low"], *expert["high"]), []).append(expert)
    lines = [
        (group.share * sum(expert["weight"] for expert in experts), experts[0], group)
        for experts in regions.values()
        for group in grouped(experts)
    ]
    lines = sorted(lines, key=lambda line: -line[0])[: max(n_experts, 0)]
    if not lines:
        return
    several = any(len(grouped(experts)) < len(experts) for experts in regions.values())
    n_lines = sum(len(grouped(experts)) for experts in regions.values())
    print_table(
        f"Experts ({len(lines)} of {n_lines}, by weight)",
        ("where", "kernel", *(("settings",) if several else ()), "rows", "context", "noise std", "weight"),
        [
            (
                first["where"] + (f", {first['output']}" if len(facts["targets"]) > 1 else ""),
                letters[group.label],
                *((group.count,) if several else ()),
                first["rows"],
                group.context_rows,
                group.noise_std.text(shown) + (", changing" if group.noise_varies else ""),
                f"{weight:.1%}",
            )
            for weight, first, group in lines
        ],
        text_columns=2,
    )
    _show_jumps(facts)
    if several:
        for experts in list(regions.values())[:_TOLD]:
            if len(grouped(experts)) < len(experts):
                words = in_words(experts, facts["inputs"], letters, "{:.3g}".format, facts["spans"])
                print_line(f"{experts[0]['where']}: {words}", wrap=True)


def _show_jumps(facts: dict[str, Any]) -> None:
    """Along which inputs the function jumps, and where, as experts that count say it."""
    from spngp.cli.terminal import print_line, shortened
    from spngp.plotting.settings import digits_apart

    found: dict[int, dict[str, list[float]]] = {}  # by input and kernel
    for expert in facts["experts"]:
        for jumps in expert["jumps"] if expert["weight"] >= _COUNTS else ():
            found.setdefault(jumps["input"], {}).setdefault(expert["kernel"], []).extend(jumps["at"])
    for i, of_kernels in sorted(found.items()):
        cuts = max((sorted(set(said)) for said in of_kernels.values()), key=lambda said: len(said))
        at = shortened([f"{cut:.{digits_apart(cuts)}g}" for cut in cuts], _JUMPS)
        print_line(f"The function jumps along {facts['inputs'][i]} at {at}.", wrap=True)


def _show_importances(facts: dict[str, Any]) -> None:
    from spngp.cli.terminal import print_table

    for target, found in facts.get("importance", {}).items():
        of = f" to {target}" if len(facts["importance"]) > 1 else ""
        print_table(
            f"Columns by what they matter{of}: share of the variance of predictions lost without them",
            ("column", "share", "± (standard error)"),
            [(name, f"{item['share']:.1%}", f"{item['error']:.1%}") for name, item in list(found.items())[:12]],
        )


def _importances(model: Any, targets: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    """For each target the columns, most important first."""
    from dataclasses import asdict

    from spngp.report.columns import columns_of
    from spngp.report.importance import importances, rows_seen

    columns = [column for column in columns_of(model, model.X_train_) if not column.part]
    found_by_output = importances(model, model.X_train_, columns, rows_seen(model.regions_))
    found = {}
    for target, items in zip(targets, found_by_output, strict=True):
        pairs = sorted(zip(columns, items, strict=True), key=lambda pair: -pair[1].share)
        found[target] = {column.name: asdict(item) for column, item in pairs}
    return found


def _in_doubt(facts: dict[str, Any]) -> str:
    """The rows whose output the model does not trust."""
    from spngp.cli.terminal import shortened

    if not facts["in_doubt"]:
        return "no row"
    several = len(facts["targets"]) > 1
    rows = [f"{item['row']:,}" + (f" ({item['target']})" if several else "") for item in facts["in_doubt"]]
    return f"{'row' if len(rows) == 1 else 'rows'} {shortened(rows, 20)} of the table, counted from 1"


def _show_columns(columns: list[dict[str, Any]]) -> None:
    from spngp.cli.terminal import print_table, shortened

    special = [column for column in columns if column["kind"] != "number" or column["gaps"]]
    if special:
        print_table(
            "Columns that are not plain numbers",
            ("column", "kind", "levels or parts", "gaps"),
            [
                (c["name"], c["kind"], shortened(c["levels"] or c["parts"]), "yes" if c["gaps"] else "no")
                for c in special
            ],
            text_columns=4,
        )


def _letter(i: int) -> str:
    """A short name for a kernel, whose own may fill a line: A to Z, then AA and so on."""
    return (_letter(i // 26 - 1) if i >= 26 else "") + chr(ord("A") + i % 26)
