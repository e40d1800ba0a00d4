"""The compiled library: against high precision, against loops, and against NumPy in its place."""

import ctypes
import importlib
import math
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from spngp._linalg import compiled as _compiled
from spngp._linalg.lapack import pointer
from spngp._linalg.square import Square
from spngp._support.threads import map_leaves
from spngp.gp.evidence import CompiledEvidence, Evidence, evidence_of
from spngp.kernels import Constant, Linear, Matern, Parameter, PiecewiseConstant, RationalQuadratic, SquaredExponential
from spngp.kernels.compiled_sum import covariances_with_few
from spngp.kernels.located import shifted

needs_library = pytest.mark.skipif(_compiled.library is None, reason="there is no compiled library")

KERNELS = {
    "SE": SquaredExponential([0.5, 1.0, 2.0], 1.7),
    "one length-scale": SquaredExponential(0.8),
    "Matern-1/2": Matern(0.5, [0.5, 1.0, 2.0], 0.3),
    "Matern-3/2": Matern(1.5, [0.5, 1.0, 2.0], 1.7),
    "Matern-5/2": Matern(2.5, [0.5, 1.0, 2.0], 0.01),
    "sum": SquaredExponential(0.8) + Matern(1.5, [0.5, 1.0, 2.0]),
    "sum, the other way round": Matern(1.5, [0.5, 1.0, 2.0]) + SquaredExponential(0.8),
    "sum of three": Matern(1.5, [0.5, 1.0, 2.0]) + Matern(2.5, 3.0) + Matern(0.5, 0.2, 0.1),
    "with a constant": Matern(1.5, [0.5, 1.0, 2.0]) + Constant(2.5) + SquaredExponential(0.8),
    "a constant that is not learnt": SquaredExponential([0.5, 1.0, 2.0]) + Constant(Parameter(1.0, fixed=True)),
    "levels between cuts": SquaredExponential(0.8)
    + PiecewiseConstant(1, [-0.5, 0.3], 30.0)
    + PiecewiseConstant(2, [0.7]),
    "levels twice": PiecewiseConstant(0, [0.1]) + Matern(0.5, [0.5, 1.0, 2.0]) + PiecewiseConstant(0, [0.1]),
    "product": SquaredExponential(0.8) * Matern(2.5, [0.5, 1.0, 2.0]),
}


def test_where_it_can_be_compiled_the_library_is_there():
    if os.environ.get("SPNGP_COMPILED") == "0":
        pytest.skip("SPNGP_COMPILED=0")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source = Path(_compiled.__file__).with_name("native.c")
    command = ["cc", "-fsyntax-only", f"-I{sysconfig.get_path('include')}", str(source)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"the compiler refuses: {tried.stderr.strip().splitlines()[0]}")
    assert _compiled.library is not None


def exponential(x):
    """exp(x) as the library computes it."""
    zero, out = np.zeros(1), np.empty(1)
    at = pointer(zero)
    _compiled.library.gram(_compiled.SQUARED_EXPONENTIAL, at, 1, at, 1, 1, pointer(out), 1, False, False, x, None)
    return out[0]


@needs_library
def test_exp_is_right_to_one_unit_in_the_last_place():
    rng = np.random.default_rng(0)
    for x in np.concatenate([rng.uniform(-708, 709.7, 1000), rng.uniform(-3, 3, 1000), [0.0, 1e-300, -1e-17, 709.78]]):
        exact = mpmath.exp(mpmath.mpf(float(x)))
        assert abs(mpmath.mpf(float(exponential(x))) - exact) <= 1.1 * np.spacing(float(exact)), x


@needs_library
@pytest.mark.parametrize(
    ("x", "value"), [(-709.0, 0.0), (-1e290, 0.0), (-math.inf, 0.0), (709.79, math.inf), (math.inf, math.inf)]
)
def test_exp_beyond_the_numbers(x, value):
    assert exponential(x) == value


@needs_library
def test_exp_of_nan():
    assert math.isnan(exponential(math.nan))


@needs_library
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 17, 511, 512, 513, 1025])
@pytest.mark.parametrize("d", [1, 3, 4, 5, 8, 11])
def test_every_remainder_of_rows_and_inputs(n, d):
    # the loops take four inputs at once, several rows at once, and 512 rows at a time
    rng = np.random.default_rng(n)
    A, B = rng.standard_normal((n, d)), rng.standard_normal((3, d))
    expected = np.exp(-0.5 * ((A[:, np.newaxis] - B) ** 2).sum(axis=2))
    np.testing.assert_allclose(SquaredExponential().gram(A, B), expected, rtol=1e-13, atol=0)
    np.testing.assert_allclose(SquaredExponential().gram(B, A), expected.T, rtol=1e-13, atol=0)


@needs_library
@pytest.mark.parametrize("n", [1, 2, 6, 40, 530])
@pytest.mark.parametrize("name", KERNELS)
def test_the_library_equals_numpy(name, n, monkeypatch):
    kernel, rng = KERNELS[name], np.random.default_rng(n)
    X = rng.uniform(-2, 2, (n, 3))
    X[n // 2] = X[0]  # two rows that coincide, where a Matern-1/2 has no slope
    by_pairs, by_diagonal = rng.standard_normal(n * (n - 1) // 2), rng.standard_normal(n)

    def everything():
        square = Square.zeros(n)
        kernel.fill(X, square)
        kernel.fill(X, square, adds=True)
        gram, pullback = kernel.gram_with_pullback(X)
        values = [np.tril(square.array), gram.pairs.copy(), gram.diagonal, kernel.gram(X[:5], X)]
        return values, pullback(by_pairs, by_diagonal)

    values, gradient = everything()
    monkeypatch.setattr(_compiled, "library", None)
    expected, expected_gradient = everything()
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-11, atol=1e-13)
    size = np.abs(by_pairs).sum() + np.abs(by_diagonal).sum()
    np.testing.assert_allclose(gradient, expected_gradient, rtol=0, atol=1e-13 * size)


@needs_library
@pytest.mark.parametrize("n", [2, 3, 40, 49, 530])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "product"])
def test_the_evidence_equals_that_of_single_calls(name, n):
    kernel, rng = KERNELS[name], np.random.default_rng(n)
    X, y = rng.uniform(-2, 2, (n, 3)), rng.standard_normal(n)
    compiled = evidence_of(kernel, X, y)
    assert isinstance(compiled, CompiledEvidence)
    for factor in (1.0, 1.3):  # other parameters in the same work space
        values = kernel.parameters.values * factor
        value, by_kernel, by_noise = compiled(values, 0.05)
        expected, expected_by_kernel, expected_by_noise = Evidence(kernel, X, y)(values, 0.05)
        np.testing.assert_allclose(value, expected, rtol=1e-11)
        scale = n + np.abs(expected_by_kernel).max()
        np.testing.assert_allclose(by_kernel, expected_by_kernel, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(by_noise, expected_by_noise, rtol=1e-9)


@needs_library
def test_where_jitter_is_needed_the_evidence_is_that_of_single_calls():
    X = np.repeat(np.linspace(0, 1, 20), 2)[:, np.newaxis]  # every row twice, without noise: singular
    y = np.sin(3 * X[:, 0])
    kernel = SquaredExponential(0.5) + Matern(1.5, 0.5)
    compiled, single = evidence_of(kernel, X, y), Evidence(kernel, X, y)
    for noise in (0.1, 0.0, 0.2):  # and it recovers afterwards
        found, expected = (evidence(kernel.parameters.values, noise) for evidence in (compiled, single))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
        if noise == 0.0:
            np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("kernel", [KERNELS["product"], SquaredExponential() + Linear(), RationalQuadratic(), Linear()])
def test_other_kernels_have_the_evidence_of_single_calls(kernel):
    assert isinstance(evidence_of(kernel, np.zeros((4, 3)), np.zeros(4)), Evidence)


@needs_library
@pytest.mark.parametrize("n", [49, 64, 100, 333])
def test_the_inverse_equals_that_of_single_calls(n, monkeypatch):
    A = np.random.default_rng(n).standard_normal((n, n + 5))
    inverses = []
    for library in (_compiled.library, None):
        monkeypatch.setattr(_compiled, "library", library)
        square = Square(np.asfortranarray(A @ A.T))
        assert square.cholesky()
        square.bound_invert()()
        inverses.append(np.tril(square.array))
    np.testing.assert_array_equal(*inverses)  # the same calls in the same order


@pytest.mark.parametrize("kernel", [*KERNELS.values(), RationalQuadratic()])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (64, 2), (131, 1), (131, 8), (70, 9)])
def test_covariances_with_few_rows_are_those_of_the_kernel(kernel, n, m, formulas):
    rng = np.random.default_rng(n)
    X1, X2 = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    for far in (0.0, 1e6, 1e200):  # away from zero; so far that every covariance is zero
        expected = kernel.covariances(X1, X2 + (far if far > 1e100 else 0.0))
        shift = 0.0 if far > 1e100 else far
        of_few = covariances_with_few(shifted(kernel, np.full(3, shift)), 3)  # cuts move with the rows
        found = of_few(X1 + shift, X2 + far).T
        np.testing.assert_allclose(found, expected, rtol=1e-7 if shift else 1e-13, atol=1e-12 if shift else 1e-300)
        assert found.flags.f_contiguous


@pytest.mark.parametrize("levels", [(0, 3, 0), (4, 3, 2)])
def test_covariances_with_few_rows_of_levels(levels, formulas):
    kernel = SquaredExponential([0.5, 1.0, 2.0], 1.7, levels=levels) + Matern(1.5, 0.7, 0.3)
    rng = np.random.default_rng(0)
    X = np.where(np.array(levels) > 0, 2.0 * rng.integers(0, 3, (80, 3)), rng.standard_normal((80, 3)))
    np.testing.assert_allclose(covariances_with_few(kernel, 3)(X, X[:3]).T, kernel.covariances(X, X[:3]), rtol=1e-13)


@needs_library
def test_covariances_with_few_rows_can_be_pickled():
    kernel, X = KERNELS["sum"], np.random.default_rng(0).standard_normal((5, 3))
    again = pickle.loads(pickle.dumps(covariances_with_few(kernel, 3)))
    np.testing.assert_array_equal(again(X, X[:1]), covariances_with_few(kernel, 3)(X, X[:1]))


@needs_library
def test_the_library_writes_nothing_outside_its_arrays():
    n, guard = 37, 8
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((n, 3)))
    for lower in (True, False):
        around = np.full(n * n + 2 * guard, np.pi)
        out = around[guard:-guard]
        at = (pointer(X), n, pointer(X), n, 3, out.ctypes.data, n)
        _compiled.library.gram(_compiled.MATERN[1.5], *at, lower, False, 0.0, None)
        untouched = np.isin(out.reshape(n, n).T, np.pi)
        np.testing.assert_array_equal(untouched, np.triu(np.ones((n, n), dtype=bool), 1) if lower else False)
        assert (around[:guard] == np.pi).all()
        assert (around[-guard:] == np.pi).all()
    pairs, slopes = (np.full(n * (n - 1) // 2 + guard, np.pi) for _ in range(2))
    _compiled.library.packed_gram(_compiled.MATERN[2.5], pointer(X), n, 3, pointer(pairs), pointer(slopes), 0.0, None)
    for array in (pairs[-guard:], slopes[-guard:]):
        assert (array == np.pi).all()
    rows, out = np.ascontiguousarray(X), np.full(2 * n + guard, np.pi)
    numbers, scales = np.array([_compiled.MATERN[1.5]]), np.ones(3)
    at = (rows.ctypes.data, n, rows.ctypes.data, 2, 3, pointer(scales), pointer(np.zeros(1)), None, pointer(out))
    _compiled.library.sum_of_parts(1, numbers.ctypes.data, *at)
    assert (out[-guard:] == np.pi).all()
    assert (out[:-guard] != np.pi).all()


def test_without_the_library_a_model_is_the_same():
    program = """
import sys
if sys.argv[1] == "without":
    sys.modules["spngp._linalg._native"] = None  # as if it had not been compiled
import numpy as np
from spngp import SPNGPRegressor
from spngp._linalg import compiled as _compiled
assert sys.argv[1] == "with" or _compiled.library is None
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (300, 2))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(300)
model = SPNGPRegressor(max_leaf_size=60, random_state=0).fit(X, y)
mean, std = model.predict(X[:20] + 0.1, return_std=True)
print(*mean, *std)
"""
    outputs = []
    for which in ("with", "without"):
        done = subprocess.run([sys.executable, "-c", program, which], capture_output=True, text=True, check=True)
        outputs.append(np.array(done.stdout.split(), dtype=float))
    assert outputs[0].size == 40
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-6, atol=1e-6)


@needs_library
def test_many_inputs_are_left_to_matrix_products():
    X, y = np.zeros((4, _compiled.MOST_INPUTS + 1)), np.zeros(4)
    assert isinstance(evidence_of(SquaredExponential(), X, y), Evidence)
    assert isinstance(evidence_of(SquaredExponential(), X[:, 1:], y), CompiledEvidence)
    for d in (_compiled.MOST_INPUTS, _compiled.MOST_INPUTS + 1):
        X = np.random.default_rng(0).standard_normal((6, d)) / 9.0
        expected = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
        np.testing.assert_allclose(SquaredExponential().gram(X), expected, rtol=1e-12)


def test_a_subclass_is_not_taken_for_its_parent(formulas):
    class Halved(SquaredExponential):
        def _write_features(self, X, values, out):
            super()._write_features(X, values, out)
            out *= 0.5

    X, y = np.linspace(0, 3, 8)[:, np.newaxis], np.sin(np.arange(8.0))
    same = SquaredExponential(2.0)
    np.testing.assert_allclose(Halved().gram(X), same.gram(X), rtol=1e-12)
    found = evidence_of(Halved(), X, y)(np.ones(2), 0.1)[0]
    np.testing.assert_allclose(found, evidence_of(same, X, y)(np.array([2.0, 1.0]), 0.1)[0], rtol=1e-10)


@needs_library
def test_a_matrix_that_must_not_be_written_is_refused():
    square = Square.zeros(3)
    square.array.flags.writeable = False
    with pytest.raises(ValueError, match=r"\(3, 1\), \(3, 1\) do not fit a matrix \(3, 3\)"):
        SquaredExponential().fill(np.zeros((3, 1)), square)


def test_small_leaves_are_left_to_one_thread():
    def threads(rows):
        return set(map_leaves(lambda _: threading.get_ident(), rows, 2, rows))

    assert threads([30] * 8) == {threading.get_ident()}
    assert threading.get_ident() not in threads([300] * 8)
    assert threading.get_ident() not in threads([30] * 100 + [3000] * 2)  # where the work is


def test_the_environment_can_switch_it_off(monkeypatch):
    monkeypatch.setenv("SPNGP_COMPILED", "0")
    assert _compiled._load() is None


class Function:
    """What ``ctypes`` makes of a function of a library; attributes can be set."""

    def __init__(self, call):
        self.call = call

    def __call__(self, *arguments):
        return self.call(*arguments)


def write_exponential(*arguments):
    """What the check asks of ``gram``."""
    ctypes.c_double.from_address(arguments[6]).value = math.exp(arguments[-2])


def loaded_library(monkeypatch, version, missing=None):
    """Load a library with all functions but ``missing``, which says that it is of this version (None: says nothing)."""
    functions = {name: Function(lambda *arguments: None) for name in _compiled._ARGUMENTS if name != missing}
    functions["gram"] = Function(write_exponential)
    if version is not None:
        functions["version"] = Function(lambda: version)
    monkeypatch.delenv("SPNGP_COMPILED", raising=False)
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(__file__="it"))
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(**functions))
    return _compiled._load()


def test_a_library_of_this_version_is_taken(monkeypatch):
    assert loaded_library(monkeypatch, _compiled._VERSION)._fields == tuple(_compiled._ARGUMENTS)


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        (_compiled._VERSION - 1, None),
        (_compiled._VERSION + 1, None),
        (None, None),
        (_compiled._VERSION, "evidence"),
    ],
)
def test_a_library_of_another_version_is_left_aside(version, missing, monkeypatch):
    with pytest.warns(UserWarning, match="install spngp again"):
        assert loaded_library(monkeypatch, version, missing) is None


@needs_library
def test_a_library_that_computes_wrongly_is_left_aside():
    def gram(*arguments):
        ctypes.c_double.from_address(arguments[6]).value = 0.60653  # as with -ffast-math

    assert not _compiled._can_compute(_compiled.library._replace(gram=gram))
    assert _compiled._can_compute(_compiled.library)


def test_a_library_that_cannot_be_loaded_is_none_at_all(monkeypatch):
    def refuse(path):
        raise OSError("wrong ELF class")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert _compiled._load() is None
