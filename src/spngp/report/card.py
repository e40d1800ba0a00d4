"""The model and its data in words and figures: the top of the page and its end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.noise import GAUSSIAN
from spngp.report.accuracy import Accuracy
from spngp.report.columns import Column, with_unit
from spngp.report.importance import Importance
from spngp.report.judged import Judged, training_range
from spngp.report.text import Cell, escaped, figure, number, percent, table
from spngp.report.verdict import Verdict, gain_text

_BARS = 15  # columns in the chart of importances, at most
_SAME_ROWS = 0.05  # share of rows equal to some learnt from, up to which it may be by chance


def subtitle(model: Any, X: Array, columns: list[Column], outputs: list[str]) -> str:
    """What was fitted, in a line."""
    shown = ", ".join(outputs[:3]) + (", …" if len(outputs) > 3 else "")
    learnt = X.shape[0] if hasattr(model, "X_train_") else sum(rows.size for rows in model.expert_rows_)
    rows, inputs = counted(learnt, "row"), counted(sum(not column.part for column in columns), "column")
    return f"A model of {shown} ({type(model).__name__}), learnt from {rows} with {inputs}"


def verdict_html(verdicts: list[Verdict], judged: Judged) -> str:
    """The verdict on each output, an alarm where it must not be used as it is."""
    if not verdicts:
        return (
            '<div class="verdict"><p>No held-out rows were given, so this page cannot say how good predictions of new '
            "rows are. Errors shown below are those of rows that the model has learnt from, and so too small.</p></div>"
        )
    sample = ""
    if judged.n_given > judged.X.shape[0]:
        sample = f" They are a random sample of {judged.n_given:,}."
    parts = []
    for k, verdict in enumerate(verdicts):
        state = "alarm" if verdict.alarm else "warning" if verdict.wide or _flattered(judged) else "good"
        mark = {"alarm": "Take care. ", "warning": "Note. ", "good": ""}[state]
        mark = f'<strong class="flag">{mark}</strong>' if mark else ""
        said = mark + escaped(" ".join(verdict.sentences))
        rows = f"Judged by {_judges(judged)}.{sample}" if k == 0 else ""
        note = f'<p class="note">{escaped(rows)}</p>' if rows else ""
        parts.append(f'<div class="verdict {state}"><p>{said}</p>{note}</div>')
    return "".join(parts)


def _flattered(judged: Judged) -> bool:
    """Whether many of the rows are equal to some that the model was learnt from."""
    return judged.n_learnt > _SAME_ROWS * judged.X.shape[0]


def _judges(judged: Judged) -> str:
    """The rows that a verdict rests on."""
    n = judged.X.shape[0]
    rows = counted(n, "row")
    if not _flattered(judged):
        return f"{rows} that it has not seen"
    if judged.n_learnt == n:
        return f"{rows}, {'which' if n == 1 else 'all of which'} it was learnt from: on new rows it will be worse"
    return (
        f"{rows}, of which {judged.n_learnt:,} are equal to rows that it was learnt from: if they are the same ones, "
        "it will be worse on new rows"
    )


def key_figures(
    model: Any,
    records: list[dict[str, Any]] | None,
    found: list[Accuracy],
    verdicts: list[Verdict],
    outputs: list[str],
    units: list[str],
) -> str:
    """The figures to remember."""
    of = f"{outputs[0]}: " if len(outputs) > 1 else ""
    if found:
        first, verdict, unit = found[0].scores, verdicts[0], units[0]
        less = "less" if verdict.gain >= 0 else "more"
        shown = [
            (
                of + "off by" if of else "Off by",
                with_unit(number(first.mae, 3), unit),
                "on average (mean absolute error)",
            ),
            (
                of + "against the mean" if of else "Against the mean",
                f"{gain_text(abs(verdict.gain))} {less}",
                "than always predicting it",
            ),
            (
                of + "inside 95 % intervals" if of else "Inside 95 % intervals",
                percent(first.coverage[0.95]),
                f"of {counted(first.n, 'observation')}",
            ),
            (
                of + "width of 95 % intervals" if of else "Width of 95 % intervals",
                with_unit(number(found[0].width, 3), unit),
                "on average",
            ),
        ]
    else:
        shown = [("Rows learnt from", f"{model.X_train_.shape[0]:,}", "")]
        if records is not None:
            boxes = {(record["output"], *record["low"], *record["high"]) for record in records}
            shown += [
                ("Regions", f"{len(boxes):,}", "parts of the data with kernels of their own"),
                ("Kernels", str(len(model.kernel_names_)), "alternatives that are mixed"),
            ]
    return "".join(
        f'<div class="key-figure"><dt>{escaped(name)}</dt><dd>{escaped(value)}<small>{escaped(note)}</small></dd></div>'
        for name, value, note in shown
    )


def importance_chart(found: list[Importance], columns: list[Column], order: list[int]) -> dict[str, Any]:
    """Bars for the columns that matter most, the longest first."""
    shown = [i for i in order if not columns[i].part][:_BARS]
    left = sum(not column.part for column in columns) - len(shown)
    return {
        "names": [columns[i].name for i in shown],
        "shares": [min(found[i].share, 1.0) for i in shown],
        "errors": [found[i].error for i in shown],
        "left": left,
    }


def columns_table(X: Array, columns: list[Column], judged: Judged) -> str:
    """A row per column: its range or levels, and how many held-out rows lie beyond."""
    head = ["column", "kind", "distinct", "lowest", "middle half from", "median", "to", "highest"]
    lowest, highest = training_range(X)
    rows = []
    for column in columns:
        values = column.values(X)
        values = values[~np.isnan(values)]
        distinct = np.unique(values).size
        constant = "constant: it cannot inform predictions" if distinct == 1 else ""
        row: list[str | Cell] = [column.title, _kind(column, values), Cell(f"{distinct:,}", constant, str(distinct))]
        if column.kind == "category":
            row += [Cell("")] * 5
        else:
            quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
            row += [Cell(column.text(float(value)), raw=column.raw(float(value))) for value in quantiles]
        if judged.held_out:
            outside = int(((lowest > judged.X) | (highest < judged.X))[:, column.inputs].any(axis=1).sum())
            row.append(Cell(f"{outside:,}", "rows beyond what was seen are guesses" if outside else "", str(outside)))
        rows.append(row)
    if judged.held_out:
        head.append("held-out rows beyond")
    return table(head, rows, "Columns", numbers_from=2, download="columns.csv")


def _kind(column: Column, values: Array) -> str:
    """What a column is; a category with its most frequent levels."""
    if column.kind != "category":
        return "yes or no" if column.levels == ("no", "yes") else column.kind
    counts = np.bincount(values.astype(np.intp), minlength=len(column.levels))
    usual = [i for i in np.argsort(-counts, kind="stable")[:3] if counts[i]]
    return "category: " + ", ".join(f"{column.levels[i]} {percent(counts[i] / counts.sum(), 0)}" for i in usual)


def outputs_table(Y: Array, outputs: list[str], units: list[str]) -> str:
    """A row per output: its range and spread, and how many values are missing."""
    head = ["output", "rows", "missing", "lowest", "median", "mean", "highest", "standard deviation"]
    rows: list[list[str | Cell]] = []
    for k, (name, unit) in enumerate(zip(outputs, units, strict=True)):
        y = Y[~np.isnan(Y[:, k]), k]
        figures = (y.min(), np.median(y), y.mean(), y.max(), y.std())
        counts = [Cell(f"{count:,}", raw=str(count)) for count in (y.size, len(Y) - y.size)]
        rows.append([name, *counts, *(figure(float(value), unit) for value in figures)])
    return table(head, rows, "Outputs", download="outputs.csv")


def settings_table(model: Any, records: list[dict[str, Any]] | None) -> str:
    """The estimator's parameters and what came of them."""
    rows: list[list[str]] = [["log evidence", number(model.log_evidence_)]]
    if records is not None:
        rows.append(["experts in all regions", f"{len(records):,}"])
        rows.append(["combinations that are mixed", _size(model.network_.n_induced_trees)])
        shapes = ["Gaussian" if shape == GAUSSIAN else "longer tails than Gaussian" for shape in model.noise_shapes_]
        rows.append(["learnt shape of the noise", ", ".join(dict.fromkeys(shapes))])
        used = {record["kernel"] for record in records}
        rows.append(["kernels mixed", ", ".join(name for name in model.kernel_names_ if name in used)])
    rows += [
        [name, _shown(value)] for name, value in sorted(model.get_params(deep=False).items()) if name not in _NOT_SHOWN
    ]
    return table(["setting", "value"], rows, "Settings", numbers_from=2)


_NOT_SHOWN = ("kernel", "kernels", "n_jobs", "verbose")  # the first two are shown by name


def _shown(value: Any) -> str:
    text = "default" if value is None else str(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _size(count: int) -> str:
    return f"{count:,}" if count < 10_000_000 else f"about 10^{math.floor(math.log10(count))}"
