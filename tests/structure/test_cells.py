"""Cells of space: a tree of cuts, against the boxes and regions that it stands for."""

import numpy as np
import pytest

from spngp.gp.exact import ExactGP
from spngp.kernels import SquaredExponential
from spngp.learning.consistency import check_tree
from spngp.structure import Compact, build_network, leaf_regions
from spngp.structure.cells import CellTree, regions_of


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(700, 3)).round(1)  # with ties


@pytest.mark.parametrize("most", [40, 200, 1000])
def test_every_row_is_in_the_box_of_its_cell(rows, most):
    tree = CellTree.of(Compact(30).regions(rows, np.random.default_rng(0)), most)
    check_tree(tree)
    cells, boxes = tree.cell_of(rows), tree.boxes()
    assert (tree.n_cells == 1) == (most == 1000)
    for cell, box in enumerate(boxes):
        np.testing.assert_array_equal(box.contains(rows), cells == cell)
        assert (cells == cell).sum() <= most


def test_regions_below_cells_are_those_of_all_rows(rows):
    strategy, rng = Compact(30), np.random.default_rng(0)
    root = strategy.regions(rows, rng)
    tree = CellTree.of(root, 200)
    cells, boxes = tree.cell_of(rows), tree.boxes()
    found = []
    for cell, box in enumerate(boxes):
        inside = np.flatnonzero(cells == cell)
        below = strategy.regions(rows[inside], rng, whole=box)
        found += [(region.box, tuple(inside[region.rows])) for region in leaf_regions(below)]
    assert sorted(map(repr, found)) == sorted(repr((region.box, tuple(region.rows))) for region in leaf_regions(root))
    again = strategy.regions(rows, rng, tree.cuts())
    assert [region.box for region in leaf_regions(again)] == [region.box for region in leaf_regions(root)]


def test_cells_stand_in_the_order_of_leaves(rows):
    root = Compact(30).regions(rows, np.random.default_rng(0))
    network = build_network(root, lambda region, k: [("", ExactGP(SquaredExponential()))], 2)
    tree, regions = regions_of(network)
    assert len(regions) == tree.n_cells == len(leaf_regions(root))
    boxes = [placed.box for placed in network.responsibilities() if placed.leaf.output == 1]
    assert tree.boxes() == boxes
    assert all(region.outputs == (0, 1) for region in regions)


def test_what_is_no_tree_is_refused():
    tree = CellTree(np.array([0, 1]), np.array([0.0, 1.0]), np.array([[1, -1], [-2, -3]]))
    check_tree(tree)
    for children in ([[0, -1], [-2, -3]], [[1, -1], [-2, -2]], [[1, -1], [1, -3]], [[-1, -2], [-3, -4]]):
        with pytest.raises(ValueError, match="cuts must make a tree"):
            check_tree(CellTree(tree.axes, tree.at, np.array(children)))
