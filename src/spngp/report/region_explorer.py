"""Regions for the page: box, rows, kernels with their settings in words, and residuals of each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import norm

from spngp import metrics
from spngp._support.types import Array
from spngp._support.wording import counted
from spngp.noise import NoiseShape
from spngp.plotting.expert_regions import ExpertRegion, expert_regions
from spngp.plotting.names import short_names
from spngp.plotting.settings import Group, grouped, in_words
from spngp.predictive import GaussianMixture
from spngp.report.columns import Column, box_text, with_unit
from spngp.report.judged import Judged
from spngp.report.kernel_words import meaning, number3, parameter_table
from spngp.report.text import number, packed, percent
from spngp.transformed import Log, Unchanged

_SHOWN = 200  # regions, at most: smaller ones could not be told apart
_RESIDUALS = 80  # residuals shown per region, at most


def regions(
    model: Any,
    records: list[dict[str, Any]],
    X: Array,
    judged: Judged,
    output: int,
    columns: list[Column],
    inputs: list[str],
    unit: str,
) -> dict[str, Any]:
    """The regions of one output, largest first; ``records`` are ``regions_``, ``columns`` in the order to show them."""
    found = [
        region
        for region in expert_regions(SimpleNamespace(regions_=records), output)
        if region.rows * region.weight > 1e-3
    ]
    rows, mixture, y = judged.observed(output)
    X_judged, mean = judged.X[rows], mixture.mean
    residual = norm.ppf(np.clip(metrics.pit(mixture, y), 1e-9, 1.0 - 1e-9))  # 95 % lie in ±1.96, whatever the shape
    typical = two_thirds(model.noise_shapes_[output])
    names, spans = short_names(model), {i: float(span) for i, span in enumerate(np.ptp(X, axis=0))}
    of_inputs = [""] * len(inputs)
    for column in columns:
        for i in column.inputs:
            of_inputs[i] = "days" if column.kind == "date" and i == column.inputs[0] else column.unit
    unit_inside = scale_learnt(model, output) or unit
    of_inputs.append(unit_inside)
    coded = {i for column in columns if column.kind == "category" for i in column.inputs}
    items = []
    for region in found[:_SHOWN]:
        inside = np.flatnonzero(region.contains(X_judged))
        shown = inside[:_RESIDUALS]
        error = float(np.mean(np.abs(y[inside] - mean[inside]))) if inside.size else float("nan")
        items.append(
            {
                "box": box_text(region.low.tolist(), region.high.tolist(), columns),
                "rows": region.rows,
                "weight": percent(region.weight),
                "certain": region.weight > 0.999,
                "size": region.rows * region.weight,
                "evidence": number(region.log_evidence_per_row),
                "noise": typical * region.noise_std,
                "noiseText": f"±{_noise(model, output, typical * region.noise_std, unit)} for two rows in three",
                "words": _sentence(region, inputs, names, np.ptp(X, axis=0), typical, of_inputs, coded, columns),
                "kernels": [
                    _kernel(group, names, columns, spans, unit_inside, typical) for group in grouped(region.experts)
                ],
                "judged": int(inside.size),
                "error": with_unit(number(error, 3), unit),
                "predicted": packed(mean[shown], "f8"),
                "residual": packed(residual[shown]),
                "span": [
                    min(-3.2, 1.1 * float(residual[shown].min(initial=0))),
                    max(3.2, 1.1 * float(residual[shown].max(initial=0))),
                ],
            }
        )
    return {"items": items, "total": len(found), "unit": unit}


def two_thirds(shape: NoiseShape) -> float:
    """Where two thirds of noise of this shape and of variance one lie: ± this. It is one for a Gaussian.

    Examples
    --------
    >>> from spngp.noise import GAUSSIAN, NoiseShape
    >>> from spngp.report.region_explorer import two_thirds
    >>> round(two_thirds(GAUSSIAN), 2), round(two_thirds(NoiseShape((0.99, 0.01), (1.0, 400.0))), 2)
    (1.0, 0.45)
    """
    weights, factors = np.array(shape.weights), np.array(shape.factors)
    mixture = GaussianMixture(np.log(weights)[np.newaxis], np.zeros((1, weights.size)), factors[np.newaxis])
    return float(mixture.quantile(norm.cdf(1.0))[0] / np.sqrt(shape.variance))


def scale_learnt(model: Any, output: int) -> str:
    """On which scale an output was learnt, in the place of a unit; empty if it is its own."""
    targets = getattr(model, "targets_", None)
    if targets is None or isinstance(targets[output], Unchanged):
        return ""
    return "on the log scale" if isinstance(targets[output], Log) else "on the scale learnt"


def _noise(model: Any, output: int, size: float, unit: str) -> str:
    """A spread around predictions: in the unit of the output, or in percent if its logarithm was learnt."""
    scale = scale_learnt(model, output)
    if scale == "on the log scale" and size < 1.0:
        return f"{number(100.0 * np.expm1(size), 2)}\u00a0%"
    return with_unit(number(size, 3), scale or unit)


def _sentence(
    region: ExpertRegion,
    inputs: list[str],
    names: dict[str, str],
    spans: Array,
    typical: float,
    units: list[str],
    coded: set[int],
    columns: list[Column],
) -> str:
    by_input = {i: column for column in columns if not column.part for i in column.inputs[:1]}

    def place(i: int, value: float, digits: int) -> str:
        return by_input[i].quantity(value, digits) if i in by_input else number(value, digits)

    told = in_words(region.experts, inputs, names, number3, spans, typical, units, coded, place)
    return told[:1].upper() + told[1:] + "."


def _kernel(
    group: Group, names: dict[str, str], columns: list[Column], spans: dict[int, float], unit: str, typical: float
) -> dict[str, Any]:
    settings = f", {counted(group.count, 'setting')}" if group.count > 1 else ""
    curves = {tuple(identity["part"]) for identity in group.identities if identity["role"] == "length_scale"}
    explained = meaning(group.label, len(curves))
    return {
        "name": group.name(names),
        "summary": f"{group.name(names)}: {percent(group.share, 0)}{settings}",
        "meaning": f"Describes {explained}." if explained else "",
        "noise": f"Scatter it does not explain: ±{with_unit(group.noise_std.scaled(typical).text(number3), unit)}"
        + (" on average; it changes with the inputs." if group.noise_varies else "."),
        "context": f"It also looks at {counted(group.context_rows, 'row')} beyond the border."
        if group.context_rows
        else "",
        "parameters": parameter_table(group, columns, spans, unit),
    }
