"""Boxes in words: one text for errors, commands, figures and the report."""

import numpy as np
import pytest

from spngp.box import Box, side_text, sides_text

INF = float("inf")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(1.0, 2.5, "1 < x ≤ 2.5"), (-INF, 2.5, "x ≤ 2.5"), (1.0, INF, "x > 1"), (-INF, INF, "")],
)
def test_a_side(low, high, said):
    assert side_text("x", low, high) == said


def test_numbers_and_signs_can_be_chosen():
    assert side_text("x", 1.23456, 2.0, lambda value: f"{value:.2f}", at_most="<=") == "1.23 < x <= 2.00"


def test_open_sides_are_left_out():
    assert sides_text(np.array([-INF, -INF, 1.0]), np.array([2.0, INF, 3.0]), ["a", "b", "c"]) == ["a ≤ 2", "1 < c ≤ 3"]


def test_repr_says_the_same_in_plain_characters():
    assert repr(Box(((0, -INF, 2.0), (2, 1.0, 3.0)))) == "Box(x0 <= 2, 1 < x2 <= 3)"
    assert repr(Box()) == "Box(everywhere)"
