"""Text that is safe wherever it ends up: numbers for people, names from data, HTML and JSON."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array

_LONGEST_NAME = 60  # characters


def number(value: float, digits: int = 4) -> str:
    """The value with ``digits`` significant digits, and without an exponent where a person would write none.

    Examples
    --------
    >>> from spngp.report.text import number
    >>> [number(value) for value in (0.0, -0.012345, 12345.6, 3.0, 1.5e-9, float("nan"))]
    ['0', '−0.01235', '12,346', '3', '1.5e−9', '–']
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        decimals = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def percent(share: float, decimals: int = 1) -> str:
    """A share of one as per cent, which no line break parts."""
    return "–" if math.isnan(share) else f"{100 * share:.{decimals}f}\u00a0%"


def name(given: Any) -> str:
    """A name from data on one line and not too long; still to be escaped."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(given)).strip() or "(no name)"
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def escaped(text: Any) -> str:
    """For HTML, in text and in attributes."""
    return html.escape(str(text), quote=True)


def json_for_html(data: Any) -> str:
    r"""JSON that can stand in a script element: nothing in it ends the element or opens a comment.

    Examples
    --------
    >>> from spngp.report.text import json_for_html
    >>> print(json_for_html(["</script>", "a & b"]))
    ["\u003c/script\u003e","a \u0026 b"]
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII only, so U+2028 is escaped as well
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(values: Array, kind: str = "f4") -> dict[str, str]:
    """Numbers as plotly takes them in few bytes: base64 of their memory; in double precision where it takes that."""
    size = float(np.abs(values).max(initial=0))
    if kind == "f4" and size and not 1e-30 < size < 1e30:
        kind = "f8"
    array = np.ascontiguousarray(values, dtype=f"<{kind}" if kind != "u1" else "u1")
    spec = {"dtype": kind, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
    return spec if array.ndim == 1 else {**spec, "shape": ", ".join(str(size) for size in array.shape)}


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, perhaps a remark, which makes it stand out, and what a CSV file has instead."""

    text: str
    remark: str = ""
    raw: str | None = None


def figure(value: float, unit: str = "", remark: str = "", digits: int = 4) -> Cell:
    """A cell with a number: rounded for the eye, whole in a CSV file."""
    shown = number(value, digits)
    return Cell(f"{shown}\u00a0{unit}" if unit and math.isfinite(value) else shown, remark, f"{value:.10g}")


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str | Cell]],
    caption: str,
    *,
    numbers_from: int = 1,
    download: str = "",
    at_first: int | None = None,
) -> str:
    """An HTML table that scrolls sideways where it must; columns from ``numbers_from`` on are numbers.

    ``download`` is the name of a CSV file that readers can save it as. Rows after the first ``at_first`` are shown when
    a reader asks for them.
    """
    columns = "".join(
        f'<th scope="col"{_number_class(i, numbers_from)} title="{escaped(text)}">{escaped(text)}</th>'
        for i, text in enumerate(head)
    )
    body: list[str] = []
    for row in rows:
        cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
        label = escaped(cells[0].text)
        first = f'<th scope="row" title="{label}"{_raw(cells[0])}>{label}</th>'
        later = ' class="later" hidden' if at_first is not None and len(body) >= at_first else ""
        rest = "".join(_cell(cell, i, numbers_from) for i, cell in enumerate(cells[1:], 1))
        body.append(f"<tr{later}>{first}{rest}</tr>")
    buttons = ""
    if at_first is not None and len(body) > at_first:
        buttons += f'<button type="button" class="all-rows">Show all {len(body):,} rows</button>'
    if download and body:
        buttons += f'<button type="button" class="download" data-name="{escaped(download)}">Download as CSV</button>'
    return (
        f'<div class="table"><div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{columns}</tr></thead>"
        f'<tbody>{"".join(body)}</tbody></table></div><p class="cue" hidden>more columns to the right →</p>'
        + (f'<p class="buttons">{buttons}</p></div>' if buttons else "</div>")
    )


def _number_class(i: int, numbers_from: int) -> str:
    return ' class="number"' if i >= numbers_from else ""


def _cell(cell: Cell, i: int, numbers_from: int) -> str:
    classes = (["number"] if i >= numbers_from else []) + (["marked"] if cell.remark else [])
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    remark = f' title="{escaped(cell.remark)}"' if cell.remark else ""
    return f"<td{attribute}{remark}{_raw(cell)}>{escaped(cell.text)}</td>"


def _raw(cell: Cell) -> str:
    return "" if cell.raw is None else f' data-raw="{escaped(cell.raw)}"'
