"""Components of groups of rows, joined: those of all rows, whatever number each group has."""

import numpy as np

from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum
from spngp.network.prediction import components, joined, mixture_of


def test_groups_of_rows_with_different_numbers_of_components():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(30)
    one, three = Leaf(Linear(), 0.1), Sum([Leaf(k, 0.1) for k in (SquaredExponential(), Matern(1.5), Linear())])
    posterior = Split(0, [0.0], [one, three]).condition(X, y)
    at = rng.uniform(-1, 1, (11, 1))
    groups = [np.flatnonzero(at[:, 0] <= 0.0), np.flatnonzero(at[:, 0] > 0.0)]
    assert all(group.size for group in groups)
    parts = [(group, components(posterior, at[group], None)) for group in groups]
    assert [part.means.shape[2] for _, part in parts] == [1, 3]
    found, expected = joined(parts), components(posterior, at, None)
    assert found.means.shape == (11, 1, 3)
    for latent in (False, True):
        a, b = mixture_of(found, latent), mixture_of(expected, latent)
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12)
        np.testing.assert_allclose(a.var, b.var, rtol=1e-12)
        np.testing.assert_allclose(a.cdf(np.zeros(11)), b.cdf(np.zeros(11)), rtol=1e-12)
