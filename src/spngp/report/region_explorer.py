"""Regions for the page: box, rows, experts, parameters and residuals of each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from spngp.box import sides_text
from spngp.plotting.expert_regions import expert_regions
from spngp.plotting.names import short_names
from spngp.report.judged import Judged
from spngp.report.text import number, packed, percent

_SHOWN = 200  # regions; the smallest of more could not be told apart
_RESIDUALS = 80  # per region
_PARAMETER = re.compile(r"(?:(?P<part>\d+(?:\.\d+)*)\.)?(?P<name>[a-z_]+)(?:\[(?P<input>\d+)\])?")


def regions(model: Any, judged: Judged, output: int, inputs: list[str]) -> dict[str, Any]:
    """The regions of one output, largest first."""
    found = [region for region in expert_regions(model, output) if region.rows * region.weight > 1e-3]
    rows, mixture, y = judged.observed(output)
    X, mean = judged.X[rows], mixture.mean
    residual = (y - mean) / mixture.std
    names = short_names(model)
    items = []
    for region in found[:_SHOWN]:
        inside = np.flatnonzero(region.contains(X))
        shown = inside[:_RESIDUALS]
        items.append(
            {
                "box": sides_text(region.low, region.high, inputs, number),
                "rows": region.rows,
                "weight": percent(region.weight),
                "size": region.rows * region.weight,
                "evidence": region.log_evidence_per_row,
                "evidenceText": number(region.log_evidence_per_row),
                "noise": number(region.noise_std),
                "experts": [_expert(record, inputs, names) for record in region.experts],
                "judged": int(inside.size),
                "rmse": number(float(np.sqrt(np.mean((y[inside] - mean[inside]) ** 2)))) if inside.size else "–",
                "predicted": packed(mean[shown], "f8"),
                "residual": packed(residual[shown]),
                "span": [
                    min(-3.2, 1.1 * float(residual[shown].min(initial=0))),
                    max(3.2, 1.1 * float(residual[shown].max(initial=0))),
                ],
            }
        )
    return {"items": items, "total": len(found)}


def _expert(record: dict[str, Any], inputs: list[str], names: dict[str, str]) -> dict[str, Any]:
    return {
        "kernel": names[record["kernel"]],
        "share": percent(record["share"]),
        "noise": number(record["noise_std"]),
        "evidence": number(record["log_evidence"]),
        "context": f"{record['context_rows']:,}",
        "parameters": parameter_table(record["parameters"], inputs),
    }


def parameter_table(parameters: dict[str, float], inputs: list[str]) -> dict[str, Any]:
    """The parameters of a kernel: a row for each, a column for each part of a sum or product.

    Examples
    --------
    >>> from spngp.report.region_explorer import parameter_table
    >>> parameter_table({"0.length_scale[0]": 2.0, "0.variance": 1.0, "1.variance": 3.0}, ["time"])
    {'parts': ['part 1', 'part 2'], 'rows': [['length scale of time', '2', ''], ['variance', '1', '3']]}
    """
    values: dict[str, dict[str, str]] = {}
    for parameter, value in parameters.items():
        part, name = _parameter_words(parameter, inputs)
        values.setdefault(name, {})[part] = number(value)
    parts = list(dict.fromkeys(part for row in values.values() for part in row))
    return {"parts": parts, "rows": [[name, *(row.get(part, "") for part in parts)] for name, row in values.items()]}


def _parameter_words(parameter: str, inputs: list[str]) -> tuple[str, str]:
    match = _PARAMETER.fullmatch(parameter)
    if match is None:
        return "value", parameter
    part = "value" if match["part"] is None else "part " + ".".join(str(int(i) + 1) for i in match["part"].split("."))
    owner = "" if match["input"] is None else f" of {inputs[int(match['input'])]}"
    return part, match["name"].replace("_", " ") + owner
