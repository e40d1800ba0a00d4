"""The command ``spngp``: one module per command, hung on :mod:`spngp.cli.app`."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script and of ``python -m spngp``."""
    try:
        from spngp.cli.app import app
    except ModuleNotFoundError as error:
        from spngp.cli.failures import describe

        line, code = describe(error)
        sys.stderr.write(f"spngp: {line}\n")
        sys.exit(code)
    app(prog_name="spngp")  # not __main__.py
