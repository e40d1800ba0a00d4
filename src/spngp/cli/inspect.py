"""``spngp inspect``: what is inside a saved model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by spngp fit or model.save.")],
    experts: Annotated[int, typer.Option(metavar="N", help="How many experts to list, weightiest first.")] = 12,
    importance: Annotated[
        bool, typer.Option("--importance", help="Also how much each input matters; takes some seconds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every expert.")] = False,
) -> None:
    """Show a model's settings, inputs, regions, experts, evidence and kernel weights."""
    from spngp.cli.opening import open_model
    from spngp.cli.terminal import print_json

    estimator = open_model(model)
    facts = _facts(model, estimator)
    if importance:
        found = estimator.importance()
        facts["importance"] = {name: found.records(k) for k, name in enumerate(facts["targets"])}
    if as_json:
        print_json(facts)
    else:
        _show(facts, experts)


def _facts(path: str, model: Any) -> dict[str, Any]:
    import os
    from dataclasses import asdict

    from spngp.cli.opening import target_names
    from spngp.tables.schema import TableSchema

    if not hasattr(model, "regions_"):
        raise ValueError(f"{path} holds a {type(model).__name__}; only SPNGPRegressor and GPRegressor have regions")

    schema = getattr(model, "table_", None)
    inputs = model.columns_.input_names
    known = schema if isinstance(schema, TableSchema) else TableSchema()
    targets = target_names(known, model.n_outputs_)
    records = sorted(model.regions_, key=lambda record: (-record["weight"], record["output"]))
    return {
        "model": path,
        "bytes": os.path.getsize(path),
        "kind": type(model).__name__,
        "settings": {name: _simple(value) for name, value in model.get_params().items()},
        "inputs": inputs,
        "targets": targets,
        "columns": [asdict(column) for column in model.columns_.columns],
        "rows": int(model.X_train_.shape[0]),
        "log_evidence": model.log_evidence_,
        "regions": len({(*record["low"], *record["high"]) for record in records}),
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
            "settings": ", ".join(f"{name}={value}" for name, value in changed.items()),
        },
    )
    letters = {name: _letter(i) for i, name in enumerate(facts["kernel_weights"])}
    print_table(
        "Kernels, by the share of rows they explain",
        ("", "kernel", "weight"),
        [(letters[name], name, f"{weight:.1%}") for name, weight in facts["kernel_weights"].items()],
        text_columns=2,
    )
    for target, records in facts.get("importance", {}).items():
        print_table(
            f"Inputs by importance for {target}: % of the variance of the mean and of the log std, ± standard error",
            ("input", "mean, alone", "mean, in all", "log std, alone", "log std, in all"),
            [(record["input"], *map(_share(record), _SHARES)) for record in records],
        )
    _show_columns(facts["columns"])
    shown = facts["experts"][: max(n_experts, 0)]
    if shown:
        print_table(
            f"Experts ({len(shown)} of {len(facts['experts'])}, by weight)",
            ("where", "kernel", "rows", "context", "noise std", "weight"),
            [
                (
                    expert["where"] + (f", {expert['output']}" if len(facts["targets"]) > 1 else ""),
                    letters[expert["kernel"]],
                    expert["rows"],
                    expert["context_rows"],
                    expert["noise_std"],
                    f"{expert['weight']:.1%}",
                )
                for expert in shown
            ],
            text_columns=2,
        )


_SHARES = ("mean_first", "mean_total", "log_std_first", "log_std_total")


def _share(record: dict[str, Any]) -> Callable[[str], str]:
    return lambda name: f"{100 * record[name]:.1f} ± {100 * record[f'{name}_error']:.1f}"


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
