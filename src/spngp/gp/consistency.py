"""How the attributes of a GP must agree."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spngp._support.consistency import must, must_be_finite, must_be_positive, must_have_shape
from spngp.gp.exact import ExactGP
from spngp.gp.noise_profile import NoiseProfile
from spngp.gp.row_weights import Repeats


def check_repeats(repeats: Repeats) -> None:
    """Raise an error unless weights are positive and there are no more of them than rows."""
    must(repeats.counts.ndim == 1, "weights of rows must be a vector", repeats.counts.shape)
    must_be_finite([*repeats.counts, repeats.scatter, repeats.log_weights], "weights of rows and their sums")
    must_be_positive(repeats.counts, "weights of rows")
    must_have_shape(repeats.shares, repeats.counts.shape, "shares of rows")
    must_be_finite(repeats.shares, "shares of rows")
    must_be_positive(repeats.shares, "shares of rows")
    must_be_positive(repeats.scatter, "scatter", ">= 0")
    must(repeats.n_rows >= repeats.counts.size, f"n_rows must be >= {repeats.counts.size}", repeats.n_rows)


def check_gp(gp: ExactGP) -> None:
    """Raise an error unless rows, outputs, factor and weights of a GP fit each other."""
    n = gp._y.size
    must_have_shape(gp._y, (n,), "outputs of a GP")
    must_have_shape(gp._alpha, (n,), "alpha of a GP")
    must(gp._X.ndim == 2 and gp._X.shape[0] == n, "a GP must have as many rows as outputs", gp._X.shape)
    must(gp._L is None or (n and gp._L.n == n), "a factor must be of the size of its rows", gp._L)
    must(gp._noise.names == ("noise_variance",), "a GP must have one noise", gp._noise.names)
    must(math.isfinite(gp.log_evidence), "the log evidence of a GP must be finite", gp.log_evidence)
    must(0.0 <= gp._jitter < math.inf, "the jitter of a GP must be finite and >= 0", gp._jitter)
    must(gp.n_own >= 0, "a GP must have own rows, or none", gp.n_own)
    if gp._repeats is not None:
        must(gp._repeats.n_rows == gp.n_own, "a GP must have the weights of its own rows", gp._repeats.n_rows)
    must(gp.n_context >= 0, "a GP must have no more own rows than rows", gp._n_first)
    if gp._context_weights is not None:
        must_have_shape(gp._context_weights, (gp.n_context,), "weights of context rows")
        must_be_finite(gp._context_weights, "weights of context rows")
        must_be_positive(gp._context_weights, "weights of context rows")
    if gp._variances is not None:
        must_have_shape(gp._variances, (n,), "known variances of outputs")
        must_be_finite(gp._variances, "known variances of outputs")
        must_be_positive(gp._variances, "known variances of outputs", ">= 0")
    if n:
        gp.kernel.check_inputs(gp._X.shape[1])
        _check_profile(gp, gp._X.shape[1])


def check_inputs_of(gps: Iterable[ExactGP], n_inputs: int) -> None:
    """Raise an error unless all of them have this number of inputs."""
    for gp in gps:
        n_rows, n_columns = gp.shape_of_rows
        must(n_columns == n_inputs or not n_rows, "a GP must have the inputs of its model", n_columns)
        gp.kernel.check_inputs(n_inputs)
        _check_profile(gp, n_inputs)


def _check_profile(gp: ExactGP, n_inputs: int) -> None:
    if gp.noise_profile is not None:
        most = int(gp.noise_profile.axes.max(initial=-1))
        must(most < n_inputs, f"a noise profile must be along one of {n_inputs} inputs", most)


def check_noise_profile(profile: NoiseProfile) -> None:
    """Raise an error unless every bump has an input, a place, a width and a height."""
    m = profile.axes.size
    for of_bumps, what in (
        (profile.axes, "axes"),
        (profile.centres, "centres"),
        (profile.length_scales, "length-scales"),
        (profile.coefficients, "coefficients"),
    ):
        must_have_shape(of_bumps, (m,), f"{what} of a noise profile")
        must_be_finite(of_bumps, f"{what} of a noise profile")
    must_be_positive(profile.axes, "axes of a noise profile", ">= 0")
    must_be_positive(profile.length_scales, "length-scales of a noise profile")
    must_be_finite([profile.constant, profile.least, profile.most], "constant and limits of a noise profile")
    must_be_positive([profile.least, profile.most - profile.least], "limits of a noise profile")
