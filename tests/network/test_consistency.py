"""Nodes, boxes and units whose attributes do not agree, as a model file may say, are refused."""

import copy

import numpy as np
import pytest

from spngp.box import Box
from spngp.kernels import Linear, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum
from spngp.network.consistency import (
    check_affine,
    check_box,
    check_leaf,
    check_network,
    check_noise_shape,
    check_product,
    check_split,
    check_sum,
    check_units,
)
from spngp.network.units import Affine, Units
from spngp.noise import NoiseShape

SUM = Sum([Leaf(SquaredExponential()), Leaf(Linear())], [0.3, 0.7])
SPLIT = Split(1, [0.5], [Leaf(SquaredExponential()), SUM])
PRODUCT = Product([SPLIT, Leaf(Linear(), output=1)])
CHECKS = {"leaf": (check_leaf, Leaf(Linear(), output=1)), "sum": (check_sum, SUM)}
CHECKS |= {"split": (check_split, SPLIT), "product": (check_product, PRODUCT)}


def changed(node, **changes):
    found = copy.copy(node)
    for name, value in changes.items():
        object.__setattr__(found, name, value)
    return found


@pytest.mark.parametrize("kind", CHECKS)
def test_nodes_are_what_their_constructors_make(kind):
    check, node = CHECKS[kind]
    check(node)
    for message, changes in {
        "a node must have the outputs of its children, got": {"outputs": (0, 5)},
        "a node must know the cuts below it, got": {"cut_ranges": {0: (1.0, 2.0)}},
        "the log evidence of a node must be finite, got": {"log_evidence": np.nan},
    }.items():
        with pytest.raises(ValueError, match=message):
            check(changed(node, **changes))


def test_leaves():
    units = Units(Affine(np.zeros(1), np.ones(1)), Affine(np.zeros(2), np.ones(2)))
    leaf = Leaf.of(Leaf(Linear()).gp, 1, None, units)
    check_leaf(leaf)
    with pytest.raises(ValueError, match="a leaf must model an output of its units, got 2"):
        check_leaf(changed(leaf, output=2))
    with pytest.raises(ValueError, match="output of Leaf must be >= 0, got -1"):
        check_leaf(changed(leaf, output=-1))
    with pytest.raises(ValueError, match="a leaf must have no children"):
        check_leaf(changed(Leaf(Linear()), children=(leaf,)))


def test_weights_of_sums_are_at_most_one():
    with pytest.raises(ValueError, match="log weights of Sum must be <= 0, got others"):
        check_sum(changed(SUM, log_weights=np.array([0.1, -1.0])))
    with pytest.raises(ValueError, match="log weights of Sum must be <= 0, got others"):
        check_sum(changed(SUM, log_weights=np.array([np.nan, 0.0])))


def test_boxes():
    check_box(Box.EVERYWHERE)
    check_box(Box(((0, -1.0, -1.0), (2, 0.0, np.inf))))
    for sides in (((0, 1.0, 0.5),), ((-1, 0.0, 1.0),), ((0, np.nan, 1.0),)):
        with pytest.raises(ValueError, match="a box must have low <= high along an axis, got"):
            check_box(Box(sides))


@pytest.mark.parametrize(
    ("weights", "factors", "message"),
    [
        ((), (), "a noise shape must have a weight for each factor, got 0"),
        ((1.0,), (1.0, 2.0), "a noise shape must have a weight for each factor, got 1"),
        ((0.5, 0.5), (1.0, np.inf), "weights and factors of noise must be finite"),
        ((0.5, 0.5), (1.0, 0.0), "factors of noise must be > 0"),
        ((1.5, -0.5), (1.0, 2.0), "weights of noise must be >= 0"),
        ((0.5, 0.4), (1.0, 2.0), "weights of noise must sum to 1, got 0.9"),
    ],
)
def test_shapes_of_noise(weights, factors, message):
    check_noise_shape(NoiseShape((1.0, 0.0), (1.0, 3.0)))
    with pytest.raises(ValueError, match=message):
        check_noise_shape(NoiseShape(weights, factors))


@pytest.mark.parametrize(
    ("mean", "scale", "message"),
    [
        ([[0.0]], [[1.0]], "there must be columns to scale"),
        ([], [], "there must be columns to scale"),
        ([0.0], [1.0, 1.0], "scale must have shape"),
        ([np.inf], [1.0], "mean and scale must be finite"),
        ([0.0], [np.nan], "mean and scale must be finite"),
        ([0.0], [0.0], "scale must be > 0"),
    ],
)
def test_units(mean, scale, message):
    check_affine(Affine(np.zeros(2), np.array([1e-300, 1e300])))
    with pytest.raises(ValueError, match=message):
        check_affine(Affine(np.array(mean), np.array(scale)))


def test_scales_whose_squares_overflow():
    plain = Affine(np.zeros(1), np.ones(1))
    check_units(Units(plain, Affine(np.zeros(1), np.array([1e150]))))
    with pytest.raises(ValueError, match="squares of the outputs' scales must be finite"):
        check_units(Units(plain, Affine(np.zeros(1), np.array([1e155]))))


def test_networks():
    assert check_network(PRODUCT, 2, 2) == {Box.EVERYWHERE, Box(((1, -np.inf, 0.5),)), Box(((1, 0.5, np.inf),))}
    with pytest.raises(ValueError, match=r"a network of 3 outputs must model them, got \(0, 1\)"):
        check_network(PRODUCT, 2, 3)
    with pytest.raises(ValueError, match=r"cuts must be along 1 inputs, got \[1\]"):
        check_network(PRODUCT, 1, 2)
    twice = Leaf(Linear())
    with pytest.raises(ValueError, match="a node must stand in one box"):
        check_network(Split(0, [0.0], [twice, twice]), 1, 1)


def test_a_shift_keeps_the_scale():
    assert Affine.shifted(np.array([3.0, -1.0])).keeps_scale
    assert not Affine(np.zeros(2), np.array([1.0, 2.0])).keeps_scale
    assert not Affine(np.zeros(2), np.array([2.0, 2.0])).keeps_scale
    column = Affine(np.array([3.0, -1.0]), np.array([2.0, 5.0])).column(1)
    assert (column.mean.tolist(), column.scale.tolist()) == ([-1.0], [5.0])
