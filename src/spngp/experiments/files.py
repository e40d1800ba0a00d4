"""What experiments write: text, CSV and Markdown, whole or not at all."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spngp._support.atomic import replacing


def write_text(path: Path, text: str) -> None:
    """Write text, ending in a newline, into a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside:
        beside.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV; numbers with all the digits that matter."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    return text.getvalue()


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; its first column is text, all other columns are numbers."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(_shown(value) for value in line) + " |" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return str(value)
