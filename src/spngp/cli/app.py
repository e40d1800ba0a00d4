"""The command line: its commands, and one way out for everything that goes wrong.

A command is a module with a function of its name; its signature declares the options and its docstring is the help
text. Heavy imports (NumPy, SciPy, pyarrow) belong inside the function, so that ``spngp --help`` answers at once. It
prints results with :mod:`spngp.cli.terminal` and reports what is wrong by raising: see :mod:`spngp.cli.failures`.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spngp._version import __version__
from spngp.cli import data, demo, evaluate, fit, inspect, predict, report, reproduce, update
from spngp.cli.failures import Terminated, describe
from spngp.cli.terminal import ClosedOutput, flush_output, note

_ClickException: Any = typer.BadParameter.__mro__[2]  # wherever this version of Typer keeps it


class CommandLine(TyperGroup):
    """All commands. Errors end in one line on standard error; ``--verbose``, anywhere, adds the traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command and exit with its code."""
        arguments = list(sys.argv[1:] if args is None else args)
        end = arguments.index("--") if "--" in arguments else len(arguments)
        verbose = "--verbose" in arguments[:end]
        arguments = [argument for i, argument in enumerate(arguments) if i >= end or argument != "--verbose"]
        extra["standalone_mode"] = False
        sys.stdout = sys.stdout or ClosedOutput()
        try:
            with _orderly_termination(), warnings.catch_warnings():
                warnings.showwarning = _show_warning
                try:
                    result = super().main(arguments, *rest, **extra)
                finally:
                    flush_output()
        except _ClickException as error:
            context = getattr(error, "ctx", None)
            where = context.command_path if context is not None else "spngp"
            note(f"{where}: {' '.join(error.format_message().split())} (see {where} --help)")
            sys.exit(2)
        except (Exception, KeyboardInterrupt, Terminated, typer.Abort) as error:
            if verbose:
                for line in traceback.format_exc().splitlines():
                    note(line)
            line, code = describe(KeyboardInterrupt() if isinstance(error, typer.Abort) else error)
            note(f"spngp: {line}")
            sys.exit(code)
        if result == 130:  # Typer's word for Ctrl-C
            note("spngp: interrupted")
        sys.exit(result if isinstance(result, int) else 0)


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """Let SIGTERM unwind the command as an exception does; a second one ends it at once."""
    in_main_thread = threading.current_thread() is threading.main_thread()  # other threads cannot set handlers
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    note(f"spngp: warning: {' '.join(str(message).split())}")


app = typer.Typer(
    name="spngp",
    cls=CommandLine,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with [bold]spngp demo[/bold], or [bold]spngp fit data.csv --target y -o model.spngp[/bold].",
)


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"spngp {__version__}\n")
        raise typer.Exit


@app.callback()
def spngp(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")] = False,
) -> None:
    """Regression with honest uncertainty: sum-product networks of Gaussian processes, from a CSV or Parquet file."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help())  # with Rich it prints by itself and returns nothing
        raise typer.Exit(2)


def add_command(function: Callable[..., None], example: str, name: str | None = None) -> None:
    """Hang a command on the command line."""
    app.command(name or function.__name__, epilog=f"Example: [bold]{example}[/bold]")(function)


add_command(fit.fit, "spngp fit bikes.csv --target count --category weather -o bikes.spngp")
add_command(predict.predict, "spngp predict bikes.spngp new.csv --interval 0.9 -o predicted.csv")
add_command(update.update, "spngp update bikes.spngp today.csv")
add_command(evaluate.evaluate, "spngp evaluate bikes.spngp test.csv")
add_command(inspect.inspect, "spngp inspect bikes.spngp")
add_command(report.report, "spngp report bikes.spngp test.csv -o report.html")
add_command(demo.demo, "spngp demo")
add_command(reproduce.reproduce, "spngp reproduce motorcycle")
app.add_typer(data.commands, name="data", help="Data sets: which there are, and where.")
