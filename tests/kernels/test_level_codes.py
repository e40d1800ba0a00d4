"""Kernels of inputs that hold codes of levels, judged by indicator columns that share a length-scale."""

from __future__ import annotations

import numpy as np
import pytest

from spngp._linalg import compiled
from spngp.gp.evidence import CompiledEvidence, Evidence
from spngp.kernels import Constant, Linear, Matern, PiecewiseConstant, RandomSlopes, SquaredExponential
from spngp.kernels.coding import with_levels

LEVELS = (0, 5, 0, 3)
SCALES = [0.7, 0.9, 1.3, 0.4]
OWNERS = [0, *[1] * 5, 2, *[3] * 3]
KERNELS = {
    "SE": lambda scales, levels=(): SquaredExponential(scales, 1.2, levels),
    "Matern12": lambda scales, levels=(): Matern(0.5, scales, 1.2, levels),
    "Matern32": lambda scales, levels=(): Matern(1.5, scales, 1.2, levels),
    "Matern52": lambda scales, levels=(): Matern(2.5, scales, 1.2, levels),
}


def rows(n: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1], X[:, 3] = rng.integers(0, 5, n), rng.integers(0, 3, n)
    return X


def indicators(X: np.ndarray) -> np.ndarray:
    """Codes replaced by indicator columns divided by √2."""
    fives, threes = (X[:, 1:2] == np.arange(5)) / np.sqrt(2), (X[:, 3:4] == np.arange(3)) / np.sqrt(2)
    return np.hstack([X[:, :1], fives, X[:, 2:3], threes])


@pytest.fixture(params=["compiled", "numpy"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(compiled, "library", None)
    elif compiled.library is None:
        pytest.skip("the library is not compiled here")
    return request.param


@pytest.mark.parametrize("name", KERNELS)
def test_codes_are_indicator_columns_that_share_a_length_scale(name, way):
    X = rows()
    coded, plain = KERNELS[name](SCALES, LEVELS), KERNELS[name]([SCALES[j] for j in OWNERS])
    wanted = plain.gram(indicators(X))
    np.testing.assert_allclose(coded.gram(X), wanted, atol=1e-13)
    np.testing.assert_allclose(coded.gram(X[:9], X), wanted[:9], atol=1e-13)
    np.testing.assert_allclose(coded.packed(X).pairs, plain.packed(indicators(X)).pairs, atol=1e-13)
    shared = KERNELS[name](0.8, LEVELS)
    np.testing.assert_allclose(shared.gram(X), KERNELS[name](0.8).gram(indicators(X)), atol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_of_the_evidence(name, way):
    X, y = rows(), np.random.default_rng(1).normal(size=40)
    kernel = KERNELS[name](SCALES, LEVELS) + PiecewiseConstant(1, [0.2]) + KERNELS[name](SCALES[::-1], LEVELS)
    check_gradient(CompiledEvidence.of(kernel, X, y) if way == "compiled" else Evidence(kernel, X, y), kernel)


@pytest.mark.parametrize("scales", [SCALES, 0.8], ids=["own", "shared"])
def test_gradients_of_the_evidence_of_random_slopes(scales, way):
    X, y = rows(), np.random.default_rng(1).normal(size=40)
    kernel = RandomSlopes(scales, 1.2, LEVELS) + SquaredExponential(SCALES[::-1], 0.9, LEVELS)
    check_gradient(Evidence(kernel, X, y), kernel)


def check_gradient(evidence, kernel):
    theta = np.log(kernel.parameters.values)
    gradient = evidence(np.exp(theta), 0.1)[1]
    for j in range(theta.size):
        step = np.zeros(theta.size)
        step[j] = 1e-5
        slope = (evidence(np.exp(theta + step), 0.1)[0] - evidence(np.exp(theta - step), 0.1)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, abs=1e-6)


def test_random_slopes_are_lines_by_level():
    """Planes of numbers times a kernel of levels alone."""
    X = rows()
    numbers, codes = X[:, ::2], X[:, 1::2]
    planes = Constant(1.0) + Linear(np.array(SCALES[::2]) ** -2.0)
    expected = 1.2 * planes.gram(numbers) * SquaredExponential(SCALES[1::2], 1.0, LEVELS[1::2]).gram(codes)
    np.testing.assert_allclose(RandomSlopes(SCALES, 1.2, LEVELS).gram(X), expected, atol=1e-13)


@pytest.mark.parametrize("kernel", [Matern(1.5, SCALES, 1.0, LEVELS), RandomSlopes(SCALES, 1.0, LEVELS)])
def test_the_names_of_levels_do_not_matter(kernel):
    X = rows()
    renamed = X.copy()
    renamed[:, 1] = np.array([3.0, 0.0, 17.0, 4.0, 2.0])[X[:, 1].astype(int)]
    np.testing.assert_allclose(kernel.gram(renamed), kernel.gram(X), atol=1e-13)


def test_levels_of_a_user_s_kernel():
    kernel = with_levels(SquaredExponential(SCALES) * Constant(2.0) + Matern(0.5), LEVELS)
    assert [getattr(part, "levels", None) for part in kernel.parts] == [None, LEVELS]
    assert kernel.parts[0].parts[0].levels == LEVELS
    assert with_levels(RandomSlopes(SCALES), LEVELS) == RandomSlopes(SCALES, levels=LEVELS)
    with pytest.raises(
        ValueError, match="need kernels of SquaredExponential, Matern, RandomSlopes and Constant, got Linear"
    ):
        with_levels(Linear(), LEVELS)
    assert with_levels(Linear(), ()) == Linear()
    assert kernel.parts[1].rescaled(np.ones(4) * 2.0, 1.0).levels == LEVELS


def test_refused_levels():
    with pytest.raises(ValueError, match="must be numbers of levels"):
        SquaredExponential(1.0, levels=(0, -1))
    with pytest.raises(ValueError, match="one per input, as length_scale has 2"):
        SquaredExponential([1.0, 1.0], levels=(0, 3, 0))
    with pytest.raises(ValueError, match="levels of Matern are for 2 inputs, got 3"):
        Matern(levels=(0, 3)).gram(np.zeros((2, 3)))
    assert SquaredExponential(levels=(0, 0)).levels == ()


def test_the_metric_takes_the_width_of_all_codes_for_one_unit():
    slopes = SquaredExponential([1.0, 2.0], 1.0, (0, 11)).slope_variances(2)
    np.testing.assert_allclose(slopes, [1.0, 1.0 / (2.0 * 10.0) ** 2])
