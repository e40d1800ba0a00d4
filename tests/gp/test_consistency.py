"""A GP whose attributes do not agree, as a model file may say, is refused."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from spngp._linalg.square import Square
from spngp.gp.consistency import check_gp, check_inputs_of, check_noise_profile, check_repeats
from spngp.gp.exact import ExactGP
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.row_weights import KnownVariances, Repeats
from spngp.kernels import SquaredExponential


@pytest.fixture
def gp():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((7, 2)), rng.standard_normal(7)
    known = KnownVariances(rng.uniform(0, 1, 5))
    context = {"context_weights": np.array([0.5, 1.0]), "context_known": KnownVariances(np.zeros(2))}
    prior = ExactGP(SquaredExponential([1.0, 2.0]), 0.1)
    return prior.condition(X[:5], y[:5], X[5:], y[5:], weights=np.linspace(0.2, 1.0, 5), known=known, **context)


WRONG = {
    "outputs of a GP must have shape": {"_y": np.zeros((7, 1))},
    "alpha of a GP must have shape": {"_alpha": np.zeros(6)},
    "a GP must have as many rows as outputs": {"_X": np.zeros((6, 2))},
    "a factor must be of the size of its rows": {"_L": Square.zeros(6)},
    "a GP must have one noise": {"_noise": SquaredExponential().parameters},
    "the log evidence of a GP must be finite": {"log_evidence": np.nan},
    "the jitter of a GP must be finite and >= 0": {"_jitter": -1e-9},
    "the jitter of a GP must be finite": {"_jitter": np.inf},
    "a GP must have own rows, or none": {"n_own": -1},
    "a GP must have the weights of its own rows": {"n_own": 4},
    "a GP must have no more own rows than rows": {"n_own": 8, "_repeats": None},
    "weights of context rows must have shape": {"_context_weights": np.ones(3)},
    "weights of context rows must be finite": {"_context_weights": np.array([1.0, np.inf])},
    "weights of context rows must be > 0": {"_context_weights": np.array([1.0, 0.0])},
    "known variances of outputs must have shape": {"_variances": np.zeros(6)},
    "known variances of outputs must be finite": {"_variances": np.full(7, np.inf)},
    "known variances of outputs must be >= 0": {"_variances": np.full(7, -1.0)},
    "length_scale of SquaredExponential": {"_X": np.zeros((7, 3))},
}


def test_a_gp_that_was_conditioned_agrees(gp):
    check_gp(gp)
    check_gp(gp.with_theta(gp.theta))  # without rows
    check_gp(gp.with_factor())
    check_inputs_of([gp, gp.with_theta(gp.theta)], 2)


@pytest.mark.parametrize(("message", "changes"), WRONG.items(), ids=WRONG)
def test_what_does_not_agree_is_told(gp, message, changes):
    wrong = copy.copy(gp)
    for name, value in changes.items():
        setattr(wrong, name, value)
    with pytest.raises(ValueError, match=message):
        check_gp(wrong)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("centres of a noise profile must have shape", {"centres": np.zeros(1)}),
        ("length-scales of a noise profile must have shape", {"length_scales": np.ones((2, 1))}),
        ("coefficients of a noise profile must have shape", {"coefficients": np.zeros(3)}),
        ("axes of a noise profile must be", {"axes": np.array([0, -1])}),
        ("length-scales of a noise profile must be", {"length_scales": np.array([1.0, 0.0])}),
        ("coefficients of a noise profile must be finite", {"coefficients": np.array([1.0, np.nan])}),
        ("limits of a noise profile must be", {"most": 0.5}),
    ],
)
def test_a_noise_profile_that_does_not_agree_is_told(message, changes):
    sound = NoiseProfile(0.0, np.array([0, 1]), np.zeros(2), np.ones(2), np.zeros(2), least=1.0, most=2.0)
    check_noise_profile(sound)
    with pytest.raises(ValueError, match=message):
        check_noise_profile(replace(sound, **changes))


def test_a_prior_has_no_factor_and_needs_no_columns():
    prior = ExactGP(SquaredExponential([1.0, 2.0]), 0.1)
    check_gp(prior)
    prior._L = Square.zeros(0)
    with pytest.raises(ValueError, match="a factor must be of the size of its rows"):
        check_gp(prior)


def test_rows_and_kernel_must_have_the_inputs_of_the_model(gp):
    with pytest.raises(ValueError, match="a GP must have the inputs of its model, got 2"):
        check_inputs_of([gp], 3)
    with pytest.raises(ValueError, match="length_scale"):
        check_inputs_of([gp.with_theta(gp.theta)], 3)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("weights of rows must be a vector", {"counts": np.ones((3, 1))}),
        ("weights of rows and their sums must be finite", {"counts": np.array([1.0, np.nan, 1.0])}),
        ("weights of rows and their sums must be finite", {"scatter": np.inf}),
        ("weights of rows and their sums must be finite", {"log_weights": np.nan}),
        ("weights of rows must be > 0", {"counts": np.array([1.0, 0.0, 1.0])}),
        ("shares of rows must have shape", {"shares": np.ones(2)}),
        ("shares of rows must be finite", {"shares": np.array([1.0, np.inf, 1.0])}),
        ("shares of rows must be > 0", {"shares": np.array([1.0, 0.0, 1.0])}),
        ("scatter must be >= 0", {"scatter": -1e-3}),
        ("n_rows must be >= 3, got 2", {"n_rows": 2}),
    ],
)
def test_weights_that_do_not_agree_are_told(message, changes):
    sound = Repeats(np.array([1.0, 2.0, 0.5]), 0.0, 3, 0.0, np.ones(3))
    check_repeats(sound)
    with pytest.raises(ValueError, match=message):
        check_repeats(replace(sound, **changes))
