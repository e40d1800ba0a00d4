"""Putting the page together and onto disk."""

from __future__ import annotations

import base64
import datetime
import functools
import gzip
import math
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from spngp._support.atomic import replacing
from spngp._version import __version__
from spngp.network import Node
from spngp.plotting.lines import input_names, training_rows
from spngp.plotting.names import short_names
from spngp.report import accuracy, card, text
from spngp.report.judged import Judged, judged_rows, training_range
from spngp.report.region_explorer import regions
from spngp.report.slices import slices


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    output_names: Sequence[str] | None = None,
    row_names: Sequence[Any] | None = None,
) -> Path:
    """Write a report on a fitted model as one HTML file that opens in any browser, without a network.

    It holds the data and the model in figures, accuracy and calibration on the rows given, the prediction along every
    input, the regions with their experts, and the rows that surprise the model most. Plotly's library is inside (the
    extra ``report``), which makes about two of its megabytes.

    Parameters
    ----------
    model : SPNGPRegressor or GPRegressor
        Fitted.
    path : path
        Where to write; replaced at once or not at all.
    X, y : array-like, optional
        Rows that the model has not seen. Without them there is no word on accuracy, and residuals and surprises are
        those of rows it has learnt from.
    title : str, optional
    output_names : sequence of str, optional
        Taken from y if it is a table or a series; y, or y0, y1 and so on, by default.
    row_names : sequence, optional
        How to call the rows of X; their index or position by default.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from spngp import GPRegressor, datasets
    >>> from spngp.report import write_report
    >>> data = datasets.load("motorcycle")
    >>> held_out = np.arange(133) % 5 == 0
    >>> model = GPRegressor(hyperparameters="fixed").fit(data.X[~held_out], data.Y[~held_out, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_report(model, f"{folder}/report.html", data.X[held_out], data.Y[held_out, 0])
    ...     print(file.name, file.stat().st_size < 5_000_000)
    report.html True
    """
    check_is_fitted(model)
    if not hasattr(model, "regions_"):
        raise TypeError(f"model must be a fitted SPNGPRegressor or GPRegressor, got {type(model).__name__}")
    judged = judged_rows(model, X, y, row_names)
    inputs = [text.name(name) for name in input_names(model)]
    outputs = [text.name(name) for name in _output_names(model, y, output_names)]
    page = _page(model, judged, inputs, outputs, text.name(title) if title else "Model report")
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def _output_names(model: Any, y: Any, given: Sequence[str] | None) -> list[str]:
    p = model.n_outputs_
    if given is not None:
        names = [given] if isinstance(given, str) else [str(name) for name in given]
        if len(names) != p:
            raise ValueError(f"output_names must have one name per output ({p}), got {len(names)}")
        return names
    columns = getattr(y, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    if p == 1:
        return [str(getattr(y, "name", None) or "y")]
    return [f"y{k}" for k in range(p)]


def _page(model: Any, judged: Judged, inputs: list[str], outputs: list[str], title: str) -> str:
    X, Y = training_rows(model)
    found = [accuracy.accuracy(judged, k) for k in range(len(outputs))] if judged.held_out else []
    seen = training_range(X)
    along = [slices(model, X, Y[:, k], k, inputs) for k in range(len(outputs))]
    data = {
        "outputs": outputs,
        "kernels": list(short_names(model).values()),
        "heldOut": judged.held_out,
        "charts": [
            {
                "calibration": accuracy.calibration(judged, k) if judged.held_out else None,
                "slices": along[k],
                "regions": regions(model, judged, k, inputs),
            }
            for k in range(len(outputs))
        ],
    }
    surprises = []
    for k in range(len(outputs)):
        rows = accuracy.surprises_table(judged, k, inputs, along[k]["order"], seen)
        surprises.append(f'<div data-output="{k}"{"" if k == 0 else " hidden"}>{rows}</div>')
    parts = {
        "title": text.escaped(title),
        "style": _file("page.css"),
        "script": _file("page.js"),
        "plotly": _plotly(),
        "data": text.json_for_html(data),
        "subtitle": text.escaped(card.subtitle(model, X, outputs)),
        "key-figures": card.key_figures(model, found, outputs),
        "sentence": text.escaped(card.sentence(found, outputs, judged)),
        "output-choice": _output_choice(outputs),
        "inputs": card.inputs_table(X, inputs, judged),
        "outputs": card.outputs_table(Y, outputs),
        "scores": accuracy.scores_table(found, outputs) if found else "",
        "accuracy-hidden": "" if found else "hidden",
        "accuracy-note-hidden": "hidden" if found else "",
        "judged": "held-out rows" if judged.held_out else "rows the model has learnt from",
        "surprises": "".join(surprises),
        "settings": card.settings_table(model, _size(model.network_)),
        "version": text.escaped(__version__),
        "date": datetime.date.today().isoformat(),
    }
    return _filled(_file("page.html"), parts)


def _filled(page: str, parts: dict[str, str]) -> str:
    """The page with every ``{{name}}`` replaced, in one pass: text that was put in is not searched for names."""
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


def _output_choice(outputs: list[str]) -> str:
    if len(outputs) == 1:
        return ""
    options = "".join(f'<option value="{k}">{text.escaped(name)}</option>' for k, name in enumerate(outputs))
    return f'<label class="choice">Charts and surprises of <select id="output">{options}</select></label>'


def _size(network: Node) -> str:
    """How many induced trees the network mixes, in words."""
    count = network.n_induced_trees
    if count < 10_000_000:
        return f"{count:,}"
    return f"about 10^{math.floor(math.log10(count))}"


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _plotly() -> str:
    """Plotly's library, compressed; the browser unpacks it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("the report needs plotly: install spngp[report]") from error
    return base64.b64encode(gzip.compress(get_plotlyjs().encode("utf-8"), 9, mtime=0)).decode("ascii")
