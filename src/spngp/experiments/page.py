"""What an experiment gives, and how it is written down."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spngp._support.atomic import replacing
from spngp._version import __version__
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
    """

    title: str
    text: str
    tables: dict[str, Sequence[Row]]
    figures: dict[str, tuple[Any, str]] = field(default_factory=dict)

    def write(self, folder: Path, command: str, settings: Any, seconds: float) -> Path:
        """Write CSV, PNG, SVG and the Markdown page; returns the page's path."""
        import matplotlib.pyplot as plt

        for name, rows in self.tables.items():
            write_text(folder / f"{name}.csv", csv_text(rows))
        shown = []
        for name, (figure, caption) in self.figures.items():
            for ending in ("png", "svg"):
                metadata = {"Date": None} if ending == "svg" else None  # the same figure, the same bytes
                with replacing(folder / f"{name}.{ending}") as beside:
                    figure.savefig(beside, format=ending, dpi=150, metadata=metadata)
            plt.close(figure)
            shown.append(f"![{caption}]({name}.png)\n\n*{caption}*")
        files = ", ".join(f"[{name}.csv]({name}.csv)" for name in self.tables)
        parts = [
            f"# {self.title}",
            *shown,
            self.text.strip(),
            f"Numbers: {files}.",
            _made_by(command, settings, seconds),
        ]
        path = folder / "README.md"
        write_text(path, "\n\n".join(parts))
        return path


def _made_by(command: str, settings: Any, seconds: float) -> str:
    said = ", ".join(f"{name} = {value}" for name, value in asdict(settings).items())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return (
        f"Made by `{command}` ({said}) with spngp {__version__}, Python {platform.python_version()}, {libraries} on "
        f"{os.cpu_count()} cores ({_processor()}); this run took {seconds:.0f} s."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
