"""Running experiments: which can be run here, with which settings, into which folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spngp import datasets
from spngp.experiments import NAMES, find
from spngp.experiments.cells import Cells


def missing_data(name: str) -> list[str]:
    """The data sets that an experiment needs and that are not on this machine."""
    return [data for data in find(name).DATA if not datasets.status(datasets.find(data)).available]


def run(name: str, folder: Path, quick: bool, say: Callable[[str], None]) -> Path:
    """Run one experiment and write its page into ``folder/name``; returns the page's path."""
    import matplotlib

    matplotlib.use("Agg")
    module: Any = find(name)
    settings = module.QUICK if quick else module.Settings()
    target = folder / name
    start = time.perf_counter()
    page = module.run(settings, Cells(target / "cells", settings, lambda line: say(f"{name}: {line}")))
    command = f"spngp reproduce {name}{' --quick' if quick else ''}"
    return page.write(target, command, settings, time.perf_counter() - start)


def chosen(name: str) -> tuple[str, ...]:
    """The experiments that a name stands for."""
    if name == "all":
        return NAMES
    find(name)
    return (name,)
