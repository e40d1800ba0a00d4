"""Text from data and arguments as it may stand on a terminal."""

from __future__ import annotations

import re

# Control characters (C0, DEL, C1), which move the cursor or recolour the screen; marks that turn the direction of
# writing around; line separators; and lone surrogates, which stand for bytes in paths that are not UTF-8.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The text with characters that act on a terminal written as Python writes them.

    Examples
    --------
    >>> from spngp.cli.characters import visible
    >>> print(visible("red: \x1b[31m, reversed: \u202e"))
    red: \x1b[31m, reversed: \u202e
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escaped_json(text: str) -> str:
    r"""A JSON document with the same characters as ``\uXXXX``, except for the white space of its layout."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
