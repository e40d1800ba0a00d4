"""Commands run as a person would type them, for tests of the command line."""

from typer.testing import CliRunner

from spngp.cli.app import app

QUICK = ["--hyperparameters", "fixed", "--max-leaf-size", "60"]


def run(*arguments, **kwargs):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **kwargs)


def ok(*arguments, **kwargs):
    result = run(*arguments, **kwargs)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*arguments, code=2, **kwargs):
    """The one line of an error."""
    result = run(*arguments, **kwargs)
    assert result.exit_code == code
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]
