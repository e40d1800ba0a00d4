"""Kernels: one list drives every invariant, against the naive formulas of `reference`."""

import contextlib
import copy
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as theirs

import reference
import spngp.kernels
from spngp.kernels import (
    Constant,
    KernelProduct,
    KernelSum,
    Linear,
    Matern,
    Parameter,
    Periodic,
    PiecewiseConstant,
    Polynomial,
    RandomSlopes,
    RationalQuadratic,
    SquaredExponential,
    Step,
    from_sklearn,
)
from spngp.kernels.located import shifted

pytestmark = pytest.mark.usefixtures("formulas")

A = SquaredExponential(0.7, 1.3)
B = Linear(0.6, bias_variance=0.4)
C = Matern(nu=1.5, length_scale=[0.5, 1.5], variance=0.8)
D = Periodic(period=1.7, length_scale=0.9)

# Every kernel takes two inputs; between them: isotropic and ARD, free, fixed and partly fixed parameters.
KERNELS = {
    "constant": Constant(1.7),
    "linear": Linear(0.8),
    "linear-bias": Linear(0.8, bias_variance=0.3),
    "linear-ard": Linear([0.5, 1.5], bias_variance=0.3),
    "polynomial-1": Polynomial(degree=1, offset=0.5, variance=0.7),
    "polynomial-2": Polynomial(degree=2, offset=1.0, variance=1.2),
    "polynomial-3": Polynomial(degree=3, offset=0.25, variance=0.4),
    "periodic": Periodic(period=1.5, length_scale=0.8, variance=1.1),
    "periodic-ard": Periodic(period=[1.5, 2.5], length_scale=[0.8, 1.2], variance=1.1),
    "se": SquaredExponential(0.6, 1.4),
    "se-ard": SquaredExponential([0.4, 2.5], 1.4),
    "matern-0.5": Matern(nu=0.5, length_scale=0.9, variance=1.3),
    "matern-0.5-ard": Matern(nu=0.5, length_scale=[0.9, 0.3], variance=1.3),
    "matern-1.5": Matern(nu=1.5, length_scale=0.9, variance=1.3),
    "matern-1.5-ard": Matern(nu=1.5, length_scale=[0.9, 0.3], variance=1.3),
    "matern-2.5": Matern(nu=2.5, length_scale=0.9, variance=1.3),
    "matern-2.5-ard": Matern(nu=2.5, length_scale=[0.9, 0.3], variance=1.3),
    "rq": RationalQuadratic(alpha=0.7, length_scale=0.9, variance=1.3),
    "rq-ard": RationalQuadratic(alpha=1.8, length_scale=[0.9, 0.3], variance=1.3),
    "step": Step(axis=1, at=0.2, variance=1.6),
    "piecewise": PiecewiseConstant(axis=1, at=[-0.6, 0.2], variance=1.6),
    "piecewise with gaps": PiecewiseConstant(axis=1, at=[-0.6, 0.5], variance=1.6, gaps=[0.0, 1.9]),
    "slopes": RandomSlopes(0.7, 1.6),
    "slopes-ard": RandomSlopes([0.7, 2.5], 1.6),
    "slopes-and-curves": RandomSlopes(Parameter([0.7, 2.5], fixed=[True, False])) + A,
    "all-fixed": SquaredExponential(Parameter(0.6, fixed=True), Parameter(1.4, fixed=True)),
    "fixed-scale": SquaredExponential(Parameter(0.6, fixed=True), 1.4),
    "fixed-variance": Matern(2.5, [0.4, 2.5], Parameter(1.4, fixed=True)),
    "partly-fixed": SquaredExponential(Parameter([0.4, 2.5], fixed=[True, False]), 1.4),
    "fixed-alpha": RationalQuadratic(Parameter(0.7, fixed=True), 0.9),
    "fixed-period": Periodic(Parameter([1.5, 2.5], fixed=[False, True]), 0.8),
    "fixed-offset": Polynomial(2, Parameter(0.5, fixed=True), 0.9),
    "fixed-bias": Linear([0.5, 1.5], Parameter(0.3, fixed=True)),
    "bounded": SquaredExponential(Parameter(0.6, bounds=(0.5, 2.0)), Parameter(1.4, bounds=(0.1, 9.0))),
    "sum": A + B,
    "product": A * B,
    "sum-of-three": A + C + B,
    "product-of-three": A * C * D,
    "product-of-sums": (A + B) * (C + D),
    "sum-of-products": A * B + C * (A + B),
    "step-and-curves": Step(axis=0, at=-0.1) + A + Step(axis=1, at=0.4, variance=Parameter(0.5, fixed=True)) * C,
    "pieces-and-curves": PiecewiseConstant(0, [-0.1], Parameter(0.5, fixed=True)) * C
    + PiecewiseConstant(1, [0.3, 0.9]),
    "fixed-inside": Constant(Parameter(0.5, fixed=True)) * A + B,
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernel(request):
    return request.param


def inputs(n=9, seed=0):
    """Rows in [−1.5, 1.5]², three of them equal."""
    X = np.random.default_rng(seed).uniform(-1.5, 1.5, size=(n, 2))
    X[4:7:2] = X[1]
    return X


# --- values ---------------------------------------------------------------------------------------


def test_gram_equals_the_formula(kernel):
    X = inputs()
    np.testing.assert_allclose(kernel.gram(X), reference.gram(kernel, X), rtol=1e-12, atol=1e-14)


def test_cross_gram_equals_the_formula(kernel):
    X1, X2 = inputs(), inputs(5, seed=1)
    X2[0] = X1[1]
    np.testing.assert_allclose(kernel.gram(X1, X2), reference.gram(kernel, X1, X2), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.gram(X2, X1), kernel.gram(X1, X2).T, rtol=1e-12, atol=1e-14)


def test_diagonal(kernel):
    X = inputs()
    diagonal = kernel.diagonal(X)
    assert diagonal.shape == (len(X),)
    np.testing.assert_allclose(diagonal, np.diag(reference.gram(kernel, X)), rtol=1e-12)


def test_symmetry(kernel):
    K = kernel.gram(inputs())
    np.testing.assert_allclose(K, K.T, rtol=1e-14, atol=1e-15)


def test_positive_semi_definite(kernel):
    eigenvalues = np.linalg.eigvalsh(kernel.gram(inputs(12)))
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


def test_packed_gram(kernel):
    X = inputs()
    expected = reference.gram(kernel, X)
    packed, _ = kernel.gram_with_pullback(X)
    np.testing.assert_allclose(packed.dense(), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(packed.diagonal, np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(packed.pairs, expected[np.triu_indices(len(X), 1)], rtol=1e-12, atol=1e-14)


def test_one_row(kernel):
    X = inputs()[:1]
    packed, pullback = kernel.gram_with_pullback(X)
    np.testing.assert_allclose(kernel.gram(X), reference.gram(kernel, X), rtol=1e-12)
    assert packed.pairs.shape == (0,)
    assert pullback(np.empty(0), np.ones(1)).shape == kernel.theta.shape


def test_no_rows(kernel):
    X = inputs()
    assert kernel.gram(X[:0]).shape == (0, 0)
    assert kernel.gram(X[:0], X).shape == (0, len(X))
    assert kernel.diagonal(X[:0]).shape == (0,)


def test_inputs_are_left_untouched(kernel):
    X1, X2 = inputs(), inputs(4, seed=1)
    before = X1.copy(), X2.copy()
    X1.flags.writeable = X2.flags.writeable = False
    kernel.gram(X1)
    kernel.gram(X1, X2)
    kernel.diagonal(X1)
    _, pullback = kernel.gram_with_pullback(X1)
    pullback(np.ones(36), np.ones(9))
    np.testing.assert_array_equal(X1, before[0])
    np.testing.assert_array_equal(X2, before[1])


def test_the_memory_layout_of_the_inputs_does_not_matter(kernel):
    X = inputs()
    wide = np.zeros((len(X), 4))
    wide[:, ::2] = X
    np.testing.assert_allclose(kernel.gram(np.asfortranarray(X)), kernel.gram(X), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(kernel.gram(wide[:, ::2]), kernel.gram(X), rtol=1e-13, atol=1e-15)


# Stationary kernels see differences only: nothing may drown in |x|², (1e6)² · 1e-16 = 1e-4. Steps move with the rows.
OFFSET = np.full(2, 2.0**20)
WITH_ORIGIN = ("Linear", "Polynomial", "RandomSlopes")
STATIONARY = [name for name, k in KERNELS.items() if not any(kind in repr(k) for kind in WITH_ORIGIN)]


@pytest.mark.parametrize("name", STATIONARY)
def test_values_survive_a_large_common_offset(name):
    X = np.round(inputs() * 1024) / 1024  # exact in binary, also after the shift
    found = shifted(KERNELS[name], OFFSET).gram(X + OFFSET)
    np.testing.assert_allclose(found, reference.gram(KERNELS[name], X), rtol=1e-7)


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("distinct", [True, False], ids=["distinct rows", "duplicate rows"])
def test_pullback_equals_central_differences(kernel, distinct):
    X = inputs()
    if distinct:
        X += np.random.default_rng(2).normal(scale=0.1, size=X.shape)
    n = len(X)
    rng = np.random.default_rng(3)
    g_pairs, g_diagonal = rng.standard_normal(n * (n - 1) // 2), rng.standard_normal(n)

    def functional(theta):
        K = reference.gram(kernel.with_theta(theta), X)
        return g_pairs @ K[np.triu_indices(n, 1)] + g_diagonal @ np.diag(K)

    _, pullback = kernel.gram_with_pullback(X)
    gradient = pullback(g_pairs.copy(), g_diagonal.copy())
    assert gradient.shape == kernel.theta.shape
    np.testing.assert_allclose(gradient, reference.central_differences(functional, kernel.theta), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", STATIONARY)
def test_the_pullback_survives_a_large_common_offset(name):
    kernel = KERNELS[name]
    X = np.round(inputs() * 1024) / 1024  # exact in binary, also after the shift
    rng = np.random.default_rng(3)
    g_pairs, g_diagonal = rng.standard_normal(36), rng.standard_normal(9)
    _, pullback = kernel.gram_with_pullback(X)
    _, shifted_pullback = shifted(kernel, OFFSET).gram_with_pullback(X + OFFSET)
    expected = pullback(g_pairs.copy(), g_diagonal.copy())
    found = shifted_pullback(g_pairs.copy(), g_diagonal.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_pullback_takes_any_array_and_refuses_a_wrong_shape(kernel):
    X = inputs()[:9]
    rng = np.random.default_rng(3)
    g_pairs, g_diagonal = rng.integers(-3, 4, 36).astype(float), rng.integers(-3, 4, 9).astype(float)
    _, pullback = kernel.gram_with_pullback(X)
    expected = pullback(g_pairs, g_diagonal)
    for form in (lambda g: g.astype(np.float32), lambda g: np.repeat(g, 2)[::2], lambda g: g.astype(int).tolist()):
        np.testing.assert_array_equal(pullback(form(g_pairs), form(g_diagonal)), expected)
    with pytest.raises(ValueError, match=r"g_pairs must have shape \(36,\).*got \(35,\)"):
        pullback(g_pairs[1:], g_diagonal)
    with pytest.raises(ValueError, match=r"g_diagonal must have shape \(9,\).*got \(9, 9\)"):
        pullback(g_pairs, np.diag(g_diagonal))


@pytest.mark.parametrize("alpha", [1.0, 1e4, 1e8, 1e12])
def test_a_large_alpha_costs_no_digits_far_from_the_centre(alpha):
    """Features divided by √alpha look small; the distances between them are multiplied by alpha again."""
    X = np.array([0.0, 1.0, 1e5, 1e5 + 0.5, 1e5 + 2.0, -1e5, -1e5 - 1.5, 0.5])[:, None]
    r2 = np.subtract.outer(X[:, 0], X[:, 0]) ** 2
    expected = np.exp(-alpha * np.log1p(r2 / (2 * alpha)))
    kernel = RationalQuadratic(alpha, 1.0)
    np.testing.assert_allclose(kernel.packed(X).dense(), expected, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(kernel.gram(X), expected, rtol=1e-10, atol=1e-300)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "free"),
    [
        ("constant", {"variance"}),
        ("linear", {"variance"}),
        ("linear-ard", {"variance[0]", "variance[1]", "bias_variance"}),
        ("polynomial-2", {"offset", "variance"}),
        ("periodic", {"period", "length_scale", "variance"}),
        ("se", {"length_scale", "variance"}),
        ("se-ard", {"length_scale[0]", "length_scale[1]", "variance"}),
        ("matern-1.5", {"length_scale", "variance"}),
        ("rq", {"alpha", "length_scale", "variance"}),
        ("all-fixed", set()),
        ("fixed-scale", {"variance"}),
        ("partly-fixed", {"length_scale[1]", "variance"}),
        ("fixed-period", {"period[0]", "length_scale", "variance"}),
        ("sum", {"0.length_scale", "0.variance", "1.variance", "1.bias_variance"}),
    ],
)
def test_names_of_the_free_parameters(name, free):
    names = KERNELS[name].parameter_names
    assert len(names) == len(free)
    assert set(names) == free


def test_theta_names_and_bounds_agree(kernel):
    p = len(kernel.theta)
    assert kernel.theta.shape == (p,)
    assert len(kernel.parameter_names) == len(set(kernel.parameter_names)) == p
    assert kernel.bounds.shape == (p, 2)
    assert np.all(np.isfinite(kernel.theta))
    assert np.all(kernel.bounds[:, 0] <= kernel.theta)
    assert np.all(kernel.theta <= kernel.bounds[:, 1])


def natural_value(kernel, name):
    """The value behind a name such as "1.length_scale[0]"."""
    *path, attribute = name.split(".")
    for part in path:
        kernel = kernel.parts[int(part)]
    attribute, _, index = attribute.partition("[")
    value = getattr(kernel, attribute)
    return value[int(index.rstrip("]"))] if index else value


def test_theta_holds_the_logarithms_of_the_named_values(kernel):
    expected = [math.log(natural_value(kernel, name)) for name in kernel.parameter_names]
    np.testing.assert_allclose(kernel.theta, expected, rtol=1e-14, atol=1e-15)


def test_with_theta_sets_every_named_value_and_nothing_else(kernel):
    theta = kernel.theta + np.linspace(-0.3, 0.4, len(kernel.theta))
    before = kernel.theta.copy()
    moved = kernel.with_theta(theta)
    assert type(moved) is type(kernel)
    np.testing.assert_allclose(moved.theta, theta, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(kernel.theta, before)
    assert moved.parameter_names == kernel.parameter_names
    np.testing.assert_array_equal(moved.bounds, kernel.bounds)
    back = moved.with_theta(before)
    np.testing.assert_allclose(back.gram(inputs()), kernel.gram(inputs()), rtol=1e-12, atol=1e-14)


def test_fixed_values_do_not_move():
    kernel = KERNELS["partly-fixed"].with_theta(np.log([3.0, 5.0]))
    names = KERNELS["partly-fixed"].parameter_names
    assert kernel.length_scale[0] == 0.4
    assert {n: natural_value(kernel, n) for n in names} == pytest.approx(dict(zip(names, [3.0, 5.0], strict=True)))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_with_theta_refuses_a_wrong_length(size):
    with pytest.raises(ValueError, match="theta"):
        SquaredExponential().with_theta(np.zeros(size))


@pytest.mark.parametrize("bad", [800.0, -800.0, math.inf, -math.inf, math.nan])
def test_with_theta_refuses_what_is_no_logarithm_of_a_positive_number(bad):
    with pytest.raises(ValueError, match=f"theta must hold logs of positive finite numbers, got {bad:g} for variance"):
        SquaredExponential().with_theta([0.0, bad])
    with pytest.raises(ValueError, match=r"theta must .* for 1\.variance"):
        (A + Constant()).with_theta([0.0, 0.0, bad])


def test_extreme_values_and_their_default_bounds_stay_within_the_numbers():
    for value in (1e-320, 1e-300, 1e300, 1.7e308):
        kernel = Constant(value)
        for theta in (kernel.theta, *kernel.bounds.T):
            assert 0 < kernel.with_theta(theta).variance < math.inf


def test_bounds_may_be_given_for_each_value():
    kernel = SquaredExponential(Parameter([1.0, 2.0], bounds=[(0.1, 50.0), (2.0, 4.0)]), 3.0)
    np.testing.assert_allclose(kernel.bounds[:2], np.log([[0.1, 50.0], [2.0, 4.0]]))
    with pytest.raises(ValueError, match="length_scale of SquaredExponential must lie within its bounds"):
        SquaredExponential(Parameter([1.0, 5.0], bounds=[(0.1, 50.0), (2.0, 4.0)]))
    with pytest.raises(ValueError, match=r"bounds of length_scale .* one such pair per value"):
        SquaredExponential(Parameter([1.0, 5.0], bounds=[(0.1, 50.0)] * 3))


def test_bounds_are_the_logarithms_of_the_given_ones():
    kernel = SquaredExponential(Parameter([1.0, 2.0], bounds=(0.1, 50.0)), Parameter(3.0, bounds=(2.0, 4.0)))
    by_name = dict(zip(kernel.parameter_names, kernel.bounds.tolist(), strict=True))
    assert by_name["length_scale[0]"] == pytest.approx([math.log(0.1), math.log(50.0)])
    assert by_name["length_scale[1]"] == pytest.approx([math.log(0.1), math.log(50.0)])
    assert by_name["variance"] == pytest.approx([math.log(2.0), math.log(4.0)])


def test_attributes_are_natural_values():
    assert isinstance(SquaredExponential(0.5, 2.0).length_scale, float)
    assert isinstance(SquaredExponential(0.5, 2.0).variance, float)
    np.testing.assert_array_equal(SquaredExponential([0.5, 0.25]).length_scale, [0.5, 0.25])
    assert Matern(nu=2.5).nu == 2.5
    assert Polynomial(degree=3, offset=0.5).degree == 3
    assert Polynomial(degree=3, offset=0.5).offset == 0.5
    assert RationalQuadratic(alpha=0.7).alpha == 0.7
    assert Periodic(period=0.3).period == 0.3
    assert Linear(bias_variance=0.2).bias_variance == 0.2
    assert SquaredExponential(Parameter(0.5, fixed=True)).length_scale == 0.5


def test_an_attribute_array_cannot_change_the_kernel():
    scales = np.array([0.5, 0.25])
    kernel = SquaredExponential(scales)
    before = kernel.gram(inputs())
    scales[:] = 99.0
    np.testing.assert_array_equal(kernel.gram(inputs()), before)
    with contextlib.suppress(ValueError):  # a read-only array is as good as a copy
        kernel.length_scale[0] = 99.0
    np.testing.assert_array_equal(kernel.gram(inputs()), before)


def test_combinations_flatten_their_own_kind_only():
    assert [type(part) for part in (A + B + C).parts] == [SquaredExponential, Linear, Matern]
    assert [type(part) for part in (A * B * C).parts] == [SquaredExponential, Linear, Matern]
    assert isinstance(A + B, KernelSum)
    assert isinstance(A * B, KernelProduct)
    assert [type(part) for part in ((A + B) * (C + D)).parts] == [KernelSum, KernelSum]
    assert [type(part) for part in (A * B + C * (A + B)).parts] == [KernelProduct, KernelProduct]
    assert len((A + (B + (C + D))).parts) == 4
    assert len((A * (B * (C * D))).parts) == 4


@pytest.mark.parametrize("parts", [None, 5, A])
def test_parts_must_be_a_list(parts):
    for kind in (KernelSum, KernelProduct):
        with pytest.raises(TypeError, match=f"parts of {kind.__name__} must be a list of kernels, got"):
            kind(parts)


@pytest.mark.parametrize("other", [None, "text", [1.0]])
def test_combination_with_something_else(other):
    with pytest.raises(TypeError):
        A + other
    with pytest.raises(TypeError):
        A * other


# --- objects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))])
def test_copies_are_equal(kernel, clone):
    twin = clone(kernel)
    assert twin == kernel
    assert hash(twin) == hash(kernel)
    np.testing.assert_array_equal(twin.gram(inputs()), kernel.gram(inputs()))


def test_equality_tells_every_kernel_from_every_other():
    kernels = list(KERNELS.values())
    for i, first in enumerate(kernels):
        for j, second in enumerate(kernels):
            assert (first == second) == (i == j)
    assert len(set(kernels)) == len(kernels)


def test_equality_sees_values_and_classes():
    assert SquaredExponential(0.5) == SquaredExponential(0.5, 1.0)
    assert SquaredExponential(0.5) != SquaredExponential(0.51)
    assert SquaredExponential([0.5, 0.5]) != SquaredExponential([0.5, 0.6])
    assert SquaredExponential([0.5, 0.5]) != SquaredExponential(0.5)
    assert Matern(1.5) != Matern(2.5)
    assert A + B != A * B
    assert A != "SquaredExponential(0.7, 1.3)"


def test_repr_evaluates_to_the_same_values_and_free_parameters(kernel):
    twin = eval(repr(kernel), {**vars(spngp.kernels), "array": np.array})
    assert type(twin) is type(kernel)
    assert twin.parameter_names == kernel.parameter_names
    np.testing.assert_array_equal(twin.theta, kernel.theta)
    np.testing.assert_array_equal(twin.gram(inputs()), kernel.gram(inputs()))


def test_repr_shows_class_and_values():
    text = repr(Matern(nu=2.5, length_scale=[0.25, 4.0], variance=7.5))
    for piece in ("Matern", "2.5", "0.25", "4.0", "7.5"):
        assert piece in text


@pytest.mark.parametrize("at", [math.nan, math.inf, "a", None])
def test_a_step_is_somewhere(at):
    with pytest.raises(ValueError, match="at of Step must be a finite number, got"):
        Step(axis=0, at=at)
    with pytest.raises(ValueError, match="Step cuts input 2, so X must have more columns than that, got 2"):
        Step(axis=2).gram(inputs())


@pytest.mark.parametrize("at", [(), 1.0, "ab", None, [math.nan], [0.0, math.inf], [1.0, 1.0], [2.0, 1.0], [10**400]])
def test_cuts_are_finite_and_ascend(at):
    with pytest.raises(ValueError, match="at of PiecewiseConstant must be finite numbers that ascend strictly, got"):
        PiecewiseConstant(axis=0, at=at)
    with pytest.raises(ValueError, match="gaps of PiecewiseConstant must be 2 numbers >= 0, one per cut, got"):
        PiecewiseConstant(axis=0, at=[1.0, 2.0], gaps=[0.1])
    with pytest.raises(ValueError, match="PiecewiseConstant cuts input 2, so X must have more columns than that"):
        PiecewiseConstant(axis=2).gram(inputs())


def test_a_row_on_a_cut_is_below_it():
    assert PiecewiseConstant(0, [1.0, 2.0]).cells(np.array([[0.9], [1.0], [1.1], [2.0], [2.1]])).tolist() == [
        0,
        0,
        1,
        1,
        2,
    ]


# --- bad parameters -------------------------------------------------------------------------------

PARAMETERS = [
    (Constant, "variance"),
    (Step, "variance"),
    (PiecewiseConstant, "variance"),
    (Linear, "variance"),
    (Polynomial, "variance"),
    (Periodic, "period"),
    (Periodic, "length_scale"),
    (Periodic, "variance"),
    (SquaredExponential, "length_scale"),
    (SquaredExponential, "variance"),
    (Matern, "length_scale"),
    (Matern, "variance"),
    (RandomSlopes, "length_scale"),
    (RandomSlopes, "variance"),
    (RationalQuadratic, "alpha"),
    (RationalQuadratic, "length_scale"),
    (RationalQuadratic, "variance"),
]
BAD = {
    "zero": 0.0,
    "negative": -1.0,
    "nan": math.nan,
    "infinite": math.inf,
    "text": "wide",
    "none": None,
    "empty": [],
    "matrix": [[1.0, 2.0], [3.0, 4.0]],
    "complex": 1j,
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize(("cls", "name"), PARAMETERS)
def test_a_bad_value_is_refused_by_name(cls, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        cls(**{name: value})
    if value is not None:
        with pytest.raises((ValueError, TypeError)):
            cls(**{name: Parameter(value)})


@pytest.mark.parametrize(
    ("cls", "name"), [(SquaredExponential, "length_scale"), (Matern, "length_scale"), (Linear, "variance")]
)
@pytest.mark.parametrize("value", [[1.0, 0.0], [1.0, -2.0], [math.nan, 1.0]])
def test_one_bad_value_among_several_is_refused_by_name(cls, name, value):
    with pytest.raises(ValueError, match=name):
        cls(**{name: value})


@pytest.mark.parametrize(("cls", "name"), [(Linear, "bias_variance"), (Polynomial, "offset")])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "wide", [1.0, 2.0]])
def test_bad_bias_and_offset(cls, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        cls(**{name: value})


@pytest.mark.parametrize("nu", [0.0, 1.0, 2.0, -1.5, math.nan, math.inf, "1.5", None])
def test_bad_nu(nu):
    with pytest.raises((ValueError, TypeError), match="nu"):
        Matern(nu=nu)


@pytest.mark.parametrize("degree", [0, -1, 1.5, math.nan, "2", None])
def test_bad_degree(degree):
    with pytest.raises((ValueError, TypeError), match="degree"):
        Polynomial(degree=degree)


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (-1.0, 1.0), (0.1,), (math.nan, 1.0), "wide"])
def test_bad_bounds(bounds):
    with pytest.raises((ValueError, TypeError), match="bounds"):
        SquaredExponential(Parameter(1.0, bounds=bounds))


def test_bad_number_of_fixed_flags():
    with pytest.raises(ValueError, match="fixed"):
        SquaredExponential(Parameter([1.0, 2.0], fixed=[True, False, True]))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (SquaredExponential([1.0, 2.0, 3.0]), "length_scale"),
        (Matern(1.5, [1.0, 2.0, 3.0]), "length_scale"),
        (RationalQuadratic(1.0, [1.0, 2.0, 3.0]), "length_scale"),
        (Periodic([1.0, 2.0, 3.0]), "period"),
        (Periodic(1.0, [1.0, 2.0, 3.0]), "length_scale"),
        (Linear([1.0, 2.0, 3.0]), "variance"),
        (A + B * SquaredExponential([1.0, 2.0, 3.0]), "length_scale"),
    ],
)
def test_one_value_per_input_must_fit_the_inputs(kernel, name):
    X = inputs()
    for call in (kernel.gram, kernel.gram_with_pullback, lambda X: kernel.gram(X, X[:3])):
        with pytest.raises(ValueError, match=name):
            call(X)


def test_the_two_sets_of_inputs_must_have_equally_many_columns():
    with pytest.raises(ValueError, match=r"column|input|feature"):
        SquaredExponential().gram(np.zeros((3, 2)), np.zeros((3, 1)))


# --- translation from scikit-learn ----------------------------------------------------------------

ONE_INPUT = np.random.default_rng(5).uniform(-1, 1, size=(8, 1))
ONE_CONSTANT = theirs.ConstantKernel(1.7)
TRANSLATIONS = {
    "constant": theirs.ConstantKernel(1.7),
    "rbf": theirs.RBF(0.6),
    "scaled-rbf": 2.5 * theirs.RBF(0.6),
    "matern-0.5": theirs.Matern(0.8, nu=0.5),
    "matern-1.5": theirs.Matern(0.8, nu=1.5),
    "matern-2.5": theirs.Matern(0.8, nu=2.5),
    "rational-quadratic": theirs.RationalQuadratic(0.8, 1.7),
    "periodic": theirs.ExpSineSquared(0.8, 1.7),
    "dot-product": theirs.DotProduct(0.8),
    "dot-product-without-bias": theirs.DotProduct(0.0, sigma_0_bounds="fixed"),
    "sum": theirs.RBF(0.6) + theirs.DotProduct(0.8),
    "product": theirs.RBF(0.6) * theirs.DotProduct(0.8),
    "nested": (theirs.RBF(0.6) + theirs.DotProduct(0.8)) * (theirs.Matern(1.2) + theirs.ConstantKernel(0.3)),
    "scaled-product": 2.5 * theirs.RBF(0.6) * theirs.ExpSineSquared(0.8, 1.7),
    "scaled-dot-product": 2.5 * theirs.DotProduct(0.8),
    "scaled-sum": 2.5 * (theirs.RBF(0.6) + theirs.Matern(1.2)),
    "two-constants": 2.5 * (0.5 * theirs.RBF(0.6)),
    "one-constant-twice": ONE_CONSTANT * ONE_CONSTANT * theirs.RBF(0.6) * theirs.RBF(0.6),
    "only-constants": ONE_CONSTANT * theirs.ConstantKernel(0.4),
    "products-in-sum": 0.5 * theirs.RBF(0.6) + 1.5 * theirs.Matern(1.2) * (theirs.RBF(2.0) + 0.1),
}


@pytest.mark.parametrize("kernel", TRANSLATIONS.values(), ids=TRANSLATIONS.keys())
def test_from_sklearn_gives_the_same_gram(kernel):
    translated = from_sklearn(kernel)
    np.testing.assert_allclose(translated.kernel.gram(ONE_INPUT), kernel(ONE_INPUT), rtol=1e-12)
    assert translated.noise_variance is None


def test_from_sklearn_makes_a_constant_the_variance_of_the_kernel_beside_it():
    constant = theirs.ConstantKernel(2.5, (0.5, 8.0))
    for kernel, expected in [
        (constant * theirs.RBF(0.6), SquaredExponential),
        (theirs.Matern(0.6, nu=1.5) * constant, Matern),
        (constant * theirs.RationalQuadratic(0.6, 1.7), RationalQuadratic),
        (theirs.ExpSineSquared(0.6, 1.7) * constant, Periodic),
    ]:
        translated = from_sklearn(kernel).kernel
        assert type(translated) is expected
        assert translated.variance == pytest.approx(2.5, rel=1e-14)
        np.testing.assert_allclose(np.exp(translated.parameters.log_bounds[-1]), (0.5, 8.0))


def test_from_sklearn_homogeneous_dot_product():
    """scikit-learn documents sigma_0 = 0 as the homogeneous linear kernel."""
    kernel, _ = from_sklearn(theirs.DotProduct(sigma_0=0.0))
    np.testing.assert_allclose(kernel.gram(ONE_INPUT), ONE_INPUT @ ONE_INPUT.T, rtol=1e-12)


@pytest.mark.parametrize("degree", [2, 3])
def test_from_sklearn_polynomial(degree):
    kernel = theirs.Exponentiation(theirs.DotProduct(0.7), degree)
    np.testing.assert_allclose(from_sklearn(kernel).kernel.gram(inputs()), kernel(inputs()), rtol=1e-12)


def test_from_sklearn_ard():
    X = inputs()
    kernel = 1.5 * theirs.RBF([0.6, 1.9]) + theirs.Matern([0.3, 2.0], nu=2.5)
    np.testing.assert_allclose(from_sklearn(kernel).kernel.gram(X), kernel(X), rtol=1e-12)


@pytest.mark.parametrize("white_first", [True, False])
def test_from_sklearn_turns_white_noise_into_noise_variance(white_first):
    rbf, white = 2.0 * theirs.RBF(0.6), theirs.WhiteKernel(0.3, (1e-3, 10.0))
    kernel, noise = from_sklearn(white + rbf if white_first else rbf + white)
    np.testing.assert_allclose(kernel.gram(ONE_INPUT), rbf(ONE_INPUT), rtol=1e-12)
    assert isinstance(noise, Parameter)
    assert float(noise.value) == pytest.approx(0.3, rel=1e-14)
    np.testing.assert_allclose(noise.bounds, (1e-3, 10.0))
    assert not noise.fixed


def test_from_sklearn_finds_white_noise_deep_inside_a_sum():
    signal = theirs.RBF(0.6) * theirs.DotProduct(0.7) + theirs.Matern(2.0)
    kernel, noise = from_sklearn(
        (theirs.RBF(0.6) * theirs.DotProduct(0.7) + theirs.WhiteKernel(0.2)) + theirs.Matern(2.0)
    )
    np.testing.assert_allclose(kernel.gram(ONE_INPUT), signal(ONE_INPUT), rtol=1e-12)
    assert float(noise.value) == pytest.approx(0.2, rel=1e-14)


def test_from_sklearn_adds_up_several_noises():
    noises = theirs.WhiteKernel(0.2) + theirs.ConstantKernel(3.0) * theirs.WhiteKernel(0.1)
    kernel, noise = from_sklearn(theirs.RBF(0.6) + noises)
    np.testing.assert_allclose(kernel.gram(ONE_INPUT), theirs.RBF(0.6)(ONE_INPUT), rtol=1e-12)
    assert float(noise.value) == pytest.approx(0.5, rel=1e-14)


def test_from_sklearn_keeps_bounds_and_fixed_values():
    kernel, noise = from_sklearn(
        theirs.ConstantKernel(2.0, "fixed") * theirs.RBF([0.6, 1.9], (0.05, 20.0)) + theirs.WhiteKernel(0.3, "fixed")
    )
    assert [name.rpartition(".")[2] for name in kernel.parameter_names] == [
        "length_scale[0]",
        "length_scale[1]",
    ]
    np.testing.assert_allclose(kernel.bounds, np.log([[0.05, 20.0]] * 2))
    assert noise.fixed


def test_from_sklearn_keeps_bounds_of_each_input():
    kernel, _ = from_sklearn(theirs.RBF([0.6, 1.9], [(0.05, 20.0), (1.0, 3.0)]))
    np.testing.assert_allclose(kernel.bounds, np.log([[0.05, 20.0], [1.0, 3.0]]))
    outside, _ = from_sklearn(theirs.RBF([0.6, 5.0], [(0.05, 20.0), (1.0, 3.0)]))
    np.testing.assert_allclose(outside.bounds, np.log([[0.05, 20.0], [1.0, 5.0]]))


@pytest.mark.parametrize(
    ("noises", "value", "bounds"),
    [
        (theirs.ConstantKernel(3.0, (2.0, 4.0)) * theirs.WhiteKernel(0.1, (0.01, 1.0)), 0.3, (0.02, 4.0)),
        (theirs.ConstantKernel(3.0, "fixed") * theirs.WhiteKernel(0.1, (0.01, 1.0)), 0.3, (0.03, 3.0)),
        (theirs.ConstantKernel(3.0, (2.0, 4.0)) * theirs.WhiteKernel(0.1, "fixed"), 0.3, (0.2, 0.4)),
        (theirs.ConstantKernel(3.0, "fixed") * theirs.WhiteKernel(0.1, "fixed"), 0.3, None),
        (theirs.WhiteKernel(0.2, (0.1, 1.0)) + theirs.WhiteKernel(0.1, (0.01, 2.0)), 0.3, (0.11, 3.0)),
        (theirs.WhiteKernel(0.2, (0.1, 1.0)) + theirs.WhiteKernel(0.1, "fixed"), 0.3, (0.2, 1.1)),
        (theirs.WhiteKernel(0.2, "fixed") + theirs.WhiteKernel(0.1, "fixed"), 0.3, None),
    ],
)
def test_from_sklearn_combines_the_bounds_of_noises(noises, value, bounds):
    noise = from_sklearn(theirs.RBF(0.6) + noises).noise_variance
    assert noise.value == pytest.approx(value)
    assert noise.fixed is (bounds is None)
    assert noise.bounds == (None if bounds is None else pytest.approx(bounds))


def test_kernels_do_without_scikit_learn_until_one_is_translated():
    code = """
import importlib.util, sys, types
package = types.ModuleType("spngp")  # without its __init__, which offers the estimators
package.__path__ = list(importlib.util.find_spec("spngp").submodule_search_locations)
sys.modules["spngp"] = package
import spngp.kernels
assert "sklearn" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_from_sklearn_has_as_many_free_parameters_as_the_original():
    for name, kernel in TRANSLATIONS.items():
        assert len(from_sklearn(kernel).kernel.theta) == len(kernel.theta), name


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (theirs.PairwiseKernel(metric="laplacian"), "PairwiseKernel"),
        (
            theirs.RBF(0.6) + theirs.DotProduct(1.0) * theirs.PairwiseKernel(metric="laplacian"),
            "PairwiseKernel",
        ),
        (theirs.Matern(nu=0.7), "0.7"),
        (theirs.RBF(0.6) * (theirs.Matern(nu=3.5) + 1.0), "3.5"),
        (theirs.RBF(0.6) + theirs.Exponentiation(theirs.RBF(), 2.5), "Exponentiation"),
        (theirs.RBF(0.6) * theirs.WhiteKernel(0.5), "WhiteKernel"),
        (theirs.WhiteKernel(0.5), "WhiteKernel"),
        (theirs.CompoundKernel([theirs.RBF(), theirs.RBF()]), "CompoundKernel"),
    ],
)
def test_from_sklearn_names_the_part_it_cannot_translate(kernel, named):
    with pytest.raises((ValueError, TypeError), match=named):
        from_sklearn(kernel)


@pytest.mark.parametrize("thing", [None, "rbf", 1.0, SquaredExponential])
def test_from_sklearn_refuses_what_is_no_kernel(thing):
    with pytest.raises((ValueError, TypeError)):
        from_sklearn(thing)


def test_no_warning_for_extreme_but_valid_values():
    X = inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (
            SquaredExponential(1e-6, 1e-200),
            Matern(2.5, 1e-6, 1e200),
            RationalQuadratic(1e-3, 1e-6),
        ):
            packed, pullback = kernel.gram_with_pullback(X)
            assert np.all(np.isfinite(packed.dense()))
            assert np.all(np.isfinite(pullback(np.ones(36), np.ones(9))))
