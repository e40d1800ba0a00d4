"""The shape of the noise of a living model: when it is learnt again, from which residuals, and what it adds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.kernels import Matern, SquaredExponential
from spngp.noise import GAUSSIAN, NoiseShape
from spngp.streaming import shapes, updating
from spngp.streaming.living import Living, ShapeCell, Shaped
from spngp.streaming.starting import start

OTHER = NoiseShape.scaled([0.9, 0.1], [1.0, 9.0])
KERNELS = [SquaredExponential(0.7), Matern(1.5, 1.5)]


def series(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@cache
def learnt():
    settings = {"max_leaf_size": 20, "overlap": 1, "hyperparameters": "fixed", "noise_variance": 0.01}
    model = SPNGPRegressor(KERNELS, random_state=0, noise_shape="gaussian", **settings).fit(*series(60))
    return model._learnt


def living(known=(60, 0), n_doubted=0, learns=True, doubts_outliers=True, reach=np.inf, **others) -> Living:
    """60 rows; the shape was learnt from so many rows and outputs in doubt."""
    found = start(learnt())
    base = replace(found.base, learns_noise_shape=learns, doubts_outliers=doubts_outliers, reach=np.array([reach]))
    doubts = {(number, 0): 1.0 for number in range(n_doubted)}
    shape = ShapeCell(Shaped((GAUSSIAN,), *known))
    return replace(found, base=base, doubts=doubts, shape=shape, **others)


NEVER = {"learns": False, "doubts_outliers": False}
OF_DOUBTS = {"learns": False}


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ({"known": (40, 0)}, False),  # half as many more
        ({"known": (39, 0)}, True),
        ({"known": (90, 0)}, False),
        ({"known": (91, 0)}, True),
        ({"known": (39, 0), **OF_DOUBTS}, False),
        ({"known": (39, 5), **NEVER}, False),
        ({"known": (50, 0), "since": 5}, False),  # of rows since a drift, a tenth
        ({"known": (49, 0), "since": 5}, True),
        ({"known": (60, 0), "since": 5}, False),
        ({"known": (61, 0), "since": 5}, True),
        ({"known": (50, 0), "since": 10}, False),
        ({"known": (56, 0), "since": 10}, True),
        ({"known": (56, 0), "since": 11}, False),  # fewer than 50: all rows count
        ({"known": (60, 2), "n_doubted": 2, **OF_DOUBTS}, False),
        ({"known": (60, 2), "n_doubted": 3, **OF_DOUBTS}, False),
        ({"known": (60, 2), "n_doubted": 4, **OF_DOUBTS}, True),
        ({"known": (60, 2), "n_doubted": 1, **OF_DOUBTS}, True),
        ({"known": (60, 1), "n_doubted": 0, **OF_DOUBTS}, True),
        ({"known": (60, 0), "n_doubted": 1, **OF_DOUBTS}, True),
        ({"known": (60, 0), "n_doubted": 1}, True),
    ],
)
def test_when_the_shape_is_learnt_again(given, again, monkeypatch):
    monkeypatch.setattr(shapes, "_learnt", lambda *_: OTHER)
    model = living(**given)
    assert shapes.current_shapes(model) == ((OTHER,) if again else (GAUSSIAN,))
    content = model.shape.content
    expected = (shapes._count(model), len(model.doubts)) if again else given["known"]
    assert (content.n_rows, content.n_doubted) == expected


def left_out_by_hand(model, region, expert, i):
    """Residual of an own row, from the expert given all others that the region sees; its variance but for the noise."""
    log, usual = model.log, expert.prior.noise_variance
    seen = region.reach.sees(region.box, log.W.values, model.base.scales)
    others = seen[log.numbers.values[seen] != i]
    known = np.zeros(log.n) if log.known is None else log.known.values[:, 0]
    weights = usual / (usual + known[others])
    gp = expert.prior.condition(log.W.values[others], log.Z.values[others, 0], weights=weights)
    mean, variance = (float(part[0]) for part in gp.predict(log.W.values[i : i + 1]))
    return float(log.Z.values[i, 0]) - mean, variance - usual + known[i]


@pytest.mark.parametrize("since", [0, 40])
@pytest.mark.parametrize("known", [False, True])
def test_residuals_are_those_of_rows_left_out(known, since):
    X, y = series(6, seed=1)
    given = np.linspace(0.0, 0.5, 6)[:, np.newaxis] if known else None
    model, _ = updating.add(start(learnt()), X, y[:, np.newaxis], variances=given)
    for i, region in enumerate(model.regions):
        own = region.numbers[region.numbers >= since]
        parts = shapes._residuals(model, i, 0, since)
        weights = model.index.log_path_weights([expert.leaf for expert in region.experts], model.values)
        plausible = [e for e in region.experts if weights[e.leaf] >= max(weights.values()) + np.log(0.05)]
        assert len(parts) == len(plausible)
        for expert, part in zip(plausible, parts, strict=True):
            expected = sorted(left_out_by_hand(model, region, expert, number) for number in own)
            np.testing.assert_allclose(sorted(part[:2].T.tolist()), expected, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(part[2], expert.prior.noise_variance)
            np.testing.assert_allclose(part[3], np.exp(weights[expert.leaf]))


@pytest.mark.parametrize(("ratio", "n_experts"), [(0.049, 1), (0.051, 2)])
def test_only_plausible_experts_are_asked(ratio, n_experts):
    """Those with a twentieth of the probability of the most probable one."""
    model = start(learnt())
    first, second = model.regions[0].experts
    evidences = {first.leaf: 0.0, second.leaf: float(np.log(ratio))}
    model = replace(model, values=model.index.updated(model.values, evidences))
    assert len(shapes._residuals(model, 0, 0, 0)) == n_experts


def test_a_region_without_rows_has_no_residuals():
    model = living()
    empty = replace(model.regions[0], numbers=np.empty(0, dtype=int))
    model = replace(model, regions=model.regions.with_items({0: empty}))
    assert shapes._residuals(model, 0, 0, 0) == []


def test_from_which_residuals_the_shape_is_learnt(monkeypatch):
    """Of some regions, at random, as many as have enough rows; without outputs out of all proportion."""
    told = []

    def note(name):
        monkeypatch.setattr(shapes, name, lambda held_out, **given: told.append((name, held_out, given)) or OTHER)

    note("learn_noise_shape")
    note("gaussian_noise")
    asked = []

    def residuals(model, i, k, since):
        asked.append((i, since))
        return [np.array([[0.5, 4.0, -0.5], [i] * 3, [1] * 3, [1] * 3])] * 2  # of two experts

    monkeypatch.setattr(shapes, "_residuals", residuals)
    n_regions = len(living().regions)
    assert n_regions > 3
    for given, name, adds in (
        ({}, "learn_noise_shape", {"adds_variance": False}),
        ({"since": 5}, "learn_noise_shape", {"adds_variance": True}),
        ({"since": 11}, "learn_noise_shape", {"adds_variance": False}),  # too few rows since
        ({"n_doubted": 1}, "learn_noise_shape", {"adds_variance": True}),
        ({"n_doubted": 1, "learns": False}, "gaussian_noise", {}),
    ):
        told.clear()
        asked.clear()
        assert shapes._learnt(living(reach=3.0, **given), 0) == OTHER
        ((function, held_out, options),) = told
        assert (function, options) == (name, adds)
        assert held_out.shape == (4, 4 * n_regions)
        assert np.abs(held_out[0]).max() == 0.5
        assert sorted(i for i, _ in asked) == list(range(n_regions))
        assert {since for _, since in asked} == ({5} if given.get("since") == 5 else {0})
    for since, name in ((5, "_ROWS_SINCE"), (0, "_ROWS_IN_ALL")):
        asked.clear()
        with monkeypatch.context() as patched:
            patched.setattr(shapes, name, 6)
            shapes._learnt(living(since=since), 0)
        assert len(asked) == 2  # three rows each


def test_without_residuals_or_doubts_noise_is_gaussian(monkeypatch):
    assert shapes._learnt(living(learns=False), 0) == GAUSSIAN
    assert shapes._learnt(living(learns=False, n_doubted=1, reach=1e-9), 0) == GAUSSIAN  # an error, not noise
    monkeypatch.setattr(shapes, "_residuals", lambda *_: [])
    assert shapes._learnt(living(), 0) == GAUSSIAN
