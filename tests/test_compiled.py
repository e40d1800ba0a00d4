"""The compiled library: against high precision, against loops, and against NumPy in its place."""

import ctypes
import math
import shutil
import subprocess
import sys

import mpmath
import numpy as np
import pytest

from spngp import _compiled
from spngp._linalg import Square, pointer
from spngp.kernels import Matern, SquaredExponential

needs_library = pytest.mark.skipif(_compiled.library is None, reason="spngp was installed without a C compiler")

KERNELS = {
    "SE": SquaredExponential([0.5, 1.0, 2.0], 1.7),
    "one length-scale": SquaredExponential(0.8),
    "Matern-1/2": Matern(0.5, [0.5, 1.0, 2.0], 0.3),
    "Matern-3/2": Matern(1.5, [0.5, 1.0, 2.0], 1.7),
    "Matern-5/2": Matern(2.5, [0.5, 1.0, 2.0], 0.01),
    "sum": SquaredExponential(0.8) + Matern(1.5, [0.5, 1.0, 2.0]),
    "product": SquaredExponential(0.8) * Matern(2.5, [0.5, 1.0, 2.0]),
}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_where_there_is_a_compiler_the_library_is_there():
    assert _compiled.library is not None


def exponential(x):
    """exp(x) as the library computes it."""
    zero, out = np.zeros(1), np.empty(1)
    at = pointer(zero)
    _compiled.library.gram(_compiled.SQUARED_EXPONENTIAL, at, 1, at, 1, 1, pointer(out), 1, False, False, x)
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


@needs_library
def test_the_library_writes_nothing_outside_its_arrays():
    n, guard = 37, 8
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((n, 3)))
    around = np.full(n * n + 2 * guard, np.pi)
    out = around[guard:-guard]
    for lower in (False, True):
        at = (pointer(X), n, pointer(X), n, 3, out.ctypes.data, n)
        _compiled.library.gram(_compiled.MATERN[1.5], *at, lower, False, 0.0)
    pairs, slopes = (np.full(n * (n - 1) // 2 + guard, np.pi) for _ in range(2))
    _compiled.library.packed_gram(_compiled.MATERN[2.5], pointer(X), n, 3, pointer(pairs), pointer(slopes), 0.0)
    for array in (around[:guard], around[-guard:], pairs[-guard:], slopes[-guard:]):
        assert (array == np.pi).all()


def test_without_the_library_a_model_is_the_same():
    program = """
import sys
if sys.argv[1] == "without":
    sys.modules["spngp._native"] = None  # as if it had not been compiled
import numpy as np
from spngp import SPNGPRegressor, _compiled
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


def test_a_library_that_cannot_be_loaded_is_none_at_all(monkeypatch):
    def refuse(path):
        raise OSError("wrong ELF class")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert _compiled._load() is None
