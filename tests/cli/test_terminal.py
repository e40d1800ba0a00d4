"""What reaches the terminal: text from data and arguments cannot move the cursor, recolour it or turn lines around."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from command_line import QUICK, ok, refused, run
from spngp.cli.app import add_command, app
from spngp.cli.characters import visible
from spngp.cli.failures import describe
from spngp.cli.terminal import note, print_bars, print_facts, print_json, print_line, print_table

ESCAPE, CSI, RIGHT_TO_LEFT = "\x1b[31m", "\x9b31m", "\u202e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Ümlaut, 日本, 😀, a\u200db", "plain, Ümlaut, 日本, 😀, a\u200db"),
        (ESCAPE, r"\x1b[31m"),
        (CSI, r"\x9b31m"),
        ("a\tb\r\nc\x00\x7f", r"a\tb\r\nc\x00\x7f"),
        (f"{RIGHT_TO_LEFT}\u2066\u200f\u061c\u2028", r"\u202e\u2066\u200f\u061c\u2028"),
        ("\udcff", r"\udcff"),  # a byte in a path that is not UTF-8
        (r"\x1b", r"\x1b"),
    ],
)
def test_control_characters_become_visible(text, shown):
    assert visible(text) == shown
    assert visible(shown) == shown


def test_everything_printed_is_made_visible(capsys):
    bad = f"a{ESCAPE}b{CSI}c{RIGHT_TO_LEFT}d\ne"
    print_table(bad, [bad], [[bad]])
    print_facts(bad, {bad: bad})
    print_bars(bad, [bad], [1.0])
    print_line(bad)
    note(bad)
    out, err = capsys.readouterr()
    assert out.count(r"a\x1b[31mb\x9b31mc\u202ed\ne") == 9
    assert err == "a\\x1b[31mb\\x9b31mc\\u202ed\\ne\n"
    for mark in "\x1b\x9b\u202e":
        assert mark not in out


def test_json_holds_the_very_text_and_no_control_characters(capsys):
    text = f"a{ESCAPE}b{CSI}c{RIGHT_TO_LEFT}d\ne\x7f Ümlaut"
    print_json({text: [text]})
    out = capsys.readouterr().out
    assert json.loads(out) == {text: [text]}
    assert "Ümlaut" in out
    for mark in "\x1b\x9b\u202e\x7f":
        assert mark not in out


def test_errors_and_warnings_and_tracebacks():
    bad = f"{ESCAPE}x{CSI}{RIGHT_TO_LEFT}"
    assert describe(ValueError(bad)) == (r"\x1b[31mx\x9b31m\u202e", 2)

    def warn() -> None:
        """Warn, then fail."""
        warnings.simplefilter("always")
        warnings.warn(bad, stacklevel=1)
        raise ValueError(bad)

    add_command(warn, "spngp warn")
    try:
        result = run("warn", "--verbose")
    finally:
        app.registered_commands.pop()
    warning, *traceback, last = result.stderr.splitlines()
    assert warning == r"spngp: warning: \x1b[31mx\x9b31m\u202e"
    assert last == r"spngp: \x1b[31mx\x9b31m\u202e"
    assert "Traceback" in traceback[0]
    for mark in "\x1b\x9b\u202e":
        assert mark not in result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table and a model whose columns, category and file names would turn the terminal red."""
    folder = tmp_path_factory.mktemp(f"red{ESCAPE}")
    rng = np.random.default_rng(0)
    rows = [f"{x:.4f},{'up' if x > 0 else 'down'},{np.sin(x):.4f}\n" for x in rng.uniform(-2, 2, 50)]
    (folder / "d.csv").write_text(f"a{ESCAPE},kind{ESCAPE},y{ESCAPE}\n" + "".join(rows))
    (folder / "bad.csv").write_text(f"a{ESCAPE},kind{ESCAPE},y{ESCAPE}\n{ESCAPE},up,2\n")
    return folder


def test_no_command_passes_on_escapes_from_names_or_values(folder):
    model = folder / "m.spngp"
    fit = ["fit", folder / "d.csv", "-t", f"y{ESCAPE}", "--category", f"kind{ESCAPE}", *QUICK, "-o", model]
    results = [ok(*fit), ok("inspect", model), ok("evaluate", model, folder / "d.csv")]
    results += [ok("predict", model, folder / "d.csv", "-o", folder / "p.csv")]
    for result in results:
        assert "\x1b" not in result.stdout + result.stderr
        assert r"\x1b[31m" in result.stdout + result.stderr
    told = json.loads(ok("inspect", model, "--json").stdout)
    assert told["targets"] == [f"y{ESCAPE}"]
    for arguments in (
        ["evaluate", model, folder / "bad.csv"],  # a value in an error
        ["evaluate", folder / "none.spngp", folder / "d.csv"],  # a path
        ["inspect", model, f"--{ESCAPE}"],  # an option
        ["predict", model, folder / "d.csv", "--quantiles", ESCAPE],  # its value
        ["fit", folder / "d.csv", "-t", f"no{ESCAPE}", "-o", model],  # a column
    ):
        line = refused(*arguments)
        assert r"\x1b[31m" in line
        assert "\x1b" not in line


def test_messages_have_an_end(tmp_path):
    (tmp_path / "fit.toml").write_text(f"{'x' * 5000} = 3\n")
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    line = refused("fit", tmp_path / "rows.csv", "--config", tmp_path / "fit.toml")
    assert len(line) < 1000
    assert " … " in line
    assert line.endswith("weight, with_factors")
