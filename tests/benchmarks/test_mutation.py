"""Changes of code for mutation testing: each changes one thing, and none that has no meaning."""

import pytest

from soak.mutation import mutant, sites

CODE = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LIMIT = 3
def clipped(values: list[int], low: float = 0.5) -> "int | None":
    found = []
    for value in values:
        if not value < low and value != 2:
            found.append(-value * 3)
    if not found:
        raise ValueError(f"{1 + 1} too few")
    return max(found)
"""


def test_every_change_is_one_and_no_other():
    changes = [mutant(CODE, site) for site in sites(CODE)]
    assert sorted(change.what.partition(" → ")[2] for change in changes if not change.what.startswith("if ")) == [
        "+value",
        "-value / 3",
        "1.5",
        "3",
        "4",
        "None",
        "found.insert(-value * 3)",
        "min(found)",
        "not not found",
        "not not value < low",
        "not value < low or value != 2",
        "return None",
        "value <= low",
        "value == 2",
    ]
    assert sum(change.what.startswith("if ") for change in changes) == 2
    assert all(change.lines[0] <= change.line <= change.lines[1] for change in changes)
    for change in changes:
        compile(change.code, "changed", "exec")


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("y = x.sum(axis=-1)", {"y = x.sum(axis=0)", "y = x.prod(axis=-1)"}),
        ("x[-1] + 2", {"x[+1] + 2", "x[-1] - 2", "x[-1] + 3"}),
        ('print(f"{x + 1} rows")', {"None"}),
    ],
)
def test_what_would_change_nothing_or_words_alone_is_left_out(code, changed):
    assert {mutant(code, site).code for site in sites(code)} == changed


@pytest.mark.parametrize(("what", "lines"), [("not found → not not found", (10, 10)), ("3 → 4", (9, 9))])
def test_lines_are_those_of_the_statement(what, lines):
    (found,) = [change for site in sites(CODE) if (change := mutant(CODE, site)).what == what]
    assert found.lines == lines
