"""Rows in other units: a stream says the same in these, about all that is asked."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import spngp
from naive_streams import Naive
from spngp import SPNGPRegressor
from spngp.streaming.freezing import freeze

SCALE, SHIFT = 1024.0, -4096.0  # powers of two lose no digits
AT = np.random.default_rng(9).uniform(-2, 2, (7, 2))


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 1])], axis=1) + 0.2 * rng.standard_normal((n, 2))
    Y[rng.uniform(size=Y.shape) < 0.05] = np.nan
    return X, Y


@cache
def streamed(scale, shift):
    """A model of standardised rows after some have come, with known variances and without, and some have gone."""
    settings = {"max_leaf_size": 30, "hyperparameters": "tied", "overlap": 1, "outliers": "trust"}
    X, Y = rows(120)
    Y = scale * Y + shift
    model = SPNGPRegressor(noise_shape="gaussian", random_state=0, **settings).fit(X[:90], Y[:90])
    model.partial_fit(X[90:100], Y[90:100])
    variances = scale**2 * np.linspace(0.0, 0.5, 40).reshape(20, 2)
    return model.partial_fit(X[100:], Y[100:], y_variance=variances).forget(rows=[3, 4, 95, 110])


def test_predictions_are_in_the_units_of_the_outputs(tmp_path):
    one, other = streamed(1.0, 0.0), streamed(SCALE, SHIFT)
    assert (other._learnt.base.units.outputs.scale > 10).all()
    found, expected = other.predict_dist(AT), one.predict_dist(AT)
    np.testing.assert_allclose(found.mean, SCALE * expected.mean + SHIFT, rtol=1e-4)  # as well as optimised
    np.testing.assert_allclose(found.var, SCALE**2 * expected.var, rtol=1e-4)
    # a network with all rows, one that is frozen, and one row at a time say the same
    np.testing.assert_allclose(other.network_.predict_dist(AT).mean, found.mean, rtol=1e-9)
    np.testing.assert_allclose(other.network_.predict_dist(AT).var, found.var, rtol=1e-9)
    alone = [other.predict_dist(AT[i : i + 1]).var[0] for i in range(len(AT))]
    np.testing.assert_allclose(alone, found.var, rtol=1e-9)
    other.save(tmp_path / "m")
    np.testing.assert_allclose(spngp.load(tmp_path / "m").predict(AT), found.mean, rtol=1e-9)
    samples = other.sample_y(AT[:1], n_samples=4000, random_state=0)
    np.testing.assert_allclose(samples.reshape(2, -1).mean(axis=1), found.mean[0], atol=5 * found.std[0].max() / 60)


def test_evidences_are_those_of_the_outputs_as_they_were_given():
    one, other = streamed(1.0, 0.0), streamed(SCALE, SHIFT)
    n_observed = int((~np.isnan(one.y_train_)).sum())
    assert other.log_evidence_ == pytest.approx(one.log_evidence_ - n_observed * np.log(SCALE), rel=1e-6)
    assert other.log_evidence_ == pytest.approx(Naive(other._learnt).total(), rel=1e-9)
    assert other.network_.log_evidence == pytest.approx(other.log_evidence_, rel=1e-9)


def test_rows_and_known_variances_are_given_back_as_they_came():
    model = streamed(SCALE, SHIFT)
    X, Y = rows(120)
    kept = np.delete(np.arange(120), [3, 4, 95, 110])
    np.testing.assert_array_equal(model.X_train_, X[kept])
    np.testing.assert_allclose(model.y_train_, SCALE * Y[kept] + SHIFT, rtol=1e-12)
    variances = np.zeros((120, 2))
    variances[100:] = SCALE**2 * np.linspace(0.0, 0.5, 40).reshape(20, 2)
    variances[np.isnan(Y)] = 0.0  # nothing is known of what is missing
    np.testing.assert_allclose(freeze(model._learnt).variances, variances[kept], rtol=1e-12)
    np.testing.assert_allclose(
        model._learnt.log.known.values * model._learnt.base.units.outputs.scale**2, variances[kept], rtol=1e-12
    )


def test_how_surprising_outputs_are_does_not_depend_on_units():
    one, other = streamed(1.0, 0.0)._learnt.regions, streamed(SCALE, SHIFT)._learnt.regions
    pairs = [(a, b) for r, s in zip(one, other, strict=True) for a, b in zip(r.surprises, s.surprises, strict=True)]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert sum(a.size for a, _ in pairs) > 20
