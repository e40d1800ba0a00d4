"""Which code made a result: version, commit, and whether the code is that of the commit."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from spngp._version import __version__

_ROOT = Path(__file__).parents[3]  # of the checkout, if the package lies in one
# What decides about results. Pages and figures are not among it: a run that writes several would find its own.
_CODE = ("src", "benchmarks/*.py", "setup.py", "pyproject.toml")


@dataclass(frozen=True)
class Provenance:
    """Where the running code comes from.

    Attributes
    ----------
    version : str
        Of the package, as it was installed.
    commit : str or None
        Hexadecimal digits of the commit; None if nothing tells.
    clean : bool or None
        Whether the code was exactly that of the commit, without changed or new files; None if there is no commit.
    """

    version: str
    commit: str | None
    clean: bool | None

    def __str__(self) -> str:
        if self.commit is None:
            return f"spngp {self.version}"
        # the digits after the plus sign are those of a commit as well: of the one that was installed
        return f"spngp {self.version.partition('+')[0]}, commit {self.commit[:10]}{'' if self.clean else ', modified'}"


def provenance() -> Provenance:
    """The commit of the checkout that the package lies in, or else the one that its version names.

    Ask when a run begins: the files may change while it goes on.

    Examples
    --------
    >>> from spngp._support.provenance import provenance
    >>> made_by = provenance()
    >>> (made_by.commit is None) == (made_by.clean is None)
    True
    """
    return _of_checkout(_ROOT, __version__) or _of_version(__version__)


def _of_checkout(root: Path, version: str) -> Provenance | None:
    """From git; None where the folder is no checkout, git is missing or it refuses."""
    if not (root / ".git").exists():  # a package installed below somebody else's checkout is not part of it
        return None
    try:
        commit = _git(root, "rev-parse", "--verify", "HEAD").strip()
        changed = _git(root, "status", "--porcelain", "--", *_CODE)
    except (OSError, subprocess.CalledProcessError):
        return None
    return Provenance(version, commit, not changed)


def _git(root: Path, *arguments: str) -> str:
    # a git hook sets variables that would point to its own repository; a lock would be in the way of other commands
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def _of_version(version: str) -> Provenance:
    """From what setuptools-scm writes: ``0.1.dev7+g1a2b3c4d5``, with ``.d20260131`` where files had been changed."""
    found = re.search(r"\+g([0-9a-f]+)(\.d\d{8})?$", version)
    return Provenance(version, found[1], found[2] is None) if found else Provenance(version, None, None)
