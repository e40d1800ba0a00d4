"""Which kernels the tied stage keeps, and where their search begins again."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.kernels import KernelSum, Matern, SquaredExponential
from spngp.learning.defaults import SINGLE_KERNELS_FROM, default_kernels
from spngp.learning.parts import parts_of, smoothness
from spngp.learning.plausible import needed, plausible
from spngp.learning.restarts import better_of, sums_from_parts
from spngp.learning.search import Alternatives, evidence


def drawn(kernel, noise, n, seed):
    """Rows of one input with outputs drawn from a GP."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 10, (n, 1)), axis=0)
    covariance = kernel.gram(X) + noise * np.eye(n)
    return Block(X, np.linalg.cholesky(covariance) @ rng.standard_normal(n))


def alternatives(*gps):
    return Alternatives(list(gps), list(gps), [f"kernel {j}" for j in range(len(gps))])


SMOOTH, WIGGLY = SquaredExponential(2.0), SquaredExponential(0.1)


def test_a_kernel_that_predicts_far_worse_is_dropped_and_the_order_stays():
    blocks = [drawn(SMOOTH, 0.01, 120, seed) for seed in range(2)]
    known = alternatives(ExactGP(WIGGLY, 0.01), ExactGP(SMOOTH, 0.01), ExactGP(SquaredExponential(2.1), 0.01))
    assert plausible(known, blocks, 0.02, 9).labels == ["kernel 1", "kernel 2"]
    assert plausible(known, blocks, 100.0, 9).labels == known.labels
    assert plausible(known, blocks, 100.0, 1).labels == ["kernel 1"]


def test_a_few_nats_in_all_drop_nothing():
    blocks = [drawn(SMOOTH, 0.5, 20, 0)]
    known = alternatives(ExactGP(SMOOTH, 0.5), ExactGP(SquaredExponential(1.0), 0.5))
    assert plausible(known, blocks, 1e-9, 9).labels == known.labels


def test_kernels_are_judged_with_the_shape_of_noise_that_suits_each():
    """Among outliers a rough kernel is as likely as a smooth one, since evidence takes the noise for Gaussian."""
    block = drawn(SMOOTH, 0.01, 300, 1)
    y = block.y.copy()
    y[::10] += 1.5 * np.random.default_rng(1).standard_normal(30)
    blocks = [Block(block.X, y)]
    smooth, rough = ExactGP(SquaredExponential(2.3, 0.5), 0.17), ExactGP(Matern(0.5, 12.5, 0.6), 0.16)
    assert evidence(rough, blocks) == pytest.approx(evidence(smooth, blocks), abs=5.0)
    assert plausible(alternatives(smooth, rough), blocks, 0.02, 9).labels == ["kernel 0"]


def test_kernels_that_win_in_different_blocks_are_all_needed_and_repetitions_are_not():
    blocks = [drawn(kernel, 0.01, 80, seed) for seed in range(3) for kernel in (SMOOTH, WIGGLY)]
    known = alternatives(ExactGP(SMOOTH, 0.01), ExactGP(SMOOTH, 0.01), ExactGP(WIGGLY, 0.01))
    assert needed(known, blocks).labels == ["kernel 0", "kernel 2"]
    assert needed(known, blocks[:1]).labels == ["kernel 0"]


def test_what_is_kept_is_what_a_search_through_all_sums_finds():
    kernels = [SquaredExponential(scale) for scale in (0.1, 0.5, 2.0, 2.2)]
    blocks = [drawn(kernels[j], 0.05, 60, seed) for seed, j in enumerate((0, 2, 2, 1, 0, 1))]
    gps = [ExactGP(kernel, 0.05) for kernel in kernels]
    values = np.array([[block.given_to(gp).log_evidence for block in blocks] for gp in gps])

    def of_sum(chosen):
        return sum(np.logaddexp.reduce(column) - np.log(len(chosen)) for column in values[list(chosen)].T)

    subsets = [[j for j in range(4) if code >> j & 1] for code in range(1, 16)]
    best = max(subsets, key=of_sum)
    assert needed(alternatives(*gps), blocks).labels == [f"kernel {j}" for j in best]


def test_the_more_likely_parameters_are_taken_kernel_by_kernel():
    block = drawn(SMOOTH, 0.01, 60, 0)
    good, bad = ExactGP(SMOOTH, 0.01), ExactGP(WIGGLY, 0.01)
    assert better_of(alternatives(good, bad), alternatives(bad, good), [block]).gps == [good, good]


def test_a_sum_that_is_behind_a_kernel_like_its_parts_begins_anew_from_it():
    block = drawn(SMOOTH, 0.01, 80, 1)
    single, behind = ExactGP(SMOOTH, 0.01), ExactGP(WIGGLY + WIGGLY, 0.01)
    other = ExactGP(Matern(1.5, 2.0) + Matern(1.5, 0.1), 0.01)  # parts of another kind: nothing to begin from
    known = alternatives(behind, single, other)
    begun = sums_from_parts(known, [block])
    first, second = parts_of(begun.gps[0])
    assert first is single.kernel
    assert second.length_scale < first.length_scale
    assert second.variance < first.variance
    assert begun.gps[1] is single
    assert begun.gps[2] is other
    assert begun.starts == known.starts  # priors stay where they were


def test_sums_that_are_ahead_stay():
    block = drawn(SMOOTH + SquaredExponential(0.3, 0.2), 0.01, 150, 1)
    known = alternatives(ExactGP(SMOOTH + SquaredExponential(0.3, 0.2), 0.01), ExactGP(SMOOTH, 0.01))
    assert sums_from_parts(known, [block]) is known


def test_single_kernels_of_every_smoothness_are_among_many_rows_alternatives():
    few, many = default_kernels(3, (), SINGLE_KERNELS_FROM - 1), default_kernels(3, (), SINGLE_KERNELS_FROM)
    assert all(isinstance(kernel, KernelSum) for kernel in few)
    assert many[: len(few)] == few
    assert sorted(smoothness(kernel) for kernel in many[len(few) :]) == [0.5, 1.5, np.inf]


def test_outputs_keep_kernels_of_their_own():
    """One output is rough, one is smooth: experts are of other kernels, and their labels say so."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1200, 2))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1]
    jumps = np.sign(np.sin(9 * X[:, 0])) + np.floor(4 * X[:, 1])
    Y = np.column_stack([smooth, jumps]) + 0.05 * rng.standard_normal((1200, 2))
    model = SPNGPRegressor(max_leaf_size=200, overlap=1, random_state=0).fit(X, Y)
    assert set(model.kernel_names_) >= {record["kernel"] for record in model.regions_}
    weights = model.predict_kernel_weights(X[:50])  # (rows, outputs, kernels)
    np.testing.assert_allclose(weights.sum(axis=2), 1.0, rtol=1e-9)
    used = weights.max(axis=0) > 0.5
    assert used.shape == (2, len(model.kernel_names_))
    assert (used[0] != used[1]).any()
