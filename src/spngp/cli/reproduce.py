"""``spngp reproduce``: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spngp.cli.failures import CheckFailed
from spngp.cli.terminal import check_printing, note, print_line


def reproduce(
    name: Annotated[
        str,
        typer.Argument(help="model, motorcycle, nonstationary, uci, kin40k, scaling, variance, or all."),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Smaller settings, for a look within minutes.")] = False,
    all_files: Annotated[
        bool, typer.Option("--all-files", help="Also write figures as SVG and points of curves as CSV.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder; results by default, results/quick with --quick.", show_default=False
        ),
    ] = None,
) -> None:
    """Make a table or figure of the paper anew, with today's settings beside the paper's own.

    Finished parts are kept: a run that was interrupted goes on.

    Experiments whose data sets are not on this machine are left out by name; spngp data list tells which are.
    """
    from spngp.cli.outputs import make_folder
    from spngp.experiments import runner

    check_printing()
    folder = output or Path("results/quick" if quick else "results")
    names = runner.chosen(name)
    skipped = []
    for each in names:
        missing = runner.missing_data(each)
        if missing:
            skipped.append(f"{each}: skipped, needs {', '.join(missing)} (see spngp data fetch {missing[0]})")
            note(skipped[-1])
            continue
        make_folder(folder / each)
        page = runner.run(each, folder, quick, all_files, note)
        print_line(str(page))
    if len(skipped) == len(names):
        raise CheckFailed("nothing was run: " + "; ".join(skipped))
