"""What an experiment gives, and how it is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spngp._support.atomic import replacing
from spngp.experiments.cells import Row
from spngp.experiments.files import csv_text, write_text


@dataclass(frozen=True)
class Page:
    """Results for people and for programs.

    Attributes
    ----------
    title : str
    text : str
        Markdown: tables, and what they show.
    tables : dict
        Name of a CSV file, without ending, to its rows.
    figures : dict
        Name of a figure, without ending, to (figure, caption).
    further_tables : dict
        As ``tables``, but written only when all files are asked for: the points of curves that a figure shows.
    """

    title: str
    text: str
    tables: dict[str, Sequence[Row]]
    figures: dict[str, tuple[Any, str]] = field(default_factory=dict)
    further_tables: dict[str, Sequence[Row]] = field(default_factory=dict)

    def write(self, folder: Path, made_by: str, all_files: bool = False) -> Path:
        """Write the Markdown page with what it shows, and return its path.

        Parameters
        ----------
        folder : Path
        made_by : str
            The last line of the page: command, code, machine and time.
        all_files : bool
            Whether to write what the page does not show as well: figures as SVG, and ``further_tables``.
        """
        import matplotlib.pyplot as plt

        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (self.tables | (self.further_tables if all_files else {})).items():
            write_text(folder / f"{name}.csv", csv_text(rows))
        shown = []
        for name, (figure, caption) in self.figures.items():
            for ending in ("png", "svg") if all_files else ("png",):
                metadata = {"Date": None} if ending == "svg" else None  # the same figure, the same bytes
                with replacing(folder / f"{name}.{ending}") as beside:
                    figure.savefig(beside, format=ending, dpi=150, metadata=metadata)
            plt.close(figure)
            shown.append(f"![{caption}]({name}.png)\n\n*{caption}*")
        files = ", ".join(f"[{name}.csv]({name}.csv)" for name in self.tables)
        numbers = [f"Numbers: {files}."] if files else []
        path = folder / "README.md"
        write_text(path, "\n\n".join([f"# {self.title}", *shown, self.text.strip(), *numbers, made_by]))
        return path
