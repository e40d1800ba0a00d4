"""Validation, limits and bad input; the exactness of inference is in test_ground_truth.py."""

import copy
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

from spngp._linalg.square import NotPositiveDefiniteError
from spngp.kernels import Constant, Linear, Matern, Parameter, SquaredExponential
from spngp.network import Box, Leaf, Product, Split, Sum
from spngp.network.placement import distinct_nodes


def leaf(output=0, **kwargs):
    return Leaf(SquaredExponential(), output=output, **kwargs)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Sum([]), "Sum needs at least one child"),
        (lambda: Sum([leaf(), 3]), "children of Sum must be nodes, got 3 as child 1"),
        (lambda: Sum(leaf()), "children of Sum must be a list"),
        (lambda: Sum(5), "children of Sum must be a list of nodes, got 5"),
        (lambda: Product(None), "children of Product must be a list of nodes, got None"),
        (lambda: Split(0, [1.0], None), "children of Split must be a list of nodes, got None"),
        (lambda: Sum([leaf(), leaf()], weights=[0.5]), "one value per child"),
        (lambda: Sum([leaf(), leaf()], weights=[-0.5, 1.5]), r"finite and >= 0, got \[-0.5, 1.5\]"),
        (lambda: Sum([leaf(), leaf()], weights=[np.nan, 1.0]), r"finite and >= 0, got \[nan, 1.0\]"),
        (lambda: Sum([leaf(), leaf()], weights=[0.5, 0.6]), r"sum to 1, got \[0.5, 0.6\] with sum 1.1"),
        (lambda: Sum([leaf(), leaf()], weights=["a", "b"]), "weights of Sum must be numeric"),
        (lambda: Sum([leaf(0), leaf(1)]), r"same outputs: child 0 models \[0\], child 1 models \[1\]: Leaf"),
        (lambda: Split(0, [1.0], [leaf(0), leaf(1)]), "children of a Split must model the same outputs"),
        (lambda: Split(0, [1.0], [leaf()]), "1 cuts make 2 parts, got 1 children"),
        (lambda: Split(0, [2.0, 1.0], [leaf()] * 3), r"strictly ascending order, got \[2.0, 1.0\]"),
        (lambda: Split(0, [1.0, 1.0], [leaf()] * 3), "strictly ascending"),
        (lambda: Split(0, [np.nan], [leaf()] * 2), "finite cuts"),
        (lambda: Split(0, [], [leaf()]), "one or more finite cuts"),
        (lambda: Split(-1, [0.0], [leaf()] * 2), "axis of Split must be an integer >= 0, got -1"),
        (lambda: Split(0.5, [0.0], [leaf()] * 2), "axis of Split must be an integer"),
        (lambda: Product([leaf(0), leaf(0)]), "children 0 and 1 both model output 0: Leaf"),
        (lambda: Leaf(SquaredExponential(), output=-1), "output of Leaf must be an integer >= 0"),
        (lambda: Leaf("se"), "kernel must be a spngp kernel, got 'se'"),
        (lambda: Leaf(SquaredExponential(), noise_variance=-1.0), "noise_variance of a leaf must be finite and >= 0"),
    ],
)
def test_construction_names_what_is_wrong(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


@pytest.mark.parametrize(("cuts", "at"), [([0.0], 0), ([5.0], 5), ([7.0], 7), ([-1.0, 2.0], -1), ([2.0, 7.0], 7)])
def test_a_child_that_cuts_outside_its_part_is_refused_at_any_depth(cuts, at):
    parts = [leaf()] * (len(cuts) + 1)
    inner = Sum([Product([Split(1, [3.0], [Split(0, cuts, parts), leaf()])]), leaf()])
    with pytest.raises(ValueError, match=rf"child 1 of Split\(axis=0, at=\[0.0, 5.0\]\) cuts axis 0 at {at}, outside"):
        Split(0, [0.0, 5.0], [leaf(), inner, leaf()])
    Split(1, [2.0], [leaf(), inner])  # another axis: fits


def test_nodes_cannot_be_changed_and_survive_copying():
    network = Sum([Split(0, [0.0], [leaf(), leaf()]), leaf()], weights=[0.25, 0.75])
    with pytest.raises(AttributeError, match="Sum nodes cannot be changed"):
        network.children = ()
    X = np.linspace(-1, 1, 7)
    for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert twin.condition(X, X).log_evidence == network.condition(X, X).log_evidence


POSTERIOR_NETWORK = Sum([Split(0, [0.0], [leaf(), leaf()]), Leaf(Linear(), label="line")], weights=[0.25, 0.75])


def same_posterior(twin, posterior):
    X = np.linspace(-2, 2, 9)
    assert twin.log_evidence == posterior.log_evidence
    np.testing.assert_array_equal(twin.predict_dist(X).quantile(0.3), posterior.predict_dist(X).quantile(0.3))
    again = twin.condition(X, np.cos(X)), posterior.condition(X, np.cos(X))
    assert again[0].log_evidence == again[1].log_evidence


def test_a_posterior_survives_copying():
    X = np.linspace(-1, 1, 30)
    posterior = POSTERIOR_NETWORK.condition(X, np.sin(X), margin=0.3)
    reference = POSTERIOR_NETWORK.condition(X, np.sin(X), margin=0.3)
    twins = copy.deepcopy(posterior), pickle.loads(pickle.dumps(posterior))
    for placed in posterior.responsibilities():  # nothing of the original may be looked at
        placed.leaf.gp._L.array.fill(np.nan)
    for twin in twins:
        same_posterior(twin, reference)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda node: pickle.loads(pickle.dumps(node))])
def test_a_deep_network_survives_copying_and_shared_children_stay_shared(clone):
    shared = Sum([leaf(), Leaf(Linear())], weights=[0.3, 0.7])
    network = shared
    for cut in range(2000, 0, -1):
        network = Split(0, [float(cut)], [shared, network])
    X = np.array([[0.5], [0.7], [1000.5], [9999.0]])
    posterior = network.condition(X, [1.0, 2.0, 3.0, 4.0])
    twin = clone(network)
    nodes = distinct_nodes(twin)
    assert len(nodes) == len(distinct_nodes(network)) == 2003
    assert {id(node.children[0]) for node in nodes if isinstance(node, Split)} == {id(nodes[2])}
    assert not {id(node) for node in nodes} & {id(node) for node in distinct_nodes(network)}
    assert twin.condition(X, [1.0, 2.0, 3.0, 4.0]).log_evidence == posterior.log_evidence
    again, expected = clone(posterior).predict_dist(X), posterior.predict_dist(X)
    for name in ("log_weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(again, name), getattr(expected, name))


def test_a_copy_shares_the_gps_that_the_original_shares():
    one = leaf()
    twin = copy.deepcopy(Split(0, [0.0], [one, Leaf.of(one.gp)]))
    assert twin.children[0] is not twin.children[1]
    assert twin.children[0].gp is twin.children[1].gp is not one.gp


def test_a_posterior_can_be_sent_to_another_process():
    X = np.linspace(-1, 1, 30)
    posterior = POSTERIOR_NETWORK.condition(X, np.sin(X), margin=0.3)
    code = """
import pickle, sys
import numpy as np
posterior = pickle.load(sys.stdin.buffer)
X = np.linspace(-2, 2, 9)
pickle.dump((posterior.predict_dist(X).mean, posterior.condition(X, np.cos(X))), sys.stdout.buffer)
"""
    run = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(posterior), capture_output=True, check=True)
    mean, again = pickle.loads(run.stdout)
    X = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(mean, posterior.predict_dist(X).mean, rtol=1e-12)
    here = posterior.condition(X, np.cos(X))
    assert again.log_evidence == pytest.approx(here.log_evidence, rel=1e-12)
    same_posterior(again.condition(X, X), pickle.loads(pickle.dumps(again)).condition(X, X))


def test_weights_cannot_be_written_to():
    X = np.linspace(-1, 1, 5)
    prior = Sum([leaf(), Leaf(Linear())])
    for network in (prior, prior.condition(X, X), pickle.loads(pickle.dumps(prior)), copy.deepcopy(prior)):
        with pytest.raises(ValueError, match="read-only"):
            network.log_weights[0] = 0.0


def test_induced_trees_come_one_at_a_time_however_many():
    mixture = Sum([leaf(), Leaf(Linear())])
    many = Split(0, np.arange(1999.0), [mixture] * 2000)  # 2^2000 trees
    network = Split(1, [0.0], [many, mixture])
    three = list(itertools.islice(network.induced_trees(), 3))
    np.testing.assert_allclose([log_weight for log_weight, _ in three], 2001 * np.log(0.5))
    smooth, line = mixture.children
    # the last child's trees run fastest
    assert [(tree.children[0].children[-1], tree.children[1]) for _, tree in three] == [
        (smooth, smooth),
        (smooth, line),
        (line, smooth),
    ]


def test_a_sum_built_over_posteriors_counts_later_rows_only():
    X = np.linspace(-1, 1, 5)
    parts = [leaf().condition(X, X), Leaf(Linear()).condition(X, X)]
    mixture = Sum(parts)
    assert mixture.log_evidence == 0.0
    gains = [part.condition(X + 2, X).log_evidence - part.log_evidence for part in parts]
    assert mixture.condition(X + 2, X).log_evidence == pytest.approx(np.logaddexp(*gains) + np.log(0.5))
    assert Split(0, [0.0], parts).log_evidence == sum(part.log_evidence for part in parts)


def test_repr_is_short_for_a_large_network():
    network = leaf()
    for depth in range(16):
        network = Sum([network] * 3) if depth % 2 else Split(depth, [0.0], [network, network])
    assert len(repr(network)) < 600
    assert network.n_induced_trees == 3**255  # a(16) with a → a² (split) and a → 3a (sum) in turn


def test_depth_is_not_limited_by_recursion():
    network = leaf()
    for cut in range(3000, 0, -1):
        network = Split(0, [float(cut)], [leaf(), network])
    X = np.array([[0.5], [1500.5], [9999.0]])
    posterior = network.condition(X, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(posterior.predict_dist(X).mean, np.array([1.0, 2.0, 3.0]) / 1.1)
    assert posterior.n_induced_trees == 1
    assert posterior.sample(X, 2, 0).shape == (3, 2)


def test_a_row_on_a_cut_belongs_to_the_lower_side_and_far_rows_are_routed():
    network = Split(0, [0.0], [Leaf(Constant(1e4), 1e-6), Leaf(Constant(1e4), 1e-6)])
    posterior = network.condition([[-1.0], [1.0]], [-5.0, 5.0])
    np.testing.assert_allclose(
        posterior.predict_dist([[0.0], [np.nextafter(0.0, 1.0)], [-1e300], [1e300]]).mean, [-5, 5, -5, 5], rtol=1e-6
    )


@pytest.mark.long
def test_two_hundred_thousand_rows_have_the_evidence_of_the_closed_form():
    """Constant leaves: the covariance v·11ᵀ + s·I of m rows has its determinant and inverse on paper."""
    n, v, s = 200_000, 2.0, 0.5
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 4000, n), 30.0 * rng.standard_normal(n)
    tilings = [np.arange(offset, 4000, 1.0) for offset in (0.5, 1.0)]

    def log_evidence(cuts):
        part = np.searchsorted(cuts, X)
        m, total = np.bincount(part), np.bincount(part, y)
        log_determinant = ((m - 1) * np.log(s) + np.log(s + m * v))[m > 0].sum()
        quadratic = (y @ y - (v / (s + m * v)) @ total**2) / s
        return -0.5 * (quadratic + log_determinant + n * np.log(2 * np.pi))

    one = Leaf(Constant(v), noise_variance=s)
    posterior = Sum([Split(0, cuts, [one] * (cuts.size + 1)) for cuts in tilings]).condition(X, y)
    expected = np.array([log_evidence(cuts) for cuts in tilings])
    np.testing.assert_allclose([child.log_evidence for child in posterior.children], expected, rtol=1e-12)
    joint = expected + np.log(0.5)
    np.testing.assert_allclose(posterior.log_evidence, np.logaddexp(*joint), rtol=1e-12)
    assert posterior.log_evidence < -1e8  # far below the log of the smallest number
    np.testing.assert_allclose(posterior.weights, np.exp(joint - np.logaddexp(*joint)), atol=1e-6)


def test_weights_of_evidences_far_below_the_smallest_number_follow_from_their_difference():
    cells = [Split(0, [0.0], [leaf(), leaf()]), leaf()]
    posterior = Sum(cells).with_children(cells, np.array([-1e6, -1e6 - 3.0]))
    np.testing.assert_allclose(posterior.weights, 1 / (1 + np.exp([-3.0, 3.0])), rtol=1e-8)
    assert posterior.log_evidence == pytest.approx(-1e6 + np.log(0.5 * (1 + np.exp(-3.0))), abs=1e-8)


def test_a_sum_over_many_leaves_and_many_rows_stays_in_the_log_domain():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2000, 20_000)
    y = 30.0 * rng.standard_normal(20_000)

    def tiling(offset):
        cuts = np.arange(offset, 2000, 20.0)
        return Split(0, cuts, [Leaf(Matern(0.5), noise_variance=0.5) for _ in range(cuts.size + 1)])

    posterior = Sum([tiling(10.0), tiling(20.0)]).condition(X, y, n_jobs=2)
    assert posterior.log_evidence < -1e6
    assert posterior.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(posterior.predict_dist(X[:10]).logpdf(y[:10])).all()


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    network = Sum([Split(0, [-0.5, 0.5], [leaf()] * 3), Split(1, [0.0], [leaf()] * 2)])
    one, two = (network.condition(X, y, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.predict_dist(X).var, two.predict_dist(X).var)


def test_overlap_joins_borders_but_leaves_the_evidence_alone():
    X = np.linspace(-3, 3, 61)
    y = np.sin(X)
    network = Sum([Split(0, [0.0], [leaf(noise_variance=1e-4)] * 2), leaf(noise_variance=1e-4)])
    without, with_ = network.condition(X, y), network.condition(X, y, margin=1.0)
    assert with_.log_evidence == pytest.approx(without.log_evidence, rel=1e-12)
    np.testing.assert_allclose(with_.weights, without.weights, rtol=1e-9)

    def jump(posterior):
        split = posterior.children[0]
        left, right = split.predict_dist([[0.0], [1e-9]]).var
        return abs(left - right) + abs(np.diff(split.predict_dist([[0.0], [1e-9]]).mean)[0])

    assert jump(with_) < 0.1 * jump(without)
    per_axis = network.condition(X, y, margin=[1.0])
    np.testing.assert_array_equal(per_axis.predict_dist(X).mean, with_.predict_dist(X).mean)


def test_box_sides_meet_without_gap_or_double_row():
    X = np.linspace(-2, 2, 41)[:, np.newaxis]
    parts = Box().cut(0, [-1.0, 0.5])
    assert (sum(part.contains(X).astype(int) for part in parts) == 1).all()
    assert repr(parts[1]) == "Box(-1 < x0 <= 0.5)"
    assert repr(Box()) == "Box(everywhere)"


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[np.nan]], [1.0], "X must be finite, got nan in row 0, column 0"),
        ([[1.0], [np.inf]], [1.0, 2.0], "X must be finite, got inf in row 1, column 0"),
        ([["a"]], [1.0], "X must be numeric"),
        ([["1.5"]], [1.0], r"X must be numeric, got \[\['1.5'\]\]"),
        (np.array([[1.5, "2"]], dtype=object), [1.0], "X must be numeric"),
        (np.array([[b"1"]]), [1.0], "X must be numeric"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), [1.0], "X must be numeric"),
        (np.array([[3]], dtype="m8[s]"), [1.0], "X must be numeric"),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], r"X must have rows of one length, got \[\[1.0\], \[1.0, 2.0\]\]"),
        ([[10**400]], [1.0], "X must fit into double precision, got"),
        (np.ma.array([[1.0], [2.0]], mask=[[True], [False]]), [1.0, 2.0], "X must not have masked values"),
        ([[1 + 2j]], [1.0], "X must be real"),
        (np.zeros((2, 2, 2)), [1.0, 2.0], r"X must have shape \(n, d\), got \(2, 2, 2\)"),
        (np.zeros((2, 0)), [1.0, 2.0], "X must have at least one column"),
        ([[1.0], [2.0]], [1.0], r"Y must have as many rows as X \(2\), got 1"),
        ([[1.0]], [np.inf], r"Y must be finite or NaN \(missing\), got inf in row 0, column 0"),
        ([[1.0]], ["b"], "Y must be numeric"),
        ([[1.0]], [[1.0, 2.0]], r"Y has columns \[0, 1\], but the network models outputs \[0\]"),
        (np.zeros((0, 1)), np.zeros(0), "X must have at least one row, got 0"),
    ],
)
def test_bad_data_is_named(X, Y, message):
    with pytest.raises(ValueError, match=message):
        leaf().condition(X, Y)


@pytest.mark.parametrize(
    "form",
    [
        np.matrix,
        np.ma.array,
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(int),
        np.asfortranarray,
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_rows_of_any_numeric_kind_are_taken(form):
    X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, -1.0]])
    expected = leaf().condition(X, X[:, 0]).predict_dist(X)
    found = leaf().condition(form(X), form(X)[:, 0] if hasattr(form(X), "shape") else X[:, 0].tolist())
    np.testing.assert_array_equal(found.predict_dist(form(X)).mean, expected.mean)
    assert type(found.predict_dist(form(X)).mean) is np.ndarray


def test_n_jobs_may_be_any_kind_of_integer():
    X = np.linspace(-1, 1, 5)
    for n_jobs in (np.int64(2), np.int32(-1)):
        assert leaf().condition(X, X, n_jobs=n_jobs).gp.n_own == 5
    for n_jobs in (True, 1.0, "2"):
        with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
            leaf().condition(X, X, n_jobs=n_jobs)


def test_overlap_leaves_the_evidence_alone_even_where_jitter_is_needed():
    X = np.repeat(np.linspace(-2, 2, 40), 2)
    network = Split(0, [0.0], [leaf(noise_variance=0.0)] * 2)
    without, with_ = network.condition(X, np.sin(X)), network.condition(X, np.sin(X), margin=1.0)
    assert with_.log_evidence == pytest.approx(without.log_evidence, rel=1e-9)


def test_more_bad_input_ends_in_one_clear_error():
    with pytest.raises(ValueError, match="X must have at least 3 columns, as a Split cuts axis 2; got 1"):
        Split(2, [0.0], [leaf(), leaf()]).condition([[0.0]], [1.0])
    with pytest.raises(ValueError, match=r"Y has columns \[0\], but the network models outputs \[1\]"):
        leaf(1).condition([[0.0]], [1.0])
    with pytest.raises(ValueError, match=r"margin must be >= 0, got -1.0"):
        leaf().condition([[0.0]], [1.0], margin=-1.0)
    with pytest.raises(ValueError, match="margin must be a number or one per input"):
        leaf().condition([[0.0]], [1.0], margin=[1.0, 2.0])
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0, got 0"):
        leaf().condition([[0.0]], [1.0], n_jobs=0)
    with pytest.raises(ValueError, match="length_scale of SquaredExponential has 2 values, so X must have that many"):
        Leaf(SquaredExponential([1.0, 2.0])).condition([[0.0]], [1.0])
    posterior = leaf().condition([[0.0, 1.0]], [1.0])
    with pytest.raises(ValueError, match="X must have 2 columns as in training, got 1"):
        posterior.predict_dist([[0.0]])


def test_an_indefinite_leaf_says_which_how_large_and_what_to_change():
    rng = np.random.default_rng(0)
    X = np.append(rng.standard_normal(30), rng.standard_normal(30) + 10)
    network = Split(0, [5.0], [leaf(), Leaf(_Indefinite(), noise_variance=0.0)])
    message = r"leaf on Box\(x0 > 5\), output 0: a 30 x 30 covariance .* raise noise_variance \(now 0\)"
    with pytest.raises(NotPositiveDefiniteError, match=message):
        network.condition(X, X)


class _Indefinite(Linear):
    """Not a covariance: for the error only."""

    def fill(self, X, square):
        super().fill(X, square)
        square.array[np.tril_indices(square.n, -1)] += 1e6


@pytest.mark.parametrize("exponent", [-150, 150])
def test_targets_of_extreme_size_are_handled_in_matching_units(exponent):
    scale = 10.0**exponent
    X = np.linspace(-1, 1, 9)
    y = np.sin(3 * X)
    small = Sum([Split(0, [0.0], [leaf(), leaf()]), leaf()]).condition(X, y)
    kernel = SquaredExponential(variance=scale**2)
    big_leaf = Leaf(kernel, noise_variance=0.1 * scale**2)
    big = Sum([Split(0, [0.0], [big_leaf, big_leaf]), big_leaf]).condition(X, y * scale)
    np.testing.assert_allclose(big.weights, small.weights, rtol=1e-9)
    np.testing.assert_allclose(big.predict_dist(X).mean, small.predict_dist(X).mean * scale, rtol=1e-9)
    np.testing.assert_allclose(
        big.predict_dist(X).quantile(0.9), small.predict_dist(X).quantile(0.9) * scale, rtol=1e-8
    )


def test_targets_beyond_what_floating_point_can_square_end_in_a_clear_error():
    with pytest.raises(ValueError, match=r"out of range: y reaches 1e\+200 .* rescale y"):
        leaf().condition([[0.0]], [1e200])


def test_one_row_duplicate_rows_and_constant_columns():
    X = np.column_stack([np.zeros(6), np.repeat([0.0, 1.0], 3)])
    posterior = Sum([Split(1, [0.5], [leaf(), leaf()]), leaf()]).condition(X, np.arange(6.0))
    assert np.isfinite(posterior.predict_dist(X).logpdf(np.arange(6.0))).all()
    single = leaf().condition([[0.0]], [2.0])
    assert single.predict_dist([[0.0]]).mean[0] == pytest.approx(2.0 / 1.1)


def test_all_outputs_missing_leaves_the_prior():
    posterior = Sum([leaf(), Leaf(Linear())]).condition([[1.0], [2.0]], [np.nan, np.nan])
    np.testing.assert_allclose(posterior.weights, [0.5, 0.5])
    assert posterior.log_evidence == 0.0


def test_a_zero_weight_stays_zero():
    network = Sum([leaf(), Leaf(Linear())], weights=[1.0, 0.0])
    posterior = network.condition([[1.0], [2.0]], [1.0, 2.0])
    np.testing.assert_array_equal(posterior.weights, [1.0, 0.0])
    assert posterior.predict_dist([[1.0]]).means.shape == (1, 1)


def test_fixed_noise_is_not_a_free_parameter():
    assert leaf().gp.parameter_names == ("length_scale", "variance", "noise_variance")
    fixed = leaf(noise_variance=Parameter(0.1, fixed=True))
    assert fixed.gp.parameter_names == ("length_scale", "variance")


def test_one_gp_on_the_same_rows_in_two_places_is_computed_once():
    shared = leaf()
    X = np.array([[0.0, 0.0], [0.1, 0.2], [5.0, 5.0], [5.2, 5.1]])  # either cut separates the same rows
    network = Sum([Split(0, [2.0], [shared, shared]), Split(1, [2.0], [shared, shared])])
    first, second = network.condition(X, np.arange(4.0)).children
    assert first.children[0].gp is second.children[0].gp
    assert first.children[0].gp is not first.children[1].gp
