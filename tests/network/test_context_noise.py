"""Rows beyond a border keep the noise of their own region: that of the same kernel, where experts are told apart."""

import numpy as np
import pytest

import reference
from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum, conditioning
from spngp.network.placement import place
from spngp.network.row_noise import RowNoise, noise_kinds

SEEN = 0.6  # how far beyond its border a leaf sees


def network(output=0):
    """A quiet half and a noisy half with two alternatives, or no cut."""
    noisy = Sum([Leaf(SquaredExponential(0.7), 0.5, output), Leaf(Matern(1.5, 0.5), 0.8, output)], weights=[0.3, 0.7])
    cut = Split(axis=0, at=[0.0], children=[Leaf(SquaredExponential(1.0), 0.01, output), noisy])
    return Sum([cut, Leaf(SquaredExponential(0.8), 0.2, output)], weights=[0.6, 0.4])


def tiling(output=0):
    """Three regions, each with experts that are told apart by their labels; one lacks a kernel, and one kernel fits."""

    def expert(kernel, noise, label):
        return Leaf(kernel, noise, output, label)

    left = Sum(
        [expert(SquaredExponential(1.0), 0.01, "smooth"), expert(Matern(0.5, 0.4), 0.3, "rough")], weights=[0.2, 0.8]
    )
    middle = Sum([expert(Matern(0.5, 0.6), 0.05, "rough"), expert(SquaredExponential(0.8), 0.6, "smooth")])
    return Split(axis=0, at=[-0.3, 0.4], children=[left, middle, expert(SquaredExponential(0.5), 0.2, "smooth")])


def rows(n=14, seed=3):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-1.5, 1.5, n))[:, None]
    return X, np.sin(2 * X[:, 0]) + np.where(X[:, 0] > 0, 0.7, 0.1) * rng.standard_normal(n)


def naive_noise(found, X, label):
    """What the experts of rows say of their noise: those with this label, or where there are none, all."""
    noise = []
    for x in X:
        of_row = [(leaf, p) for box, leaf, p in found if reference.contains(box, x)]
        said = [leaf.noise_variance for leaf, _ in of_row if label and leaf.label == label]
        noise.append(said[0] if said else sum(p * leaf.noise_variance for leaf, p in of_row))
    return np.array(noise)


def naive_predictions(prior, X, y, X_new, by_label):
    """Means and variances of the mixture, each leaf with context rows of their own regions' noise."""
    found = reference.Enumeration(prior, X, y).responsibilities()
    means, variances = np.empty(len(X_new)), np.empty(len(X_new))
    for i, x in enumerate(X_new):
        parts = []
        for box, leaf, probability in found:
            if not reference.contains(box, x):
                continue
            inside = np.array([reference.contains(box, row) for row in X])
            low, high = box.get(0, (-np.inf, np.inf))
            near = ~inside & (X[:, 0] > low - SEEN) & (X[:, 0] <= high + SEEN)
            order = [*np.flatnonzero(inside), *np.flatnonzero(near)]
            asked = leaf.label if by_label else ""
            row_noise = np.where(inside, leaf.noise_variance, naive_noise(found, X, asked))[order]
            mean, covariance = reference.gp_posterior(
                leaf.kernel, leaf.noise_variance, X[order], y[order], X_new[[i]], row_noise=row_noise
            )
            parts.append((probability, mean[0], covariance[0, 0]))
        means[i] = sum(p * m for p, m, _ in parts)
        variances[i] = sum(p * (v + (m - means[i]) ** 2) for p, m, v in parts)
    return means, variances


def told_apart(prior, X, y, margin=SEEN):
    """The posterior whose leaves ask experts with their own label, as in a model that has been fitted."""
    own = prior.condition(X, y)
    noise = RowNoise.of(place(own), X, None, noise_kinds(prior))
    seen = conditioning.within_margin(X, margin)
    return conditioning.add_context(own, X, y[:, None], seen, least_weight=0.0, row_noise=noise)


@pytest.mark.parametrize("asks", ["all experts", "those with its label"])
@pytest.mark.parametrize("prior", [network(), tiling()], ids=["cuts are alternatives", "experts are told apart"])
def test_context_rows_keep_the_noise_of_their_own_region(prior, asks):
    X, y = rows()
    X_new = np.linspace(-0.7, 0.7, 9)[:, None]
    by_label = asks == "those with its label"
    posterior = told_apart(prior, X, y) if by_label else prior.condition(X, y, margin=SEEN)
    mean, variance = naive_predictions(prior, X, y, X_new, by_label)
    predicted = posterior.predict_dist(X_new)
    np.testing.assert_allclose(predicted.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(predicted.var, variance, rtol=1e-8)
    assert posterior.log_evidence == pytest.approx(prior.condition(X, y).log_evidence, rel=1e-13)


def test_experts_are_told_apart_by_labels_where_a_row_has_one_of_each_at_most():
    leaves = [Leaf(SquaredExponential(), label="a"), Leaf(SquaredExponential(), label="b")]
    twice = Sum([leaves[0], leaves[0].rebuilt([])])
    assert noise_kinds(Sum(leaves)) == [(0, "a"), (0, "b")]
    assert noise_kinds(tiling()) == [(0, "rough"), (0, "smooth")]
    assert noise_kinds(Split(axis=0, at=[0.0], children=[leaves[0], leaves[0]])) == [(0, "")]
    assert noise_kinds(Split(axis=0, at=[0.0], children=[twice, leaves[1]])) == [(0, "")]
    assert noise_kinds(Sum([leaves[0], Split(axis=0, at=[0.0], children=[Sum(leaves), leaves[1]])])) == [(0, "")]
    other = Sum([Leaf(Matern(0.5), output=1, label=label) for label in "ba"])
    assert noise_kinds(Product([network(), other])) == [(0, ""), (1, "a"), (1, "b")]
    assert noise_kinds(Sum([Product([leaves[0], other]), Product([leaves[1], other])])) == [(0, ""), (1, "")]


def test_an_expert_too_improbable_to_predict_says_what_its_own_noise_is():
    """A smooth kernel takes a fast wave for noise; next door, where it fits, it must not take that wave for signal."""
    rng = np.random.default_rng(8)
    X = np.sort(rng.uniform(-1.0, 1.0, 600))[:, None]
    wave = np.where(X[:, 0] > 0.0, np.sin(40.0 * X[:, 0]), 0.0)
    y = X[:, 0] + wave + 0.02 * rng.standard_normal(600)
    smooth, rough = Leaf(SquaredExponential(1.0), 4e-4, label="smooth"), Leaf(Matern(0.5, 0.3), 5e-4, label="rough")
    taken = Leaf(SquaredExponential(1.0), 0.5, label="smooth")
    prior = Split(axis=0, at=[0.0], children=[smooth, Sum([taken, rough], weights=[0.5, 0.5])])
    posterior = told_apart(prior, X, y, 0.3)
    (probability,) = (one.weight for one in posterior.responsibilities() if one.leaf.noise_variance == 0.5)
    assert probability < 1e-30
    near = (X[:, 0] > -0.2) & (X[:, 0] <= 0.0)
    assert np.abs(posterior.predict_dist(X[near]).mean - X[near, 0]).max() < 0.02


def test_labels_of_a_network_by_hand_change_no_prediction():
    def labelled(node, label):
        if node.children:
            return node.rebuilt([labelled(child, label) for child in node.children])
        return Leaf(node.kernel, node.noise_variance, node.output, label(node))

    X, y = rows()
    found = [
        labelled(tiling(), label).condition(X, y, margin=SEEN).predict_dist(X)
        for label in (lambda leaf: leaf.label, lambda leaf: "")
    ]
    np.testing.assert_array_equal(found[0].mean, found[1].mean)


def test_rows_next_door_that_have_no_noise_are_taken_for_hardly_any():
    X, _ = rows(60)
    quiet = Split(axis=0, at=[0.0], children=[Leaf(SquaredExponential(1.0), 0.5), Leaf(SquaredExponential(1.0), 0.0)])
    posterior = quiet.condition(X, np.sin(2 * X[:, 0]), margin=SEEN)
    near = (X[:, 0] > -0.2) & (X[:, 0] <= 0.0)
    assert np.abs(posterior.predict_dist(X[near]).mean - np.sin(2 * X[near, 0])).max() < 0.05


def test_outputs_have_each_their_own_noise():
    X, y = rows()
    other = np.cos(X[:, 0])
    other[[2, 9]] = np.nan
    both = Product([network(0), Leaf(SquaredExponential(1.0), 0.05, 1)])
    posterior = both.condition(X, np.column_stack([y, other]), margin=SEEN)
    X_new = np.linspace(-0.7, 0.7, 5)[:, None]
    alone = network().condition(X, y, margin=SEEN).predict_dist(X_new)
    np.testing.assert_allclose(posterior.predict_dist(X_new).var[:, 0], alone.var, rtol=1e-12)


def test_one_noise_for_all_regions_is_left_as_it_is():
    X, y = rows(30)
    kernels = [SquaredExponential(0.7), Matern(1.5, 0.5)]
    halves = [Sum([Leaf(kernel, noise) for kernel, noise in zip(kernels, [0.1, 0.3], strict=True)]) for _ in range(2)]
    posterior = Split(axis=0, at=[0.0], children=halves).condition(X, y, margin=SEEN)
    assert all(leaf.gp.n_context and leaf.gp._context_weights is None for leaf, _, _ in posterior.responsibilities())


def test_a_quiet_half_is_not_led_astray_by_noisy_rows_beyond_its_border():
    rng = np.random.default_rng(50)
    X = np.sort(rng.uniform(0, 1, 400))[:, None]
    signal, noise = np.sin(12 * X[:, 0] + 1), np.where(X[:, 0] > 0.5, 1.0, 0.02)
    y = signal + noise * rng.standard_normal(400)
    model = SPNGPRegressor(max_leaf_size=100, hyperparameters="independent", random_state=0).fit(X, y)
    near = (X[:, 0] > 0.4) & (X[:, 0] < 0.5)
    error = np.sqrt(np.mean((model.predict(X[near]) - signal[near]) ** 2))
    assert error < 0.01  # 0.026 where noisy rows are taken for quiet ones
