"""Every table and figure of the paper, and what has become better since, at one command: ``spngp reproduce NAME``.

Each experiment is a module: its docstring says what it shows, ``Settings`` is a frozen dataclass with what can be set,
``QUICK`` are settings for a first look within a minute, ``DATA`` names the data sets it needs, and
``run(settings, cells)`` returns a :class:`~spngp.experiments.page.Page`. Anything that takes long is a *cell*: a
function without arguments whose result is kept on disk, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = ("model", "motorcycle", "nonstationary", "uci", "kin40k", "scaling", "variance")


def find(name: str) -> Any:
    """The module of an experiment."""
    if name not in NAMES:
        raise ValueError(f"unknown experiment {name!r}; known are {', '.join(NAMES)}, and all")
    return import_module(f"spngp.experiments.{name}")
