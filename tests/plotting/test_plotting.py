"""Figures: what is drawn is what the model says."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from spngp import GPRegressor, SPNGPRegressor, datasets, metrics
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum
from spngp.plotting import (
    CalibrationDisplay,
    DensityDisplay,
    KernelWeightsDisplay,
    NetworkDisplay,
    NoiseDisplay,
    PlaneDisplay,
    RegionsDisplay,
)
from spngp.plotting.expert_regions import expert_regions
from spngp.plotting.layout import layered
from spngp.plotting.treemap import squarified

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def motorcycle():
    data = datasets.load("motorcycle")
    return data.X, data.Y[:, 0]


@pytest.fixture(scope="module")
def model(motorcycle):
    return SPNGPRegressor(max_leaf_size=40, random_state=0).fit(*motorcycle)


@pytest.fixture(scope="module")
def plane():
    """Two inputs and two outputs, one of them with gaps; columns with names."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 3, (90, 2)), columns=["width", "<b>$x$"])
    Y = np.column_stack([np.sin(X["width"]), X["width"] * X["<b>$x$"]]) + 0.1 * rng.standard_normal((90, 2))
    Y[:10, 1] = np.nan
    return X, Y, SPNGPRegressor(max_leaf_size=40, hyperparameters="fixed", random_state=0).fit(X, Y)


def _posterior(motorcycle):
    quiet, loud = (Leaf(SquaredExponential(5.0, 900.0), noise_variance=v) for v in (4.0, 400.0))
    prior = Sum([Split(0, [cut], [quiet, loud]) for cut in (12.0, 15.0)] + [Leaf(Linear(), noise_variance=400.0)])
    return prior.condition(*motorcycle)


def test_density_shows_the_data_and_the_mixture(model, motorcycle):
    X, y = motorcycle
    display = DensityDisplay.from_estimator(model, interval=0.8)
    data = next(line for line in display.ax_.lines if line.get_label() == "data")
    np.testing.assert_allclose(np.column_stack(data.get_data()), np.column_stack([X[:, 0], y]), atol=1e-10)
    low = next(line for line in display.ax_.lines if line.get_label() == "80% interval")
    np.testing.assert_array_equal(low.get_ydata(), display.mixture.interval(0.8)[0])
    shade = display.image_.get_array()
    assert shade.shape == (400, 400)
    np.testing.assert_allclose(shade.max(axis=0), 1.0)
    absolute = DensityDisplay.from_estimator(model, relative=False).image_.get_array()
    assert absolute.max() == pytest.approx(1.0)
    assert absolute.max(axis=0).min() < 0.9


def test_density_of_a_slice_holds_the_other_inputs_at_their_medians(plane):
    X, _, model = plane
    display = DensityDisplay.from_estimator(model, feature=1, output=1)
    rows = np.column_stack([np.full(400, X["width"].median()), display.x])
    with pytest.warns(UserWarning, match="feature names"):
        expected = model.predict_dist(rows).mean[:, 1]
    np.testing.assert_allclose(display.mixture.mean, expected)
    assert display.y is None  # rows of the data lie beside the slice
    assert display.ax_.get_xlabel() == "<b>$x$"


def test_densities_of_networks_and_of_predictions_agree(motorcycle):
    X, y = motorcycle
    network, grid = _posterior(motorcycle), np.linspace(0, 60, 50)
    one = DensityDisplay.from_network(network, grid, X, y)
    other = DensityDisplay.from_predictions(grid, network.predict_dist(grid), X, y, ax=plt.figure().subplots())
    np.testing.assert_array_equal(one.image_.get_array(), other.image_.get_array())
    with pytest.raises(ValueError, match="one prediction per x"):
        DensityDisplay(grid[:3], network.predict_dist(grid))


def test_kernel_weights_and_noise_follow_the_model(model, plane):
    weights = KernelWeightsDisplay.from_estimator(model)
    np.testing.assert_array_equal(weights.weights, model.predict_kernel_weights(weights.x[:, np.newaxis]))
    short = {
        "SquaredExponential + SquaredExponential": "SE + SE",
        "Matern(1.5) + Matern(1.5)": "Mat 3/2 + Mat 3/2",
        "Matern(0.5)": "Mat 1/2",
    }
    assert weights.names == [short[name] for name in model.kernel_names_]
    noise = NoiseDisplay.from_estimator(model)
    np.testing.assert_array_equal(noise.noise_std, model.predict_noise(noise.x[:, np.newaxis]))
    assert noise.ax_.get_ylim()[0] == 0
    assert KernelWeightsDisplay.from_estimator(plane[2], feature=1, output=1).weights.shape[0] == 400
    assert NoiseDisplay.from_estimator(plane[2], feature=1, output=1).noise_std.shape == (400,)


def test_kernel_weights_and_noise_of_a_network(motorcycle):
    network = _posterior(motorcycle)
    noise = NoiseDisplay.from_network(network, [5.0, 50.0])
    share = KernelWeightsDisplay.from_network(network, [5.0, 50.0]).weights[:, 1]  # of the linear leaf
    expected = np.sqrt((1 - share) * [4.0, 400.0] + share * 400.0)
    np.testing.assert_allclose(noise.noise_std, expected)


def test_shared_nodes_are_drawn_once(motorcycle):
    shared = Sum([Leaf(Linear()), Leaf(SquaredExponential())])
    network = Product(
        [
            Sum([Split(0, [1.0], [shared, shared]), Split(1, [0.0], [Leaf(Matern(1.5)), shared])]),
            Leaf(Linear(), output=1),
        ]
    )
    display = NetworkDisplay.from_network(network, input_names=["time", "$x_1"])
    assert display.n_drawn_ == 9
    texts = {text.get_text() for text in display.ax_.texts}
    assert {"time\n1", "$x_1\n0", "Mat 3/2", "Linear", "SE", ".50"} <= texts
    display.figure_.canvas.draw()  # a dollar in a name is no formula


def test_network_of_an_estimator_is_in_its_units_and_can_be_cut_short(model):
    display = NetworkDisplay.from_estimator(model)
    cuts = [side for record in model.regions_ for side in record["high"] if np.isfinite(side)]
    assert f"x0\n{cuts[0]:.4g}" in {text.get_text() for text in display.ax_.texts}
    short = NetworkDisplay.from_network(model.network_, max_depth=1)
    assert short.n_drawn_ < display.n_drawn_
    assert any("leaves" in text.get_text() for text in short.ax_.texts)
    single = NetworkDisplay.from_estimator(GPRegressor(hyperparameters="fixed").fit([[0.0], [1.0]], [0.0, 1.0]))
    assert single.n_drawn_ == 1


def test_a_large_network_is_drawn_as_far_as_it_can_be_told_apart():
    def balanced(low, high, depth):
        if depth == 0:
            return Leaf(SquaredExponential())
        middle = 0.5 * (low + high)
        return Split(0, [middle], [balanced(low, middle, depth - 1), balanced(middle, high, depth - 1)])

    display = NetworkDisplay.from_network(balanced(0.0, 1.0, 9))
    assert display.n_drawn_ == 255
    assert sum(text.get_text() == "4 leaves" for text in display.ax_.texts) == 128
    assert NetworkDisplay.from_network(balanced(0.0, 1.0, 7)).n_drawn_ == 255  # the whole of it


def test_matplotlib_and_plotly_are_imported_when_they_are_needed():
    code = "import sys, spngp.plotting, spngp.report; print(sorted({'matplotlib', 'plotly'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_unlikely_children_are_left_out(motorcycle):
    network = _posterior(motorcycle)
    kept = int((network.weights >= 1e-3).sum())
    assert 0 < kept < 3
    display = NetworkDisplay.from_network(network, least_weight=1e-3)
    assert sum(text.get_text().startswith("x0") for text in display.ax_.texts) == kept


def test_layout_leaves_room_and_keeps_children_below():
    rng = np.random.default_rng(0)
    n = 40
    children = [sorted(rng.choice(np.arange(i + 1, n), min(2, n - 1 - i), replace=False).tolist()) for i in range(n)]
    for i in range(1, n):  # every node has a parent
        if not any(i in below for below in children):
            children[i - 1].append(i)
    widths = rng.uniform(0.2, 1.5, n)
    layout = layered(children, widths, gap=0.25)
    for i, below in enumerate(children):
        assert all(layout.layer[child] > layout.layer[i] for child in below)
    for layer in set(layout.layer):
        nodes = sorted((j for j in range(n) if layout.layer[j] == layer), key=lambda j: layout.x[j])
        for a, b in itertools.pairwise(nodes):
            assert layout.x[b] - layout.x[a] >= 0.5 * (widths[a] + widths[b]) + 0.25 - 1e-9


def test_a_tree_is_drawn_without_crossings_and_parents_in_the_middle():
    children = [[1, 2], [3, 4], [5, 6], [], [], [], []]
    layout = layered(children, [1.0] * 7, gap=0.5)
    assert layout.x.tolist() == pytest.approx([0, -1.5, 1.5, -2.25, -0.75, 0.75, 2.25])


def test_plane_maps_mean_and_std_with_the_borders_of_regions(plane):
    model = plane[2]
    display = PlaneDisplay.from_estimator(model, output=1, n_points=12)
    i, j = 3, 7
    with pytest.warns(UserWarning, match="feature names"):
        mean, std = model.predict([[display.x[i], display.y[j]]], return_std=True)
    assert display.mean[j, i] == pytest.approx(mean[0, 1])
    assert display.std[j, i] == pytest.approx(std[0, 1])
    regions = [region for region in expert_regions(model, 1) if region.weight >= 0.01]
    assert len(display.borders) == len(regions)
    covered = sum((x1 - x0) * (y1 - y0) * weight for x0, x1, y0, y1, weight in display.borders)
    assert covered == pytest.approx(np.ptp(display.x) * np.ptp(display.y), rel=0.02)  # they tile the map
    assert display.axes_[0].get_ylabel() == "<b>$x$"
    with pytest.raises(ValueError, match="two different inputs out of 2"):
        PlaneDisplay.from_estimator(model, features=(1, 1))


def test_a_plane_needs_two_inputs(model):
    with pytest.raises(ValueError, match=r"^PlaneDisplay needs a model of at least two inputs, got 1$"):
        PlaneDisplay.from_estimator(model)


def test_regions_put_experts_together(plane):
    model = plane[2]
    for output, n_observed in enumerate([90, 80]):
        regions = expert_regions(model, output)
        assert sum(region.rows * region.weight for region in regions) == pytest.approx(n_observed)
        assert all(sum(expert["share"] for expert in region.experts) == pytest.approx(1) for region in regions)
    tiled = expert_regions(model, 0)
    inside = np.array([region.contains(plane[0].to_numpy()) for region in tiled])
    assert [int(column.sum()) for column in inside] == [region.rows for region in tiled]


def test_evidence_of_disjoint_regions_adds_up_to_the_models(motorcycle):
    X, y = motorcycle
    model = SPNGPRegressor(max_leaf_size=30, hyperparameters="fixed", random_state=0).fit(X, y)
    regions = expert_regions(model)
    assert all(region.weight == pytest.approx(1) for region in regions)
    assert sum(region.log_evidence for region in regions) == pytest.approx(model.log_evidence_)


def test_treemap_has_the_areas_asked_for(plane):
    areas = np.sort(np.random.default_rng(1).exponential(size=30))[::-1]
    tiles = np.array(squarified(areas, 3.0, 2.0))
    np.testing.assert_allclose(tiles[:, 2] * tiles[:, 3], areas / areas.sum() * 6.0)
    assert tiles[:, :2].min() >= 0
    assert (tiles[:, :2] + tiles[:, 2:]).max(axis=0) == pytest.approx([3.0, 2.0])
    display = RegionsDisplay.from_estimator(plane[2], output=1)
    assert len(display.ax_.patches) == sum(region.rows * region.weight > 0 for region in expert_regions(plane[2], 1))
    display.figure_.canvas.draw()


def test_calibration_counts_what_falls_inside(motorcycle, plane):
    X, y = motorcycle
    posterior = _posterior(motorcycle)
    display = CalibrationDisplay.from_predictions(posterior.predict_dist(X), np.where(np.arange(y.size) < 3, np.nan, y))
    assert display.pit.size == y.size - 3
    line = display.axes_[1].lines[1]
    share = metrics.coverage(posterior.predict_dist(X[3:]), y[3:], 0.8)
    assert line.get_ydata()[80] == pytest.approx(share)
    assert CalibrationDisplay.from_estimator(plane[2], plane[0], plane[1], output=1).pit.size == 80


def test_lines_are_brighter_on_a_dark_background(model):
    with plt.style.context("dark_background"):
        dark = DensityDisplay.from_estimator(model)
        assert dark.image_.get_cmap()(0.0)[:3] == (0.0, 0.0, 0.0)
    light = DensityDisplay.from_estimator(model)
    colours = [next(x.get_color() for x in d.ax_.lines if x.get_label() == "mean") for d in (dark, light)]
    assert colours[0] != colours[1]


def test_errors_name_what_is_allowed(model):
    with pytest.raises(ValueError, match="feature must be one of the 1 inputs, 0 to 0, got 1"):
        DensityDisplay.from_estimator(model, feature=1)
    with pytest.raises(ValueError, match=r"at must have one value per input \(1\)"):
        NoiseDisplay.from_estimator(model, at=[1.0, 2.0])
