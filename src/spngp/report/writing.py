"""Putting the page together and onto disk."""

from __future__ import annotations

import base64
import datetime
import functools
import gzip
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from spngp._support.atomic import replacing
from spngp._support.types import Array
from spngp._version import __version__
from spngp.estimators.base import Regressor
from spngp.report import text
from spngp.report.columns import columns_of
from spngp.report.contents import contents
from spngp.report.judged import judged_rows


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    output_names: Sequence[str] | None = None,
    row_names: Sequence[Any] | None = None,
    units: str | Mapping[str, str] | None = None,
) -> Path:
    """Write a report on a fitted model as one HTML file that opens in any browser, without a network.

    It says how good predictions are, which columns matter, what is predicted along each of them, where errors are
    largest, which rows to look at, and what the model has learnt. Plotly's library is inside (the extra ``report``),
    which makes about two of its megabytes.

    Parameters
    ----------
    model : SPNGPRegressor, GPRegressor or a committee
        Fitted.
    path : path
        Where to write; replaced at once or not at all.
    X, y : array-like, optional
        Rows that the model has not seen. Without them there is no word on accuracy, and errors are those of rows it has
        learnt from.
    title : str, optional
    output_names : sequence of str, optional
        Taken from y if it is a table or a series; y, or y0, y1 and so on, by default.
    row_names : sequence, optional
        How to call the rows of X; their index if X is a DataFrame, else they are counted from 1.
    units : str or mapping of str to str, optional
        Unit of the output, or units of columns and outputs by name: ``{"delay": "min", "distance": "km"}``.

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
    if not isinstance(model, Regressor):
        raise TypeError(f"model must be a fitted estimator of spngp, got {type(model).__name__}")
    if X is None and not hasattr(model, "X_train_"):
        raise ValueError(f"a {type(model).__name__} keeps no rows to show: give X and y that it has not seen")
    judged = judged_rows(model, X, y, row_names)
    outputs = [text.name(name) for name in _output_names(model, y, output_names)]
    by_name = _units(model, judged.X, outputs, units)
    parts = contents(model, judged, outputs, by_name)
    parts |= {
        "title": text.escaped(text.name(title) if title else _default_title(outputs)),
        "style": _file("page.css"),
        "script": "\n".join(_file(f"page.{part}.js") for part in ("charts", "panels", "regions", "tables", "start")),
        "plotly": _plotly(),
        "version": text.escaped(__version__),
        "date": datetime.date.today().isoformat(),
    }
    page = _filled(_file("page.html"), parts)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def _default_title(outputs: list[str]) -> str:
    if len(outputs) == 1:
        return f"How {outputs[0]} is predicted"
    named = ", ".join(outputs[:-1]) if len(outputs) <= 3 else ", ".join(outputs[:2])
    last = outputs[-1] if len(outputs) <= 3 else f"{len(outputs) - 2} more"
    return f"How {named} and {last} are predicted"


def _units(model: Any, X: Array, outputs: list[str], units: str | Mapping[str, str] | None) -> dict[str, str]:
    """Units by the names of columns and outputs."""
    if units is None:
        return {}
    if isinstance(units, str):
        return {outputs[0]: text.name(units)} if len(outputs) == 1 else _no_unit_for_all(outputs)
    known = [*(column.name for column in columns_of(model, X) if not column.part), *outputs]
    unknown = [name for name in units if text.name(name) not in known]
    if unknown:
        raise ValueError(f"units must be of columns or outputs, {', '.join(known[:12])}; got {unknown[0]!r}")
    return {text.name(name): text.name(unit) for name, unit in units.items()}


def _no_unit_for_all(outputs: list[str]) -> dict[str, str]:
    raise ValueError(f"units of several outputs must be given by name ({', '.join(outputs[:6])}), got one unit")


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


def _filled(page: str, parts: dict[str, str]) -> str:
    """The page with every ``{{name}}`` replaced, in one pass: text that was put in is not searched for names."""
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


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
