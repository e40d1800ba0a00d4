"""How a notebook shows an estimator: scikit-learn's diagram, and under it what a fitted model has learnt."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

from spngp._support.wording import counted

# Colours are those of the page around it, so that it suits light and dark notebooks.
_STYLE = "border-collapse:collapse;margin:.5em 0;font-size:.9em;color:inherit;background:transparent"
_CELL = "text-align:left;padding:.15em .8em .15em .2em;border:0;border-bottom:1px solid rgba(127,127,127,.35)"


def as_html(model: Any) -> str:
    """HTML of a model, fitted or not."""
    diagram = str(estimator_html_repr(model))
    rows = facts(model) if model.__sklearn_is_fitted__() else []
    if not rows:
        return diagram
    cells = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:600">{html.escape(name)}</th>'
        f'<td style="{_CELL}">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'{diagram}<table class="spngp-learnt" style="{_STYLE}"><tbody>{cells}</tbody></table>'


def facts(model: Any) -> list[tuple[str, str]]:
    """What a fitted model has learnt, in a few words each."""
    names = getattr(model, "feature_names_in_", None)
    inputs = str(model.n_features_in_) if names is None else f"{len(names)}: {_listed([str(name) for name in names])}"
    found = [
        ("inputs", inputs),
        ("outputs", str(model.n_outputs_)),
        ("log evidence", f"{model.log_evidence_:.6g} nats"),
    ]
    if not hasattr(model, "network_"):
        experts = sum(len(group) for group in model.experts_)
        return [("learnt from", counted(_rows(model), "row")), *found, ("experts", str(experts))]
    records = model.regions_
    regions = len({(tuple(record["low"]), tuple(record["high"])) for record in records})
    totals: dict[str, float] = {}
    for record in records:
        totals[record["kernel"]] = totals.get(record["kernel"], 0.0) + record["weight"] * record["rows"]
    whole = sum(totals.values()) or 1.0
    shares = sorted(((total / whole, name) for name, total in totals.items()), reverse=True)
    noise = [record["noise_std"] for record in records if record["weight"] >= 0.5 / len(records)]
    low, high = min(noise), max(noise)
    return [
        ("learnt from", counted(_rows(model), "row")),
        *found,
        ("experts", f"{len(records)} in {counted(regions, 'region')}"),
        ("kernels", "; ".join(f"{share:.0%} {name}" for share, name in shares if share >= 0.005)),
        ("noise (std)", f"{low:.3g}" if high <= 1.001 * low else f"{low:.3g} to {high:.3g}"),
        ("outputs in doubt", str(len(model.outliers_))),
    ]


def _rows(model: Any) -> int:
    if hasattr(model, "X_train_"):
        return int(model.X_train_.shape[0])
    return int(np.sum([rows.size for rows in model.expert_rows_]))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
