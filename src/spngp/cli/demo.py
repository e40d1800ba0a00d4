"""``spngp demo``: the main job on embedded data, from the command line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer


def demo(
    context: typer.Context,
    directory: Annotated[str, typer.Option(metavar="DIR", help="Where files are written.")] = "demo",
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Also compare three models and draw what each believes.")
    ] = True,
) -> None:
    """Fit, predict, evaluate and report on the embedded motorcycle data, showing each command."""
    from importlib.util import find_spec

    from spngp.cli.outputs import make_folder
    from spngp.cli.terminal import check_printing, print_line

    check_printing()
    folder = Path(directory)
    make_folder(folder)
    train, test = _write_tables(folder)
    model, predicted, page = (str(folder / name) for name in ("motorcycle.spngp", "predicted.csv", "report.html"))
    _run(context, "fit", train, "--target", "accel", "--max-leaf-size", "30", "-o", model)
    _run(context, "inspect", model, "--experts", "6")
    _run(context, "predict", model, test, "--interval", "0.9", "-o", predicted)
    _run(context, "evaluate", model, test)
    look = {predicted: "predictions with 90 % intervals"}
    if find_spec("plotly") is None:
        print_line("(no report: it needs plotly, pip install 'spngp[report]')")
        print_line()
    else:
        _run(context, "report", model, test, "-o", page)
        look[page] = "open it in a browser"
    if compare:
        from spngp.cli import comparison

        comparison.main(folder / "motorcycle.png")
        look[str(folder / "motorcycle.png")] = "what three models believe"
        print_line()
    print_line("Look at")
    for path, what in look.items():
        print_line(f"  {path:<{max(map(len, look))}}  {what}")


def _write_tables(folder: Path) -> tuple[str, str]:
    """The embedded rows as two CSV files: to fit, and to predict."""
    import csv
    import io

    import numpy as np

    from spngp import datasets
    from spngp._support.atomic import replacing

    data = datasets.load("motorcycle")
    rows = np.column_stack([data.X, data.Y])
    chosen = np.random.default_rng(0).permutation(rows.shape[0]) < 33
    paths = []
    for name, part in (("train", rows[~chosen]), ("test", rows[chosen])):
        text, path = io.StringIO(), folder / f"{name}.csv"
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*data.inputs, *data.outputs])
        writer.writerows(part.tolist())
        content = text.getvalue().encode()
        if path.exists() and path.read_bytes() != content:
            raise ValueError(f"{path} is there and is not the demo's; give another --directory")
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        paths.append(str(path))
    return paths[0], paths[1]


def _run(context: typer.Context, *arguments: str) -> None:
    """A command as a person would type it: shown, then run."""
    from spngp.cli.terminal import print_line

    print_line(f"$ spngp {shlex.join(arguments)}", style="bold")
    try:
        context.find_root().command(list(arguments), prog_name="spngp")
    except SystemExit as end:
        if end.code:
            raise typer.Exit(int(end.code)) from None
    print_line()
