"""Code blocks of Markdown files. Only tests import this module."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


class Block(NamedTuple):
    """A fenced block: what stands after the fence, its text, and the number of its first line."""

    language: str
    text: str
    line: int


def blocks(path):
    """All fenced blocks of a page in order; one that is not closed is an error."""
    found, opened = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"```(\w*)\s*$", line)
        if fence and opened is None:
            opened = Block(fence[1], "", number + 1)
        elif fence:
            found.append(opened)
            opened = None
        elif opened is not None:
            opened = opened._replace(text=f"{opened.text}{line}\n")
    if opened is not None:
        raise ValueError(f"{path}: the block that begins in line {opened.line} is not closed")
    return found


def run_python(path):
    """Run the Python blocks of a page, one after the other, each with names of its own, as a reader copies them."""
    for block in blocks(path):
        if block.language == "python":
            # empty lines before it: a traceback then points into the page
            code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
            exec(code, {"__name__": "__main__"})


def commands(path):
    """The commands of a page's console blocks, without comments: pairs of line number and text."""
    return [
        (block.line + i, line.split(" #")[0].strip())
        for block in blocks(path)
        if block.language == "console"
        for i, line in enumerate(block.text.splitlines())
        if line.split(" #")[0].strip()
    ]
