"""Where results come from: code, libraries and machine. Experiments and benchmarks say it in the same words."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from spngp._support.provenance import Provenance, provenance

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_DIGITS = 10  # of a commit


@cache
def running_code() -> Provenance:
    """The code of this process, asked for once: files may change while a run goes on."""
    return provenance()


def code_text(code: Provenance) -> str:
    """The code, its commit and whether the tree was clean, in words.

    Examples
    --------
    >>> from spngp._support.provenance import Provenance
    >>> from spngp.experiments.origin import code_text
    >>> code_text(Provenance("0.1.0", "1a2b3c4d5e6f", clean=True))
    'spngp 0.1.0 at commit 1a2b3c4d5e (clean tree)'
    >>> code_text(Provenance("0.1.0", None, None))
    'spngp 0.1.0 (commit unknown)'
    """
    if code.commit is None:
        return f"spngp {code.version} (commit unknown)"
    state = "clean tree" if code.clean else "tree with uncommitted changes"
    return f"spngp {code.version.partition('+')[0]} at commit {code.commit[:_DIGITS]} ({state})"


def libraries_text() -> str:
    """Python and the libraries that compute."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _LIBRARIES)])


def machine_text() -> str:
    """Cores and processor."""
    return f"{os.cpu_count()} cores ({_processor()})"


def origin_text() -> str:
    """Code, libraries and machine of this process, in one line."""
    return f"{code_text(running_code())}, {libraries_text()}, on {machine_text()}"


def seconds_text(seconds: float) -> str:
    """Seconds as people read them, never rounded to nothing.

    Examples
    --------
    >>> from spngp.experiments.origin import seconds_text
    >>> seconds_text(291.3), seconds_text(0.0412)
    ('291 s', '0.041 s')
    """
    return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.2g} s"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
