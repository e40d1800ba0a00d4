"""What the page says and shows, section by section."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp._support.outputs import one_output
from spngp._support.types import Array
from spngp.plotting.lines import input_names, training_rows, without_names
from spngp.report import accuracy, card, rows, text
from spngp.report.columns import Column, columns_of
from spngp.report.curve import curve
from spngp.report.importance import Importance, importances, rows_seen
from spngp.report.judged import Judged, training_range
from spngp.report.panels import panels, sample_for, sampled_rows
from spngp.report.region_explorer import regions
from spngp.report.residuals import residual_charts, segments, segments_table
from spngp.report.verdict import baseline, verdict


def contents(model: Any, judged: Judged, outputs: list[str], units: dict[str, str]) -> dict[str, str]:
    """The parts of the page by name, as HTML, and the data of its charts as JSON."""
    X, Y = training_rows(model) if hasattr(model, "X_train_") else (judged.X, judged.Y)  # a committee keeps no rows
    columns, of_outputs = columns_of(model, X, units), [units.get(name, "") for name in outputs]
    records = model.regions_ if hasattr(model, "regions_") else None
    matter = importances(model, X, columns, rows_seen(records)) if records else importances(model, X, columns)
    orders = [_order(found, columns) for found in matter]
    found = [accuracy.accuracy(judged, k) for k in range(len(outputs))] if judged.held_out else []
    references = [baseline(judged.Y[:, k], Y[:, k]) if each.scores.n else float("nan") for k, each in enumerate(found)]
    verdicts = [
        verdict(each, references[k], _errors(judged, k), outputs[k], of_outputs[k])
        for k, each in enumerate(found)
        if each.scores.n
    ]
    data = {
        "outputs": outputs,
        "units": of_outputs,
        "heldOut": judged.held_out,
        "charts": _charts(model, records, X, Y, judged, columns, matter, orders, of_outputs),
    }
    few = [_tables(model, X, judged, k, [columns[i] for i in orders[k]], of_outputs[k]) for k in range(len(outputs))]
    hidden = {True: "", False: "hidden"}
    return {
        "data": text.json_for_html(data),
        "subtitle": text.escaped(card.subtitle(model, X, columns, outputs)),
        "verdict": card.verdict_html(verdicts, judged),
        "key-figures": card.key_figures(model, records, found, verdicts, outputs, of_outputs)
        if verdicts or not found
        else "",
        "output-choice": _output_choice(outputs),
        "columns": card.columns_table(X, columns, judged),
        "outputs": card.outputs_table(Y, outputs, of_outputs),
        "scores": accuracy.scores_table(found, references, outputs, of_outputs) if found else "",
        "accuracy-hidden": hidden[bool(found)],
        "accuracy-note-hidden": hidden[not found],
        "regions-hidden": hidden[records is not None],
        "curve-hidden": hidden[_is_curve(columns)],
        "panels-hidden": hidden[not _is_curve(columns)],
        "judged": "held-out rows" if judged.held_out else "rows the model has learnt from",
        "segments": _by_output([part["segments"] for part in few]),
        "surprises": _by_output([part["surprises"] for part in few]),
        "doubt": _by_output([part["doubt"] for part in few]),
        "rows-called": _called(judged),
        "settings": card.settings_table(model, records),
    }


def _errors(judged: Judged, output: int) -> Array:
    _, mixture, y = judged.observed(output)
    return np.asarray(y - mixture.mean)


def _is_curve(columns: list[Column]) -> bool:
    """Whether there is one input, which is no category."""
    return len(columns) == 1 and not columns[0].has_levels


def _order(found: list[Importance], columns: list[Column]) -> list[int]:
    """Columns by importance."""
    return sorted(range(len(columns)), key=lambda i: (-found[i].share, i))


def _charts(
    model: Any,
    records: list[dict[str, Any]] | None,
    X: Array,
    Y: Array,
    judged: Judged,
    columns: list[Column],
    matter: list[list[Importance]],
    orders: list[list[int]],
    units: list[str],
) -> list[dict[str, Any]]:
    inputs = [text.name(name) for name in input_names(model)]
    known = ~np.isnan(Y)
    first = without_names(model).predict_dist(X[:1])
    chosen = sample_for(X, first.n_components)
    mixture = without_names(model).predict_dist(X[chosen])
    looked_at = sampled_rows(X[chosen], Y[chosen], [one_output(mixture, k) for k in range(Y.shape[1])])
    charts = []
    for k, order in enumerate(orders):
        shown = [columns[i] for i in order]
        alone = _is_curve(columns)
        charts.append(
            {
                "importance": card.importance_chart(matter[k], columns, order) if len(columns) > 1 else None,
                "calibration": accuracy.calibration(judged, k) if judged.held_out else None,
                "curve": curve(model, X[known[:, k]], Y[known[:, k], k], k, columns[0]) if alone else None,
                "panels": None if alone else panels(looked_at[k], columns, order, units[k]),
                "residuals": residual_charts(judged, k, columns, order),
                "regions": regions(model, records, X, judged, k, shown, inputs, units[k])
                if records is not None
                else None,
            }
        )
    return charts


def _tables(model: Any, X: Array, judged: Judged, output: int, shown: list[Column], unit: str) -> dict[str, str]:
    whole = [column for column in shown if not column.part]
    worst = segments(judged, output, shown)
    doubt = rows.doubt_table(model, output, whole, unit, "Rows of the fit in doubt")
    return {
        "segments": segments_table(worst, unit)
        if worst
        else "<p>No part stands out, or there are too few rows to tell.</p>",
        "surprises": rows.surprises_table(judged, output, whole, training_range(X), unit, "Largest surprises"),
        "doubt": doubt or "<p>None: the model trusts every output it has learnt from.</p>",
    }


def _by_output(parts: list[str]) -> str:
    return "".join(f'<div data-output="{k}"{"" if k == 0 else " hidden"}>{part}</div>' for k, part in enumerate(parts))


def _called(judged: Judged) -> str:
    if judged.called != "row":
        return f"Rows are called by {text.escaped(text.name(judged.called))}."
    counted = judged.labels == [str(i + 1) for i in judged.positions]
    return "Rows are counted from 1." if counted else "Rows are called by the names given."


def _output_choice(outputs: list[str]) -> str:
    if len(outputs) == 1:
        return ""
    options = "".join(f'<option value="{k}">{text.escaped(name)}</option>' for k, name in enumerate(outputs))
    return f'<label class="choice">Charts and rows of <select id="output">{options}</select></label>'
