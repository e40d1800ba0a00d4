"""A network as flat lists: rows reach the leaves, and evidences and weights are those of the network itself."""

from __future__ import annotations

import numpy as np
import pytest

from spngp.box import Box
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum
from spngp.network.placement import log_path_weights, place, route
from spngp.streaming.index import Index


def experts(output=0):
    return Sum([Leaf(SquaredExponential(), 0.1, output=output), Leaf(Linear(), 0.1, output=output)], [0.25, 0.75])


SHARED = experts()
NETWORKS = {
    "leaf": Leaf(Matern(1.5)),
    "sum": SHARED,
    "split": Split(0, [-0.5, 0.5], [experts(), Leaf(Linear()), experts()]),
    "alternatives": Sum([Split(0, [0.0], [experts(), experts()]), Split(1, [0.2], [experts(), experts()])], [0.9, 0.1]),
    "a child twice": Sum([SHARED, SHARED, Leaf(Linear())], [0.2, 0.3, 0.5]),
    "a leaf below two sums": Sum([Sum([SHARED.children[0], Leaf(Matern(1.5))], [0.3, 0.7]), SHARED], [0.6, 0.4]),
    "a leaf of no weight below two sums": Sum(
        [Sum([SHARED.children[0], Leaf(kernel)], [0.0, 1.0]) for kernel in (Linear(), Matern(1.5))], [0.6, 0.4]
    ),
    "a leaf below two products": Sum(
        [Product([SHARED.children[0], Leaf(kernel, output=1)]) for kernel in (Linear(), Matern(1.5))], [0.6, 0.4]
    ),
    "outputs": Split(1, [0.0], [Product([experts(0), experts(1)]), Product([experts(0), Leaf(Linear(), output=1)])]),
    "no weight": Sum([Leaf(SquaredExponential()), Leaf(Linear())], [1.0, 0.0]),
}


@pytest.fixture(params=NETWORKS, ids=str)
def prior(request):
    return NETWORKS[request.param]


def data(prior, n=25):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2)).round(1)  # some on a cut
    return X, rng.standard_normal((n, len(prior.outputs)))


def conditioned(prior):
    """The posterior and, for leaves in the order of the index, their evidences."""
    posterior = prior.condition(*data(prior))
    index = Index.of(prior)
    placed = place(posterior)
    assert len(placed) == len(index.entries)
    leaves = {i: item.node.log_evidence for i, item in enumerate(placed) if not item.children}
    return posterior, placed, index, leaves


def test_rows_reach_the_leaves_that_they_reach_in_the_network(prior):
    X, _ = data(prior)
    index, expected = Index.of(prior), route(place(prior), X)
    leaves = [i for i, entry in enumerate(index.entries) if not entry.children]
    assert sorted(index.leaves()) == leaves
    found = index.route(X)
    assert sorted(found) == [i for i in leaves if expected[i].size]
    for i, rows in found.items():
        np.testing.assert_array_equal(np.sort(rows), np.sort(expected[i]))
    pair = index.route(X[[3, 11]])
    assert {i: set(rows) for i, rows in pair.items()} == {
        i: {at for at, row in enumerate((3, 11)) if row in found[i]} for i in found if {3, 11} & set(found[i])
    }
    for row in range(len(X)):
        alone = index.route(X[row : row + 1])
        assert sorted(alone) == [i for i in leaves if row in expected[i]]
        assert all(rows.tolist() == [0] for rows in alone.values())


def test_evidences_and_weights_are_those_of_the_posterior(prior):
    posterior, placed, index, leaves = conditioned(prior)
    values = index.log_evidences(leaves)
    np.testing.assert_allclose(values, [item.node.log_evidence for item in placed], rtol=1e-12)
    assert values[index.root] == pytest.approx(posterior.log_evidence, rel=1e-12)
    expected = log_path_weights(placed)
    found = index.log_path_weights(leaves, values)
    np.testing.assert_allclose([found[i] for i in leaves], [expected[i] for i in leaves], atol=1e-10)


def test_evidences_follow_those_of_some_leaves(prior):
    _, _, index, leaves = conditioned(prior)
    values = index.log_evidences(leaves)
    for changed in ([0], list(leaves)[-1:], list(leaves)[::2]):
        other = {i: leaves[i] - 3.0 - i for i in changed if i in leaves}
        found = index.updated(values, other)
        np.testing.assert_allclose(found, index.log_evidences({**leaves, **other}), rtol=1e-12)
    np.testing.assert_allclose(values, index.log_evidences(leaves), rtol=0)  # they are not changed in place


def test_the_posterior_network_is_made_again(prior):
    posterior, placed, index, leaves = conditioned(prior)
    made = index.network({i: placed[i].node for i in leaves}, index.log_evidences(leaves))
    X = data(prior)[0] + 0.03
    assert made.log_evidence == pytest.approx(posterior.log_evidence, rel=1e-12)
    np.testing.assert_allclose(made.predict_dist(X).mean, posterior.predict_dist(X).mean, atol=1e-10)
    np.testing.assert_allclose(made.predict_dist(X).var, posterior.predict_dist(X).var, atol=1e-10)


def test_an_evidence_out_of_all_proportion_keeps_the_weights():
    index = Index.of(NETWORKS["sum"])
    values = index.log_evidences({0: -1e20, 1: -1e20})
    weights = index.log_path_weights([0, 1], values)
    given = dict(zip(index.entries[index.root].children, index.entries[index.root].log_weights, strict=True))
    np.testing.assert_allclose([weights[0], weights[1]], [given[0], given[1]], rtol=1e-12)
    nothing = index.log_evidences({0: -np.inf, 1: -np.inf})
    assert nothing[index.root] == -np.inf


def test_the_evidence_of_a_child_of_no_weight_does_not_matter():
    index = Index.of(NETWORKS["no weight"])
    used, unused = index.entries[index.root].children
    values = index.log_evidences({used: -1e4, unused: 5.0})
    assert values[index.root] == -1e4
    assert index.log_path_weights([used, unused], values) == {used: 0.0, unused: -np.inf}


def test_parts_that_stand_in_many_places_are_passed_once():
    """Of sums over the same child twice, sixty deep, there are 10¹⁸ ways to the leaf."""
    prior = Leaf(Linear())
    for _ in range(60):
        prior = Sum([prior, prior], [0.3, 0.7])
    index = Index.of(prior)
    assert len(index.entries) == 61
    assert index.leaves() == [0]
    assert index.route(np.zeros((1, 1))).keys() == index.route(np.zeros((3, 1))).keys() == {0}
    values = index.log_evidences({0: -3.0})
    np.testing.assert_allclose(values, -3.0)
    np.testing.assert_allclose(index.updated(values, {0: -5.0}), -5.0)
    assert index.log_path_weights([0], values)[0] == pytest.approx(0.0, abs=1e-12)
    assert index.tops(Box.EVERYWHERE, [0]) == [index.root]


def test_a_part_is_replaced_and_all_else_stays():
    prior = NETWORKS["split"]
    index = Index.of(prior)
    left, middle, _ = Box.EVERYWHERE.cut(0, [-0.5, 0.5])
    (place_of_middle,) = (i for i in index.leaves() if index.entries[i].box == middle)
    assert index.tops(middle, [place_of_middle]) == [place_of_middle]
    of_left = [i for i in index.leaves() if index.entries[i].box == left]
    (top,) = index.tops(left, of_left)
    assert isinstance(index.entries[top].node, Sum)
    assert index.tops(left, of_left[:1]) == of_left[:1]  # another leaf is below the sum
    cut = Split(1, [0.0], [Leaf(Matern(1.5)), Leaf(Linear())])
    found = index.replaced(place_of_middle, cut)
    expected = Split(0, [-0.5, 0.5], [prior.children[0], cut, prior.children[2]])
    X, Y = data(prior)
    X_new = np.vstack([X, [[0.0, 0.0], [0.5, 0.1]]])
    reached = found.route(X_new)
    boxes = {found.entries[i].box: set(rows.tolist()) for i, rows in reached.items()}
    for box, rows in boxes.items():
        assert rows == set(np.flatnonzero(box.contains(X_new)).tolist())
    assert {box for box in boxes if box.side(1) != (-np.inf, np.inf)} == set(middle.cut(1, [0.0]))
    posterior = expected.condition(X, Y)
    evidences = {
        (item.box, type(item.node.kernel)): item.node.log_evidence for item in place(posterior) if not item.children
    }
    entries = ((i, found.entries[i]) for i in found.leaves())
    values = found.log_evidences({i: evidences[entry.box, type(entry.node.kernel)] for i, entry in entries})
    assert values[found.root] == pytest.approx(posterior.log_evidence, rel=1e-12)
    assert found.root == index.root
    whole = index.replaced(index.root, cut)
    assert sorted(whole.route(X)) == sorted(whole.leaves())
    assert len(whole.leaves()) == 2


def test_other_leaves_in_the_same_places():
    index = Index.of(NETWORKS["sum"])
    other = Leaf(Matern(2.5))
    found = index.with_leaves({1: other})
    assert found.entries[1].node is other
    assert found.entries[0].node is index.entries[0].node
    assert index.entries[1].node is not other
