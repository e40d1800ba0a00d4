"""Hypothesis looks for the smallest network that breaks a property of ``benchmarks/soak/properties.py``."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soak.properties import (
    PROPERTIES,
    case_of,
    density_integrates_to_one,
    difference,
    quantiles_invert_the_cdf,
    said,
)
from spngp.predictive import GaussianMixture

SIZES = {
    "seed": st.integers(0, 2**31),
    "n": st.integers(1, 12),
    "d": st.integers(1, 3),
    "p": st.integers(1, 3),
    "depth": st.integers(0, 2),
}


@pytest.mark.parametrize("which", PROPERTIES, ids=lambda which: which.__name__)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(**SIZES)
def test_a_property_of_every_network(which, seed, n, d, p, depth):
    error = which(case_of(seed, n, d, p, depth))
    assert error <= PROPERTIES[which], f"{which.__name__} is off by {error:g}"


def test_properties_can_be_broken(monkeypatch):
    case = case_of(3, 8, 2, 1, 2)
    fewer = case.root.condition(case.X[:-1], case.Y[:-1])
    assert difference(said(fewer, case.X_new), said(case.root.condition(case.X, case.Y), case.X_new)) > 1e-6
    logpdf, quantile = GaussianMixture.logpdf, GaussianMixture.quantile
    monkeypatch.setattr(GaussianMixture, "logpdf", lambda self, y: logpdf(self, y) + 1e-5)
    assert density_integrates_to_one(case) > PROPERTIES[density_integrates_to_one]
    monkeypatch.setattr(GaussianMixture, "quantile", lambda self, q: quantile(self, q) + 1e-6)
    assert quantiles_invert_the_cdf(case) > PROPERTIES[quantiles_invert_the_cdf]
