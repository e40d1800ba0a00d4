"""Networks against the truth: enumeration of every induced tree, and one network worked by hand."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import reference
from spngp.gp.exact import ExactGP
from spngp.kernels import (
    Constant,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from spngp.network import Leaf, Product, Split, Sum

NAN = np.nan


def assert_close(actual, expected, rtol=1e-9):
    """Relative closeness, measured against the largest entry so that a zero may differ by rounding."""
    expected = np.asarray(expected)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 1e-2 * scale)


# --- the networks ---------------------------------------------------------------------------------


class Case(NamedTuple):
    network: Any
    X: np.ndarray
    Y: np.ndarray
    X_new: np.ndarray


def line(n=11, seed=0):
    """Inputs 0, 0.1 … 1 in random order (cuts at multiples of 0.1 fall on rows), and a wavy output."""
    rng = np.random.default_rng(seed)
    X = rng.permutation(n)[:, None] / (n - 1)
    return X, np.sin(5 * X[:, 0]) + 0.3 * rng.standard_normal(n)


NEW_ON_LINE = np.array([[-0.4], [0.05], [0.3], [0.5], [0.55], [0.75], [0.9], [1.6]])


def one_leaf():
    return Case(Leaf(Matern(nu=1.5, length_scale=0.4, variance=1.2), noise_variance=0.2), *line(), NEW_ON_LINE)


def flat_mixture():
    experts = [
        Leaf(SquaredExponential(0.3, 1.1), noise_variance=0.1),
        Leaf(Linear(0.8, bias_variance=0.5), noise_variance=0.3),
        Leaf(Periodic(0.7, 1.3, 0.9), noise_variance=0.2),
    ]
    return Case(Sum(experts, weights=[0.2, 0.7, 0.1]), *line(), NEW_ON_LINE)


def deep():
    """Sums over splits over sums over splits; one leaf object stands in four different boxes."""
    smooth = Leaf(SquaredExponential(0.4, 1.3), noise_variance=0.1)
    rough = Leaf(Matern(nu=0.5, length_scale=0.6, variance=0.8), noise_variance=0.2)
    straight = Leaf(Linear(0.7, bias_variance=0.3), noise_variance=0.15)
    left = Sum([smooth, straight, rough], weights=[0.2, 0.5, 0.3])
    upper_right = Sum([Split(0, [0.9], [rough, smooth]), straight], weights=[0.9, 0.1])
    right = Sum([Split(0, [0.7], [smooth, upper_right]), rough], weights=[0.3, 0.7])
    return Case(Sum([Split(0, [0.5], [left, right]), smooth], weights=[0.6, 0.4]), *line(), NEW_ON_LINE)


def quadrants():
    """A region graph in two inputs: both cut orders share the four quadrants (same node, same box)."""
    low_low = Sum(
        [
            Leaf(SquaredExponential([0.5, 0.9], 1.4), noise_variance=0.1),
            Leaf(Linear([0.6, 1.2], 0.2), noise_variance=0.2),
        ],
        weights=[0.25, 0.75],
    )
    low_high = Leaf(Matern(2.5, [0.7, 0.4]), noise_variance=0.1)
    high_low = Leaf(RationalQuadratic(0.8, 0.6, 1.1), noise_variance=0.3)
    high_high = Sum(
        [Leaf(Polynomial(2, 0.5, 0.7), noise_variance=0.1), Leaf(Constant(1.5), noise_variance=0.4)],
        weights=[0.4, 0.6],
    )
    first = Split(0, [0.5], [Split(1, [0.4], [low_low, low_high]), Split(1, [0.4], [high_low, high_high])])
    second = Split(1, [0.4], [Split(0, [0.5], [low_low, high_low]), Split(0, [0.5], [low_high, high_high])])
    rng = np.random.default_rng(1)
    X = rng.integers(0, 11, size=(12, 2)) / 10
    y = X[:, 0] - np.cos(3 * X[:, 1]) + 0.2 * rng.standard_normal(12)
    X_new = np.array([[0.5, 0.4], [0.2, 0.9], [0.7, 0.1], [0.8, 0.8], [-1.0, 2.0], [0.1, 0.3]])
    return Case(Sum([first, second], weights=[0.45, 0.55]), X, y, X_new)


def three_cuts():
    """Four unequal intervals; the sum object inside is reused in two of them, with independent weights."""
    either = Sum(
        [
            Leaf(SquaredExponential(0.2, 0.9), noise_variance=0.1),
            Leaf(Matern(1.5, 0.5, 1.7), noise_variance=0.2),
        ],
        weights=[0.35, 0.65],
    )
    straight = Leaf(Linear(1.1, 0.4), noise_variance=0.1)
    return Case(Split(0, [0.2, 0.5, 0.8], [either, straight, either, straight]), *line(), NEW_ON_LINE)


def empty_region():
    """The upper interval holds no row: its weights stay the prior ones and it predicts the prior."""
    nothing_here = Sum(
        [Leaf(SquaredExponential(0.4, 2.0), noise_variance=0.1), Leaf(Constant(0.5), noise_variance=0.3)],
        weights=[0.3, 0.7],
    )
    split = Split(0, [1.2], [Leaf(SquaredExponential(0.4), noise_variance=0.1), nothing_here])
    network = Sum([split, Leaf(Matern(1.5, 0.8), noise_variance=0.2)], weights=[0.5, 0.5])
    return Case(network, *line(), np.array([[0.3], [1.2], [1.3], [1.7], [2.4]]))


def skewed():
    """Two intervals, one of them with a hopeless expert whose posterior weight underflows."""
    hopeless = Leaf(Constant(1e-3), noise_variance=1e-3)
    fair = Leaf(SquaredExponential(0.3, 9.0), noise_variance=0.2)
    network = Split(0, [0.4], [Sum([hopeless, fair], weights=[0.999, 0.001]), fair])
    X, y = line()
    return Case(network, X, 8 * y, NEW_ON_LINE)


def two_outputs_network():
    below = Split(
        0,
        [0.4],
        [
            Product(
                [
                    Leaf(SquaredExponential(0.4), noise_variance=0.1, output=0),
                    Leaf(Matern(1.5, 0.5, 0.8), noise_variance=0.2, output=1),
                ]
            ),
            Product(
                [
                    Sum(
                        [
                            Leaf(Linear(1.0, 0.5), noise_variance=0.2, output=0),
                            Leaf(SquaredExponential(0.3, 1.2), noise_variance=0.1, output=0),
                        ],
                        weights=[0.15, 0.85],
                    ),
                    Leaf(RationalQuadratic(1.5, 0.5), noise_variance=0.1, output=1),
                ]
            ),
        ],
    )
    beside = Product(
        [
            Leaf(Periodic(0.9, 1.0, 1.1), noise_variance=0.1, output=1),
            Leaf(Matern(2.5, 0.6), noise_variance=0.15, output=0),
        ]
    )
    return Sum([below, beside], weights=[0.35, 0.65])


def two_columns():
    X, y = line(10, seed=2)
    return X, np.column_stack([y, np.cos(4 * X[:, 0]) - 0.5 * y])


def two_outputs():
    return Case(two_outputs_network(), *two_columns(), NEW_ON_LINE)


def missing_outputs():
    """Either output missing, both missing in one row, and no second output at all below the cut."""
    X, Y = two_columns()
    Y[X[:, 0] <= 0.4, 1] = NAN
    Y[[1, 4], 0] = NAN
    Y[7] = NAN
    return Case(two_outputs_network(), X, Y, NEW_ON_LINE)


def three_outputs():
    """Nested products whose outputs are not in order, and a product above a split."""
    pair = Product(
        [
            Leaf(SquaredExponential(0.5, 0.7), noise_variance=0.1, output=2),
            Leaf(Matern(0.5, 0.9), noise_variance=0.2, output=0),
        ]
    )
    other_pair = Product(
        [
            Leaf(Linear(0.9, 0.1), noise_variance=0.1, output=0),
            Leaf(Linear(0.4, 1.1), noise_variance=0.2, output=2),
        ]
    )
    single = Split(
        0,
        [0.6],
        [
            Leaf(Matern(1.5, 0.3), noise_variance=0.1, output=1),
            Sum(
                [
                    Leaf(Constant(0.8), noise_variance=0.1, output=1),
                    Leaf(SquaredExponential(0.2), noise_variance=0.1, output=1),
                ]
            ),
        ],
    )
    X, Y = two_columns()
    Y = np.column_stack([Y, X[:, 0] ** 2])
    Y[2, 1] = Y[5, 2] = NAN
    return Case(Product([Sum([pair, other_pair], weights=[0.8, 0.2]), single]), X, Y, NEW_ON_LINE)


def missing_rows_of_one_output():
    X, y = line()
    y[[0, 3, 8]] = NAN
    return Case(deep().network, X, y, NEW_ON_LINE)


CASES = [
    one_leaf,
    flat_mixture,
    deep,
    quadrants,
    three_cuts,
    empty_region,
    skewed,
    two_outputs,
    missing_outputs,
    three_outputs,
    missing_rows_of_one_output,
]


class Pair(NamedTuple):
    """The network conditioned by the library, and the same by enumeration."""

    make: Any
    case: Case
    posterior: Any
    truth: reference.Enumeration


@pytest.fixture(scope="module", params=CASES, ids=lambda make: make.__name__)
def pair(request):
    case = request.param()
    posterior = case.network.condition(case.X, case.Y)
    return Pair(request.param, case, posterior, reference.Enumeration(case.network, case.X, case.Y))


def columns(pair, array):
    """An (n, p) answer of the reference in the shape the library uses: (n,) for one output."""
    return array[:, 0] if len(pair.truth.outputs) == 1 else array


def matrix(pair, covariance):
    """A covariance of the library, flattened to (n·p, n·p)."""
    size = len(pair.case.X_new) * len(pair.truth.outputs)
    return np.asarray(covariance).reshape(size, size)


def node_at(root, path):
    for child in path:
        root = root.children[child]
    return root


# --- against enumeration --------------------------------------------------------------------------


def test_log_evidence(pair):
    assert pair.case.network.log_evidence == 0.0
    assert isinstance(pair.posterior.log_evidence, float)
    assert_close(pair.posterior.log_evidence, pair.truth.log_evidence)


def test_outputs(pair):
    assert pair.posterior.outputs == tuple(pair.truth.outputs)


def test_posterior_weights_at_every_sum(pair):
    for place, weights in pair.truth.sum_weights().items():
        np.testing.assert_allclose(node_at(pair.posterior, place).weights, weights, rtol=1e-9, atol=1e-15)


def test_the_prior_is_left_as_it_was(pair):
    fresh, used = pair.make().network, pair.case.network
    used.condition(pair.case.X, pair.case.Y)
    for place in pair.truth.sum_weights():
        np.testing.assert_array_equal(node_at(used, place).weights, node_at(fresh, place).weights)
    assert used.log_evidence == 0.0
    np.testing.assert_array_equal(used.predict_dist(pair.case.X_new).var, fresh.predict_dist(pair.case.X_new).var)


@pytest.mark.parametrize("latent", [False, True])
def test_predictive_distribution(pair, latent):
    rng = np.random.default_rng(3)
    shape = (len(pair.case.X_new), len(pair.truth.outputs))
    y_new = 1.5 * rng.standard_normal(shape)
    expected = pair.truth.predict(pair.case.X_new, y_new, latent=latent)
    actual = pair.posterior.predict_dist(pair.case.X_new, latent=latent)
    y = columns(pair, y_new)
    assert_close(actual.mean, columns(pair, expected["mean"]))
    assert_close(actual.var, columns(pair, expected["var"]))
    assert_close(actual.std, columns(pair, np.sqrt(expected["var"])))
    assert_close(actual.logpdf(y), columns(pair, expected["logpdf"]))
    assert_close(actual.cdf(y), columns(pair, expected["cdf"]))


@pytest.mark.parametrize("q", [1e-4, 0.05, 0.5, 0.975])
def test_quantile_inverts_the_cdf(pair, q):
    mixture = pair.posterior.predict_dist(pair.case.X_new)
    quantile = np.asarray(mixture.quantile(q))
    rows = quantile if quantile.ndim == 2 else quantile[:, None]
    exact_cdf = pair.truth.predict(pair.case.X_new, rows)["cdf"]
    np.testing.assert_allclose(exact_cdf, q, rtol=1e-7)


def test_prior_predictive(pair):
    prior = reference.Enumeration(pair.case.network)
    y_new = np.linspace(-2, 2, len(pair.case.X_new) * len(prior.outputs)).reshape(-1, len(prior.outputs))
    expected = prior.predict(pair.case.X_new, y_new)
    actual = pair.case.network.predict_dist(pair.case.X_new)
    np.testing.assert_array_equal(actual.mean, np.zeros_like(columns(pair, y_new)))
    assert_close(actual.var, columns(pair, expected["var"]))
    assert_close(actual.logpdf(columns(pair, y_new)), columns(pair, expected["logpdf"]))


@pytest.mark.parametrize("latent", [True, False])
def test_posterior_covariance_over_rows_and_outputs(pair, latent):
    _, expected = pair.truth.joint_moments(pair.case.X_new, latent=latent)
    assert_close(matrix(pair, pair.posterior.covariance(pair.case.X_new, latent=latent)), expected)


@pytest.mark.parametrize("latent", [True, False])
def test_covariance_and_samples_of_rows_that_leave_leaves_empty(pair, latent):
    for row in range(len(pair.case.X_new)):
        X_new = pair.case.X_new[row : row + 1]
        _, expected = pair.truth.joint_moments(X_new, latent=latent)
        assert_close(pair.posterior.covariance(X_new, latent=latent).reshape(expected.shape), expected)
        assert pair.posterior.sample(X_new, 2, 0, latent=latent).shape[0] == 1
    nothing, p = pair.case.X_new[:0], len(pair.truth.outputs)
    assert pair.posterior.covariance(nothing, latent=latent).shape == ((0, 0) if p == 1 else (0, p, 0, p))
    assert pair.posterior.sample(nothing, 2, 0, latent=latent).shape == ((0, 2) if p == 1 else (0, p, 2))


def random_network(rng, box=((-1.0, 1.0), (-1.0, 1.0)), depth=3):
    """Cuts strictly inside the box, sums and leaves at random; a split may leave a part without any row."""
    kind = rng.choice(["leaf", "sum", "split"], p=[0.2, 0.4, 0.4]) if depth else "leaf"
    if kind == "leaf":
        kernel = [SquaredExponential(0.7), Matern(1.5, 0.5), Linear()][rng.integers(3)]
        return Leaf(kernel, noise_variance=float(rng.uniform(0.05, 0.5)))
    if kind == "sum":
        return Sum([random_network(rng, box, depth - 1) for _ in range(2)], weights=rng.dirichlet([1.0, 1.0]))
    axis = int(rng.integers(2))
    low, high = box[axis]
    cut = float(rng.uniform(low, high))
    parts = [tuple(side if j == axis else box[j] for j in range(2)) for side in ((low, cut), (cut, high))]
    return Split(axis, [cut], [random_network(rng, part, depth - 1) for part in parts])


@pytest.mark.parametrize("seed", range(12))
def test_covariance_of_random_networks_at_few_rows(seed):
    rng = np.random.default_rng(seed)
    network = Split(0, [0.0], [random_network(rng, ((-1.0, 0.0), (-1.0, 1.0))), random_network(rng, depth=0)])
    X, X_new = rng.uniform(-1, 1, (9, 2)), rng.uniform(-1, 1, (3, 2))
    y = rng.standard_normal(9)
    truth, posterior = reference.Enumeration(network, X, y), network.condition(X, y)
    for rows in (X_new, X_new[:1], X_new[:1] * [[0.0, 1.0]] + [[0.5, 0.0]]):  # the last: one side of the cut only
        _, expected = truth.joint_moments(rows)
        assert_close(posterior.covariance(rows), expected)


def test_prior_covariance_over_rows_and_outputs(pair):
    _, expected = reference.Enumeration(pair.case.network).joint_moments(pair.case.X_new)
    assert_close(matrix(pair, pair.case.network.covariance(pair.case.X_new)), expected)


def test_covariance_shape(pair):
    n, p = len(pair.case.X_new), len(pair.truth.outputs)
    shape = (n, n) if p == 1 else (n, p, n, p)
    assert np.shape(pair.posterior.covariance(pair.case.X_new)) == shape


def test_induced_trees(pair):
    assert pair.case.network.n_induced_trees == len(pair.truth.trees)
    assert pair.posterior.n_induced_trees == len(pair.truth.trees)
    prior = sorted(log_weight for log_weight, _ in pair.case.network.induced_trees())
    assert_close(prior, sorted(np.log([tree.weight for tree in pair.truth.trees])))
    posterior = sorted(np.exp(log_weight) for log_weight, _ in pair.posterior.induced_trees())
    np.testing.assert_allclose(posterior, sorted(pair.truth.tree_posterior), rtol=1e-9, atol=1e-15)


def test_each_induced_tree_has_its_own_evidence(pair):
    actual = sorted(
        log_weight + tree.condition(pair.case.X, pair.case.Y).log_evidence
        for log_weight, tree in pair.case.network.induced_trees()
    )
    assert_close(actual, sorted(pair.truth.log_joint))


def test_responsibilities(pair):
    """Posterior probability of every (leaf, box), known by its parameters and the probes inside its box."""
    d = pair.case.X.shape[1]
    probes = np.stack(np.meshgrid(*[np.arange(-0.025, 1.5, 0.05)] * d), axis=-1).reshape(-1, d)
    probes = np.concatenate([probes, pair.case.X])

    expected: dict[tuple, float] = {}
    for box, leaf, probability in pair.truth.responsibilities():
        key = expert_key(leaf, [reference.contains(box, x) for x in probes])
        expected[key] = expected.get(key, 0.0) + probability
    actual: dict[tuple, float] = {}
    for record in pair.posterior.responsibilities():
        key = expert_key(record.leaf, record.box.contains(probes))
        actual[key] = actual.get(key, 0.0) + record.weight

    assert actual.keys() == expected.keys()
    for key, probability in expected.items():
        np.testing.assert_allclose(actual[key], probability, rtol=1e-9, atol=1e-15)


def expert_key(leaf, inside):
    return repr(leaf.kernel), leaf.noise_variance, leaf.output, tuple(bool(i) for i in inside)


# --- by hand --------------------------------------------------------------------------------------


def test_a_network_worked_by_hand():
    """Every number below can be checked with a pocket calculator.

    The data: x = 0, 1, 2, 3 and y = 1, 3, 4, 6. The network:

        Sum  ¼ ── A: constant 2, noise 4, all four rows
             ¾ ── Split at x = 1 (the row x = 1 lies on the cut: lower side)
                    ├─ B: constant 1, noise 1, rows x = 0, 1
                    └─ Sum  ⅓ ── C: linear 1, noise 1, rows x = 2, 3
                            ⅔ ── D: constant 3, noise 1, rows x = 2, 3

    For n rows under a constant kernel v with noise s, and a = s + n v: det = s^(n−1) a,
    quadratic form = (Σy² − v (Σy)² / a) / s, posterior mean = v Σy / a, posterior variance = v s / a.
    Log density = −quadratic/2 − log(det)/2 − (n/2) log 2π, with log 2π = 1.8378770664.
    """
    A = Leaf(Constant(2.0), noise_variance=4.0)
    B = Leaf(Constant(1.0), noise_variance=1.0)
    C = Leaf(Linear(1.0), noise_variance=1.0)
    D = Leaf(Constant(3.0), noise_variance=1.0)
    upper = Sum([C, D], weights=[1 / 3, 2 / 3])
    network = Sum([A, Split(axis=0, at=[1.0], children=[B, upper])], weights=[0.25, 0.75])
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([1.0, 3.0, 4.0, 6.0])
    posterior = network.condition(X, y)

    # A: Σy = 14, Σy² = 62, a = 12. det = 4³·12 = 768, quadratic = (62 − 2·196/12)/4 = 22/3.
    #    log = −3.6666666667 − 3.3218949333 − 3.6757541328 = −10.6643157  → 2.3363965e-5
    # B: Σy = 4, Σy² = 10, a = 3. det = 3, quadratic = 10 − 16/3 = 14/3.
    #    log = −2.3333333333 − 0.5493061443 − 1.8378770664 = −4.7205165441 → 8.9105747e-3
    # C: [[5, 6], [6, 10]], det = 14, inverse [[10, −6], [−6, 5]]/14, quadratic = (160 − 288 + 180)/14 = 26/7.
    #    log = −1.8571428571 − 1.3195286648 − 1.8378770664 = −5.0145485884 → 6.6406290e-3
    # D: Σy = 10, Σy² = 52, a = 7. det = 7, quadratic = 52 − 3·100/7 = 64/7.
    #    log = −4.5714285714 − 0.9729550745 − 1.8378770664 = −7.3822607124 → 6.2219270e-4
    _, split = posterior.children
    conditioned_B, conditioned_upper = split.children
    conditioned_C, conditioned_D = conditioned_upper.children
    assert posterior.children[0].log_evidence == pytest.approx(-10.664315666059194, rel=1e-12)
    assert conditioned_B.log_evidence == pytest.approx(-4.720516544076734, rel=1e-12)
    assert conditioned_C.log_evidence == pytest.approx(-5.0145485883598315, rel=1e-12)
    assert conditioned_D.log_evidence == pytest.approx(-7.382260712365573, rel=1e-12)

    # Upper sum: ⅓·6.6406290e-3 + ⅔·6.2219270e-4 = 2.2135430e-3 + 4.1479513e-4 = 2.6283381e-3.
    #    weights 2.2135430/2.6283381 = 0.8421835 and 0.1578165
    # Split: 8.9105747e-3 · 2.6283381e-3 = 2.3420003e-5
    # Root: ¼·2.3363965e-5 + ¾·2.3420003e-5 = 0.58409913e-5 + 1.75650024e-5 = 2.3405994e-5, log = −10.6625184
    #    weights 0.58409913/2.3405994 = 0.2495511 and 0.7504489
    assert conditioned_upper.log_evidence == pytest.approx(-5.941403519690445, rel=1e-12)
    np.testing.assert_allclose(conditioned_upper.weights, [0.8421834980248114, 0.1578165019751887], rtol=1e-12)
    assert split.log_evidence == pytest.approx(-10.661920063767178, rel=1e-12)
    assert posterior.log_evidence == pytest.approx(-10.662518426532184, rel=1e-12)
    np.testing.assert_allclose(posterior.weights, [0.24955109363521238, 0.7504489063647877], rtol=1e-12)

    # Responsibilities, down the tree: A 0.2495511, B 0.7504489,
    #    C 0.7504489·0.8421835 = 0.6320157, D 0.7504489·0.1578165 = 0.1184332
    weights = sorted(record.weight for record in posterior.responsibilities())
    np.testing.assert_allclose(
        weights, [0.11843322131359672, 0.24955109363521238, 0.632015685051191, 0.7504489063647877], rtol=1e-12
    )

    # At x = 4, a new observation:
    #    A: mean 2·14/12 = 7/3,  variance 8/12 + 4 = 14/3
    #    C: slope 26/14, its variance 1/14: mean 52/7, variance 16/14 + 1 = 15/7
    #    D: mean 3·10/7 = 30/7, variance 3/7 + 1 = 10/7
    # mean   0.2495511·2.3333333 + 0.6320157·7.4285714 + 0.1184332·4.2857143
    #        = 0.5822859 + 4.6949737 + 0.5075709 = 5.7848305
    # E[y²]  0.2495511·(4.6666667 + 5.4444444) + 0.6320157·(2.1428571 + 55.1836735)
    #        + 0.1184332·(1.4285714 + 18.3673469) = 2.5232388 + 36.2312665 + 2.3444944 = 41.0989997
    # variance 41.0989997 − 5.7848305² = 7.6347359
    # density at y = 7: 0.2495511·0.0179082 + 0.6320157·0.2610964 + 0.1184332·0.0253279 = 0.1724857
    at_4 = posterior.predict_dist(np.array([[4.0]]))
    np.testing.assert_allclose(at_4.mean, [5.784830494015948], rtol=1e-12)
    np.testing.assert_allclose(at_4.var, [7.634735888760062], rtol=1e-12)
    np.testing.assert_allclose(at_4.logpdf(np.array([7.0])), [np.log(0.17248569112082324)], rtol=1e-12)

    # Covariance of the function at x = 0.5 and x = 4. Within A it is a constant: covariance 8/12. Within the
    # split the two sides are independent: 0. Between the two: the means move together or apart.
    #    at 0.5: A 7/3, B 4/3. At 4: A 7/3, upper sum 0.8421835·7.4285714 + 0.1578165·4.2857143 = 6.9325767
    #    0.2495511·⅔ + 0.2495511·0.7504489·(7/3 − 4/3)·(7/3 − 6.9325767) = 0.1663674 − 0.8613249 = −0.6949575
    covariance = posterior.covariance(np.array([[0.5], [4.0]]))
    np.testing.assert_allclose(covariance[0, 1], -0.6949574953703687, rtol=1e-12)


# --- two routes, one answer -----------------------------------------------------------------------


def answers(network, X_new):
    """What a user can see of a posterior, as one vector."""
    mixture = network.predict_dist(X_new)
    parts = [network.log_evidence, mixture.mean, mixture.var, network.covariance(X_new)]
    return np.concatenate([np.ravel(part) for part in parts])


def test_conditioning_in_two_halves(pair):
    half = len(pair.case.X) // 2
    X, Y = pair.case.X, pair.case.Y
    in_halves = pair.case.network.condition(X[:half], Y[:half]).condition(X[half:], Y[half:])
    assert_close(answers(in_halves, pair.case.X_new), answers(pair.posterior, pair.case.X_new), rtol=1e-8)
    for place, weights in pair.truth.sum_weights().items():
        np.testing.assert_allclose(node_at(in_halves, place).weights, weights, rtol=1e-8, atol=1e-14)


def test_conditioning_row_by_row(pair):
    network = pair.case.network
    for i in range(len(pair.case.X)):
        network = network.condition(pair.case.X[i : i + 1], pair.case.Y[i : i + 1])
    assert_close(answers(network, pair.case.X_new), answers(pair.posterior, pair.case.X_new), rtol=1e-8)


def test_a_weight_that_underflowed_can_come_back():
    """One outlier takes child 0 to weight exp(−891) = 0.0; 240 calm rows bring it back, exactly."""
    network = Sum([Leaf(Constant(1.0), noise_variance=1.0), Leaf(Constant(1.0), noise_variance=1e8)])
    X, y = np.zeros((241, 1)), np.append(60.0, np.zeros(240))
    after_outlier = network.condition(X[:1], y[:1])
    np.testing.assert_array_equal(after_outlier.weights, [0.0, 1.0])
    in_steps = after_outlier.condition(X[1:], y[1:])
    truth = reference.Enumeration(network, X, y)
    assert truth.tree_posterior[0] > 0.999
    np.testing.assert_allclose(in_steps.weights, truth.tree_posterior, rtol=1e-9, atol=1e-15)
    assert_close(in_steps.log_evidence, truth.log_evidence)


def test_the_order_of_the_rows_does_not_matter(pair):
    order = np.random.default_rng(4).permutation(len(pair.case.X))
    permuted = pair.case.network.condition(pair.case.X[order], pair.case.Y[order])
    assert_close(answers(permuted, pair.case.X_new), answers(pair.posterior, pair.case.X_new))


def test_a_sum_of_equal_children_is_the_child(pair):
    child = pair.case.network
    posterior = Sum([child, child, child], weights=[0.2, 0.5, 0.3]).condition(pair.case.X, pair.case.Y)
    assert_close(answers(posterior, pair.case.X_new), answers(pair.posterior, pair.case.X_new))
    np.testing.assert_allclose(posterior.weights, [0.2, 0.5, 0.3], rtol=1e-12)


def test_default_weights_are_uniform():
    leaves = [Leaf(Constant(v)) for v in (1.0, 2.0, 3.0, 4.0)]
    np.testing.assert_array_equal(Sum(leaves).weights, [0.25] * 4)


def test_one_leaf_is_an_exact_gp():
    case = one_leaf()
    posterior = case.network.condition(case.X, case.Y)
    gp = ExactGP(case.network.kernel, case.network.noise_variance).condition(case.X, case.Y)
    mean, variance = gp.predict(case.X_new)
    _, covariance = gp.joint(case.X_new, latent=True)
    assert_close(posterior.log_evidence, gp.log_evidence, rtol=1e-12)
    assert_close(posterior.predict_dist(case.X_new).mean, mean, rtol=1e-12)
    assert_close(posterior.predict_dist(case.X_new).var, variance, rtol=1e-12)
    assert_close(posterior.covariance(case.X_new), covariance, rtol=1e-12)


def test_one_leaf_object_in_two_boxes_stands_for_two_independent_gps():
    leaf = Leaf(SquaredExponential(1.0), noise_variance=0.1)
    twin = Leaf(SquaredExponential(1.0), noise_variance=0.1)
    X, y = line()
    one_object = Split(0, [0.5], [leaf, leaf]).condition(X, y)
    two_objects = Split(0, [0.5], [leaf, twin]).condition(X, y)
    assert_close(answers(one_object, NEW_ON_LINE), answers(two_objects, NEW_ON_LINE), rtol=1e-12)
    across = one_object.covariance(np.array([[0.49], [0.51]]))[0, 1]
    assert across == 0.0


# --- samples --------------------------------------------------------------------------------------

SAMPLED = [deep, two_outputs, missing_outputs]


@pytest.mark.parametrize("latent", [False, True])
@pytest.mark.parametrize("make", SAMPLED, ids=lambda make: make.__name__)
def test_joint_samples_have_the_exact_moments(make, latent):
    """100,000 posterior draws; every moment within five of its own standard errors."""
    case = make()
    X_new = case.X_new[2:6]
    n_samples = 100_000
    draws = case.network.condition(case.X, case.Y).sample(X_new, n_samples, random_state=5, latent=latent)
    assert draws.shape[0] == len(X_new)
    assert draws.shape[-1] == n_samples
    draws = draws.reshape(-1, n_samples)

    truth = reference.Enumeration(case.network, case.X, case.Y)
    mean, covariance = truth.joint_moments(X_new, latent=latent)
    mean_error = np.sqrt(np.diag(covariance) / n_samples)
    covariance_error = np.sqrt(truth.joint_product_variances(X_new, latent=latent) / n_samples)
    deviations = draws - mean[:, None]
    sampled_covariance = deviations @ deviations.T / n_samples
    assert np.max(np.abs(draws.mean(axis=1) - mean) / mean_error) < 5
    assert np.max(np.abs(sampled_covariance - covariance) / covariance_error) < 5


def test_prior_samples_have_the_exact_moments():
    case = two_outputs()
    X_new = case.X_new[1:4]
    n_samples = 50_000
    draws = case.network.sample(X_new, n_samples, random_state=6).reshape(-1, n_samples)
    prior = reference.Enumeration(case.network)
    _, covariance = prior.joint_moments(X_new, latent=False)
    error = np.sqrt(prior.joint_product_variances(X_new, latent=False) / n_samples)
    assert np.max(np.abs(draws @ draws.T / n_samples - covariance) / error) < 5


@pytest.mark.parametrize("make", SAMPLED, ids=lambda make: make.__name__)
def test_same_seed_same_bits(make):
    case = make()
    posterior = case.network.condition(case.X, case.Y)
    first = posterior.sample(case.X_new, 7, random_state=8)
    again = posterior.sample(case.X_new, 7, random_state=8)
    other = posterior.sample(case.X_new, 7, random_state=9)
    assert first.tobytes() == again.tobytes()
    assert not np.array_equal(first, other)


def test_sample_shapes():
    one, two = flat_mixture(), two_outputs()
    assert one.network.sample(one.X_new, 3, random_state=0).shape == (8, 3)
    assert two.network.sample(two.X_new, 3, random_state=0).shape == (8, 2, 3)
