"""Jumps: where cuts are placed, and kernels with levels between them."""

import contextlib
import itertools
import math

import numpy as np
import pytest

import spngp
from spngp import SPNGPRegressor, metrics
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Matern, Parameter, PiecewiseConstant, SquaredExponential
from spngp.learning import extending, jumps, search, tied
from spngp.learning.extending import with_jumps_instead
from spngp.learning.jumps import (
    best_cuts,
    fine_parts,
    levels_along,
    moved_cuts,
    placed_anew,
    with_gaps,
    with_jumps,
    with_levels_instead,
    worth,
)
from spngp.learning.parts import parts_of
from spngp.learning.plan import Effort
from spngp.learning.structure_left import Finding
from spngp.learning.tied_evidence import evidence


def square_wave(n, seed, d=3, w=9.0):
    """Inputs, outputs and the function: smooth along two inputs, a square wave where the last is positive."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    function = np.sin(4 * X[:, 0]) * np.cos(2 * X[:, 1]) + np.where(X[:, -1] > 0, np.sign(np.sin(w * X[:, -1])), 0.0)
    return X, function + 0.2 * rng.standard_normal(n), function


JUMPS = np.arange(3) * np.pi / 9.0


# Where cuts are


def gain(values, residuals, cuts, noise, spread):
    """What these cuts gain over none, from the formula of the module, cell by cell."""

    def log_evidence(rows):
        n = rows.size
        return 0.5 * spread * rows.sum() ** 2 / (noise * (noise + n * spread)) - 0.5 * math.log(1 + n * spread / noise)

    cells = np.array([sum(value > cut for cut in cuts) for value in values])
    cost = math.log(np.unique(values).size) * len(cuts)
    return sum(log_evidence(residuals[cells == c]) for c in range(len(cuts) + 1)) - cost


@pytest.mark.parametrize("seed", range(6))
def test_the_best_cuts_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.uniform(0, 5, 24), seed % 3)  # ties
    residuals = np.where(values > 2.2, 1.0, -1.0) * rng.integers(0, 3) + 0.3 * rng.standard_normal(24)
    order = np.argsort(values, kind="stable")
    noise = 0.5 * np.mean(np.diff(residuals[order]) ** 2)
    spread = max(residuals.var() - noise, 0.01 * noise)
    distinct = np.unique(values)
    gaps = 0.5 * (distinct[1:] + distinct[:-1])
    tries = [cuts for k in range(4) for cuts in itertools.combinations(gaps, k)]
    tries = [cuts for cuts in tries if min(np.bincount(np.searchsorted(cuts, values), minlength=len(cuts) + 1)) >= 5]
    best = max(tries, key=lambda cuts: gain(values, residuals, cuts, noise, spread))
    found = best_cuts(values, residuals)
    assert len(found) <= 3
    np.testing.assert_allclose(found, best)


def test_noise_has_no_cuts_and_equal_rows_cannot_be_cut():
    rng = np.random.default_rng(0)
    assert all(best_cuts(rng.uniform(size=300), rng.standard_normal(300)) == () for _ in range(10))
    assert best_cuts(np.ones(20), rng.standard_normal(20)) == ()
    assert best_cuts(np.repeat([0.0, 1.0], 10), np.repeat([0.0, 9.0], 10)) == ()  # a line does as well
    assert best_cuts(np.arange(20.0), np.zeros(20)) == ()


def test_what_jumps_everywhere_has_no_cuts():
    x = np.arange(2000.0)
    assert best_cuts(x, np.where(x // 10 % 2, 1.0, -1.0)) == ()


def test_a_cut_between_neighbouring_floats_is_the_lower_one():
    low = 1.0
    high = np.nextafter(low, 2.0)
    values = np.concatenate([np.linspace(0.5, low, 30), np.linspace(high, 1.5, 30)])
    assert best_cuts(values, np.repeat([0.0, 5.0], 30)) == (low,)


@pytest.mark.parametrize("seed", range(4))
def test_cuts_are_moved_to_where_squares_are_least(seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0, 3, 60)
    residuals = np.floor(values) % 2 + 0.4 * rng.standard_normal(60)
    at = [1.1, 1.9]
    cells = np.searchsorted(at, values, side="left")
    levels = [residuals[cells == c].mean() for c in range(3)]
    ordered = np.sort(values)
    starts = [0, *np.searchsorted(ordered, at, side="right"), 60]
    for i, moved in enumerate(moved_cuts(values, residuals, at)):
        inside = ordered[(starts[i] + starts[i + 1]) // 2 : (starts[i + 1] + starts[i + 2]) // 2]
        near = (values >= inside[0]) & (values <= inside[-1])

        def squares(cut, i=i, near=near):
            level = np.where(values[near] > cut, levels[i + 1], levels[i])
            return ((residuals[near] - level) ** 2).sum()

        tries = [squares(cut) for cut in 0.5 * (inside[1:] + inside[:-1])]
        assert squares(moved) == pytest.approx(min(tries))


@pytest.mark.parametrize("seed", range(30))
def test_moved_cuts_ascend_however_few_rows_are_in_a_cell(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.uniform(0, 4, 12), seed % 3)
    at = np.unique(rng.uniform(0, 4, 4)).tolist()
    found = moved_cuts(values, rng.standard_normal(12), at)
    assert all(low < high for low, high in itertools.pairwise(found))
    assert set(np.searchsorted(np.unique(values), found)) <= set(range(len(np.unique(values)) + 1))


@pytest.mark.parametrize("many", [False, True], ids=["dynamic programming", "moved one by one"])
def test_cuts_that_are_somewhat_off_come_back(many, monkeypatch):
    """A row on the wrong side of a cut is off by the height of the jump, and counts as much."""
    X, y, _ = square_wave(900, 5)
    smooth = SquaredExponential([0.5, 0.8, 50.0], 0.3)
    gp = ExactGP(smooth + PiecewiseConstant(2, np.add(JUMPS, [0.02, -0.01, 0.015]), 1.0), 0.04)
    if many:
        monkeypatch.setattr(jumps, "_MOST_ROWS", 100)
    found = parts_of(placed_anew(gp, [Block(X, y)]))[1]
    between = [((X[:, 2] > min(a, b)) & (X[:, 2] <= max(a, b))).sum() for a, b in zip(found.at, JUMPS, strict=True)]
    assert max(between) <= 2


# Kernels


def with_wave(noise=0.04):
    smooth = SquaredExponential([0.5, 0.8, 50.0], 0.3)
    return ExactGP(smooth + SquaredExponential([50.0, 50.0, 0.1], 1.0), Parameter(noise))


FINDING = Finding((2,), (0.1,), 0.5, 20.0)


@pytest.mark.parametrize("split", [1, 3])
def test_levels_take_the_place_of_a_fine_part(split):
    X, y, _ = square_wave(600, 0)
    blocks = [Block(np.ascontiguousarray(X[i::split]), y[i::split].copy()) for i in range(split)]
    found = with_jumps(with_wave(), [FINDING], blocks)
    smooth, levels = parts_of(found)
    assert smooth == parts_of(with_wave())[0]
    assert (levels.axis, levels.variance) == (2, 1.0)
    assert found.noise_variance == pytest.approx(0.04)
    np.testing.assert_allclose(levels.at, JUMPS, atol=0.03)
    assert worth(found, blocks) == pytest.approx(evidence(found, blocks) - 3 * math.log(600))
    astray = found.with_kernel(smooth + levels.moved(np.add(levels.at, 0.08)))
    np.testing.assert_allclose(parts_of(placed_anew(astray, blocks))[1].at, JUMPS, atol=0.03)


def test_parts_that_are_fine_along_one_input_are_told():
    assert fine_parts(with_wave()) == [(1, 2)]
    coarse = [SquaredExponential([0.3, 9.0]), SquaredExponential([0.1, 0.3]), SquaredExponential(0.1), Matern(0.5, 0.2)]
    assert fine_parts(ExactGP(sum(coarse[1:], coarse[0]))) == []
    assert fine_parts(ExactGP(SquaredExponential([0.1]) + Matern(0.5, [0.3]))) == [(0, 0)]  # of a single input
    levels = SquaredExponential([0.1, 9.0], levels=(3, 0)) + SquaredExponential([9.0, 0.1], levels=(3, 0))
    assert fine_parts(ExactGP(levels)) == [(1, 1)]


def test_levels_take_over_what_a_part_follows_along_one_input():
    X, y, _ = square_wave(600, 0)
    blocks = [Block(X, y)]
    gp = ExactGP(with_wave().kernel, Parameter(0.04))
    found = with_levels_instead(gp, 1, 2, blocks)
    smooth, rest, levels = parts_of(found)
    assert smooth == parts_of(gp)[0]
    np.testing.assert_allclose(rest.length_scale, [50.0, 50.0, 3.0])
    assert (levels.axis, levels.variance) == (2, 1.0)
    np.testing.assert_allclose(levels.at, JUMPS, atol=0.03)
    start, learnt = with_jumps_instead(gp, gp, blocks, blocks, 10, Effort())
    assert worth(learnt, blocks) > worth(gp, blocks) + 10.0
    assert len(parts_of(start)) == len(parts_of(learnt)) == 3
    rng = np.random.default_rng(0)
    noise = [Block(X, rng.standard_normal(600))]
    assert with_levels_instead(gp, 1, 2, noise) is None
    assert with_jumps_instead(gp, gp, noise, noise, 10, Effort()) == (gp, gp)


def test_gaps_reach_from_row_to_row():
    X, y, _ = square_wave(200, 6)
    gp = ExactGP(SquaredExponential() + PiecewiseConstant(2, [-5.0, *JUMPS, JUMPS[-1] + 1e-9]), 0.04)
    levels = parts_of(with_gaps(gp, [Block(X[:80], y[:80]), Block(X[80:], y[80:])]))[1]
    assert len(levels.at) == len(levels.gaps) == 3
    for cut, width, jump in zip(levels.at, levels.gaps, JUMPS, strict=True):
        low, high = X[X[:, 2] <= jump, 2].max(), X[X[:, 2] > jump, 2].min()
        np.testing.assert_allclose([cut - 0.5 * width, cut + 0.5 * width], [low, high], atol=1e-5)
    assert (levels.cells(X) == np.rint(levels.cells(X))).all()


def test_what_does_not_jump_gets_a_rough_part_or_none():
    X, y, _ = square_wave(300, 1)
    rng = np.random.default_rng(0)
    assert with_jumps(with_wave(), [FINDING], [Block(X, rng.standard_normal(300))]) is None
    pair = Finding((0, 2), (0.1, 0.1), 0.5, 20.0)
    assert with_jumps(with_wave(), [pair], [Block(X, y)]) is None


@pytest.mark.parametrize("known", [None, KnownVariances(np.linspace(0.1, 0.5, 40))], ids=["learnt", "known"])
def test_what_levels_should_explain_is_what_all_else_leaves(known):
    """Leave-one-out residuals and what levels say that are there already, none far beyond these."""
    X, y, _ = square_wave(40, 2)
    y[7] = 30.0
    smooth, levels = SquaredExponential([0.5, 0.8, 50.0], 0.3), PiecewiseConstant(2, JUMPS, 1.5)
    values, residuals = levels_along(ExactGP(smooth + levels, 0.04), [Block(X, y, known)], 2)
    noise = 0.04 + (0.0 if known is None else known.variances)
    precision = np.linalg.inv(smooth.gram(X) + levels.gram(X) + np.diag(noise * np.ones(40)))
    left = precision @ y / np.diag(precision)
    said = levels.gram(X) @ precision @ y
    limit = 3.0 * 1.4826 * np.median(np.abs(left))
    np.testing.assert_allclose(values, X[:, 2])
    np.testing.assert_allclose(residuals, np.clip(left + said, said.min() - limit, said.max() + limit), rtol=1e-8)
    assert (left + said).max() > said.max() + limit


# Fits


@pytest.fixture(scope="module")
def jumping():
    X, y, function = square_wave(1200, 3)
    return SPNGPRegressor(max_leaf_size=300, random_state=0).fit(X, y), X, y, function


@contextlib.contextmanager
def without_jumps():
    """As if no kernel could have levels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extending, "with_jumps", lambda *given: None)
        patch.setattr(search, "fine_parts", lambda gp: [])
        yield


def judged(n, seed, noise, **settings):
    """RMSE to the function and NLPD on rows that were not learnt from, with jumps and without."""
    X, y, function = square_wave(n + 3000, seed)
    errors = np.random.default_rng([seed, 1]).standard_normal(n + 3000)
    y = function + noise * errors
    wrong = settings.pop("wrong", 0)
    learnt = y[:n].copy()
    learnt[:wrong] += 8.0 * np.sign(errors[:wrong])
    found = []
    for context in (contextlib.nullcontext, without_jumps):
        with context():
            model = SPNGPRegressor(random_state=0, **settings).fit(X[:n], learnt)
        mixture = model.predict_dist(X[n:])
        found.append((metrics.rmse(mixture, function[n:]), metrics.nlpd(mixture, y[n:])))
    return found


def test_new_rows_are_predicted_better_where_there_is_hardly_any_noise():
    """Nobody knows where between two rows a jump is, and intervals there must say so."""
    (rmse, nlpd), (rmse_without, nlpd_without) = judged(900, 7, 0.02)
    assert rmse < rmse_without
    assert nlpd < nlpd_without - 0.3


def test_gross_errors_become_no_levels():
    (rmse, nlpd), (rmse_without, nlpd_without) = judged(2000, 8, 0.2, wrong=20, max_leaf_size=300)
    assert rmse < rmse_without
    assert nlpd < nlpd_without


def test_cuts_are_placed_at_last_by_all_rows_but_those_that_look_like_errors(monkeypatch):
    X, y, _ = square_wave(1500, 9)
    sound, at_last = [], []

    def without_some(*given):
        sound.append([block.only(np.arange(3, block.y.size)) for block in given[1]])
        return sound[-1]

    def placed(known, blocks, n_jobs, **given):
        if given.get("at_last"):
            at_last.append(blocks)
        return search.with_jumps_placed(known, blocks, n_jobs, **given)

    monkeypatch.setattr(tied, "_sound", without_some)
    monkeypatch.setattr(tied, "with_jumps_placed", placed)
    SPNGPRegressor(max_leaf_size=300, random_state=0).fit(X, y)
    (blocks,) = at_last
    assert blocks is sound[-1]
    assert sum(block.y.size + 3 for block in blocks) == 1500


def test_a_fit_sees_jumps_and_tells_where_they_are(jumping):
    model, X, _, function = jumping
    assert np.sqrt(np.mean((model.predict(X) - function) ** 2)) < 0.09  # a Matern-1/2 along the wave: .14
    likeliest = max(model.regions_, key=lambda record: record["weight"] * len(record["jumps"]))
    (found,) = likeliest["jumps"]
    assert found["input"] == 2
    inside = [jump for jump in JUMPS if likeliest["low"][2] < jump < likeliest["high"][2]]
    np.testing.assert_allclose(found["at"], inside, atol=0.01)


def test_a_model_with_jumps_is_saved_and_updated(jumping, tmp_path):
    model, X, y, _ = jumping
    path = tmp_path / "jumps.spngp"
    model.save(path)
    same = spngp.load(path)
    np.testing.assert_array_equal(same.predict(X[:50]), model.predict(X[:50]))
    before = same.predict(X[:50], return_std=True)
    same.forget(rows=[7, 11])
    assert np.abs(np.subtract(same.predict(X[:50], return_std=True), before)).max() > 1e-4
    same.partial_fit(X[[7, 11]], y[[7, 11]])
    assert not same.events_  # regions are as they were
    np.testing.assert_allclose(same.predict(X[:50], return_std=True), before, rtol=1e-7, atol=1e-7)


def test_a_sine_is_no_square_wave():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (900, 2))
    y = np.sin(3 * X[:, 0]) + np.sin(15 * X[:, 1]) + 0.2 * rng.standard_normal(900)
    model = SPNGPRegressor(max_leaf_size=300, random_state=0).fit(X, y)
    assert not any(record["jumps"] for record in model.regions_)
