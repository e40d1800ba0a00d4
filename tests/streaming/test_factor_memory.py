"""Factors that cells hold: counted, and some of them given up where they are too many."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from spngp._support.memory import GIGABYTE, Budget
from spngp.box import Box
from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP
from spngp.kernels import SquaredExponential
from spngp.streaming.memory import FactorMemory
from spngp.streaming.regions import Cell, Conditioned, Margin

PRIOR = ExactGP(SquaredExponential(), 0.1)


def cell(n=64):
    X = np.linspace(0, 9, n)[:, np.newaxis]
    return Cell(Conditioned(GrowingGP.of(PRIOR, X, np.zeros(n), np.full(n, 0.1)), np.arange(n), n, 0))


def test_what_a_cell_holds():
    growing = cell(100)
    assert growing.nbytes == growing.content.gp.factor.nbytes > 0
    assert growing.content.is_growing
    X = np.linspace(0, 9, 30)[:, np.newaxis]
    gp = PRIOR.condition(X, np.zeros(30))
    exact = Conditioned(gp, np.arange(30), 30, 0)
    assert not exact.is_growing
    assert Cell(exact).nbytes == 8 * 30**2
    without = PRIOR.condition(X, np.zeros(30), keep_factor=False)
    assert Cell(Conditioned(without, np.arange(30), 30, 0)).nbytes == 0
    assert Cell().nbytes == 0
    assert pickle.loads(pickle.dumps(growing)).content is None  # it is computed anew


def test_all_are_kept_while_there_is_room():
    cells = [cell() for _ in range(8)]
    memory = FactorMemory(8 * cells[0].nbytes)
    for _ in range(3):
        for one in cells:
            memory.keep(one)
    assert all(one.content is not None for one in cells)


def test_some_are_emptied_where_there_is_none():
    size = cell().nbytes
    memory = FactorMemory(5 * size)
    cells = [cell() for _ in range(12)]
    for one in cells:
        memory.keep(one)
        held = sum(other.nbytes for other in cells if other.content is not None)
        assert held - sum(other.nbytes for other in cells[cells.index(one) + 1 :]) <= 5 * size
    kept = [i for i, one in enumerate(cells) if one.content is not None]
    assert 3 <= len(kept) <= 5
    assert kept != list(range(12 - len(kept), 12))  # not simply the last ones


def test_one_that_is_too_large_is_given_up():
    memory = FactorMemory(100.0)
    one = cell()
    memory.keep(one)
    assert one.content is None


@pytest.mark.parametrize("n_gone", [1, 2, 3, 20])
def test_cells_that_are_gone_take_no_room(n_gone):
    size = cell().nbytes
    memory = FactorMemory(3 * size)
    for _ in range(n_gone):
        memory.keep(cell())  # nobody else holds it
    cells = [cell() for _ in range(3)]
    for one in cells:
        memory.keep(one)
    assert all(one.content is not None for one in cells)


@pytest.mark.parametrize(
    ("budget", "n_rows", "expected"),
    [
        (Budget(1.0), 0, GIGABYTE),
        (Budget(1.0), 10**7, GIGABYTE - 8 * 10**7 * 5),  # rows with three inputs take the rest
        (Budget(1.0), 10**8, 0.0),
        (Budget(2.0, factors=0.5), 10**6, 0.5 * GIGABYTE),
    ],
)
def test_what_a_budget_leaves(budget, n_rows, expected):
    found = FactorMemory.of(budget, n_rows, 3)
    assert found._limit == expected
    assert pickle.loads(pickle.dumps(found))._limit == expected


def test_a_margin_sees_rows_around_a_box():
    W = np.array([[-1.2, 0.0], [-0.9, 5.0], [0.0, 0.0], [1.4, 0.0], [1.6, 0.0]])
    box = Box(((0, -0.5, 1.0),))
    assert Margin(np.array([0.5, 9.0])).sees(box, W, np.ones(2)).tolist() == [1, 2, 3]
    assert Margin(np.array([0.0, 0.0])).sees(box, W, np.ones(2)).tolist() == [2]
