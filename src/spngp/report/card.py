"""The model and its data in words and figures: the top of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.noise import GAUSSIAN
from spngp.report.accuracy import Accuracy
from spngp.report.judged import Judged, training_range
from spngp.report.text import Cell, escaped, number, percent, table


def subtitle(model: Any, X: Array, outputs: list[str]) -> str:
    """What was fitted, in a line."""
    shown = ", ".join(outputs[:3]) + (", …" if len(outputs) > 3 else "")
    rows, inputs = counted(X.shape[0], "row"), counted(X.shape[1], "input")
    return f"{type(model).__name__} for {shown}, learnt from {rows} of {inputs}"


def sentence(found: list[Accuracy], outputs: list[str], judged: Judged) -> str:
    """The result in words."""
    if not found:
        return (
            "No held-out rows were given, so this page says nothing about accuracy on new data. "
            "Residuals and surprises are those of rows the model has learnt from."
        )
    first = found[0].scores
    of = f" of {outputs[0]}" if len(outputs) > 1 else ""
    sample = f" (a random sample out of {judged.n_given:,})" if judged.n_given > judged.X.shape[0] else ""
    return (
        f"On {counted(first.n, 'row')} it had not seen{sample}, predictions{of} are typically off by "
        f"{number(first.rmse, 3)}. "
        f"{percent(first.coverage[0.95])} of the observations fell inside its 95\u00a0% intervals; {found[0].verdict}."
    )


def key_figures(model: Any, found: list[Accuracy], outputs: list[str]) -> str:
    """The four figures to remember."""
    of = f" of {outputs[0]}" if len(outputs) > 1 else ""
    if found:
        first = found[0].scores
        shown = [
            ("RMSE" + of, number(first.rmse, 3), "typical error of the mean"),
            ("R²" + of, number(first.r2, 3), "share of the variance explained"),
            ("Inside 95 % intervals" + of, percent(first.coverage[0.95]), found[0].verdict),
            ("NLPD" + of, number(first.nlpd, 3), "nats per row, lower is better"),
        ]
    else:
        boxes = {(record["output"], *record["low"], *record["high"]) for record in model.regions_}
        shown = [
            ("Log evidence", number(model.log_evidence_), "of the training rows"),
            ("Regions", f"{len(boxes):,}", "boxes with experts of their own"),
            ("Experts", f"{len(model.regions_):,}", "Gaussian processes"),
            ("Kernels", str(len(model.kernel_names_)), "alternatives in every region"),
        ]
    return "".join(
        f'<div class="key-figure"><dt>{escaped(name)}</dt><dd>{escaped(value)}<small>{escaped(note)}</small></dd></div>'
        for name, value, note in shown
    )


def inputs_table(X: Array, inputs: list[str], judged: Judged) -> str:
    """A row per input: its range, and how many held-out rows lie beyond it."""
    head = ["input", "distinct", "lowest", "5 %", "25 %", "median", "75 %", "95 %", "highest"]
    quantiles = np.quantile(X, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1], axis=0)
    lowest, highest = training_range(X)
    outside = ((lowest > judged.X) | (highest < judged.X)).sum(axis=0)
    rows = []
    for i, name in enumerate(inputs):
        distinct = np.unique(X[:, i]).size
        count = Cell(f"{distinct:,}", "constant: it cannot inform predictions" if distinct == 1 else "")
        row: list[str | Cell] = [name, count, *(number(value) for value in quantiles[:, i])]
        if judged.held_out:
            remark = "held-out rows beyond the training range are extrapolated" if outside[i] else ""
            row.append(Cell(f"{outside[i]:,}", remark))
        rows.append(row)
    if judged.held_out:
        head.append("held-out rows beyond")
    return table(head, rows, "Inputs")


def outputs_table(Y: Array, outputs: list[str]) -> str:
    """A row per output: its range and spread, and how many values are missing."""
    head = ["output", "rows", "missing", "lowest", "median", "mean", "highest", "std"]
    rows = []
    for k, name in enumerate(outputs):
        y = Y[~np.isnan(Y[:, k]), k]
        figures = (y.min(), np.median(y), y.mean(), y.max(), y.std())
        rows.append([name, f"{y.size:,}", f"{len(Y) - y.size:,}", *(number(float(value)) for value in figures)])
    return table(head, rows, "Outputs")


def settings_table(model: Any, n_trees: str) -> str:
    """The estimator's parameters and what came of them."""
    rows: list[list[str]] = [["log evidence", number(model.log_evidence_)]]
    rows.append(["experts", f"{len(model.regions_):,}"])
    rows.append(["trees the network mixes", n_trees])
    shapes = ["Gaussian" if shape == GAUSSIAN else "longer tails than Gaussian" for shape in model.noise_shapes_]
    rows.append(["learnt shape of the noise", ", ".join(dict.fromkeys(shapes))])
    rows.append(["kernels mixed", ", ".join(model.kernel_names_)])
    rows += [
        [name, _shown(value)] for name, value in sorted(model.get_params(deep=False).items()) if name not in _NOT_SHOWN
    ]
    return table(["setting", "value"], rows, "Model", numbers_from=2)


_NOT_SHOWN = ("kernel", "kernels", "n_jobs", "verbose")  # the first two are shown by name


def _shown(value: Any) -> str:
    text = "default" if value is None else str(value)
    return text if len(text) <= 120 else text[:119] + "…"
