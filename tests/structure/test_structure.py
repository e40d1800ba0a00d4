import tracemalloc

import numpy as np
import pytest

from spngp._linalg import compiled
from spngp.gp.exact import ExactGP
from spngp.kernels import Linear, SquaredExponential
from spngp.network import Box, Leaf, Product, Split, Sum
from spngp.structure import Compact, EqualWidth, RandomAxes, build_network, leaf_regions, tiling
from spngp.structure.context import NearestContext, Reach, squared_distances
from spngp.structure.regions import distinct_regions
from spngp.structure.strategies import cut_between_values


def grid(*counts):
    """Rows 0.5, 1.5, … on a grid, so that cuts at integers separate them."""
    axes = np.meshgrid(*[np.arange(count) + 0.5 for count in counts], indexing="ij")
    return np.column_stack([axis.reshape(-1) for axis in axes])


def interval(low, high, axis=0):
    return Box(((axis, low, high),))


def shape(region):
    """A region graph as nested tuples, for comparison with one written out by hand."""
    return (
        region.box,
        tuple(
            (partition.axis, partition.at, tuple(shape(part) for part in partition.parts))
            for partition in region.partitions
        ),
    )


def test_algorithm_1_in_one_dimension_written_out_by_hand():
    # Rows 0.5, 1.5, 2.5, 3.5; cuts every δ = 1 from the smallest value, so at 1.5 and 2.5 (a cut at 3.5 would leave
    # nothing above it); stop at ≤ 2 rows.
    # Root (4 rows): cut at 1.5 → {0.5, 1.5} and {2.5, 3.5}; cut at 2.5 → {0.5, 1.5, 2.5} and {3.5}.
    # {0.5, 1.5, 2.5} has 3 rows: cut at 1.5 → {0.5, 1.5} (shared with the first) and {2.5}.
    inf = np.inf
    root = RandomAxes(max_leaf_size=2, spacing=1.0).regions(grid(4), np.random.default_rng(0))
    low_pair = (interval(-inf, 1.5), ())
    expected = (
        Box(),
        (
            (0, (1.5,), (low_pair, (interval(1.5, inf), ()))),
            (
                0,
                (2.5,),
                ((interval(-inf, 2.5), ((0, (1.5,), (low_pair, (interval(1.5, 2.5), ()))),)), (interval(2.5, inf), ())),
            ),
        ),
    )
    assert shape(root) == expected
    first, second = root.partitions
    assert first.parts[0] is second.parts[0].partitions[0].parts[0]  # shared, not repeated
    assert [region.rows.tolist() for region in leaf_regions(root)] == [[0, 1], [2], [3], [2, 3]]


class FixedAxes:
    """Draws axes in a given order instead of at random."""

    def __init__(self, *orders):
        self._orders = list(orders)

    def permutation(self, d):
        return np.array(self._orders.pop(0))


def test_algorithm_1_in_two_dimensions_written_out_by_hand():
    # 3 × 2 rows, x0 ∈ {0.5, 1.5, 2.5} and x1 ∈ {0.5, 1.5}; δ = 1, so positions x0 = 1.5 and none along x1.
    # The root (6 rows) draws axis 0 and is cut at 1.5: 4 and 2 rows. The left part (4 rows, x0 ∈ {0.5, 1.5}) draws
    # axis 1, where there is no position, and falls back to axis 0, where 1.5 would leave nothing above it: a leaf.
    X = grid(3, 2)
    root = RandomAxes(2, spacing=1.0).regions(X, FixedAxes([0, 1], [1, 0]))
    assert shape(root) == (Box(), ((0, (1.5,), ((interval(-np.inf, 1.5), ()), (interval(1.5, np.inf), ()))),))
    # With δ = 0.5 along axis 1 there is a position x1 = 1.0, and the left part is cut there: 2 and 2 rows.
    root = RandomAxes(2, spacing=[1.0, 0.5]).regions(X, FixedAxes([0, 1], [1, 0]))
    (left, right) = root.partitions[0].parts
    assert [(cut.axis, cut.at) for cut in left.partitions] == [(1, (1.0,))]
    assert [part.rows.tolist() for part in left.partitions[0].parts] == [[0, 2], [1, 3]]
    assert right.is_leaf


def test_random_axes_follow_the_generator():
    X = np.random.default_rng(0).uniform(size=(60, 3))
    graphs = [shape(RandomAxes(20, 0.4).regions(X, np.random.default_rng(seed))) for seed in (1, 1, 2)]
    assert graphs[0] == graphs[1] != graphs[2]


def test_equal_width_makes_k_parts_of_one_width_and_offsets_under_the_root():
    X = np.linspace(0, 8, 81)[:, np.newaxis]
    root = EqualWidth(50, n_parts=4).regions(X, np.random.default_rng(0))
    assert root.partitions[0].at == (2.0, 4.0, 6.0)
    assert sum(part.rows.size for part in root.partitions[0].parts) == 81
    shifted = EqualWidth(50, n_parts=4, n_partitions=2, depth=1).regions(X, np.random.default_rng(0))
    assert [partition.at for partition in shifted.partitions] == [(2.0, 4.0, 6.0), (3.0, 5.0, 7.0)]


def test_compact_cuts_the_widest_side_in_units_of_the_length_scales_at_the_median():
    X = grid(4, 8)  # 4 wide, 8 high
    assert Compact(16).regions(X, None).partitions[0].axis == 1
    root = Compact(16, length_scales=[0.1, 1.0]).regions(X, None)
    assert (root.partitions[0].axis, root.partitions[0].at) == (0, (2.0,))
    for region in leaf_regions(Compact(5).regions(X, None)):
        assert region.rows.size <= 5
        assert region.box.contains(X)[region.rows].all()


@pytest.mark.parametrize("strategy", [Compact(3), RandomAxes(3, 0.5), RandomAxes(3, n_partitions=2), EqualWidth(3)])
def test_equal_rows_never_end_in_an_endless_split(strategy):
    same = np.ones((50, 2))
    assert leaf_regions(strategy.regions(same, np.random.default_rng(0)))[0].rows.size == 50
    two_places = np.repeat([[0.0, 1.0], [1.0, 1.0]], 25, axis=0)
    sizes = {region.rows.size for region in leaf_regions(strategy.regions(two_places, np.random.default_rng(0)))}
    assert sizes - {0} == {25}
    grid_of_nine = np.repeat(grid(3, 3), 30, axis=0)
    leaves = leaf_regions(strategy.regions(grid_of_nine, np.random.default_rng(0)))
    assert len(leaves) < 200
    assert max(region.rows.size for region in leaves) == 30


def test_equal_width_counts_depth_in_cuts():
    X = np.linspace(0, 8, 801)[:, np.newaxis]
    leaves = leaf_regions(EqualWidth(5, depth=2).regions(X, np.random.default_rng(0)))
    assert len(leaves) == 16


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: EqualWidth(5, n_parts=1), "n_parts must be an integer >= 2, got 1"),
        (lambda: EqualWidth(5, n_partitions=0), "n_partitions must be an integer >= 1"),
        (lambda: RandomAxes(5, spacing=0.0), "spacing must be > 0, got 0.0"),
        (lambda: RandomAxes(5, n_partitions=0), "n_partitions must be an integer >= 1"),
    ],
)
def test_bad_strategies_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_cut_never_separates_equal_values():
    values = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 3.0])
    assert cut_between_values(values, 0.5) == (1.5, 2 / 6)
    neighbours = np.array([1.0, np.nextafter(1.0, 2.0)])
    at, _ = cut_between_values(neighbours, 0.5)
    assert neighbours[0] <= at < neighbours[1]


def test_a_small_set_is_offered_whole_and_cut_along_every_input():
    X = np.random.default_rng(0).uniform(size=(60, 3))
    root = Compact(40, whole_size=80).regions(X, None)
    assert root.whole
    assert sorted(partition.axis for partition in root.partitions) == [0, 1, 2]
    assert not Compact(40, whole_size=50).regions(X, None).whole


def test_alternative_partitions_use_other_axes_then_other_positions():
    X = np.random.default_rng(0).uniform(size=(60, 2))
    assert {cut.axis for cut in Compact(40, n_partitions=2).regions(X, None).partitions} == {0, 1}
    positions = [cut.at for cut in Compact(40, n_partitions=3).regions(X[:, :1], None).partitions]
    assert len(set(positions)) == 3


def priors(kernels):
    return lambda region, output: [(type(kernel).__name__, ExactGP(kernel)) for kernel in kernels]


def test_network_construction_in_factored_form():
    X = grid(4)
    root = RandomAxes(2, spacing=1.0).regions(X, np.random.default_rng(0))
    network = build_network(root, priors([SquaredExponential(), Linear()]))
    assert isinstance(network, Sum)
    assert all(isinstance(child, Split) for child in network.children)
    # two kernels in each leaf region: 2·2 trees for the first cut, (2·2)·2 for the second
    assert network.n_induced_trees == 4 + 8
    # leaf regions are shared in the network too
    assert network.children[0].children[0] is network.children[1].children[0].children[0]


def test_several_sum_nodes_per_region_draw_dirichlet_weights_and_pair_up():
    root = RandomAxes(2, spacing=1.0).regions(grid(5), np.random.default_rng(0))
    network = build_network(root, priors([SquaredExponential()]), n_sums=2, rng=np.random.default_rng(0))
    inner = [region for region in distinct_regions(root) if len(region.partitions) > 1 and region is not root]
    assert inner
    assert len(network.children) > len(root.partitions)
    y = np.sin(grid(5)[:, 0])
    assert np.isfinite(network.condition(grid(5), y).log_evidence)
    with pytest.raises(ValueError, match="rng is needed"):
        build_network(root, priors([SquaredExponential()]), n_sums=2)


@pytest.mark.parametrize("outputs_first", [True, False])
def test_outputs_are_separated_above_or_below_the_splits(outputs_first):
    root = Compact(2).regions(grid(4), None)
    network = build_network(root, priors([SquaredExponential()]), n_outputs=2, outputs_first=outputs_first)
    assert isinstance(network, Product) == outputs_first
    assert network.outputs == (0, 1)
    Y = np.column_stack([np.arange(4.0), -np.arange(4.0)])
    assert network.condition(grid(4), Y).predict_dist(grid(4)).shape == (4, 2)


def test_one_region_makes_one_leaf():
    assert isinstance(build_network(Compact(10).regions(grid(4), None), priors([Linear()])), Leaf)


@pytest.mark.parametrize("share", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("max_leaf_size", [40, 3])  # with few tiles all are looked at, with many the nearest
@pytest.mark.parametrize("discrete", [False, True])
def test_context_rows_are_the_nearest_outside_the_box_in_the_metric(share, max_leaf_size, discrete):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    if discrete:  # many rows equally far
        X = np.round(2 * X) / 2
    scales = np.array([0.5, 1.0, 4.0])
    regions = leaf_regions(Compact(max_leaf_size, scales.tolist()).regions(X, None))
    rows = {region.box: region.rows for region in regions}
    context = NearestContext(X, rows, list(rows), scales, share)
    for region in regions:
        found = context(region.box)
        low, high = np.full(3, -np.inf), np.full(3, np.inf)
        for axis, start, stop in region.box.sides:
            low[axis], high[axis] = start, stop
        distance = np.linalg.norm(np.maximum(np.maximum(low - X, X - high), 0) / scales, axis=1)
        distance[region.rows] = np.inf
        wanted = min(round(share * region.rows.size), 400 - region.rows.size)
        equal = np.unique(X, axis=0, return_counts=True)[1].max() if discrete else 0  # they go together
        assert wanted - equal <= found.size <= 1.1 * wanted
        assert not set(found) & set(region.rows)
        np.testing.assert_allclose(np.sort(distance[found]), np.sort(distance)[: found.size], rtol=1e-12)
        # the reach is a rule for each row alone, and says the same
        seen = context.reach(region.box).sees(region.box, X, scales)
        assert set(seen) == set(found) | set(region.rows)


def test_the_whole_space_has_no_context():
    X = grid(4)
    whole = Compact(10).regions(X, None)
    assert NearestContext(X, {whole.box: whole.rows}, [whole.box], np.ones(1), 1.0)(whole.box).size == 0


def heavy_tailed(n, d):
    """Cuts halfway between the lowest and the highest value leave nearly all rows on one side."""
    return np.exp(np.random.default_rng(0).standard_normal((n, d)))


@pytest.mark.parametrize(
    ("strategy", "X"),
    [
        (RandomAxes(500, n_partitions=2), heavy_tailed(1500, 8)),
        (RandomAxes(20, spacing=0.05), heavy_tailed(1500, 2)),
        (RandomAxes(20, spacing=1e-12), heavy_tailed(1500, 1)),
        (RandomAxes(20, n_partitions=10**12), heavy_tailed(1500, 1)),
        (Compact(20, n_partitions=4), heavy_tailed(20_000, 4)),
        (Compact(1, n_partitions=2), heavy_tailed(3000, 2)),
    ],
    ids=["random", "spacing", "tiny spacing", "cuts", "compact", "one row a leaf"],
)
def test_a_graph_that_explodes_is_refused_before_it_takes_time_or_memory(strategy, X):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"too many regions of [\d,]+ rows, more than") as error:
            strategy.regions(X, np.random.default_rng(0))
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()
    assert "lower n_partitions, widen spacing or raise max_leaf_size" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("strategy", "X"),
    [
        (RandomAxes(500, n_partitions=2), np.random.default_rng(0).standard_normal((1500, 8))),
        (Compact(60, n_partitions=3), np.random.default_rng(0).uniform(size=(900, 3))),
        (Compact(500, n_partitions=2), np.random.default_rng(0).uniform(size=(5000, 3))),
        (EqualWidth(100, n_partitions=4), heavy_tailed(2000, 3)),
    ],
    ids=["random", "compact", "compact, more rows", "equal width"],
)
def test_graphs_with_hundreds_of_alternatives_are_grown(strategy, X):
    root = strategy.regions(X, np.random.default_rng(0))
    assert len(leaf_regions(root)) > 60


@pytest.mark.parametrize("key", [1.0, 0.5])
@pytest.mark.parametrize("grid", [True, False])
def test_a_reach_sees_the_same_rows_compiled_or_not(key, grid, monkeypatch):
    rng = np.random.default_rng(0)
    W = rng.integers(-4, 5, (500, 3)) / 2.0 if grid else rng.standard_normal((500, 3))
    box, scales = Box(((0, -0.5, 0.5), (2, -np.inf, 1.0))), np.array([0.7, 1.0, 1.3])
    distances = squared_distances(box, W, scales)
    for squared in (-1.0, 0.0, float(np.median(distances)), float(distances[7]), np.inf):
        reach = Reach(squared, key)
        seen = reach.sees(box, W, scales)
        with monkeypatch.context() as without:
            without.setattr(compiled, "library", None)
            np.testing.assert_array_equal(seen, reach.sees(box, W, scales))
        assert set(np.flatnonzero(box.contains(W))) <= set(seen.tolist())


def test_a_tiling_stops_at_regions_that_are_small_enough():
    X = np.random.default_rng(0).uniform(0, 1, (800, 2))
    root = Compact(100, np.ones(2)).regions(X, np.random.default_rng(0))
    for size, counts in ((0, [100] * 8), (199, [100] * 8), (200, [200] * 4), (500, [400] * 2), (800, [800])):
        tiles = tiling(root, size)
        assert [tile.rows.size for tile in tiles] == counts
        np.testing.assert_array_equal(np.sort(np.concatenate([tile.rows for tile in tiles])), np.arange(800))
