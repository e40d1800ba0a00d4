"""Running experiments: which can be run here, with which settings, into which folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spngp import datasets
from spngp.experiments import NAMES, find
from spngp.experiments.cells import Cells
from spngp.experiments.origin import code_text, origin_text, running_code, seconds_text


def missing_data(name: str) -> list[str]:
    """The data sets that an experiment needs and that are not on this machine."""
    return [data for data in find(name).DATA if not datasets.status(datasets.find(data)).available]


def run(name: str, folder: Path, quick: bool, all_files: bool, say: Callable[[str], None]) -> Path:
    """Run one experiment and write its page into ``folder/name``; returns the page's path."""
    import matplotlib

    matplotlib.use("Agg")
    module: Any = find(name)
    settings = module.QUICK if quick else module.Settings()
    target = folder / name
    cells = Cells(target / "cells", settings, lambda line: say(f"{name}: {line}"))
    start = time.perf_counter()
    page = module.run(settings, cells)
    seconds = time.perf_counter() - start - cells.seconds_now + cells.seconds
    command = f"spngp reproduce {name}{' --quick' if quick else ''}"
    return page.write(target, _made_by(command, settings, cells, seconds), all_files)


def _made_by(command: str, settings: Any, cells: Cells, seconds: float) -> str:
    said = ", ".join(f"{name} = {value}" for name, value in asdict(settings).items())
    text = f"Made by `{command}` ({said}) with {origin_text()}; computing took {seconds_text(seconds)}"
    earlier = [code_text(code) for code in cells.codes if code != running_code()]
    return f"{text}, in part with {' and '.join(earlier)}, from the same sources." if earlier else f"{text}."


def chosen(name: str) -> tuple[str, ...]:
    """The experiments that a name stands for."""
    if name == "all":
        return NAMES
    find(name)
    return (name,)
