"""``spngp data``: which data sets there are, and where."""

from __future__ import annotations

from typing import Annotated

import typer

from spngp.cli.terminal import print_json, print_line, print_table

commands = typer.Typer(rich_markup_mode="rich")


@commands.command("list", epilog="Example: [bold]spngp data list[/bold]")
def list_sets(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False) -> None:
    """List the data sets: rows N, inputs D_X, outputs D_Y, and where each is to be had."""
    from spngp.datasets import statuses

    found = statuses()
    if as_json:
        print_json(
            [
                {
                    "name": item.entry.name,
                    "title": item.entry.title,
                    "rows": item.entry.rows,
                    "inputs": item.entry.inputs,
                    "outputs": item.entry.outputs,
                    "in_paper": item.entry.in_paper,
                    "where": item.where,
                    "intact": item.intact,
                    "paths": [str(path) for path in item.paths],
                    "home": item.entry.home,
                }
                for item in found
            ]
        )
        return
    for title, in_paper in (("The paper's data sets", True), ("For choosing defaults", False)):
        rows = [
            (set_.name, set_.title, item.where if item.intact else "damaged", set_.rows, set_.inputs, set_.outputs)
            for item in found
            if (set_ := item.entry).in_paper is in_paper
        ]
        print_table(title, ("name", "what", "where", "N", "D_X", "D_Y"), rows, text_columns=3)
    if not all(item.available for item in found):
        print_line("spngp data fetch NAME gets one that is missing.")


@commands.command(epilog="Example: [bold]spngp data fetch kin40k[/bold]")
def fetch(
    name: Annotated[str, typer.Argument(help="Name of a data set, as in [bold]spngp data list[/bold].")],
    mirror: Annotated[
        str | None,
        typer.Option(help="Web folder that holds the files; $SPNGP_DATA_URL by default.", show_default=False),
    ] = None,
) -> None:
    """Make sure that a data set is on this machine, whole, and print where its files are."""
    from spngp.datasets import fetch as fetch_files
    from spngp.datasets import find, status

    for path in fetch_files(name, mirror):
        print_line(str(path))
    if not find(name).files:
        print_line(f"{name}: nothing to fetch ({status(find(name)).where})")
